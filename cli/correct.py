"""`socratic-runner correct RUNS --labels FILE`: figures as judged, corrected, and of labels."""

from argparse import Namespace
from collections.abc import Sequence
from functools import partial

from socratic_bench.documents.calibration import Corrected, CorrectionDocument, Estimated
from socratic_bench.errors import Words
from socratic_bench.statistics.intervals import is_available
from socratic_bench.studies.calibrate.corrections import CorrectionRequest, correct
from socratic_bench.types import plural

from .arguments import Parser, parse_strictly
from .flags import (
    MATCH_HELP,
    NO_LABELS,
    WHICH_RUNS,
    add_judging,
    add_output,
    add_runs,
    read_matches,
)
from .output import plain, print_document, say, waiting_for
from .settings import bucket_region, calling_flags
from .terminal import aligned

EPILOG = "exit codes: 0 told, 2 usage, 4 a store cannot be read.\n"
NAME_COLUMNS, COLUMNS = 24, 22
NO_LIMITS = (
    "Times to an event have no limits without scipy: install the extra stats "
    '(pip install ".[stats]").'
)
CAVEATS = {
    "labels_of_others": "corrected by labels of all models, as too few are of this one",
    "outside_labelled_range": "its mean verdict lies beyond all that were labelled",
}


def main(words: Sequence[str]) -> int:
    """Print the figures in three forms; no model is called."""
    parser = build_parser()
    flags = parse_strictly(parser, words)
    request = _read_request(flags, parser)
    with waiting_for("the stored runs", quiet=flags.quiet), calling_flags(parser):
        document = correct(request, bucket_region)
    return print_document(
        document,
        words=partial(_say_correction, document),
        quiet=flags.quiet,
        pretty=flags.pretty,
    )


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
        help=MATCH_HELP,
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


def _read_request(flags: Namespace, parser: Parser) -> CorrectionRequest:
    """The runs, labels and figures to correct. Raises `UsageError` with every mistake."""
    problems: list[Words] = []
    matches = read_matches(flags.match or (), problems)
    if not flags.runs:
        problems.append(WHICH_RUNS)
    if not flags.labels:
        problems.append(NO_LABELS)
    parser.refuse(problems)
    return CorrectionRequest(
        runs=tuple(flags.runs),
        labels=tuple(flags.labels),
        matches=matches,
        rates=tuple(flags.rate or ()),
        judging=flags.judging,
    )


def _say_correction(document: CorrectionDocument) -> None:
    """Print a table for each model, then why figures are missing, and caveats of others."""
    for model in document.models:
        say(
            f"{plain(model.model)}: {plural(model.n_runs, 'run')}, {model.n_labelled} labels of "
            f"{plural(model.n_labelled_dialogues, 'dialogue')}"
        )
        say(aligned("", ("as judged", "corrected", "of labels"), NAME_COLUMNS, COLUMNS))
        for name, forms in model.figures.items():
            cells = [_format(cell) for cell in (forms.as_judged, forms.corrected, forms.of_labels)]
            say(aligned(plain(name)[:NAME_COLUMNS], cells, NAME_COLUMNS, COLUMNS))
    for model in document.models:
        for name, forms in model.figures.items():
            reason = forms.corrected.reason
            caveats = [CAVEATS[flag] for flag in forms.corrected.flags]
            for text in [reason] if reason else caveats:
                say(f"note: {plain(model.model)}, {plain(name)}: {plain(text)}")
    if any(model.times for model in document.models) and not is_available():
        say(f"note: {NO_LIMITS}")


def _format(figure: Estimated | Corrected) -> str:
    if figure.value is None:
        return "-"
    if figure.low is None or figure.high is None:
        return f"{figure.value:.2f}"
    return f"{figure.value:.2f} ({figure.low:.2f} to {figure.high:.2f})"
