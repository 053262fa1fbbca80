"""The boundary of the process: whatever happens, one document, one exit code, no traceback."""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module

from . import signals, stdout

TYPE_CHECKING = False  # known to type checkers; the module of that name takes long to import
if TYPE_CHECKING:
    from typing import NoReturn

    from socratic_bench.errors import BenchError


def guarded(module: str, words: Sequence[str]) -> int:
    """Run a subcommand's module; what it does not handle becomes a document of its own."""
    try:
        signals.interrupting()
        code: int = import_module(module, __package__).main(words)
    except signals.SignalledError as signalled:
        return _report_signal(module, signalled.signal_number)
    except Exception as defect:  # noqa: BLE001 -- the boundary
        return _report_defect(module, defect, debug="--debug" in words)
    return code


def _report_signal(module: str, number: int) -> int:
    from socratic_bench.errors import Stopped

    error = Stopped.by_signal(
        number,
        "Interrupted by {signal} before anything was started.",
        hint="Nothing was called and nothing was written.",
    )
    _print_failure(module, error)
    return error.exit_code


def _report_defect(module: str, defect: Exception, *, debug: bool) -> int:
    from socratic_bench.errors import BenchError, InternalError

    from .output import print_traceback

    error = defect if isinstance(defect, BenchError) else InternalError.of(defect)
    if isinstance(error, InternalError):
        # By itself: the table of settings may be what cannot be imported.
        error.call_settings("--{}".format)
    if debug:
        print_traceback(defect)
    _print_failure(module, error)
    return error.exit_code


def _print_failure(module: str, error: "BenchError") -> None:
    from .output import print_failed_run, print_failure

    if module == ".run":
        print_failed_run(error)
    else:
        print_failure(error)


def write_words(text: str) -> int:
    """Write what is no document, such as help; the exit code."""
    why = stdout.write(text.encode())
    if why:
        from .output import say_unwritten

        say_unwritten(why)
    return stdout.EXIT_UNWRITTEN if why else 0


def leave_now(code: int) -> "NoReturn":
    """End the process at once, without waiting for abandoned calls or cleaning up."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with suppress(OSError, ValueError):
                stream.flush()
    os._exit(code)
