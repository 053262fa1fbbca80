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

KINDS = {"plan": "config file"}  # how people read a kind of file


def main(words: Sequence[str]) -> int:
    """Check the files, print what is wrong; the exit code is 2 if there is anything to mend."""
    parser = build_parser()
    flags = parse_strictly(parser, words)
    if not flags.files:
        parser.refuse(["Missing argument FILE."])
    benchmark = load_benchmark(flags.benchmark or DEFAULT_BENCHMARK)
    document = validate([*dict.fromkeys(flags.files)], benchmark)
    unwritten = print_document(document, words=partial(_say, document), flags=vars(flags))
    return unwritten or (0 if document.ok else ENDINGS["usage"].exit_code)


def build_parser() -> Parser:
    parser = Parser(
        prog="socratic-runner validate",
        description="Checks files without calling any model: TOML (sweep config, scenario, "
        "rubric), JSON (prices), and text or JSONL (prompts).\n\nexample:\n"
        "  socratic-runner validate sweep.toml scenario.toml",
        epilog="exit codes: 0 ok, 2 a file has problems",
    )
    parser.add_argument("files", metavar="FILE", nargs="*", help="file to check")
    parser.add_argument("--benchmark", metavar="NAME", help="benchmark that the files are for")
    add_output(parser)
    return parser


def _say(document: ValidationDocument) -> None:
    for file in document.files:
        mark = " " if file.ok else terminal.coloured("!", terminal.RED)
        kind = KINDS.get(file.file_kind, file.file_kind)
        say(f"{mark} {plain(file.file)}: {kind}{', ok' if file.ok else ''}")
        for problem in file.problems:
            say(f"    - {plain(problem)}")
    for line in document.problems:
        say(f"! {plain(line)}")
    files = plural(len(document.files), "file")
    say(f"{files}, {plural(document.n_problems, 'problem')}")
