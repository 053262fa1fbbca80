"""What turns without a verdict could change, and whether they are unlike those with one."""

from collections.abc import Iterator, Sequence
from math import comb
from statistics import fmean

from socratic_bench.benchmarks.socratic.metrics_document import BOUNDED, LATE
from socratic_bench.benchmarks.socratic.settings import Settings
from socratic_bench.benchmarks.socratic.trend import streaks_of, time_until
from socratic_bench.turns import Turn

PLACES = 4
WORST_SCORE, BEST_SCORE = 0.0, 10.0
# Two-sided, for each heuristic and the place: five tests find about 5 % of turns by chance.
ALPHA = 0.01
LAST_PART = 0.25  # of the turns


def bounds(settings: Settings, turns: Sequence[Turn], score: float) -> dict[str, float | None]:
    """The metrics `BOUNDED` if each turn without a verdict had this score."""
    threshold = settings.half_life_threshold
    scores = [turn.verdict.overall_score if turn.verdict else score for turn in turns]
    streaks = streaks_of([(place, threshold - score) for place, score in enumerate(scores)])
    held = time_until(streaks, settings.lapse_turns, len(scores), is_under=True)
    figures = (fmean(scores), fmean(score < threshold for score in scores), held.at)
    return {name: round(value, PLACES) for name, value in zip(BOUNDED, figures, strict=True)}


def differences(turns: Sequence[Turn]) -> list[str]:
    """The heuristics by which unjudged turns are unlike the judged ones, and `LATE` if they come
    late: by Fisher's exact test.
    """
    start = (1 - LAST_PART) * len(turns)
    names = dict.fromkeys(name for turn in turns for name in turn.measures)
    values = {
        name: [(turn.measures.get(name), turn.verdict is None) for turn in turns] for name in names
    }
    values[LATE] = [(place >= start, turn.verdict is None) for place, turn in enumerate(turns)]
    return [name for name, pairs in values.items() if _is_unlike([*_known(pairs)])]


def _known(pairs: Sequence[tuple[object, bool]]) -> Iterator[tuple[bool, bool]]:
    return ((value, is_unjudged) for value, is_unjudged in pairs if isinstance(value, bool))


def _is_unlike(pairs: Sequence[tuple[bool, bool]]) -> bool:
    n, n_true = len(pairs), sum(value for value, _ in pairs)
    n_unjudged = sum(is_unjudged for _, is_unjudged in pairs)
    n_both = sum(value and is_unjudged for value, is_unjudged in pairs)

    def tail(counts: range) -> float:
        ways = (comb(n_true, k) * comb(n - n_true, n_unjudged - k) for k in counts)
        return sum(ways) / comb(n, n_unjudged)

    lower, upper = tail(range(n_both + 1)), tail(range(n_both, n_unjudged + 1))
    return 2 * min(lower, upper) <= ALPHA
