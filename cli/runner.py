"""The entry point: find the subcommand, run it, leave with its exit code.

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

# Start-up makes very many objects that stay, and garbage collection among them takes a sixth of its
# time. A run makes little garbage.
GC_THRESHOLDS = (200_000, 20, 50)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code is the contract of docs/runner.md."""
    words = list(sys.argv[1:] if argv is None else argv)
    if stdout.is_closed():
        return _refuse_to_start()
    if words[:1] in (["--version"], ["-V"]):
        return _print_version()
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    gc.set_threshold(*GC_THRESHOLDS)
    from . import signals

    signals.remember()
    from .process import guarded

    name = words.pop(0) if words and words[0] in COMMANDS else "run"
    return guarded(COMMANDS[name][0], words)


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
    sys.exit(main())
