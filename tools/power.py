# ruff: noqa: INP001 - a script, not a package
"""How often a comparison finds a difference that is there, and one that is not.

    python tools/power.py [--page docs/dev/validity.md]

Two or three models play the same scenarios, by the dialogues of tools/coverage.py. Prints the
tables, or fills them into a page. Ends with 1 if the shares are not what the page promises.
"""

import sys
from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations

import numpy as np
from coverage import (  # the file beside this one
    HAZARD,
    LOG_HAZARD,
    N_TURNS,
    POPULATIONS,
    SEED,
    SPREAD,
    Array,
    fallen,
    judged,
)
from pages import MISSED, tell
from simulation import turns_held

from socratic_bench.statistics.differences import (
    ALPHA,
    FEW,
    drawn_subsets,
    fewest_clusters,
    holm_factors,
    sign_flip_interval,
    sign_flip_p,
    smallest_seen,
    subset_means,
)
from socratic_bench.statistics.survival import Limits, Time, survival_difference_limits

N_TRIALS, N_DRAWN, N_TRUTH, N_TIMES, BATCH = 4_000, 2_000, 40_000, 200_000, 250
MODELS = 3
POWER, EQUAL, LEAST_HELD = (0.78, 0.84), 0.06, 0.92


@lru_cache(maxsize=2)
def subsets(n: int) -> Array:
    """A row for each subset, by which differences come to its mean; of many differences, for drawn
    ones, which stand for all that the program counts.
    """
    if n > FEW:
        is_in = np.array([[at in subset for at in range(n)] for subset in drawn_subsets(n)], float)
    else:
        is_in = (np.arange(1, 2**n)[:, None] >> np.arange(n) & 1).astype(float)
    return is_in / is_in.sum(axis=1, keepdims=True)


def tested(differences: Array) -> tuple[Array, Array]:
    """Values of p, and sorted means of subsets, by trial, of differences by trial and scenario: up
    to 16 the same as the program's own, for all trials at once.
    """
    means = np.sort(np.round(differences @ subsets(differences.shape[1]).T, 9), axis=1)
    n_beyond = np.minimum((means <= 0).sum(axis=1), (means >= 0).sum(axis=1))
    p = np.minimum(1, 2 * (1 + n_beyond) / (1 + means.shape[1]))
    if differences.shape[1] <= FEW:
        ours = subset_means(differences[0].tolist())
        assert np.isclose(sign_flip_p(ours), p[0])  # noqa: S101 -- this is what is simulated
    return p, means


def held_by_model(
    dice: np.random.Generator, name: str, shape: tuple[int, int], models: int
) -> Array:
    """Turns held by model, trial and scenario, the mean of its repeats."""
    scores = dialogues(dice, name, BATCH, shape, models)
    return turns_held(scores).mean(axis=-1)


def mistaken(name: str, n: int, repeats: int) -> tuple[float, float]:
    """How often one of two equal models, and any of three, is called better."""
    dice = np.random.default_rng([SEED, n, repeats, 1])
    seen = np.zeros(2)
    for _ in range(N_TRIALS // BATCH):
        held = held_by_model(dice, name, (n, repeats), MODELS)
        p_values = np.array([tested(held[a] - held[b])[0] for a, b in combinations(range(3), 2)])
        corrected = [p * np.array(holm_factors(p)) for p in p_values.T.tolist()]
        seen += (p_values[0] <= ALPHA).sum(), (np.min(corrected, axis=1) <= ALPHA).sum()
    return tuple(seen / N_TRIALS)


def found(n: int, repeats: int, n_tests: int) -> tuple[float, float, float, float]:
    """Of a model that lapses twice as soon: how often it is found, how many intervals hold the true
    difference, how many exist; and how often a difference as large as what is called detectable is
    found, for normal differences.
    """
    dice = np.random.default_rng([SEED, n, repeats, n_tests])
    ours, theirs = faster(dice, N_TIMES, 1)
    true, alpha = float(ours.mean() - theirs.mean()), ALPHA / n_tests
    seen = np.zeros(4)
    for _ in range(N_TRIALS // BATCH):
        ours, theirs = (
            side.reshape(BATCH, n, repeats).mean(axis=2)
            for side in faster(dice, BATCH * n, repeats)
        )
        p, means = tested(ours - theirs)
        beyond = int(alpha * (1 + means.shape[1]) / 2 + 1e-9)
        low, high = means[:, beyond - 1], means[:, -beyond]
        if n <= FEW:
            interval = sign_flip_interval(subset_means((ours - theirs)[0].tolist()), alpha)
            assert interval is not None and np.isclose(interval.low, low[0])  # noqa: S101, PT018
        exists = high > low
        holds = exists & (low <= true) & (true <= high)
        noise = dice.normal(0, 1, (BATCH, n))
        size = smallest_seen(n**-0.5, n, alpha)
        seen += (
            (p <= alpha).sum(),
            holds.sum(),
            exists.sum(),
            (tested(noise + size)[0] <= alpha).sum(),
        )
    return seen[0] / N_TRIALS, seen[1] / seen[2], seen[2] / N_TRIALS, seen[3] / N_TRIALS


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


def faster(dice: np.random.Generator, n: int, repeats: int) -> tuple[Array, Array]:
    """When two models lapse for good, in the same scenarios; the second lapses twice as soon."""
    hazard = HAZARD * np.exp(dice.normal(0, LOG_HAZARD, (n, 1)))
    level = np.tile(dice.normal(0, SPREAD, (n, 1)), repeats)
    true = (
        fallen(dice, np.tile(np.minimum(times * hazard, 1), repeats), level)[0] for times in (1, 2)
    )
    ours, theirs = (turns_held(judged(dice, one)) for one in true)
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
    yield "| models | scenarios | repeats | twice as soon: found | truth held | detectable: found |"
    yield "|---|---|---|---|---|---|"
    for models in (2, 3):
        n_tests = models * (models - 1) // 2
        for n, repeats in ((fewest_clusters(n_tests), 3), (8, 3), (10, 3), (20, 1), (20, 3)):
            power, held, _, detected = found(n, repeats, n_tests)
            low, high = POWER
            if held < LEAST_HELD or not (low <= detected <= high):
                MISSED.append(
                    f"{models} models, {n} scenarios: {held:.1%} held, {detected:.1%} found"
                )
            yield f"| {models} | {n} | {repeats} | {power:.1%} | {held:.1%} | {detected:.1%} |"


def mistakes() -> Iterator[str]:
    yield "| equal models | scenarios | repeats | one of two is called better | any of three |"
    yield "|---|---|---|---|---|"
    for name in POPULATIONS:
        for n, repeats in ((4, 3), (7, 3), (8, 3), (10, 1), (20, 1)):
            two, three = mistaken(name, n, repeats)
            if max(two, three) > EQUAL:
                MISSED.append(f"{name}, {n} scenarios: {two:.1%}, of three {three:.1%}")
            yield f"| {name} | {n} | {repeats} | {two:.1%} | {three:.1%} |"


def main() -> int:
    return tell(
        "power",
        lambda: "\n\n".join("\n".join(part()) for part in (powers, mistakes, times)),
    )


if __name__ == "__main__":
    sys.exit(main())
