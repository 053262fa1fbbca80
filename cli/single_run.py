"""One run of the command: from its flags to its document and exit code."""

import errno
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson
from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.benchmarks import RunConfig
from socratic_bench.documents.document import ErrorEntry
from socratic_bench.documents.run import RunResult
from socratic_bench.errors import ENDINGS, BenchError, InternalError, Problem, UsageError, Words
from socratic_bench.ports.benchmark import Benchmark
from socratic_bench.ports.store import Entry
from socratic_bench.runs import (
    CancelToken,
    Plan,
    document_entries,
    earlier_config,
    perform,
    prepare,
    run_cancellable,
    stored_config,
)
from socratic_bench.runs.dry_run import dry_run
from socratic_bench.runs.resume import stored_words
from socratic_bench.settings import (
    MAX_STORED_BYTES,
    NOTHING_TO_RESUME,
    continued,
    fields_of,
    read_bounded,
)

from .arguments import Flags
from .output import (
    print_document,
    print_failed_run,
    print_traceback,
    read_stdin,
    waiting_for,
)
from .pipeline import pipeline_problems, write_checks
from .progress import listener_for, say_estimate, say_result
from .run_in_thread import run_in_thread, take_signals
from .settings import call_by_flags, read
from .tracing import close_traces, open_traces, trace_problems

if TYPE_CHECKING:
    from socratic_bench.studies.formats.checks import Checks
    from socratic_bench.tracing.exporting import Traces


class EarlierRun(Struct, frozen=True, kw_only=True):
    """A run that began earlier: its configuration, and its id in a store or its journal."""

    config: RunConfig
    run_id: str | None = None
    entries: Sequence[Entry] = ()


def perform_run(flags: Flags, problems: Sequence[Words], run_id: str | None = None) -> int:
    """Perform the run that the flags ask for, or resume the one named by `run_id`.

    Prints the document, also of a run that could not start; returns the exit code.
    """
    config = RunConfig(model="")
    try:
        flags, misread_file = _with_config_file(flags)
        config, misread = read(flags)
        cancel_token = take_signals()
        problems = [*problems, *misread_file]
        problems = [*problems, *pipeline_problems(flags), *trace_problems(flags)]
        config, mistakes, entries = with_earlier_run(
            flags, config, [*problems, *misread], run_id, cancel_token
        )
        plan = prepare(config, mistakes, flagged=fields_of(type(config), flags))
        if flags.get("dry-run"):
            return print_estimate(plan, flags, cancel_token)
        traces = open_traces(flags)
        result = _perform(plan, cancel_token, entries, flags, traces)
    except Exception as error:  # noqa: BLE001 -- the document says what was asked for
        return _print_unstarted(error, config, flags)
    code = _print_result(result, plan.benchmark, flags)
    close_traces(traces, flags)
    return code


def _with_config_file(flags: Flags) -> tuple[Flags, Sequence[Problem]]:
    if "config" not in flags:
        return flags, ()
    from .config_file import with_config_file

    return with_config_file(flags)


def with_earlier_run(
    flags: Flags,
    config: RunConfig,
    problems: Sequence[Words],
    run_id: str | None,
    cancel_token: CancelToken,
) -> tuple[RunConfig, Sequence[Words], Sequence[Entry]]:
    """Complete the configuration of a resumed run by what its first process was asked for.

    Returns the configuration, what is wrong with it, and the journal entries of a document that is
    resumed. Raises `UsageError` if there is no such run.
    """
    if run_id is None and "resume-from" not in flags:
        return config, problems, ()
    # Which models may be tested may be known from the run's journal.
    mistakes = [words for words in problems if isinstance(words, str) or not _is_of_ids(words)]
    earlier = _find_earlier(flags, config, mistakes, run_id, cancel_token)
    if earlier is None:
        return config, problems, ()
    if earlier.config.offline and not config.offline:
        config, misread = read({**flags, "offline": True})
        problems = [*mistakes, *misread]
    config = continued(earlier.config, config, flags)
    return replace(config, resume_run_id=earlier.run_id), problems, earlier.entries


def _find_earlier(
    flags: Flags,
    config: RunConfig,
    problems: Sequence[Words],
    run_id: str | None,
    cancel_token: CancelToken,
) -> EarlierRun | None:
    """The earlier run that the flags name, in a document or a store; `None` if they name none.

    Raises `UsageError` if it is not there, and what ends the run while a store is asked.
    """
    path, quiet = flags.get("resume-from"), bool(flags.get("quiet"))
    if isinstance(path, str):
        if config.resume:
            raise UsageError(["--resume and --resume-from cannot be combined."])
        document = run_in_thread(
            lambda: run_cancellable(lambda: _read_document(path, quiet=quiet), cancel_token)
        )
        entries = document_entries(document)
        return EarlierRun(config=earlier_config(entries), entries=entries)
    if run_id is None:
        return None
    if not (config.output_dir or config.s3_bucket):
        problems = [*problems, NOTHING_TO_RESUME]
    if problems:
        raise UsageError(problems)
    with waiting_for("the store of the run", quiet=quiet):
        stored = run_in_thread(lambda: stored_config(config, run_id, cancel_token))
    return EarlierRun(config=stored, run_id=run_id)


