"""One verdict out of several: samples of a juror, then jurors."""

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean, median

from socratic_bench.turns import JuryRule, Verdict


def aggregated(verdicts: Sequence[Verdict], *, judge_model: str, rule: JuryRule) -> Verdict:
    """The mean or the median of each dimension; the score is their sum.

    An event counts if more than half of those that tell of events saw it, so that a tie is none.
    Reason and quotation of a dimension are those of the verdict whose score is nearest, and an
    event's words are of the first that saw it. One verdict stays as it is.
    """
    if len(verdicts) == 1:
        return verdicts[0]
    middle = fmean if rule == "mean" else median
    scores = {name: middle([one.scores[name] for one in verdicts]) for name in verdicts[0].scores}
    events = _events(verdicts)
    nearest = {name: _nearest(verdicts, name, score) for name, score in scores.items()}
    # What each part of the verdict is taken from, for its quotations.
    sources = {**nearest, **{name: _first_seen(verdicts, name) for name in events or ()}}
    has_quotes = all(one.unquoted is not None for one in verdicts)
    return Verdict(
        scores=scores,
        rationale={name: one.rationale.get(name) for name, one in nearest.items()},
        judge_model=judge_model,
        events=events,
        quotes={name: (one.quotes or {}).get(name) for name, one in nearest.items()}
        if has_quotes
        else None,
        unquoted=tuple(name for name, one in sources.items() if name in (one.unquoted or ()))
        if has_quotes
        else None,
    )


def majority(votes: Sequence[str]) -> str | None:
    """What more than half of the votes say; `None` if nothing is."""
    (said, n_votes), *_ = Counter(votes).most_common(1) or [("", 0)]
    return said if 2 * n_votes > len(votes) else None


def _events(verdicts: Sequence[Verdict]) -> Mapping[str, str] | None:
    told = [one.events for one in verdicts if one.events is not None]
    names = dict.fromkeys(name for events in told for name in events)
    seen = {name: [events[name] for events in told if name in events] for name in names}
    counted = {name: words[0] for name, words in seen.items() if 2 * len(words) > len(told)}
    return counted if told else None


def _first_seen(verdicts: Sequence[Verdict], event: str) -> Verdict:
    return next(one for one in verdicts if event in (one.events or {}))


def _nearest(verdicts: Sequence[Verdict], dimension: str, score: float) -> Verdict:
    return min(verdicts, key=lambda one: abs(one.scores[dimension] - score))
