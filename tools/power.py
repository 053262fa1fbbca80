# ruff: noqa: INP001 - a script, not a package
"""How often a comparison finds a difference that is there, and one that is not.

    python tools/power.py [--page docs/compare.md]

Two models play the same scenarios, by the dialogues of tools/coverage.py; beside them stand plain
normal differences with an effect of the scenario. Prints the tables, or fills them into a page.
Ends with 1 if the shares are not what the page promises.
"""

import sys
from collections.abc import Callable, Iterator
from itertools import combinations

import numpy as np
from coverage import (  # the file beside this one
    HAZARD,
    LAPSE_TURNS,
    LOG_HAZARD,
    N_TURNS,
    POPULATIONS,
    SEED,
    SPREAD,
    THRESHOLD,
    Array,
    fallen,
    first,
    judged,
)
from pages import MISSED, tell

from socratic_bench.statistics.bootstrap import Limits, survival_difference_limits
from socratic_bench.statistics.differences import ALPHA, holm, paired_p, smallest_seen
from socratic_bench.statistics.intervals import Clustered, clustered
from socratic_bench.statistics.survival import Time

N_TRIALS, N_DRAWN, N_TRUTH, N_TIMES, BATCH = 10_000, 2_000, 40_000, 200_000, 250
OF_SCENARIOS, OF_REPEATS = 0.6, 1.0  # deviations of the normal differences
MODELS = 3
POWER, EQUAL, EQUAL_BY_HOLM, LEAST_HELD = (0.77, 0.83), 0.065, 0.06, 0.92
# Differences by trial, scenario and repeat.
Differences = Callable[[np.random.Generator, int, int, int], Array]


def normal(dice: np.random.Generator, trials: int, n: int, repeats: int) -> Array:
    of_scenarios = dice.normal(0, OF_SCENARIOS, (trials, n, 1))
    return of_scenarios + dice.normal(0, OF_REPEATS, (trials, n, repeats))


def scores(dice: np.random.Generator, trials: int, n: int, repeats: int) -> Array:
    """Of the mean scores of dialogues in scenarios that differ."""
    ours, theirs = dialogues(dice, "onset, scenarios differ", trials, (n, repeats), 2)
    return ours.mean(axis=-1) - theirs.mean(axis=-1)


def dialogues(
    dice: np.random.Generator, name: str, trials: int, shape: tuple[int, int], models: int
) -> Array:
    """Judged scores by model, trial, scenario, repeat and turn; models are equal, and each plays
    the same scenarios.
    """
    n, repeats = shape
    true = POPULATIONS[name](dice, trials * n, models * repeats)[0]
    split = judged(dice, true).reshape(trials, n, models, repeats, N_TURNS)
    return np.moveaxis(split, 2, 0)


