# ruff: noqa: INP001 - a script, not a package
"""How often the intervals of a sweep hold the true figure, where it is known.

    python tools/coverage.py [--page docs/dev/validity.md]

Dialogues of 40 turns fall from 9 to 4 at an onset with a hazard of .04 a turn; the judge adds
normal noise with a deviation of 1 and answers in half steps. Beside them stand scenarios that
differ, and a mixture of which a fifth is at 4 from the start. Prints the tables, or fills them into
a page. Ends with 1 if coverage is not what the page promises of it.
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from pages import SEED, hold, tell
from simulation import THRESHOLD, half_life, turns_held

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from socratic_bench.ports.benchmark import MetricInfo  # noqa: E402
from socratic_bench.statistics.intervals import Interval, mixture  # noqa: E402
from socratic_bench.statistics.survival import (  # noqa: E402
    Limits,
    SurvivalLimits,
    Time,
    survival_limits,
)
from socratic_bench.studies.figures import LEAST_APART, interval_of  # noqa: E402

N_TURNS, HAZARD, HIGH, LOW, DEVIATION = 40, 0.04, 9.0, 4.0, 1.0
COLLAPSE, SPREAD, LOG_HAZARD = 0.2, 0.5, 0.5  # of scenarios: of their level, of their log hazard
N_TRIALS, N_DRAWN, N_TRUTH = 4_000, 1_000, 200_000
SCORE = MetricInfo(name="score", title="Score", low=0, high=10)
RATE = MetricInfo(name="rate", title="Rate", low=0, high=1, is_rate=True)
# Shares by number of scenarios, as the page promises.
BOUNDS_OF_MEANS = {5: (0.91, 1.0), 10: (0.93, 0.97), 30: (0.93, 0.97)}
BOUNDS_OF_TIMES = {6: (0.87, 1.0), 10: (0.90, 1.0), 20: (0.92, 0.98)}
FALSE_ALARMS, FAILING = (0.0, 0.05), (0.0, 0.15)
BATCH = 500
Array = np.ndarray
Population = Callable[[np.random.Generator, int, int], tuple[Array, Array]]


def onset(dice: np.random.Generator, n: int, repeats: int) -> tuple[Array, Array]:
    """True scores by scenario, repeat and turn, and onsets."""
    return fallen(dice, np.full((n, repeats), HAZARD), np.zeros((n, repeats)))


def scenarios(dice: np.random.Generator, n: int, repeats: int) -> tuple[Array, Array]:
    hazard = HAZARD * np.exp(dice.normal(0, LOG_HAZARD, (n, 1)))
    level = dice.normal(0, SPREAD, (n, 1))
    return fallen(dice, np.tile(np.minimum(hazard, 1), repeats), np.tile(level, repeats))


def collapse(dice: np.random.Generator, n: int, repeats: int) -> tuple[Array, Array]:
    onsets = np.where(dice.random((n, repeats)) < COLLAPSE, 0, N_TURNS)
    return _scores(onsets, np.zeros((n, repeats))), onsets


def fallen(dice: np.random.Generator, hazard: Array, level: Array) -> tuple[Array, Array]:
    onsets = np.minimum(dice.geometric(hazard) - 1, N_TURNS)
    return _scores(onsets, level), onsets


def _scores(onsets: Array, level: Array) -> Array:
    is_before = np.arange(N_TURNS) < onsets[..., None]
    return np.where(is_before, HIGH, LOW) + level[..., None]


def judged(dice: np.random.Generator, true: Array) -> Array:
    return np.clip(np.round(2 * (true + dice.normal(0, DEVIATION, true.shape))) / 2, 0, 10)


POPULATIONS: dict[str, Population] = {
    "onset": onset,
    "onset, scenarios differ": scenarios,
    "a fifth collapses": collapse,
}


def sweeps(
    dice: np.random.Generator, population: Population, n: int, repeats: int, n_trials: int
) -> Iterator[Array]:
    """What judges say in as many sweeps, by scenario, repeat and turn."""
    for _ in range(0, n_trials, BATCH):
        true, _ = population(dice, n * BATCH, repeats)
        yield from judged(dice, true).reshape(BATCH, n, repeats, N_TURNS)


def covered(population: Population, n: int, repeats: int) -> dict[str, float]:
    """How many of the intervals of the mean score, and of the lapse rate, hold the true one; and in
    how many sweeps the scores are said to lie in two groups.
    """
    dice = np.random.default_rng([SEED, n, repeats])
    truth = judged(dice, population(dice, N_TRUTH, 1)[0])
    true_mean, true_rate = truth.mean(), (truth < THRESHOLD).mean()
    held = dict.fromkeys(("t", "rate", "two groups"), 0)
    for scores in sweeps(dice, population, n, repeats, N_TRIALS):
        means = scores.mean(axis=2).tolist()
        rates = (scores < THRESHOLD).mean(axis=2).tolist()
        held["t"] += is_in(true_mean, interval_of(SCORE, means, has_limits=True))
        held["rate"] += is_in(true_rate, interval_of(RATE, rates, has_limits=True))
        flat = [value for values in means for value in values]
        held["two groups"] += mixture(flat, n, LEAST_APART * SCORE.high) is not None
    return {name: n_held / N_TRIALS for name, n_held in held.items()}


def is_in(true: float, limits: Interval | Limits) -> bool:
    """Where there is no limit there is none to miss, but below the interval has to end. A time that
    is never reached is held by an interval without an end.
    """
    if true >= N_TURNS:
        return limits.high is None
    is_above = limits.low is not None and limits.low <= true
    return is_above and (limits.high is None or true <= limits.high)


def survived(population: Population, n: int, repeats: int) -> dict[str, float]:
    """How many intervals of the median and the restricted mean of turns_held, and of the
    median of half_life, hold that of the true onset; and by how much the restricted mean is off on
    average, in turns.
    """
    dice = np.random.default_rng([SEED, n, repeats, 1])
    onsets = population(dice, N_TRUTH, 1)[1]
    median, mean = float(np.quantile(onsets, 0.5, method="inverted_cdf")), onsets.mean()
    held = dict.fromkeys(("median", "restricted mean", "half_life", "bias"), 0.0)
    for scores in sweeps(dice, population, n, repeats, N_DRAWN):
        figures = turns_held(scores), half_life(scores)
        lasting, lapse = map(limits, figures)
        held["median"] += is_in(median, lasting.median)
        held["restricted mean"] += is_in(mean, lasting.restricted_mean)
        held["half_life"] += is_in(median, lapse.median)
        held["bias"] += figures[0].mean() - mean
    return {name: n_held / N_DRAWN for name, n_held in held.items()}


def limits(turns: Array) -> SurvivalLimits:
    times = [[Time(float(t), is_event=t < N_TURNS) for t in row] for row in turns.tolist()]
    return survival_limits(times, N_TURNS)


def means() -> Iterator[str]:
    heads = ("mean score", "lapse rate", "two groups seen")
    yield f"| dialogues | scenarios | repeats | {' | '.join(heads)} |"
    yield "|---|---|---|---|---|---|"
    for name, population in POPULATIONS.items():
        for n, repeats in ((5, 1), (10, 1), (30, 1), (10, 3)):
            found = covered(population, n, repeats)
            if population is not collapse:
                hold(found["t"], BOUNDS_OF_MEANS[n], f"{name}, {n} scenarios: the mean's interval")
            if population is onset:
                hold(found["two groups"], FALSE_ALARMS, f"{name}, {n} scenarios: two groups")
            shares = " | ".join(f"{found[key]:.1%}" for key in ("t", "rate"))
            yield f"| {name} | {n} | {repeats} | {shares} | {found['two groups']:.1%} |"


def medians() -> Iterator[str]:
    heads = ("`turns_held`", "its restricted mean", "that is off by", "`half_life`")
    yield f"| dialogues | scenarios | repeats | {' | '.join(heads)} |"
    yield "|---|---|---|---|---|---|---|"
    for name, population in POPULATIONS.items():
        for n, repeats in ((6, 5), (10, 3), (20, 2)):
            found = survived(population, n, repeats)
            for figure in ("median", "restricted mean"):
                if population is not collapse:
                    what = f"{name}, {n} scenarios: the interval of the {figure}"
                    hold(found[figure], BOUNDS_OF_TIMES[n], what)
            hold(found["half_life"], FAILING, f"{name}, {n} scenarios: half_life")
            median, mean, half = (
                f"{found[key]:.1%}" for key in ("median", "restricted mean", "half_life")
            )
            bias = f"{found['bias']:+.2f} turns"
            yield f"| {name} | {n} | {repeats} | {median} | {mean} | {bias} | {half} |"


def main() -> int:
    return tell("coverage", lambda: "\n\n".join("\n".join(part()) for part in (means, medians)))


if __name__ == "__main__":
    sys.exit(main())
