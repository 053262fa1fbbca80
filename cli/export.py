"""`socratic-runner export RUNS --format FORM`: stored runs in the formats of other tools."""

from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import get_args

from socratic_bench.documents.report import ExportDocument, ExportForm
from socratic_bench.errors import UsageError, Words
from socratic_bench.studies.formats.inspect_log import write_logs
from socratic_bench.studies.formats.mlflow_runs import log_runs
from socratic_bench.studies.formats.table_files import write_tables
from socratic_bench.studies.report.study import Rows, read_rows
from socratic_bench.types import plural

from .arguments import Parser, parse_strictly
from .flags import WHICH_RUNS, add_judging, add_output, add_runs
from .output import plain, print_document, say, waiting_for
from .settings import bucket_region, calling_flags

DESCRIPTION = """\
Writes stored runs in the formats of other tools: logs of inspect_ai, runs in
MLflow, or tables with their JSON Schemas.

examples:
  socratic-runner export results --format inspect --out logs
  socratic-runner export results --format jsonl --out tables
"""
EPILOG = "exit codes: 0 written, 2 usage, 4 storage cannot be read or a file not written\n"
FORMS: tuple[str, ...] = get_args(ExportForm)
PACKAGES = {"inspect": "inspect_ai", "mlflow": "mlflow", "parquet": "duckdb"}
EXTRAS = {"inspect": "inspect", "mlflow": "mlflow", "parquet": "tables"}
WRITERS: Mapping[str, Callable[[Rows, str], list[str]]] = {
    "inspect": write_logs,
    "jsonl": partial(write_tables, form="jsonl"),
    "csv": partial(write_tables, form="csv"),
    "parquet": partial(write_tables, form="parquet"),
}


def main(words: Sequence[str]) -> int:
    """Write the runs in one format, print what was written."""
    parser = build_parser()
    flags = parse_strictly(parser, words)
    _check(flags, parser)
    with waiting_for("the stored runs", quiet=flags.quiet), calling_flags(parser):
        rows = read_rows(flags.runs, bucket_region, flags.judging)
        written = _write(rows, flags)
    document = ExportDocument(
        form=flags.format, benchmark=rows.benchmark.name, n_runs=len(rows.runs), written=written
    )
    return print_document(document, words=partial(_say, document), flags=vars(flags))


def build_parser() -> Parser:
    parser = Parser(prog="socratic-runner export", description=DESCRIPTION, epilog=EPILOG)
    add_runs(parser)
    parser.add_argument("--format", metavar="FORM", help=f"one of {', '.join(FORMS)}")
    parser.offers["--format"] = FORMS
    parser.add_argument(
        "--out",
        metavar="PLACE",
        help="folder for the files; with mlflow a tracking URI (default: MLFLOW_TRACKING_URI)",
    )
    add_judging(parser)
    add_output(parser, "nothing on stderr")
    return parser


def _check(flags: Namespace, parser: Parser) -> None:
    problems: list[Words] = [] if flags.runs else [WHICH_RUNS]
    if flags.format not in FORMS:
        problems.append(f"--format must be one of {', '.join(FORMS)}, not {flags.format!r}.")
    elif flags.format != "mlflow" and not flags.out:
        problems.append("--out DIR is required.")
    parser.refuse(problems)


def _write(rows: Rows, flags: Namespace) -> list[str]:
    try:
        if flags.format == "mlflow":
            return log_runs(rows, flags.out)
        return WRITERS[flags.format](rows, flags.out)
    except ImportError as error:
        name = flags.format
        text = f"--format {name} needs {PACKAGES.get(name, error.name)}"
        hint = f'pip install "socratic-runner[{EXTRAS.get(name, name)}]"'
        raise UsageError([f"{text}: {hint}."]) from error


def _say(document: ExportDocument) -> None:
    for place in document.written:
        say(plain(place))
    say(f"{plural(document.n_runs, 'run')} exported as {document.form}")
