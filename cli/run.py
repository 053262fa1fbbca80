"""`socratic-runner run`: one dialogue, one document."""

import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from functools import partial

from . import signals
from .arguments import Flags, parse
from .flags import build_parser

TYPE_CHECKING = False  # see cli/process.py
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import FrameType
    from typing import Any

    from socratic_bench.benchmarks import RunConfig
    from socratic_bench.documents.result import RunResult
    from socratic_bench.errors import Problem, Words
    from socratic_bench.ports.benchmark import Benchmark
    from socratic_bench.ports.store import Entry
    from socratic_bench.runs import CancelToken, Plan

    from .preloader import Preloader


def main(words: Sequence[str]) -> int:
    """Parse, play, print, and answer with the exit code."""
    parser = build_parser()
    if words and not words[0].startswith("-"):
        parser.refuse_command(words[0])
    flags, problems = parse(parser, words)
    return play(flags, problems)


def play(flags: Flags, problems: "Sequence[Words]", run_id: str | None = None) -> int:
    """The run that the flags ask for; with a `run_id`, one that began earlier."""
    config, misread = read(flags)
    cancel_token = take_signals()
    try:
        config, found, entries = continuing(
            flags, config, [*problems, *misread], run_id, cancel_token
        )
        plan = planned(flags, config, found)
        if flags.get("dry-run"):
            return estimate(plan, flags, cancel_token)
        result = _perform(plan, cancel_token, entries, flags)
    except Exception as error:  # noqa: BLE001 -- whose document says what was to be played
        return leave(_report_unstarted(error, config, flags), cancel_token)
    return _report(result, plan.benchmark, flags)


def _report_unstarted(raised: Exception, config: "RunConfig", flags: Flags) -> int:
    """The document of a run that never came to be; the exit code."""
    from socratic_bench.errors import BenchError, InternalError

    from .output import print_failed_run, print_traceback

    error = raised if isinstance(raised, BenchError) else InternalError.of(raised)
    if error is not raised and flags.get("debug"):
        print_traceback(raised)
    error.call_settings(call_by_flags())
    if error.end_reason == "interrupted":  # before there was a run
        error.hint = "Nothing was played or kept: give the command again."
    pretty, brief = bool(flags.get("pretty")), bool(flags.get("brief"))
    print_failed_run(error, config, pretty=pretty, brief=brief)
    return error.exit_code


def leave(code: int, cancel_token: "CancelToken") -> int:
    """At once if the run was told to end: something may still be waited for in another thread."""
    if cancel_token.error is not None:
        from .process import leave_now

        leave_now(code)
    return code


def planned(flags: Flags, config: "RunConfig", problems: "Sequence[Words]") -> "Plan":
    from socratic_bench.runs import prepare
    from socratic_bench.settings import fields_of

    return prepare(config, problems, flagged=fields_of(type(config), flags))


def continuing(
    flags: Flags,
    config: "RunConfig",
    problems: "Sequence[Words]",
    run_id: str | None,
    cancel_token: "CancelToken",
) -> "tuple[RunConfig, Sequence[Words], Sequence[Entry]]":
    """What the flags ask for, with what an earlier process of the run was asked for, if they name
    one; what is wrong with it; and what that process has answered.

    Raises `UsageError` if there is no such run.
    """
    if run_id is None and "resume-from" not in flags:
        return config, problems, ()
    from msgspec.structs import replace

    from socratic_bench.settings import continued

    from .earlier import find_earlier

    # What may be tested may be told by the run's beginning.
    rest = [words for words in problems if isinstance(words, str) or not _is_of_ids(words)]
    earlier = find_earlier(flags, config, rest, run_id, cancel_token)
    if earlier is None:
        return config, problems, ()
    if told := _read_otherwise(flags, config, earlier.config):
        config, misread = read({**flags, **told})
        problems = [*rest, *misread]
    config = continued(earlier.config, config, flags)
    return replace(config, resume_run_id=earlier.run_id), problems, earlier.entries


def _read_otherwise(flags: Flags, config: "RunConfig", earlier: "RunConfig") -> Flags:
    """What the run's beginning says of the endpoint, by which other settings are read."""
    told: dict[str, str | bool] = {}
    if earlier.offline and not config.offline:
        told["offline"] = True
    if earlier.provider != config.provider and "provider" not in flags:
        told["provider"] = earlier.provider
    return told


def _is_of_ids(problem: "Problem") -> bool:
    return "model_ids" in problem.settings


def call_by_flags() -> "Callable[[str], str]":
    from socratic_bench.benchmarks import RunConfig
    from socratic_bench.settings import flag_names

    from .options import Options

    return flag_names((RunConfig, Options))


