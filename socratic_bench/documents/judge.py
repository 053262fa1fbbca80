"""Who judged a run, as its document tells it."""

from collections import Counter
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
    rubric_sha256: Annotated[str, Meta(description="fingerprint of the rubric file")]
    jurors: Annotated[list[Juror], Meta(description="each judge model; one entry with one judge")]
    judged_turns: Annotated[Count, Meta(description="turns with a verdict")]
    unjudged_turns: Annotated[Count, Meta(description="turns without one")]
    unjudged_reasons: Annotated[
        dict[str, Annotated[int, Meta(ge=1)]],
        Meta(description="how many turns lack a verdict for which reason"),
    ]

    @classmethod
    def of(cls, result: "RunResult") -> "JudgeEntry | None":
        if result.rubric is None or result.config.judge_model is None:
            return None
        judge = result.config.judge_model
        played = [turn for turn in result.turns if not turn.replayed]
        reasons = Counter(filter(None, (unjudged_reason(result, turn) for turn in played)))
        return cls(
            model=judge,
            coverage=round(result.n_judged / len(played), 4) if played else None,
            rubric_sha256=result.rubric.sha256,
            jurors=[Juror(model=judge, judged_turns=result.n_judged)],
            judged_turns=result.n_judged,
            unjudged_turns=len(played) - result.n_judged,
            unjudged_reasons=dict(sorted(reasons.items())),
        )
