"""How much of a run's figures is the judge's own scatter, where it gave several verdicts a turn."""

from collections.abc import Iterator, Mapping
from math import fsum
from typing import Any

from socratic_bench.ports.parts import Views

MEDIAN = "median"


def judge_variances(document: Mapping[str, Any], views: Views) -> dict[str, float]:
    """By path, of a run's document: the variance that its judges' scatter adds to a metric which is
    a mean of scores over judged turns. Nothing of it is known with a single verdict of each judge,
    or where the median of several judges counts.

    A turn's score is the mean of J jurors' means of m samples, so that its variance is the sum of
    the jurors' s² / m over J² (`votes.within_jurors` has s); a mean of T turns has a T-th of their
    mean.
    """
    judge = document.get("judge") or {}
    if judge.get("rule") == MEDIAN or judge.get("samples", 1) == 1:
        return {}
    found = {
        metric: [*_of_turns(document, score, judge["samples"])]
        for metric, score in views.mean_scores.items()
    }
    return {metric: fsum(some) / len(some) ** 2 for metric, some in found.items() if some}


def _of_turns(document: Mapping[str, Any], score: str, n_samples: int) -> Iterator[float]:
    for turn in document["turns"]:
        votes = turn.get("votes")
        if turn["score"] is None or turn.get("replayed") or not votes:
            continue
        spreads = [one[score] for one in votes["within_jurors"].values() if one]
        if spreads and len(spreads) == votes["n_votes"]:
            yield fsum(one**2 for one in spreads) / n_samples / len(spreads) ** 2
