"""What commands over stored runs have in common: which runs, by whose verdicts, how it is told."""

from .arguments import Parser

WHICH_RUNS = "Which runs: name files, folders or prefixes of a bucket."


def add_runs(parser: Parser) -> None:
    """The runs, under `runs`."""
    parser.add_argument(
        "runs",
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
    parser.add_argument("--pretty", action="store_true", help="indent the document")
    if quiet is not None:
        parser.add_argument("-q", "--quiet", action="store_true", help=quiet)
    parser.add_argument("--debug", action="store_true", help="tracebacks on stderr")
