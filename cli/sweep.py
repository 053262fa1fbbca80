"""`socratic-runner sweep`: many runs over a grid of settings, one document."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from .arguments import Flags, Parser, parse
from .stdout import EXIT_UNWRITTEN

if TYPE_CHECKING:
    from socratic_bench.documents.sweep import SweepDocument
    from socratic_bench.errors import BenchError, Words
    from socratic_bench.runner import CancelToken
    from socratic_bench.sweeps.asked import Asked
    from socratic_bench.sweeps.plan_file import PlanFile
    from socratic_bench.sweeps.sweep import SweepResult

USAGE = "socratic-runner sweep [PLAN.toml] --models ID ... [options]"


def main(words: Sequence[str]) -> int:
    """Play what is missing of a grid of runs, print the sweep's document."""
    from socratic_bench.errors import BenchError
    from socratic_bench.runner import CancelToken

    from .output import print_failure
    from .run import leave, take_signals

    parser = build_parser(words)
    flags, problems = parse(parser, words)
    cancel_token = CancelToken()
    take_signals(cancel_token)
    try:
        asked = _asked(flags, problems)
        if flags.get("dry-run"):
            from .sweep_estimate import dry_run

            return leave(dry_run(asked, flags, call_by_flags(), cancel_token), cancel_token)
        result = _perform(asked, flags, cancel_token)
    except BenchError as error:
        error.call_settings(call_by_flags())
        if error.end_reason == "interrupted":  # before there was a sweep
            error.hint = "Nothing was played or kept: give the command again."
        print_failure(error)
        number = getattr(error, "signal_number", None)
        return leave(128 + number if number else error.exit_code, cancel_token)
    return _report(result, flags)


def build_parser(words: Sequence[str] = ()) -> Parser:
    """The flags of a run, but those of axes as a sweep has them, and the sweep's own."""
    del words
    from .sweep_flags import build

    return build(USAGE)


def _asked(flags: Flags, problems: "Sequence[Words]") -> "Asked":
    from socratic_bench.sweeps.asked import NOTHING_KEPT, read_sweep
    from socratic_bench.sweeps.checking import check

    from .sources import sources

    plan = plan_of(flags, problems)
    given = {**plan.flags, **flags}
    asked, misread = read_sweep(flags, sources(given), plan)
    if flags.get("dry-run"):  # which keeps nothing
        misread = [one for one in misread if one != NOTHING_KEPT]
    check(asked, [*problems, *misread], asked.grid.cells())
    return asked


def plan_of(flags: Flags, problems: "Sequence[Words]") -> "PlanFile":
    """The plan that the flags name, with its mistakes. Raises `UsageError` with the given problems
    and its own if none of it can be read.
    """
    from socratic_bench.errors import UsageError
    from socratic_bench.sweeps.plan_file import NO_PLAN, read_plan_file

    if not isinstance(path := flags.get("plan"), str):
        return NO_PLAN
    try:
        return read_plan_file(path)
    except UsageError as error:
        raise UsageError([*problems, *error.said]) from error


def call_by_flags() -> "Callable[[str], str]":
    from .sweep_flags import flag_of

    return flag_of


def _perform(asked: "Asked", flags: Flags, cancel_token: "CancelToken") -> "SweepResult":
    from socratic_bench.sweeps.sweep import perform_sweep

    from .run_in_thread import run_in_thread
    from .sweep_display import display_for

    display = display_for(quiet=bool(flags.get("quiet")))
    playing = partial(perform_sweep, display=display, cancel_token=cancel_token)
    return run_in_thread(partial(playing, asked, call=call_by_flags()))


def _report(result: "SweepResult", flags: Flags) -> int:
    from socratic_bench.documents.plain import plain_keys
    from socratic_bench.statistics.quantiles import is_available
    from socratic_bench.sweeps.document import document_of, exit_code

    from .output import print_document
    from .process import leave_now

    if result.error is not None:
        result.error.call_settings(call_by_flags())
    document, code = document_of(result, has_intervals=is_available()), exit_code(result)
    printed = print_document(
        plain_keys(document),
        words=partial(_say_outcome, document, result.error, flags),
        pretty=bool(flags.get("pretty")),
    )
    leave_now(code if printed else code or EXIT_UNWRITTEN)


def _say_outcome(document: "SweepDocument", error: "BenchError | None", flags: Flags) -> None:
    from socratic_bench.errors import BenchError

    from .output import print_traceback, say_error

    if not flags.get("quiet"):
        from .sweep_closing import say_results

        say_results(document)
    if error is not None:
        if flags.get("debug"):
            print_traceback(error)
        say_error(error)
    elif document.error is not None:
        say_error(BenchError(document.error.message, hint=document.error.hint))
