"""A verdict such as a judge may give, for estimates: whole, readable, and of a usual length."""

from collections.abc import Mapping

from socratic_bench.ports import Length
from socratic_bench.types import Json, Rubric

_REASONS: Mapping[Length, str] = {
    "short": "One open question and nothing else.",
    "likely": (
        "The reply consists of a single open question that takes up the student's own words, and "
        "it neither advises nor hints at an answer."
    ),
    "long": (
        "The reply consists of a single open question that takes up the student's own words. It "
        "asks for the reasons behind the view that was just stated, so it probes and does not only "
        "keep the conversation going, and it neither advises nor explains nor hints at an answer "
        "that "
        "the tutor would like to hear."
    ),
}


def expected_verdict(rubric: Rubric, length: Length) -> dict[str, Json]:
    """The arguments of the judge's tool call: full scores, and a reason for each."""
    reasons: dict[str, Json] = {d.name: _REASONS[length] for d in rubric.dimensions}
    return {"rationale": reasons, **{d.name: d.high for d in rubric.dimensions}}