def batches(draw: Differences, dice: np.random.Generator, n: int, repeats: int) -> Iterator[list]:
    for _ in range(N_TRIALS // BATCH):
        yield from draw(dice, BATCH, n, repeats).tolist()


def found(draw: Differences, n: int, repeats: int) -> tuple[float, float, float]:
    """How often there is a difference where the true one is what is called detectable: by the
    scatter of all such samples, by that of the sample itself, and by that of an earlier one, which
    is too small as often as too large.
    """
    dice = np.random.default_rng([SEED, n, repeats])
    spread = draw(dice, 1, N_TRUTH, repeats).mean(axis=2).std()
    size = smallest_seen(
        Clustered(mean=0.0, n=n * repeats, n_clusters=n, error=float(spread) / n**0.5)
    )
    seen = np.zeros(3)
    earlier = size
    for clusters in batches(draw, dice, n, repeats):
        own = smallest_seen(clustered(clusters))
        for at, shift in enumerate((size, own, earlier)):
            moved = [[value + shift for value in some] for some in clusters]
            seen[at] += paired_p(clustered(moved)) <= ALPHA
        earlier = own
    return tuple(seen / N_TRIALS)


def metrics(judgements: Array) -> Array:
    """Six figures of each dialogue, which hang together as those of a comparison do."""
    is_under = judgements < THRESHOLD
    shape = judgements.shape[:-1]
    flat = is_under.reshape(-1, 1, N_TURNS)
    lasting, lapse = (first(flat, least).reshape(shape) for least in (LAPSE_TURNS, 1))
    half = N_TURNS // 2
    halves = (judgements[..., :half].mean(axis=-1), judgements[..., half:].mean(axis=-1))
    return np.array([judgements.mean(axis=-1), is_under.mean(axis=-1), lasting, lapse, *halves])


def mistaken(name: str, n: int, repeats: int) -> tuple[float, float]:
    """How often equal models differ: two of them in the mean score alone, and three of them in any
    of six metrics after Holm's correction.
    """
    dice = np.random.default_rng([SEED, n, repeats, 1])
    seen = np.zeros(2)
    for _ in range(N_TRIALS // BATCH):
        played = metrics(dialogues(dice, name, BATCH, (n, repeats), MODELS))
        pairs = [played[:, a] - played[:, b] for a, b in combinations(range(MODELS), 2)]
        trials = np.moveaxis(np.concatenate(pairs), 1, 0).tolist()
        for differences in trials:
            p_values = [paired_p(clustered(clusters)) for clusters in differences]
            seen += p_values[0] <= ALPHA, min(holm(p_values)) <= ALPHA
    return tuple(seen / N_TRIALS)


def faster(dice: np.random.Generator, n: int, repeats: int) -> tuple[Array, Array]:
    """When two models lapse for good, in the same scenarios; the second lapses twice as soon."""
    hazard = HAZARD * np.exp(dice.normal(0, LOG_HAZARD, (n, 1)))
    level = np.tile(dice.normal(0, SPREAD, (n, 1)), repeats)
    true = (
        fallen(dice, np.tile(np.minimum(times * hazard, 1), repeats), level)[0] for times in (1, 2)
    )
    ours, theirs = (first(judged(dice, one) < THRESHOLD, LAPSE_TURNS) for one in true)
    return ours, theirs


def lasted(n: int, repeats: int) -> tuple[float, float]:
    """How many limits hold the true difference of the medians, and of the restricted means."""
    dice = np.random.default_rng([SEED, n, repeats, 2])
    ours, theirs = faster(dice, N_TIMES, 1)
    middles = [float(np.quantile(one, 0.5, method="inverted_cdf")) for one in (ours, theirs)]
    median, mean = middles[0] - middles[1], float(ours.mean() - theirs.mean())
    held = np.zeros(2)
    for _ in range(N_DRAWN):
        both = [
            [[Time(float(t), is_event=t < N_TURNS) for t in row] for row in one.tolist()]
            for one in faster(dice, n, repeats)
        ]
        limits = survival_difference_limits(both[0], both[1], N_TURNS)
        held += _holds(limits.median, median), _holds(limits.restricted_mean, mean)
    return tuple(held / N_DRAWN)


def _holds(limits: Limits, true: float) -> bool:
    """A side without a limit holds everything."""
    low, high = limits.low, limits.high
    return (low is None or low <= true) and (high is None or true <= high)


def times() -> Iterator[str]:
    yield "| scenarios | repeats | difference of medians | of restricted means |"
    yield "|---|---|---|---|"
    for n, repeats in ((6, 5), (10, 3), (20, 2)):
        shares = lasted(n, repeats)
        if min(shares) < LEAST_HELD:
            MISSED.append(f"{n} scenarios: limits hold differences of times in {min(shares):.1%}")
        yield f"| {n} | {repeats} | {shares[0]:.1%} | {shares[1]:.1%} |"


def powers() -> Iterator[str]:
    yield "| differences | scenarios | repeats | all samples | the sample | an earlier one |"
    yield "|---|---|---|---|---|---|"
    for name, draw in (("normal", normal), ("mean scores", scores)):
        for n, repeats in ((10, 1), (10, 3), (20, 1), (30, 1)):
            shares = found(draw, n, repeats)
            told = [f"{share:.1%}" for share in shares]
            low, high = POWER
            if not all(low <= share <= high for share in shares[:2]):
                MISSED.append(f"{name}, {n} scenarios: found in {' and '.join(told[:2])}")
            yield f"| {name} | {n} | {repeats} | {' | '.join(told)} |"


def mistakes() -> Iterator[str]:
    yield "| equal models | scenarios | repeats | two, one metric | three, six metrics, by Holm |"
    yield "|---|---|---|---|---|"
    for name in POPULATIONS:
        for n, repeats in ((6, 1), (10, 1), (10, 3), (30, 1)):
            one, corrected = mistaken(name, n, repeats)
            if one > EQUAL or corrected > EQUAL_BY_HOLM:
                MISSED.append(f"{name}, {n} scenarios: {one:.1%}, by Holm {corrected:.1%}")
            yield f"| {name} | {n} | {repeats} | {one:.1%} | {corrected:.1%} |"


def main() -> int:
    return tell(
        "power",
        lambda: "\n\n".join("\n".join(part()) for part in (powers, mistakes, times)),
    )


if __name__ == "__main__":
    sys.exit(main())
