"""The flags of `calibrate`: those of a run that a judge has, and those of labels."""

from collections.abc import Iterator

from .arguments import Help, Parser
from .flags import Row, add_rows, stored_rows

DESCRIPTION = """\
Has a judge score replies that people have labelled, and prints one JSON document with how far they
agree: kappa, alpha (with the extra stats), error, bias, precision, recall and AUC, with intervals
over dialogues.
"""
EXIT_CODES = """\
exit codes: 0 complete, 2 usage, 3 credentials or access, 4 service or store unavailable, 5 too few
replies were judged, 6 deadline or budget, 129 SIGHUP, 130 SIGINT, 143 SIGTERM.
"""
GROUPS = ("judging", "service", "output")
# Of a run that plays something.
NOT_HERE = {"fail-under", "calibration", "no-judge", "rubric", "resume-from", "brief"}
LABELS: tuple[Row, ...] = (
    ("labels", "--labels", "many", "FILE", "labels, JSONL or CSV (socratic-runner schema label)"),
    (
        *("labels", "--runs", "many", "RUNS"),
        "documents, folders or s3://BUCKET/PREFIX of runs whose turns labels name without words",
    ),
    ("labels", "--rubric", "word", "NAME|FILE", "edition of the rubric, or one in a TOML file"),
    (
        *("labels", "--match", "many", "LABEL=QUANTITY"),
        "what the judge says yes by: an EVENT, DIMENSION<BOUND or DIMENSION>=BOUND",
    ),
    (
        *("labels", "--plan", "word", "X"),
        "tell how many more labels make intervals as narrow as ±X",
    ),
)
OWN = frozenset(flag.removeprefix("--") for _, flag, *_ in LABELS)


def build() -> Parser:
    """Values are read and checked later, all together."""
    parser = Parser(
        prog="socratic-runner calibrate",
        usage="socratic-runner calibrate --labels FILE ... --judge-model ID [options]",
        description=DESCRIPTION,
        epilog=EXIT_CODES,
        formatter_class=Help,
        allow_abbrev=False,
    )
    add_rows(parser, [*LABELS, *_rows()])
    return parser


def _rows() -> Iterator[Row]:
    for row in stored_rows():
        group, flag, _, _, text = row
        if group in GROUPS and flag.split("--")[-1] not in NOT_HERE and not text.endswith("]"):
            yield row
