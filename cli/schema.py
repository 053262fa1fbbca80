"""`socratic-runner schema KIND`: the JSON Schema of a document."""

from collections.abc import Sequence

from .arguments import Parser, parse_strictly
from .flags import add_switches


def main(words: Sequence[str]) -> int:
    """Print the schema of one kind of document."""
    from socratic_bench.benchmarks import RunConfig, load_benchmark
    from socratic_bench.documents.kinds import Documents
    from socratic_bench.studies.sweep.settings import SweepSettings

    from .output import print_document

    parser = build_parser()
    found = parse_strictly(parser, words)
    documents = Documents(load_benchmark(found.benchmark), RunConfig, SweepSettings)
    if found.kind not in documents.kinds:
        known = f"there is {', '.join(sorted(documents.kinds))}"
        parser.error(f"no document of {found.benchmark} is of the kind {found.kind!r}: {known}")
    return print_document(documents.schema(found.kind))


def build_parser() -> Parser:
    from socratic_bench.documents.schemas import KINDS

    from .output import DEFAULT_BENCHMARK

    parser = Parser(
        prog="socratic-runner schema",
        description="Prints the JSON Schema (2020-12) of a kind of document.",
    )
    parser.add_argument("kind", metavar="KIND", help=f"one of {', '.join(KINDS)}")
    parser.offered["kind"] = KINDS
    parser.add_argument(
        "--benchmark",
        metavar="NAME",
        default=DEFAULT_BENCHMARK,
        help="the benchmark whose document it is (default %(default)s)",
    )
    add_switches(parser, "debug")
    return parser
