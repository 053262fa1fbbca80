"""`socratic-runner resume RUN_ID`: resume a run that was cut short."""

from collections.abc import Sequence

from . import flags as run_flags
from .arguments import Parser, parse
from .run import play

USAGE = "socratic-runner resume RUN_ID (--output-dir DIR | --s3-bucket NAME) [options]"
FOREIGN = ("resume", "resume-from")
DESCRIPTION = """\
Continues an interrupted run with its own settings. Flags given here replace them.

example:
  socratic-runner resume run-01K9ZN5V2E3T4R5Y6U7J8K9M0N -o results
"""


def main(words: Sequence[str]) -> int:
    """As `run`, but settings that are not given again come from the run's journal."""
    flags, problems = parse(build_parser(), words)
    run_id = flags.get("run-id")
    if not isinstance(run_id, str):
        problems.append("Missing argument RUN_ID, such as run-01K9ZN5V2E3T4R5Y6U7J8K9M0N.")
        run_id = None
    for flag in FOREIGN:
        if flag in flags:
            problems.append(f"resume does not take --{flag}.")
    return play(flags, problems, run_id=run_id or "")


def build_parser() -> Parser:
    """The parser of `run`, with the run's id."""
    parser = run_flags.build_parser()
    parser.usage, parser.description = USAGE, DESCRIPTION
    parser.common = tuple(name for name in run_flags.COMMON if name not in FOREIGN)
    parser.add_argument(
        "run_id", nargs="?", metavar="RUN_ID", help="id of the run (list: socratic-runner list)"
    )
    return parser
