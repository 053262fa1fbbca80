"""What commands over stored runs have in common: which runs, by whose verdicts, how it is told."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from .arguments import Parser
from .flags import add_switches

if TYPE_CHECKING:
    from socratic_bench.errors import Words

RUNS = "runs"
WHICH_RUNS = "Which runs: name files, folders or prefixes of a bucket."
NO_LABELS = "No labels: give --labels FILE."
# Help of --match.
YES_BY = "what the judge says yes by: an EVENT, DIMENSION<BOUND or DIMENSION>=BOUND"
NO_CSV = "--file is JSON Lines: give it another ending than .csv."


def add_runs(parser: Parser) -> None:
    """The runs, under `RUNS`."""
    parser.add_argument(
        RUNS,
        metavar="RUNS",
        nargs="*",
        help="a run's or a sweep's document, an output folder, s3://BUCKET/PREFIX, or one sweep in "
        "these: DIR/sweeps/SWEEP_ID",
    )


def add_judging(parser: Parser) -> None:
    parser.add_argument(
        "--judging", metavar="NAME", help="by the verdicts of a judging (socratic-runner judge)"
    )


def add_output(parser: Parser, quiet: str | None = "no table on stderr") -> None:
    """How the document is told; `quiet` is what -q does, `None` where there is no such flag."""
    if quiet is None:
        add_switches(parser, "pretty", "debug")
    else:
        add_switches(parser, "pretty", "quiet", "debug", quiet=quiet)


@contextmanager
def calling_flags_of(parser: Parser) -> Iterator[None]:
    """What is wrong with a setting is said of its flag, where the command has that."""
    from socratic_bench.errors import BenchError

    try:
        yield
    except BenchError as error:
        error.call_settings(partial(_called, parser))
        raise


def _called(parser: Parser, name: str) -> str:
    """A run's setting that the command does not take, such as the region, is told by its name."""
    from socratic_bench.benchmarks import RunConfig
    from socratic_bench.settings import table

    from .sources import call_by_flags

    called, of_run = call_by_flags()(name), table(RunConfig).get(name)
    return name if of_run and of_run.flag and called not in parser.flags else called


def read_matches(words: Sequence[str], problems: "list[Words]") -> dict[str, str]:
    """What --match says: label -> the quantity of the judge that says yes. Mistakes are added."""
    pairs = [word.partition("=") for word in words]
    problems += [
        f"--match takes LABEL=QUANTITY, not {name!r}." for name, sign, _ in pairs if not sign
    ]
    return {name.strip(): quantity.strip() for name, _, quantity in pairs}
