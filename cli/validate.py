"""`socratic-runner validate FILE...`: checks files of one's own, without a call."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from .arguments import Parser, parse_strictly
from .stored_runs import add_output

if TYPE_CHECKING:
    from socratic_bench.documents.doctor import FileEntry, ValidationDocument


def main(words: Sequence[str]) -> int:
    """Exit code 2 if there is anything to mend."""
    from socratic_bench.errors import ENDINGS

    from .output import print_document

    parser = build_parser()
    found = parse_strictly(parser, words)
    if not found.files:
        parser.refuse(["Which files: name one or more."])
    document = _checked(found.files, found.benchmark)
    words_of = partial(_say, document)
    unwritten = print_document(document, words=words_of, quiet=found.quiet, pretty=found.pretty)
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


def _checked(files: Sequence[str], benchmark: str | None) -> "ValidationDocument":
    from socratic_bench.benchmarks import load_benchmark
    from socratic_bench.studies.sweep.validation import validate

    from .output import DEFAULT_BENCHMARK

    return validate([*dict.fromkeys(files)], load_benchmark(benchmark or DEFAULT_BENCHMARK))


def _say(document: "ValidationDocument") -> None:
    from socratic_bench.types import plural

    from .output import plain, say

    for one in document.files:
        _say_file(one)
    for line in document.problems:
        say(f"! {plain(line)}")
    files = plural(len(document.files), "file")
    say(f"{files}, {plural(document.n_problems, 'problem')}")


def _say_file(one: "FileEntry") -> None:
    from . import terminal
    from .output import plain, say

    mark = " " if one.ok else terminal.coloured("!", terminal.RED)
    say(f"{mark} {plain(one.file)}: {one.file_kind}{', ok' if one.ok else ''}")
    for problem in one.problems:
        say(f"    - {plain(problem)}")
