"""`socratic-runner schema KIND`: the JSON Schema of a document."""

from collections.abc import Sequence

from socratic_bench.benchmarks import RunConfig, load_benchmark
from socratic_bench.documents.schema import COMMON, WRITTEN_BY_PEOPLE, Documents
from socratic_bench.studies.sweep.settings import SweepSettings

from .arguments import Parser, parse_strictly
from .flags import add_switches
from .output import DEFAULT_BENCHMARK, print_document

# Kinds of files in a folder or bucket.
STORED = (
    *("curated", "turn", "judge", "closing_verdict", "journal", "journal_entry", "lease"),
    *("sweep_begun", "sweep_row", "sweep_spending"),
)


def main(words: Sequence[str]) -> int:
    """Print the schema of one kind of document."""
    parser = build_parser()
    flags = parse_strictly(parser, words)
    documents = Documents(load_benchmark(flags.benchmark), RunConfig, SweepSettings)
    if flags.kind not in documents.kinds:
        kinds = ", ".join(sorted(documents.kinds))
        parser.error(
            f"{flags.benchmark} has no kind of document {flags.kind!r}; available: {kinds}"
        )
    return print_document(documents.schema(flags.kind), is_always_printed=True)


def build_parser() -> Parser:
    kinds = sorted({*COMMON, "sweep_plan", *load_benchmark(DEFAULT_BENCHMARK).documents})
    parser = Parser(
        prog="socratic-runner schema",
        description="Prints the JSON Schema (2020-12) of a kind of document.\n\nexample:\n"
        "  socratic-runner schema run",
    )
    groups = {
        "printed": [kind for kind in kinds if kind not in (*STORED, *WRITTEN_BY_PEOPLE, "label")],
        "stored": STORED,
        "written by you": ("label", *WRITTEN_BY_PEOPLE),
    }
    text = "; ".join(f"{name}: {', '.join(members)}" for name, members in groups.items())
    parser.add_argument("kind", metavar="KIND", help=text)
    parser.offers["kind"] = kinds
    parser.add_argument(
        "--benchmark",
        metavar="NAME",
        default=DEFAULT_BENCHMARK,
        help="benchmark of the document (default %(default)s)",
    )
    add_switches(parser, "debug")
    return parser
