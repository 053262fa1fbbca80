"""`socratic-runner run`: parse the command line, then perform the run.

Nothing of the engine is imported until the command line is parsed, so that `--help` stays quick.
"""

from collections.abc import Sequence

from .arguments import Flags, parse
from .flags import build_parser
from .process import is_stdout_terminal, write_words

TYPE_CHECKING = False  # the module of that name takes longer to import than all of help
if TYPE_CHECKING:
    from socratic_bench.errors import Words


def main(words: Sequence[str]) -> int:
    """Perform the run that the words of a command line ask for; returns the exit code."""
    parser = build_parser()
    if not words and is_stdout_terminal():
        return write_words(parser.format_help())
    if words and not words[0].startswith("-"):
        parser.refuse_command(words[0])
    flags, problems = parse(parser, words)
    return play(flags, problems)


def play(flags: Flags, problems: "Sequence[Words]", run_id: str | None = None) -> int:
    """Perform the run that the flags ask for, or resume the one named by `run_id`.

    `problems` are the mistakes that parsing has found. Returns the exit code.
    """
    # The only door between parsing and playing: importing the engine takes longer than all of help.
    from .single_run import perform_run

    return perform_run(flags, problems, run_id)
