"""`socratic-runner sweep`: many runs over a grid of settings, one document."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from .arguments import Flags, parse
from .sweep_flags import NO_PROCESSES, PROCESSES, build_parser

if TYPE_CHECKING:
    from socratic_bench.documents.sweep import SweepDocument
    from socratic_bench.errors import BenchError, Words
    from socratic_bench.runs import CancelToken
    from socratic_bench.studies.sweep.plan_file import PlanFile
    from socratic_bench.studies.sweep.request import SweepRequest
    from socratic_bench.studies.sweep.sweep import SweepResult


def main(words: Sequence[str]) -> int:
    """Play what is missing of a grid of runs, print the sweep's document."""
    from socratic_bench.errors import BenchError

    from .output import print_failure
    from .run_in_thread import take_signals

    flags, problems = parse(build_parser(), words)
    cancel_token = take_signals()
    try:
        asked = asked_of(flags, problems)
        if flags.get("dry-run"):
            from .sweep_estimate import dry_run

            return dry_run(asked, flags, call_by_flags(), cancel_token)
        result = _perform(asked, flags, cancel_token)
    except BenchError as error:
        error.call_settings(call_by_flags())
        if error.end_reason == "interrupted":  # before there was a sweep
            error.hint = "Nothing was played or kept: give the command again."
        print_failure(error)
        return error.exit_code
    return _report(result, flags)


def asked_of(flags: Flags, problems: "Sequence[Words]") -> "SweepRequest":
    """The sweep that flags and their plan ask for. Raises `UsageError` with these problems and all
    others.
    """
    from socratic_bench.statistics.intervals import is_available
    from socratic_bench.studies.sweep.preflight import check
    from socratic_bench.studies.sweep.request import read_sweep

    from .sources import sources

    if PROCESSES in flags:
        problems = [*problems, NO_PROCESSES]
    plan = plan_of(flags, problems)
    given = {**plan.flags, **flags}
    keeps = not flags.get("dry-run")
    asked, misread = read_sweep(flags, sources(given), plan, keeps=keeps)
    check(asked, [*problems, *misread], is_available)
    return asked


def plan_of(flags: Flags, problems: "Sequence[Words]") -> "PlanFile":
    """The plan that the flags name, with its mistakes. Raises `UsageError` with the given problems
    and its own if none of it can be read.
    """
    from socratic_bench.errors import UsageError
    from socratic_bench.studies.sweep.plan_file import NO_PLAN, read_plan_file

    if not isinstance(path := flags.get("plan"), str):
        return NO_PLAN
    try:
        return read_plan_file(path)
    except UsageError as error:
        raise UsageError([*problems, *error.sentences]) from error


def call_by_flags() -> "Callable[[str], str]":
    from .sweep_flags import flag_of

    return flag_of


def _perform(asked: "SweepRequest", flags: Flags, cancel_token: "CancelToken") -> "SweepResult":
    from socratic_bench.studies.sweep.sweep import perform_sweep

    from .run_in_thread import run_in_thread
    from .sweep_display import display_for

    display = display_for(quiet=bool(flags.get("quiet")))
    playing = partial(perform_sweep, display=display, cancel_token=cancel_token)
    return run_in_thread(partial(playing, asked, call=call_by_flags()))


def told(result: "SweepResult") -> "tuple[SweepDocument, int]":
    """What is printed of a sweep, and its exit code."""
    from socratic_bench.statistics.intervals import is_available
    from socratic_bench.studies.sweep.document import document_of, exit_code

    if result.error is not None:
        result.error.call_settings(call_by_flags())
    document = document_of(result, has_intervals=is_available(), call=call_by_flags())
    return document, exit_code(result, document.minimum_gates)


def _report(result: "SweepResult", flags: Flags) -> int:

    from .output import print_document

    document, code = told(result)
    unwritten = print_document(
        document,
        words=partial(_say_outcome, document, result.error, flags),
        error=result.error or document.error,
        pretty=bool(flags.get("pretty")),
    )
    return code or unwritten


def _say_outcome(document: "SweepDocument", error: "BenchError | None", flags: Flags) -> None:
    if not flags.get("quiet"):
        from .sweep_closing import say_results

        say_results(document)
    if error is not None and flags.get("debug"):
        from .output import print_traceback

        print_traceback(error)