@contextmanager
def calling_flags() -> "Iterator[None]":
    """What is wrong with a setting is said of its flag."""
    from socratic_bench.errors import UsageError

    try:
        yield
    except UsageError as error:
        error.call_settings(call_by_flags())
        raise


def estimate(plan: "Plan", flags: Flags, cancel_token: "CancelToken") -> int:
    """Print what the run would take; the exit code."""
    from socratic_bench.documents.error import ErrorEntry
    from socratic_bench.errors import ENDINGS
    from socratic_bench.runs import in_time
    from socratic_bench.runs.dry_run import dry_run

    from .estimate import say_estimate
    from .output import print_document, waiting_for
    from .run_in_thread import run_in_thread

    # It uses the network, too: to see which endpoint this is, and to count tokens.
    predict = partial(dry_run, plan, call_by_flags())
    quiet = bool(flags.get("quiet"))
    with waiting_for("the endpoint, to count tokens", quiet=quiet):
        document: Mapping[str, Any] = run_in_thread(lambda: in_time(predict, cancel_token))
    # The refusal by which the run is known to fail.
    error = ErrorEntry(**document["error"]) if document["error"] else None
    words, pretty = partial(say_estimate, document), bool(flags.get("pretty"))
    unwritten = print_document(document, words=words, quiet=quiet, error=error, pretty=pretty)
    return ENDINGS[document["end_reason"]].exit_code if error else unwritten


def _report(result: "RunResult", benchmark: "Benchmark", flags: Flags) -> int:
    from .output import print_document
    from .process import leave_now

    if result.error is not None:
        result.error.call_settings(call_by_flags())
    unwritten = print_document(
        result.brief if flags.get("brief") else result.document,
        words=partial(_say_outcome, result, benchmark, flags),
        pretty=bool(flags.get("pretty")),
        hint=_how_to_print_again(result),
    )
    # A normal interpreter exit would only cost time.
    leave_now(result.exit_code or unwritten)


def _say_outcome(result: "RunResult", benchmark: "Benchmark", flags: Flags) -> None:
    from socratic_bench.errors import BenchError

    from .output import print_traceback, say_error

    tag = ""
    if not flags.get("quiet"):
        from .closing import say_closing
        from .progress import tag_of

        tag = tag_of(result.run_id)
        say_closing(result, benchmark, call_by_flags())
    if result.error is not None:
        if flags.get("debug"):
            print_traceback(result.error)
        say_error(result.error, tag)
    elif result.shortfalls:
        say_error(BenchError(" ".join(result.shortfalls)), tag)


def _how_to_print_again(result: "RunResult") -> str:
    from socratic_bench.runs.resume import stored_words

    if result.folder or result.s3:
        words = stored_words(result.config, result.run_id).told(call_by_flags())
        return f"Its artifacts are whole; print it: {words}"
    return "Nothing else keeps this run: give --output-dir next time."


def read(flags: Flags) -> "tuple[RunConfig, tuple[Problem, ...]]":
    from socratic_bench.benchmarks import RunConfig
    from socratic_bench.settings import read_config

    from .sources import sources

    return read_config(RunConfig, sources(flags))


def _perform(
    plan: "Plan", cancel_token: "CancelToken", entries: "Sequence[Entry]", flags: Flags
) -> "RunResult":
    """Play in another thread; the main thread stays free for signals."""
    from socratic_bench.runs import perform

    from .preloader import import_while_waiting
    from .run_in_thread import run_in_thread

    listener = listener_for(plan, quiet=bool(flags.get("quiet")))

    def play() -> "RunResult":
        try:
            return perform(
                plan,
                listener=listener,
                cancel_token=cancel_token,
                entries=entries,
                is_journal_shown="brief" not in flags,
            )
        finally:
            listener.called.set()

    modules = plan.benchmark.late_modules
    return run_in_thread(
        play, lambda thread: import_while_waiting(thread, listener.called, modules)
    )


def listener_for(plan: "Plan", *, quiet: bool) -> "Preloader":
    """Who tells people of it."""
    if quiet:
        from .preloader import Preloader

        return Preloader()
    from .progress import Progress

    return Progress(plan.config, plan.benchmark)


def take_signals() -> "CancelToken":
    """A token that the first signal ends, which is then reported; a second one ends the process.

    The handlers stay to the end: what comes while the document is written changes nothing in it.
    """
    from socratic_bench.runs import CancelToken

    cancel_token = CancelToken()
    first_s: list[float] = []

    def take(number: int, _frame: "FrameType | None") -> None:
        now_s = time.monotonic()
        if not first_s:
            first_s.append(now_s)
            cancel_token.interrupt(number)
        elif number != signal.SIGHUP or now_s - first_s[0] > signals.HANGUP_S:
            os._exit(128 + number)

    for number in signals.taken():
        signal.signal(number, take)
    return cancel_token
