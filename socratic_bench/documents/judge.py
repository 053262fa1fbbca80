"""Who judged a run, as its document tells it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, TypeVar

from msgspec import Meta, Struct

from socratic_bench.documents.scalars import (
    Count,
    Model,
    Share,
)
from socratic_bench.documents.turn import unjudged_reason
from socratic_bench.turns import Rubric
from socratic_bench.types import JUDGE

if TYPE_CHECKING:
    from socratic_bench.documents.result import RunResult


Value = TypeVar("Value")


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
    rubric: Annotated[
        str | None, Meta(description="the rubric's edition; null where items have several")
    ] = None
    temperature: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="temperature that its model was asked at; null: the model's own"),
    ] = None
    unquoted: Annotated[
        Count | None,
        Meta(
            description="scores and events whose quoted words do not stand in the reply; null "
            "under a rubric without quotes"
        ),
    ] = None
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
            rubric=_only({rubric.id for rubric in _rubrics(result)}),
            temperature=_temperature(result),
            unquoted=_unquoted(result),
            jurors=[Juror(model=judge, judged_turns=result.n_judged)],
            judged_turns=result.n_judged,
            unjudged_turns=len(played) - result.n_judged,
            unjudged_reasons=dict(sorted(reasons.items())),
        )


def _rubrics(result: RunResult) -> list[Rubric]:
    return [one for one in (result.rubric, *result.opening.rubrics.values()) if one]


def _fingerprint(result: RunResult) -> str:
    known = {rubric.sha256 for rubric in _rubrics(result)}
    return _only(known) or sha256("".join(sorted(known)).encode()).hexdigest()


def _temperature(result: RunResult) -> float | None:
    """That of all calls; none if it was left out on the way."""
    return _only({call.temperature for call in result.tallies[JUDGE].completions})


def _unquoted(result: RunResult) -> int | None:
    found = [turn.verdict.unquoted for turn in result.turns if turn.verdict]
    known = [names for names in found if names is not None]
    has_quotes = any(rubric.has_quotes for rubric in _rubrics(result))
    return sum(map(len, known)) if has_quotes else None


def _only(values: Iterable[Value]) -> Value | None:
    """The one value that there is; `None` if there are several, or none."""
    found = [*values]
    return found[0] if len(found) == 1 else None
