"""`socratic-runner correct RUNS --labels FILE`: figures as judged, corrected, and of labels."""

from argparse import Namespace
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from .arguments import Parser, parse_strictly
from .stored_runs import (
    NO_LABELS,
    WHICH_RUNS,
    YES_BY,
    add_judging,
    add_output,
    add_runs,
    calling_flags_of,
    read_matches,
)

if TYPE_CHECKING:
    from socratic_bench.errors import Words
    from socratic_bench.studies.calibrate.corrections import CorrectionRequest

EPILOG = "exit codes: 0 told, 2 usage, 4 a store cannot be read.\n"


def main(words: Sequence[str]) -> int:
    """Three figures for one; no model is called."""
    from socratic_bench.studies.calibrate.corrections import correct

    from .correct_table import say_correction
    from .output import print_document, waiting_for
    from .sources import bucket_region

    parser = build_parser()
    found = parse_strictly(parser, words)
    asked = _asked(found, parser)
    with waiting_for("the stored runs", quiet=found.quiet), calling_flags_of(parser):
        document = correct(asked, bucket_region)
    words_of = partial(say_correction, document)
    return print_document(document, words=words_of, quiet=found.quiet, pretty=found.pretty)


def build_parser() -> Parser:
    parser = Parser(
        prog="socratic-runner correct",
        description="Corrects what a judge says of stored runs by labels of some of their turns: "
        "means of scores and rates of yes as judged, corrected, and by labels alone. Labels count "
        "that know with which probability their turn was drawn, as socratic-runner label draws "
        "them.",
        epilog=EPILOG,
    )
    add_runs(parser)
    parser.add_argument("--labels", metavar="FILE", nargs="+", help="labels, JSONL or CSV")
    parser.add_argument(
        "--match",
        metavar="LABEL=QUANTITY",
        nargs="+",
        help=YES_BY,
    )
    parser.add_argument(
        "--rate",
        metavar="SCORE<BOUND",
        nargs="+",
        help="correct the share of turns on this side of a bound, too; or SCORE>=BOUND",
    )
    add_judging(parser)
    add_output(parser)
    return parser


def _asked(found: Namespace, parser: Parser) -> "CorrectionRequest":
    """Raises `UsageError` with every mistake."""
    from socratic_bench.studies.calibrate.corrections import CorrectionRequest

    problems: list[Words] = []
    matches = read_matches(found.match or (), problems)
    problems += _missing(found)
    parser.refuse(problems)
    return CorrectionRequest(
        runs=tuple(found.runs),
        labels=tuple(found.labels),
        matches=matches,
        rates=tuple(found.rate or ()),
        judging=found.judging,
    )


def _missing(found: Namespace) -> Iterator[str]:
    if not found.runs:
        yield WHICH_RUNS
    if not found.labels:
        yield NO_LABELS
