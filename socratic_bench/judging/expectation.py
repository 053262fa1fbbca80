"""A verdict such as a judge may give, for estimates: whole and readable."""

from socratic_bench.turns import Rubric
from socratic_bench.types import Json


def expected_verdict(rubric: Rubric, reason: str) -> dict[str, Json]:
    """The arguments of the judge's tool call: full scores, and the same reason for each."""
    reasons: dict[str, Json] = {d.name: reason for d in rubric.dimensions}
    return {"rationale": reasons, **{d.name: d.high for d in rubric.dimensions}}
