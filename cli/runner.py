"""The entry point: find the subcommand, run it, leave with its exit code.

Whatever happens, there is one document, one exit code and no traceback.

Nothing heavy is imported here: `--version` and `--help` must be quick.
"""

import gc
import sys

if __package__ in (None, ""):
    # Run as a file: the repository takes the place of this folder, whose names are not top-level.
    from pathlib import Path

    sys.path[0] = str(Path(__file__).resolve().parents[1])
    __package__ = "cli"

from collections.abc import Sequence

from . import stdout
from .commands import COMMANDS

TYPE_CHECKING = False  # see cli/process.py
if TYPE_CHECKING:
    from typing import NoReturn

    from socratic_bench.errors import BenchError

# Start-up makes very many objects that stay, and garbage collection among them takes a sixth of its
# time. A run makes little garbage.
GC_THRESHOLDS = (200_000, 20, 50)


def main() -> "NoReturn":
    """Run the command line and end the process: threads of abandoned calls may still wait."""
    from .process import leave_now

    leave_now(run_command(sys.argv[1:]))


def run_command(arguments: Sequence[str]) -> int:
    """Run a command line; the exit code is the contract of docs/runner.md."""
    words = list(arguments)
    if stdout.is_closed():
        return _refuse_to_start()
    if words[:1] in (["--version"], ["-V"]):
        return _print_version()
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    gc.set_threshold(*GC_THRESHOLDS)
    from . import signals

    signals.remember()
    name = words.pop(0) if words and words[0] in COMMANDS else "run"
    return _guarded(COMMANDS[name][0], words)


def _guarded(module: str, words: Sequence[str]) -> int:
    """Run a subcommand's module; what it does not handle becomes a document of its own."""
    from importlib import import_module

    from . import signals

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


def _print_version() -> int:
    from socratic_bench.version import VERSION

    from .process import write_words

    return write_words(f"socratic-runner {VERSION}\n")


def _refuse_to_start() -> int:
    """Refuse to run if the document could not be printed."""
    from socratic_bench.errors import ENDINGS

    from .output import say

    say("socratic-runner: stdout is closed, so no document can be written; nothing was called.")
    say("  Give it a file or a pipe, such as > run.json.")
    return ENDINGS["usage"].exit_code


if __name__ == "__main__":
    main()
