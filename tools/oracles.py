# ruff: noqa: INP001 - a script, not a package
"""What other programs say of the figures that `socratic_bench.statistics` makes.

    python tools/oracles.py tests/data/oracles.json

Runs in an environment of its own, without the project (`make oracles`): statsmodels, lifelines and
scipy. Draws cases, has them reckoned, and writes both down, so that tests need none of the three.
"""

import json
import random
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import statsmodels.api as sm
from lifelines import KaplanMeierFitter
from lifelines.utils import restricted_mean_survival_time
from scipy import optimize, stats
from statsmodels.duration.survfunc import SurvfuncRight
from statsmodels.stats.anova import anova_lm
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower
from statsmodels.stats.proportion import proportion_confint
from statsmodels.stats.weightstats import DescrStatsW

SEED = 20261122
PROGRAMS = ("statsmodels", "lifelines", "scipy")
LEVEL = 0.05
POWER = 0.8
STEP = 1e-5  # of a weight, for a derivative
Clusters = list[list[Any]]
Case = dict[str, Any]


def drawn(dice: random.Random, shape: Sequence[int], value: Callable[[float], Any]) -> Clusters:
    """Values by cluster, alike within one."""
    return [[value(level) for _ in range(n)] for n in shape for level in [dice.gauss(0, 1)]]


def shapes(dice: random.Random) -> Iterator[list[int]]:
    """Sizes of clusters: single values, repeats, and some of each."""
    yield from ([1] * 2, [1] * 12, [3] * 5, [2] * 30)
    for n_clusters in (3, 8, 20):
        yield [dice.randint(1, 6) for _ in range(n_clusters)]


def flat(clusters: Clusters) -> tuple[np.ndarray, np.ndarray]:
    """All values, and the number of each one's cluster."""
    values = [value for some in clusters for value in some]
    return np.array(values), np.repeat(np.arange(len(clusters)), [len(some) for some in clusters])


def fitted(clusters: Clusters) -> Any:  # noqa: ANN401 - has no types
    """An intercept alone, with errors that are robust against clusters."""
    values, names = flat(clusters)
    options = {"groups": names, "use_correction": True, "df_correction": True}
    return sm.OLS(values, np.ones(len(values))).fit(
        cov_type="cluster", cov_kwds=options, use_t=True
    )


def means(dice: random.Random) -> Iterator[Case]:
    for shape in shapes(dice):
        clusters = drawn(dice, shape, lambda level: round(2 * (0.6 + level + dice.gauss(0, 1))) / 2)
        found = fitted(clusters)
        low, high = found.conf_int(LEVEL)[0]
        yield {
            "clusters": clusters,
            "mean": found.params[0],
            "error": found.bse[0],
            "low": low,
            "high": high,
            "p": found.pvalues[0],
        }


def paired(dice: random.Random) -> Iterator[Case]:
    """Two models in the same samples, once each."""
    for n in (2, 5, 12, 40):
        ours, theirs = ([round(dice.gauss(7, 1.5), 2) for _ in range(n)] for _ in range(2))
        found = DescrStatsW(np.array(ours) - np.array(theirs))
        low, high = found.tconfint_mean(LEVEL)
        p = found.ttest_mean(0)[1]
        if abs(p - stats.ttest_rel(ours, theirs).pvalue) > 1e-9:  # noqa: PLR2004
            sys.exit("statsmodels and scipy disagree")
        yield {"ours": ours, "theirs": theirs, "low": low, "high": high, "p": p}


def rates(dice: random.Random) -> Iterator[Case]:
    """Wilson's interval of as many trials as give the clustered error, at Student's point."""
    for shape in shapes(dice):
        clusters = drawn(
            dice, shape, lambda level: round(stats.norm.cdf(level + dice.gauss(0, 0.5) - 1), 2)
        )
        found = fitted(clusters)
        rate, error = found.params[0], found.bse[0]
        trials = rate * (1 - rate) / error**2
        level = 2 * stats.norm.sf(stats.t.isf(LEVEL / 2, len(shape) - 1))
        low, high = proportion_confint(rate * trials, trials, alpha=level, method="wilson")
        yield {"clusters": clusters, "rate": rate, "low": low, "high": high}


