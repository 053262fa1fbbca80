"""How far jurors agree on replies that all of them saw."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

from msgspec import Meta, Struct

from socratic_bench.documents.scalars import SCORE_PLACES, Amount, Count, to_places
from socratic_bench.statistics import agreement
from socratic_bench.types import doc

SCORE = "overall_score"
# What jurors make of one turn: by juror, its score of each dimension, `None` if it gave none.
Votes = Mapping[str, Mapping[str, float] | None]


class Agreement(Struct, frozen=True, kw_only=True):
    """Of one dimension, or of the score."""

    n_jurors: Annotated[Count, doc("jurors that gave verdicts")]
    n_turns: Annotated[Count, doc("turns with the verdicts of two jurors or more")]
    alpha: Annotated[
        Annotated[float, Meta(ge=-1, le=1)] | None,
        doc(
            "Krippendorff's alpha, ordinal; null without the extra stats, or where all "
            "scores are the same"
        ),
    ]
    absolute_error: Annotated[
        Amount | None, doc("mean distance of two jurors on a turn; null without any")
    ]

    @classmethod
    def of(cls, turns: Iterable[Votes]) -> dict[str, Agreement]:
        """By dimension, and the score; nothing where fewer than two jurors voted."""
        votes = [{name: _with_sum(scores) for name, scores in turn.items()} for turn in turns]
        jurors = [*dict.fromkeys(name for turn in votes for name in turn)]
        given = [scores for turn in votes for scores in turn.values() if scores]
        names = dict.fromkeys(name for scores in given for name in scores)
        if len(jurors) < 2:  # noqa: PLR2004 -- there is nobody to agree with
            return {}
        return {
            name: cls._of([[(turn.get(one) or {}).get(name) for turn in votes] for one in jurors])
            for name in names
        }

    @classmethod
    def _of(cls, ratings: agreement.Ratings) -> Agreement:
        units = [*zip(*ratings, strict=True)]
        alpha = agreement.ordinal_alpha(ratings) if agreement.is_available() else None
        return cls(
            n_jurors=sum(any(score is not None for score in one) for one in ratings),
            n_turns=sum(sum(score is not None for score in unit) > 1 for unit in units),
            alpha=to_places(alpha, SCORE_PLACES),
            absolute_error=to_places(agreement.absolute_error(ratings), SCORE_PLACES),
        )


def _with_sum(scores: Mapping[str, float] | None) -> Mapping[str, float]:
    return {**scores, SCORE: round(sum(scores.values()), SCORE_PLACES)} if scores else {}