def _read_document(path: str, *, quiet: bool) -> object:
    name = "standard input" if path == "-" else path
    try:
        document: object = orjson.loads(_read_content(path, quiet=quiet).decode("utf-8-sig"))
    except OSError as error:
        raise UsageError([f"{name} cannot be read: {error.strerror}."]) from error
    except UnicodeDecodeError as error:
        raise UsageError([f"{name} is not UTF-8 text (byte {error.start + 1})."]) from error
    except orjson.JSONDecodeError as error:  # NaN and half of a character, too
        raise UsageError(
            [f"{name} is no whole JSON document: {error}."],
            hint="It takes the document that a run has printed on stdout.",
        ) from error
    return document


def _read_content(path: str, *, quiet: bool) -> bytes:
    if path != "-":
        return read_bounded(path, bound=MAX_STORED_BYTES)
    content = read_stdin(MAX_STORED_BYTES + 1, "The document of a run", quiet=quiet)
    if len(content) > MAX_STORED_BYTES:
        raise OSError(errno.EFBIG, f"it has more than {MAX_STORED_BYTES} bytes")
    return content


def _is_of_ids(problem: Problem) -> bool:
    return "model_ids" in problem.settings


def print_estimate(plan: Plan, flags: Flags, cancel_token: CancelToken) -> int:
    """Print the dry run of a plan; returns the exit code."""
    # The network is used: to see which endpoint this is, and to count tokens.
    estimate = partial(dry_run, plan, call_by_flags())
    quiet = bool(flags.get("quiet"))
    with waiting_for("the endpoint, to count tokens", quiet=quiet):
        document: Mapping[str, Any] = run_in_thread(lambda: run_cancellable(estimate, cancel_token))
    # The refusal by which the run is known to fail.
    error = ErrorEntry(**document["error"]) if document["error"] else None
    unwritten = print_document(
        document,
        words=partial(say_estimate, document),
        flags=flags,
        error=error,
    )
    return ENDINGS[document["end_reason"]].exit_code if error else unwritten


def _perform(
    plan: Plan,
    cancel_token: CancelToken,
    entries: Sequence[Entry],
    flags: Flags,
    traces: "Traces | None",
) -> RunResult:
    """Play in another thread; the main thread stays free for signals."""
    listener = listener_for(plan, quiet=bool(flags.get("quiet")))
    return run_in_thread(
        partial(
            perform,
            plan,
            listener=traces.traced(plan, listener) if traces else listener,
            cancel_token=cancel_token,
            entries=entries,
            is_journal_shown="brief" not in flags,
        )
    )


def _print_result(result: RunResult, benchmark: Benchmark, flags: Flags) -> int:
    error = result.error
    if error is not None:
        error.call_settings(call_by_flags())
        if flags.get("debug"):
            print_traceback(error)
    elif result.shortfalls:
        error = BenchError(" ".join(result.shortfalls))
    unwritten = print_document(
        result.brief if flags.get("brief") else result.document,
        words=partial(say_result, result, benchmark, call_by_flags()),
        flags=flags,
        error=error,
        hint=_how_to_print_again(result),
    )
    unwritten = write_checks(flags, partial(_checks_of_run, result, benchmark)) or unwritten
    return result.exit_code or unwritten


def _how_to_print_again(result: RunResult) -> str:
    if result.folder or result.s3:
        command = stored_words(result.config, result.run_id).render(call_by_flags())
        return f"The run is stored; print it: {command}"
    return "The run is not stored: use --output-dir next time."


def _print_unstarted(raised: Exception, config: RunConfig, flags: Flags) -> int:
    """Print the document and error message of a run that could not start."""
    error = raised if isinstance(raised, BenchError) else InternalError.of(raised)
    if error is not raised and flags.get("debug"):
        print_traceback(raised)
    error.call_settings(call_by_flags())
    if error.end_reason == "interrupted":  # before there was a run
        error.hint = "Nothing was run or stored: run the command again."
    print_failed_run(error, config, flags)
    write_checks(flags, partial(_checks_of_error, config.model or "run", error))
    return error.exit_code


def _checks_of_run(result: RunResult, benchmark: Benchmark) -> "Checks":
    from socratic_bench.studies.formats.checks import checks_of_run

    return checks_of_run(result, benchmark)


def _checks_of_error(title: str, error: BenchError) -> "Checks":
    from socratic_bench.studies.formats.checks import checks_of_error

    return checks_of_error(title, error)
