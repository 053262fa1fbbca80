"""The flags of `judge`: those of a run that a judge has."""

from collections.abc import Iterator

from .arguments import Help, Parser
from .flags import Row, add_rows, stored_rows
from .stored_runs import add_runs

DESCRIPTION = """\
Judges stored runs again, with another judge, jury or edition of the rubric, and prints one JSON
document with how the verdicts differ. The first ones stay: the new ones lie beside them, in
raw/runs/RUN_ID/judgings/NAME/, for compare --judging NAME and the like. Given again, it goes on
where it was cut short.
"""
EXIT_CODES = """\
exit codes: 0 complete, 2 usage, 3 credentials or access, 4 service or store unavailable, 5 too few
turns were judged, 6 deadline or budget, 129 SIGHUP, 130 SIGINT, 143 SIGTERM.
"""
GROUPS = ("judging", "service", "output")
# Of a run that plays something, or is kept anew.
NOT_HERE = {
    *("fail-under", "no-judge", "resume", "resume-from", "brief"),
    *("output-dir", "s3-bucket", "s3-prefix"),
}
RUBRIC = "rubric"


def build() -> Parser:
    """Values are read and checked later, all together."""
    parser = Parser(
        prog="socratic-runner judge",
        usage="socratic-runner judge RUN|DIR|s3://BUCKET/PREFIX ... [--judge-model ID] [options]",
        description=DESCRIPTION,
        epilog=EXIT_CODES,
        formatter_class=Help,
        allow_abbrev=False,
    )
    add_runs(parser)
    add_rows(parser, [*_rows()])
    return parser


def _rows() -> Iterator[Row]:
    for row in stored_rows():
        group, flag, _, _, text = row
        name = flag.split("--")[-1]
        if group in GROUPS and name not in NOT_HERE and (not text.endswith("]") or name == RUBRIC):
            yield row
