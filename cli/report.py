"""`socratic-runner report RUNS...`: stored runs as a report that others can read."""

import re
import sys
from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from .arguments import Parser, parse_strictly
from .stored_runs import WHICH_RUNS, add_judging, add_output, add_runs, calling_flags_of

if TYPE_CHECKING:
    from socratic_bench.documents.calibration import CorrectionDocument
    from socratic_bench.documents.judge_status import StoredCalibration
    from socratic_bench.documents.report import ReportDocument
    from socratic_bench.errors import Words

EPILOG = """\
exit codes: 0 written, 2 usage, 4 a store cannot be read or a file not written.
"""
MAX_SIZE = "30MB"
FORMS = {
    "html": ("FILE", "write one HTML file that asks nothing of any network"),
    "markdown": ("FILE", "write its words and tables as Markdown"),
    "csv": ("DIR", "write runs.csv, turns.csv and verdicts.csv into a folder, for spreadsheets"),
    "parquet": ("DIR", "write the same rows into a folder as Parquet (extra tables)"),
    "png": ("DIR", "write each chart into a folder as PNG on white, for a paper"),
    "svg": ("DIR", "write each chart into a folder as SVG on white, for a paper"),
}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(B|KB|MB)?", re.IGNORECASE)
_UNITS = {"B": 1, "KB": 1_000, "MB": 1_000_000}


def main(words: Sequence[str]) -> int:

    from .output import print_document, waiting_for

    parser = build_parser()
    found = parse_strictly(parser, words)
    max_bytes = checked(found, parser.prog)
    with waiting_for("the stored runs", quiet=found.quiet), calling_flags_of(parser):
        document = written(found, max_bytes)
    words_of = partial(_say, document)
    return print_document(document, words=words_of, quiet=found.quiet, pretty=found.pretty)


def build_parser() -> Parser:
    parser = Parser(
        prog="socratic-runner report",
        description="Writes a report of stored runs: which model is best and how sure that is, "
        "figures by turn, sample and kind of turn, cost, latency, and every transcript. Needs the "
        "extra report, but for --csv and --parquet. Several forms can be written at once.",
        epilog=EPILOG,
    )
    add_runs(parser)
    for form, (metavar, told) in FORMS.items():
        parser.add_argument(f"--{form}", metavar=metavar, help=told)
    parser.add_argument(
        "--labels",
        metavar="FILE",
        nargs="+",
        help="people's labels of turns of these runs, JSONL or CSV: figures are corrected by them",
    )
    add_judging(parser)
    parser.add_argument(
        "--calibration",
        metavar="FILE",
        help="say if judges are calibrated by this, or by those in a DIR or s3://BUCKET/PREFIX",
    )
    parser.add_argument(
        "--max-size",
        metavar="SIZE",
        default=MAX_SIZE,
        help=f"leave transcripts out of a larger file, such as 600KB (default {MAX_SIZE})",
    )
    add_output(parser, "nothing on stderr")
    return parser


def checked(found: Namespace, prog: str) -> int:
    """The most bytes that a file may have. Raises `UsageError` with every mistake."""
    from socratic_bench.errors import UsageError
    from socratic_bench.studies.report.exports import problems_of

    problems: list[Words] = [] if found.runs else [WHICH_RUNS]
    asked = _asked(found)
    if not asked:
        problems.append(f"What is to be written: name it with --{', --'.join(FORMS)}.")
    problems += problems_of(asked)
    max_bytes = _read_size(found.max_size, problems)
    if problems:
        raise UsageError(problems, hint=f"See {prog} --help.")
    return max_bytes


def _read_size(word: str, problems: "list[Words]") -> int:
    size = _SIZE.fullmatch(word)
    if size is None:
        problems.append(f"--max-size {word!r} is no size such as 600KB or 30MB.")
        return 0
    # No file has more.
    return int(min(float(size[1]) * _UNITS[(size[2] or "B").upper()], sys.maxsize))


def _asked(found: Namespace) -> dict[str, str]:
    """Where each form goes that is asked for."""
    return {form: path for form in FORMS if (path := getattr(found, form)) is not None}


def written(found: Namespace, max_bytes: int) -> "ReportDocument":
    from socratic_bench.documents.report import ReportDocument, ReportFile
    from socratic_bench.studies.report.exports import export, write_all
    from socratic_bench.studies.report.rows import read_rows

    from .sources import bucket_region, call_by_flags

    rows = read_rows(found.runs, bucket_region, found.judging, _calibrations(found))
    corrected = partial(_corrected, found)
    made = export(rows, _asked(found), max_bytes, corrected, call_by_flags())
    write_all(made.files)
    return ReportDocument(
        benchmark=rows.benchmark.name,
        models=made.models,
        n_runs=len(rows.runs),
        n_failed=len(rows.failed),
        sentences=made.sentences,
        sections=made.sections,
        left_out=made.left_out,
        files=[ReportFile(form=one.form, path=one.path, bytes=len(one.body)) for one in made.files],
    )


def _calibrations(found: Namespace) -> "Sequence[StoredCalibration]":
    if found.calibration is None:
        return ()
    from socratic_bench.runs.prepare import calibrations_at

    from .sources import bucket_region

    return calibrations_at(found.calibration, bucket_region)


def _corrected(found: Namespace) -> "CorrectionDocument | None":
    """Figures by labels, if there are any."""
    if not found.labels:
        return None
    from socratic_bench.studies.calibrate.corrections import CorrectionRequest, correct

    from .sources import bucket_region

    return correct(
        CorrectionRequest(runs=tuple(found.runs), labels=tuple(found.labels)), bucket_region
    )


def _say(document: "ReportDocument") -> None:
    from .output import plain, say

    for sentence in document.sentences:
        say(plain(sentence))
    for one in document.files:
        say(f"{plain(one.path)}: {one.bytes / 1000:,.0f} KB")
    if document.left_out:
        say(f"{len(document.left_out)} transcripts left out (--max-size)")