def variances(dice: random.Random) -> Iterator[Case]:
    """One-way analyses of variance of repeats, in samples of one size."""
    for n_clusters, size in ((3, 2), (8, 3), (20, 5)):
        clusters = drawn(
            dice, [size] * n_clusters, lambda level: round(3 * level + dice.gauss(0, 1), 2)
        )
        values, names = flat(clusters)
        table = anova_lm(
            sm.formula.ols("value ~ C(name)", pd.DataFrame({"value": values, "name": names})).fit()
        )
        between, within = table["mean_sq"]
        yield {"clusters": clusters, "between": (between - within) / size, "within": within}


def survivals(dice: random.Random) -> Iterator[Case]:
    """With every event seen, and with half of them; within a short time, and a long one."""
    for shape in shapes(dice):
        for share, longest in ((0.5, 12), (1.0, 40)):

            def time(
                level: float, share: float = share, longest: int = longest
            ) -> tuple[float, bool]:
                at = dice.expovariate(1 / (8 * np.exp(level / 2)))
                return float(min(longest, int(at))), dice.random() < share

            yield survival(drawn(dice, shape, time), horizon=longest - 2.5)


def survival(clusters: Clusters, horizon: float) -> Case:
    pairs, names = flat(clusters)
    at, is_event = pairs[:, 0], pairs[:, 1].astype(bool)
    curve = KaplanMeierFitter().fit(at, is_event)
    function = SurvfuncRight(at, is_event)
    steps = [float(one) for one in function.surv_times]
    shares = at_steps(curve, steps)
    has_error = ~np.isnan(function.surv_prob_se)  # none has where the curve has come to 0
    median = curve.median_survival_time_
    return {
        "clusters": clusters,
        "at": steps,
        "share": shares.tolist(),
        "greenwood": nullable(function.surv_prob_se, has_error),
        "clustered": nullable(clustered_errors(at, is_event, names, steps), has_error),
        "median": None if np.isinf(median) else float(median),
        "horizon": horizon,
        "restricted_mean": float(restricted_mean_survival_time(curve, horizon)),
    }


def at_steps(curve: KaplanMeierFitter, steps: Sequence[float]) -> np.ndarray:
    return curve.survival_function_at_times(steps).to_numpy()


def nullable(values: np.ndarray, is_known: np.ndarray) -> list[float | None]:
    return [float(one) if known else None for one, known in zip(values, is_known, strict=True)]


def clustered_errors(
    at: np.ndarray, is_event: np.ndarray, names: np.ndarray, steps: Sequence[float]
) -> np.ndarray:
    """The infinitesimal jackknife by its definition: how each cluster's weight moves the curve."""
    moved = []
    for name in sorted(set(names)):
        pair = []
        for sign in (1, -1):
            weights = np.where(names == name, 1 + sign * STEP, 1.0)
            pair.append(at_steps(KaplanMeierFitter().fit(at, is_event, weights=weights), steps))
        moved.append((pair[0] - pair[1]) / (2 * STEP))
    return np.sqrt((np.array(moved) ** 2).sum(axis=0))


def holm(dice: random.Random) -> Iterator[Case]:
    for n in (1, 2, 6, 18, 60):
        values = [round(dice.random() ** 3, 6) for _ in range(n)]
        values[-1] = values[0]
        yield {"p": values, "corrected": multipletests(values, method="holm")[1].tolist()}


def detectable(_: random.Random) -> Iterator[Case]:
    """In standard errors. Its own solver stops early, so the root is found anew."""
    power = TTestPower()
    for n in (3, 4, 5, 6, 8, 10, 15, 20, 30, 60, 200):

        def missing(size: float, n: int = n) -> float:
            return float(power.power(size, n, LEVEL)) - POWER

        size = optimize.brentq(missing, 1 / n**0.5, 6 / n**0.5, xtol=1e-13)
        yield {"n_clusters": n, "errors": size * n**0.5}


def main() -> None:
    warnings.filterwarnings("ignore")  # lifelines would rather have whole weights
    written = {"versions": {name: version(name) for name in PROGRAMS}}
    for make in (means, paired, rates, variances, survivals, holm, detectable):
        # Seeds of their own, so that a new kind of case leaves the others as they are.
        written[make.__name__] = [*make(random.Random(f"{SEED} {make.__name__}"))]
    lines = [f"{json.dumps(name)}: {listed(cases)}" for name, cases in written.items()]
    Path(sys.argv[1]).write_text("{\n" + ",\n".join(lines) + "\n}\n")


def listed(cases: object) -> str:
    """One case a line."""
    if not isinstance(cases, list):
        return json.dumps(cases)
    return "[\n" + ",\n".join(map(json.dumps, cases)) + "\n]"


if __name__ == "__main__":
    main()
