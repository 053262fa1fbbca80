# ruff: noqa: INP001 - a script, not a package
"""How often the intervals of a sweep hold the true figure, where it is known.

    python tools/coverage.py [--page docs/statistics.md]

Dialogues of 40 turns fall from 9 to 4 at an onset with a hazard of .04 a turn; the judge adds
normal noise with a deviation of 1 and answers in half steps. Beside them stand scenarios that
differ, and a mixture of which a fifth is at 4 from the start. Prints the tables, or fills them into
a page. Ends with 1 if coverage is not what the page promises of it.
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from socratic_bench import RunConfig  # noqa: E402
from socratic_bench.statistics.bootstrap import survival_limits  # noqa: E402
from socratic_bench.statistics.clusters import clustered  # noqa: E402
from socratic_bench.statistics.intervals import t_interval, wilson_interval  # noqa: E402
from socratic_bench.statistics.survival import Time  # noqa: E402

N_TURNS, HAZARD, HIGH, LOW, DEVIATION = 40, 0.04, 9.0, 4.0, 1.0
COLLAPSE, SPREAD, LOG_HAZARD = 0.2, 0.5, 0.5  # of scenarios: of their level, of their log hazard
N_TRIALS, N_DRAWN, N_TRUTH = 10_000, 2_000, 200_000
THRESHOLD, LAPSE_TURNS = 8.0, RunConfig(model="m", prompt="p", region="r").lapse_turns
BEGIN, END = "<!-- coverage -->", "<!-- end of coverage -->"
SEED = 20261122
# Shares by number of scenarios, as the page promises.
BOUNDS_OF_MEANS = {5: (0.91, 1.0), 10: (0.93, 0.97), 30: (0.93, 0.97)}
BOUNDS_OF_MEDIANS = {6: (0.87, 1.0), 10: (0.90, 1.0), 20: (0.92, 0.98)}
MISSED: list[str] = []
Array = np.ndarray
Population = Callable[[np.random.Generator, int, int], tuple[Array, Array]]


def onset(dice: np.random.Generator, n: int, repeats: int) -> tuple[Array, Array]:
    """True scores by scenario, repeat and turn, and onsets."""
    return _fallen(dice, np.full((n, repeats), HAZARD), np.zeros((n, repeats)))


def scenarios(dice: np.random.Generator, n: int, repeats: int) -> tuple[Array, Array]:
    hazard = HAZARD * np.exp(dice.normal(0, LOG_HAZARD, (n, 1)))
    level = dice.normal(0, SPREAD, (n, 1))
    return _fallen(dice, np.tile(np.minimum(hazard, 1), repeats), np.tile(level, repeats))


def collapse(dice: np.random.Generator, n: int, repeats: int) -> tuple[Array, Array]:
    onsets = np.where(dice.random((n, repeats)) < COLLAPSE, 0, N_TURNS)
    return _scores(onsets, np.zeros((n, repeats))), onsets


def _fallen(dice: np.random.Generator, hazard: Array, level: Array) -> tuple[Array, Array]:
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


def covered(population: Population, n: int, repeats: int) -> tuple[float, float]:
    """How many of the intervals of the mean score, and of the lapse rate, hold the true one."""
    dice = np.random.default_rng([SEED, n, repeats])
    truth = judged(dice, population(dice, N_TRUTH, 1)[0])
    true_mean, true_rate = truth.mean(), (truth < THRESHOLD).mean()
    held = np.zeros(2)
    for _ in range(N_TRIALS):
        scores = judged(dice, population(dice, n, repeats)[0])
        mean = t_interval(clustered(scores.mean(axis=2).tolist()))
        rate = wilson_interval(clustered((scores < THRESHOLD).mean(axis=2).tolist()))
        held += mean.low <= true_mean <= mean.high, rate.low <= true_rate <= rate.high
    return tuple(held / N_TRIALS)


def first(is_under: Array, least: int) -> Array:
    """The first turn of so many in a row; the number of turns if there are none."""
    windows = np.lib.stride_tricks.sliding_window_view(is_under, least, axis=2).all(axis=3)
    return np.where(windows.any(axis=2), windows.argmax(axis=2), N_TURNS)


def survived(population: Population, n: int, repeats: int) -> tuple[float, float]:
    """How many intervals of the median of sustained_half_life, and of half_life, hold that of the
    true onset.
    """
    dice = np.random.default_rng([SEED, n, repeats, 1])
    true = float(np.quantile(population(dice, N_TRUTH, 1)[1], 0.5, method="inverted_cdf"))
    held = np.zeros(2)
    for _ in range(N_DRAWN):
        is_under = judged(dice, population(dice, n, repeats)[0]) < THRESHOLD
        for at, least in enumerate((LAPSE_TURNS, 1)):
            turns = first(is_under, least)
            times = [[Time(float(t), is_event=t < N_TURNS) for t in row] for row in turns.tolist()]
            limits = survival_limits(times, N_TURNS).median
            is_above = limits.low is not None and limits.low <= true
            held[at] += is_above and (limits.high is None or true <= limits.high)
    return tuple(held / N_DRAWN)


def means() -> Iterator[str]:
    yield "| dialogues | scenarios | repeats | mean score | lapse rate |"
    yield "|---|---|---|---|---|"
    for name, population in POPULATIONS.items():
        for n, repeats in ((5, 1), (10, 1), (30, 1), (10, 3)):
            mean, rate = covered(population, n, repeats)
            low, high = BOUNDS_OF_MEANS[n]
            if population is not collapse and not low <= mean <= high:
                MISSED.append(f"{name}, {n} scenarios: the mean's interval holds it in {mean:.1%}")
            yield f"| {name} | {n} | {repeats} | {mean:.1%} | {rate:.1%} |"


def medians() -> Iterator[str]:
    yield "| dialogues | scenarios | repeats | `sustained_half_life` | `half_life` |"
    yield "|---|---|---|---|---|"
    for name in ("onset", "onset, scenarios differ"):
        for n, repeats in ((6, 5), (10, 3), (20, 2)):
            lasting, lapse = survived(POPULATIONS[name], n, repeats)
            low, high = BOUNDS_OF_MEDIANS[n]
            if not low <= lasting <= high:
                MISSED.append(f"{name}, {n} scenarios: the median's interval in {lasting:.1%}")
            yield f"| {name} | {n} | {repeats} | {lasting:.1%} | {lapse:.1%} |"


def main() -> int:
    tables = "\n\n".join("\n".join(part()) for part in (means, medians))
    if "--page" in sys.argv:
        page = Path(sys.argv[sys.argv.index("--page") + 1])
        before, _, rest = page.read_text().partition(BEGIN)
        page.write_text(f"{before}{BEGIN}\n{tables}\n{END}{rest.partition(END)[2]}")
    else:
        sys.stdout.write(tables + "\n")
    sys.stdout.write("".join(f"MISSED: {line}\n" for line in MISSED))
    return bool(MISSED)


if __name__ == "__main__":
    sys.exit(main())
