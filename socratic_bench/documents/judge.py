"""Who judged a run, as its document tells it."""

from __future__ import annotations

from collections import Counter
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from socratic_bench.documents.scalars import (
    Count,
    Model,
    Share,
)
from socratic_bench.documents.turn import unjudged_reason

if TYPE_CHECKING:
    from socratic_bench.documents.result import RunResult


class Juror(Struct, frozen=True, kw_only=True):
    """One judge model and its share of the work."""

    model: Model
    judged_turns: Annotated[Count, Meta(description="turns judged")]


class JudgeEntry(Struct, frozen=True, kw_only=True):
    """Who judged, and how much of the run."""

    model: Annotated[str, Meta(description="the judge model")]
    coverage: Annotated[
        Share | None, Meta(description="share of turns that were judged; null without a turn")
    ]
    rubric_sha256: Annotated[
        str, Meta(description="fingerprint of the rubric file, or of all rubrics together")
    ]
    jurors: Annotated[list[Juror], Meta(description="each judge model; one entry with one judge")]
    judged_turns: Annotated[Count, Meta(description="turns with a verdict")]
    unjudged_turns: Annotated[Count, Meta(description="turns without one")]
    unjudged_reasons: Annotated[
        dict[str, Annotated[int, Meta(ge=1)]],
        Meta(description="how many turns lack a verdict for which reason"),
    ]

    @classmethod
    def of(cls, result: RunResult) -> JudgeEntry | None:
        judge = result.config.judge_model
        if judge is None or not result.is_judged:
            return None
        played = [one for one in result.turns if not one.replayed and result.rubric_of(one)]
        reasons = Counter(filter(None, (unjudged_reason(result, turn) for turn in played)))
        return cls(
            model=judge,
            coverage=round(result.n_judged / len(played), 4) if played else None,
            rubric_sha256=_fingerprint(result),
            jurors=[Juror(model=judge, judged_turns=result.n_judged)],
            judged_turns=result.n_judged,
            unjudged_turns=len(played) - result.n_judged,
            unjudged_reasons=dict(sorted(reasons.items())),
        )


def _fingerprint(result: RunResult) -> str:
    rubrics = (result.rubric, *result.opening.rubrics.values())
    known = {rubric.sha256 for rubric in rubrics if rubric}
    return known.pop() if len(known) == 1 else sha256("".join(sorted(known)).encode()).hexdigest()
