"""`socratic-runner report RUNS...`: stored runs as a report that others can read."""

import re
import sys
import webbrowser
from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from socratic_bench.documents.calibration import CorrectedFigures
from socratic_bench.documents.judge_status import StoredCalibration
from socratic_bench.documents.report import ReportDocument
from socratic_bench.errors import UsageError, Words
from socratic_bench.runs.prepare import calibrations_at
from socratic_bench.studies.calibrate.corrections import CorrectionRequest, correct_runs
from socratic_bench.studies.report.exports import find_problems, write_report
from socratic_bench.studies.report.study import Rows, read_rows

from .arguments import Parser, parse_strictly
from .flags import WHICH_RUNS, add_judging, add_output, add_runs
from .output import plain, print_document, say, waiting_for
from .settings import bucket_region, call_by_flags, calling_flags

DESCRIPTION = """\
Writes a report of stored runs: which model is best, by how much, whether that is
significant, where each model fails, and every transcript. Takes several formats
at once.
HTML and charts need:
  pip install "socratic-runner[report]"

example:
  socratic-runner report results --html report.html --open
"""
EPILOG = "exit codes: 0 written, 2 usage, 4 storage cannot be read or a file not written\n"
MAX_SIZE, MAX_BYTES = "30MB", 30_000_000
DEFAULT_PAGE = "report.html"
FORMS = {
    "html": ("FILE", f"write one self-contained HTML file (default {DEFAULT_PAGE})"),
    "markdown": ("FILE", "write the text and tables of the report as Markdown"),
    "csv": ("DIR", "write runs.csv, turns.csv and verdicts.csv into a folder"),
    "parquet": ("DIR", "the same tables as Parquet (needs socratic-runner[tables])"),
    "png": ("DIR", "write the charts into a folder as PNG on white"),
    "svg": ("DIR", "write the charts into a folder as SVG on white"),
}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(B|KB|MB)?", re.IGNORECASE)
_UNITS = {"B": 1, "KB": 1_000, "MB": 1_000_000}


def main(words: Sequence[str]) -> int:
    """Write the report in every form that the flags ask for, print what was written."""
    parser = build_parser()
    flags = parse_strictly(parser, words)
    max_bytes = check(flags, parser.prog)
    with waiting_for("the stored runs", quiet=flags.quiet), calling_flags(parser):
        document = write(flags, max_bytes)
    if flags.open:
        webbrowser.open(Path(_paths(flags)["html"]).absolute().as_uri())
    words_of = partial(_say, document)
    return print_document(document, words=words_of, flags=vars(flags))


def build_parser() -> Parser:
    parser = Parser(
        prog="socratic-runner report",
        description=DESCRIPTION,
        epilog=EPILOG,
    )
    add_runs(parser)
    for form, (metavar, text) in FORMS.items():
        parser.add_argument(f"--{form}", metavar=metavar, help=text)
    parser.add_argument(
        "--labels",
        metavar="FILE",
        nargs="+",
        action="extend",
        help="human labels of some turns (JSONL or CSV): corrects scores for the judge's bias",
    )
    add_judging(parser)
    parser.add_argument(
        "--calibration",
        metavar="FILE",
        help="output of calibrate (file, folder or s3:// prefix): marks calibrated judges",
    )
    parser.add_argument(
        "--max-size",
        metavar="SIZE",
        default=MAX_SIZE,
        help=f"omit transcripts until the file is at most SIZE (default {MAX_SIZE})",
    )
    parser.add_argument("--open", action="store_true", help="open the HTML file in a browser")
    add_output(parser)
    return parser


def check(flags: Namespace, prog: str) -> int:
    """The most bytes that a file may have. Raises `UsageError` with every mistake."""
    problems: list[Words] = [] if flags.runs else [WHICH_RUNS]
    problems += find_problems(_paths(flags))
    if flags.open and "html" not in _paths(flags):
        problems.append("--open needs --html FILE.")
    max_bytes = _read_size(flags.max_size, problems)
    if problems:
        raise UsageError(problems, hint=f"See {prog} --help.")
    return max_bytes


def write(flags: Namespace, max_bytes: int) -> ReportDocument:
    """Write the files; returns what was written."""
    rows = read_rows(flags.runs, bucket_region, flags.judging, _calibrations(flags))
    correction = partial(_correct, flags, rows)
    return write_report(rows, _paths(flags), max_bytes, correction, call_by_flags())


def _read_size(word: str, problems: list[Words]) -> int:
    size = _SIZE.fullmatch(word)
    if size is None:
        problems.append(f"--max-size takes a size such as 600KB or 30MB, not {word!r}.")
        return 0
    # No file is larger.
    return int(min(float(size[1]) * _UNITS[(size[2] or "B").upper()], sys.maxsize))


def _paths(flags: Namespace) -> dict[str, str]:
    """Where each form is to be written, of those that the flags ask for; else one page."""
    paths = {form: path for form in FORMS if (path := getattr(flags, form)) is not None}
    return paths or {"html": DEFAULT_PAGE}


def _calibrations(flags: Namespace) -> Sequence[StoredCalibration]:
    if flags.calibration is None:
        return ()
    return calibrations_at(flags.calibration, bucket_region)


def _correct(flags: Namespace, rows: Rows) -> CorrectedFigures | None:
    """Figures corrected by labels, if there are labels."""
    if not flags.labels:
        return None
    request = CorrectionRequest(labels=tuple(flags.labels))
    return correct_runs(request, rows.runs, rows.benchmark)


def _say(document: ReportDocument) -> None:
    for sentence in document.sentences:
        say(plain(sentence))
    for file in document.files:
        say(f"{plain(file.path)}: {file.bytes / 1000:,.0f} KB")
    if document.left_out:
        say(f"{len(document.left_out)} transcripts left out (--max-size)")
