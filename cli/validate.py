"""`socratic-runner validate FILE...`: checks files of the user's own, without a call."""

from collections.abc import Sequence
from functools import partial

from socratic_bench.benchmarks import load_benchmark
from socratic_bench.documents.doctor import ValidationDocument
from socratic_bench.errors import ENDINGS
from socratic_bench.studies.sweep.preflight import validate
from socratic_bench.types import plural

from . import terminal
from .arguments import Parser, parse_strictly
from .flags import add_output
from .output import DEFAULT_BENCHMARK, plain, print_document, say


def main(words: Sequence[str]) -> int:
    """Check the files, print what is wrong; the exit code is 2 if there is anything to mend."""
    parser = build_parser()
    flags = parse_strictly(parser, words)
    if not flags.files:
        parser.refuse(["Which files: name one or more."])
    benchmark = load_benchmark(flags.benchmark or DEFAULT_BENCHMARK)
    document = validate([*dict.fromkeys(flags.files)], benchmark)
    unwritten = print_document(
        document, words=partial(_say, document), quiet=flags.quiet, pretty=flags.pretty
    )
    return unwritten or (0 if document.ok else ENDINGS["usage"].exit_code)


def build_parser() -> Parser:
    parser = Parser(
        prog="socratic-runner validate",
        description="Checks files of your own: TOML is the plan of a sweep or a file of the "
        "benchmark's own, JSON prices, other text prompts. Nothing is called. Exit code 0, or 2 if "
        "there is anything to mend.",
    )
    parser.add_argument("files", metavar="FILE", nargs="*", help="a file of your own")
    parser.add_argument("--benchmark", metavar="NAME", help="whose files they are")
    add_output(parser)
    return parser


def _say(document: ValidationDocument) -> None:
    for file in document.files:
        mark = " " if file.ok else terminal.coloured("!", terminal.RED)
        say(f"{mark} {plain(file.file)}: {file.file_kind}{', ok' if file.ok else ''}")
        for problem in file.problems:
            say(f"    - {plain(problem)}")
    for line in document.problems:
        say(f"! {plain(line)}")
    files = plural(len(document.files), "file")
    say(f"{files}, {plural(document.n_problems, 'problem')}")
