"""`socratic-runner sweep status STORE` and `sweep collect STORE`: what a store has of a sweep,
whichever machines play it.
"""

import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from socratic_bench.documents.sweep_status import SweepStatus
from socratic_bench.errors import ENDINGS
from socratic_bench.studies.report.exports import find_problems, write_report
from socratic_bench.studies.report.study import read_rows
from socratic_bench.studies.sweep.collect import StoredSweep
from socratic_bench.types import plural

from . import terminal
from .arguments import Parser, parse_strictly
from .flags import add_output
from .output import plain, print_document, say, say_live, say_table, waiting_for
from .report import MAX_BYTES
from .settings import bucket_region, call_by_flags, calling_flags
from .sweep_run import document_and_exit_code, say_result
from .terminal import marked, number, rough_duration

STATUS = """\
Shows the progress of a sweep, read from its folder or bucket, whichever machines
run it. STORE is an output folder or s3:// prefix (then its newest sweep is
shown), or one sweep: STORE/sweeps/SWEEP_ID.

examples:
  socratic-runner sweep status s3://BUCKET/PREFIX
  socratic-runner sweep status results --watch
"""
STATUS_CODES = """\
exit codes: 0 every run is completed, 2 usage, 4 runs are missing or failed, or
the storage cannot be read
"""
COLLECT = """\
Prints the document of a sweep, read from its folder or bucket, as if one process
had run it all, and writes its report. Missing runs are counted. STORE is as in
sweep status.

example:
  socratic-runner sweep collect s3://BUCKET/PREFIX --html report.html
"""
COLLECT_CODES = """\
exit codes: 0 complete, 2 usage, 4 runs are missing or failed, or the storage
cannot be read, 5 a limit of the sweep was missed, or too few turns were judged
"""
EVERY_S = 5.0
MOST_LINES = 20
EXIT_MISSING = ENDINGS["unavailable"].exit_code
REPORT_FORMS = {"html": "one self-contained HTML file", "markdown": "Markdown"}


def main_status(words: Sequence[str]) -> int:
    """Print how far a sweep is; 0 only if it is done."""
    parser = build_status_parser()
    flags = parse_strictly(parser, words)
    with calling_flags(parser):
        with waiting_for(f"reading {plain(flags.store)}", quiet=flags.quiet):
            sweep = StoredSweep(flags.store, bucket_region)
            status = sweep.status()
        if flags.watch:
            status = watch(sweep.status, status, quiet=flags.quiet)
    printed = print_document(status, words=partial(say_status, status), flags=vars(flags))
    return printed or (0 if status.is_done else EXIT_MISSING)


def main_collect(words: Sequence[str]) -> int:
    """Print the document of the whole sweep, and write its report."""
    parser = build_collect_parser()
    flags = parse_strictly(parser, words)
    paths = {form: path for form in REPORT_FORMS if (path := getattr(flags, form))}
    parser.refuse([*find_problems(paths)])
    with waiting_for(f"reading {plain(flags.store)}", quiet=flags.quiet), calling_flags(parser):
        result = StoredSweep(flags.store, bucket_region).result()
        if paths:
            _write_report(flags, result.begun.sweep_id, paths)
    document, code = document_and_exit_code(result)
    printed = print_document(
        document,
        words=partial(say_result, document, result),
        flags=vars(flags),
        error=document.error,
    )
    return code or printed


def build_status_parser() -> Parser:
    parser = Parser(prog="socratic-runner sweep status", description=STATUS, epilog=STATUS_CODES)
    _add_store(parser)
    parser.add_argument(
        "--watch",
        action="store_true",
        help=f"refresh every {EVERY_S:g} s until no run is running or missing",
    )
    add_output(parser)
    return parser


def build_collect_parser() -> Parser:
    parser = Parser(prog="socratic-runner sweep collect", description=COLLECT, epilog=COLLECT_CODES)
    _add_store(parser)
    for form, what in REPORT_FORMS.items():
        parser.add_argument(f"--{form}", metavar="FILE", help=f"write the report as {what}")
    add_output(parser)
    return parser


def _add_store(parser: Parser) -> None:
    parser.add_argument("store", metavar="STORE", help="folder or s3://BUCKET/PREFIX of the sweep")


def _write_report(flags: Namespace, sweep_id: str, paths: dict[str, str]) -> None:
    place = flags.store.rstrip("/")
    place = place if place.endswith(sweep_id) else f"{place}/sweeps/{sweep_id}"
    rows = read_rows([place], bucket_region, None, ())
    report = write_report(rows, paths, MAX_BYTES, lambda: None, call_by_flags())
    for file in report.files if not flags.quiet else ():
        say(f"{plain(file.path)}: {file.bytes / 1000:,.0f} KB")


def watch(
    read: Callable[[], SweepStatus],
    status: SweepStatus,
    *,
    quiet: bool,
    sleep: Callable[[float], None] = time.sleep,
) -> SweepStatus:
    """Show the status until nothing runs or is missing; returns the last one. A terminal shows the
    table anew each time, a log gets a line when something has changed.
    """
    shown = ""
    while True:
        if terminal.is_live() and not quiet:
            say_live(terminal.CLEAR_SCREEN)
            say_status(status)
        elif not quiet and (line := _line(status)) != shown:
            shown = line
            say(line)
        if not (status.n_running or status.n_missing):
            return status
        sleep(EVERY_S)
        status = read()


def say_status(status: SweepStatus) -> None:
    """Print a table of the models, the runs that are under way, and a line for the whole."""
    heads = ("model", "runs", "done", "running", "failed", "missing")
    rows = [
        (
            model.model,
            *map(str, (model.n_runs, model.n_completed, model.n_running)),
            marked(model.n_failed),
            str(model.n_missing),
        )
        for model in status.models
    ]
    say_table(heads, rows)
    for line in _run_lines(status):
        say(plain(line))
    say(_line(status))


def _run_lines(status: SweepStatus) -> Iterator[str]:
    for run in status.unfinished[:MOST_LINES]:
        values = ", ".join(str(value) for value in run.axes.values() if value is not None)
        where = f" ({values}, repeat {run.repeat})" if values else ""
        age = "none" if run.age_seconds is None else f"{rough_duration(run.age_seconds)} ago"
        left = "pending in a batch job" if run.is_pending else "interrupted"
        state = "running" if run.is_running else left
        turns = plural(run.n_turns, "turn")
        yield f"{run.run_id}{where}: {state}, {turns}, last record {age}"
    if len(status.unfinished) > MOST_LINES:
        yield f"and {len(status.unfinished) - MOST_LINES} more unfinished runs"
    reasons = {failed.error.message: failed for failed in status.failed if failed.error}
    for message, failed in [*reasons.items()][:MOST_LINES]:
        yield f"{failed.run_id} failed: {message}"


def _line(status: SweepStatus) -> str:
    parts = [f"{status.n_completed} of {plural(status.n_runs, 'run')} done"]
    parts += [f"{status.n_running} running"]
    parts += [f"{status.n_failed} failed"] if status.n_failed else []
    parts += [f"{status.n_missing} missing"] if status.n_missing else []
    parts += [f"{number(status.spent_usd)} USD"] if status.spent_usd is not None else []
    return f"{status.sweep_id[-4:]}: {', '.join(parts)}"
