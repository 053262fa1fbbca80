"""The entry point: find the subcommand, run it, leave with its exit code.

Whatever happens, there is one document, one exit code and no traceback. Nothing heavy is imported
here: `--version` and `--help` must be quick.
"""

import gc
import sys
from importlib import import_module

if __package__ in (None, ""):
    # Run as a file: the repository takes the place of this folder, whose names are not top-level.
    from pathlib import Path

    sys.path[0] = str(Path(__file__).resolve().parents[1])
    __package__ = "cli"

from collections.abc import Sequence

from socratic_bench.version import VERSION

from . import process
from .commands import COMMANDS

# Start-up makes very many objects that stay, and garbage collection among them takes a sixth of its
# time. A run makes little garbage.
GC_THRESHOLDS = (200_000, 20, 50)


def main() -> None:
    """Run the command line and end the process: threads of abandoned calls may still wait."""
    process.leave_now(run_command(sys.argv[1:]))


def run_command(arguments: Sequence[str]) -> int:
    """Run a command line; the exit code is the contract of docs/output.md."""
    words = list(arguments)
    if process.is_stdout_closed():
        from .output import refuse_to_start  # heavy, and only for this failure

        return refuse_to_start()
    if words[:1] in (["--version"], ["-V"]):
        return process.write_words(f"socratic-runner {VERSION}\n")
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    gc.set_threshold(*GC_THRESHOLDS)
    process.remember_signals()
    name = words.pop(0) if words and words[0] in COMMANDS else "run"
    return _run_module(name, words)


def _run_module(name: str, words: Sequence[str]) -> int:
    """Run a subcommand's module; an error that it does not handle is printed as its document."""
    try:
        process.raise_signals()
        code: int = import_module(COMMANDS[name][0], __package__).main(words)
    except (process.SignalledError, Exception) as error:  # noqa: BLE001 -- the boundary
        from .output import print_unhandled  # heavy, and only for failures

        return print_unhandled(error, name, words)
    return code


if __name__ == "__main__":
    main()
