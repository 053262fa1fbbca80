"""Verdicts beside labels: what each labelled reply got from the judge and from people."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from math import fsum
from typing import TypeVar

from msgspec import Struct

from socratic_bench.documents.calibration import Label
from socratic_bench.studies.calibrate.quantity import TOTAL, Quantity
from socratic_bench.studies.labels.turns import LabelledTurn
from socratic_bench.turns import Judged, Rubric, Unscored, Verdict

Value = TypeVar("Value")


class JudgedLabel(Struct, frozen=True, kw_only=True):
    """A labelled reply and what the judge made of it."""

    turn: LabelledTurn
    judged: Judged | None

    @property
    def outcome(self) -> Verdict | Unscored | None:
        return self.judged.outcome if self.judged else None

    @property
    def verdict(self) -> Verdict | None:
        return self.outcome if isinstance(self.outcome, Verdict) else None

    @property
    def scores(self) -> Mapping[str, float]:
        """By dimension, and their sum; empty without a verdict."""
        verdict = self.verdict
        return {**verdict.scores, TOTAL: verdict.overall_score} if verdict else {}

    def repeated(self, name: str) -> tuple[float, int] | None:
        """The variance of one verdict on this reply, and of how many the outcome is the mean; of a
        jury, that of its jurors' mean. `None` unless each juror has several.
        """
        votes = self.judged.votes if self.judged else ()
        spreads = [vote.spread for vote in votes if isinstance(vote.outcome, Verdict)]
        if not spreads or self.verdict is None:
            return None
        variances = [spread[name] ** 2 for spread in spreads if spread is not None]
        if len(variances) < len(spreads):
            return None
        n_samples = min(
            sum(isinstance(one, Verdict) for one in vote.samples)
            for vote in votes
            if isinstance(vote.outcome, Verdict)
        )
        return fsum(variances) / len(variances) ** 2, n_samples

    def strength(self, quantity: Quantity) -> float | None:
        """How much the verdict speaks for yes."""
        return quantity.strength(self.scores, self.verdict.events if self.verdict else None)


def score_of(turn: LabelledTurn, name: str, rubric: Rubric) -> float | None:
    """What people say, the mean over them; of the sum where it is asked for."""
    return (
        turn.total([one.name for one in rubric.dimensions]) if name == TOTAL else turn.score(name)
    )


def clustered_values(found: Iterable[tuple[str, Value]]) -> list[list[Value]]:
    """By dialogue."""
    clusters: dict[str, list[Value]] = defaultdict(list)
    for cluster, value in found:
        clusters[cluster].append(value)
    return [*clusters.values()]


def score_pairs(
    readings: Sequence[JudgedLabel], name: str, rubric: Rubric
) -> list[list[tuple[float, float]]]:
    """The judge's score and people's, by dialogue, of replies that have both."""
    return clustered_values(
        (one.turn.cluster, (one.scores[name], label))
        for one in readings
        if (label := score_of(one.turn, name, rubric)) is not None and name in one.scores
    )


def human_scores(
    turns: Sequence[LabelledTurn], name: str, rubric: Rubric
) -> list[list[tuple[float, float]]]:
    """The scores of each two labellers of one reply, by dialogue."""
    names = [one.name for one in rubric.dimensions] if name == TOTAL else [name]

    def score(label: Label) -> float | None:
        known = all(one in label.scores for one in names)
        return fsum(label.scores[one] for one in names) if known else None

    return _pairs(turns, score)


def human_answers(turns: Sequence[LabelledTurn], name: str) -> list[list[tuple[float, float]]]:
    """Yes as 1 and no as 0, of each two labellers of one reply, by dialogue."""
    return _pairs(turns, lambda label: label.events.get(name))


def _pairs(
    turns: Sequence[LabelledTurn], said: Callable[[Label], float | None]
) -> list[list[tuple[float, float]]]:
    """By labeller, so that both of a pair are always the same two in the same order."""
    given = (
        (turn.cluster, [*map(said, sorted(turn.labels, key=lambda label: label.labeller))])
        for turn in turns
    )
    return clustered_values(
        (cluster, pair)
        for cluster, values in given
        for pair in combinations([float(one) for one in values if one is not None], 2)
    )
