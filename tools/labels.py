# ruff: noqa: INP001 - a script, not a package
"""What calibration and correction withstand, where the truth is known.

    python tools/labels.py [--page docs/dev/validity.md]

1. A judge of known bias and noise: how often the intervals of bias, deviation, kappa and precision
   hold the truth, by number of scenarios; and what shuffled labels give.
2. How often the difference of two models holds the truth, as judged, corrected, by labels alone,
   and how wide it is; and rates.
3. A bag of words and a noisy oracle play judge of human-labelled rows, through the command: the AUC
   is that of scipy. The rows are not part of the project: they are looked for in $SOCRATIC_LABELS,
   or in ../shared/labels beside the checkout.

Prints the tables, or fills them into a page. Ends with 1 if something is not as the page promises.
"""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from human_rows import human_rows
from pages import SEED, hold, tell

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from socratic_bench.statistics import agreement  # noqa: E402
from socratic_bench.statistics.intervals import (  # noqa: E402
    clustered,
    jackknifed,
    t_limits,
    wilson_interval,
)
from socratic_bench.statistics.ppi import (  # noqa: E402
    Estimate,
    Judged,
    Labelled,
    Sample,
    correct,
    judge_estimate,
    label_estimate,
)
from socratic_bench.studies.calibrate.agreement import deviation_interval  # noqa: E402

Array = np.ndarray

# --- a judge of known bias and noise ---

N_TRIALS, TRUTH = 1_000, 40_000
N_DIALOGUES, N_TURNS = 30, 5
JUDGES = ((0.5, 1.0), (-1.0, 0.5), (0.0, 1.5))  # bias and noise, before steps and range
LEVEL, SPREAD, OWN, LIKE = 6.5, 1.2, 1.2, 0.3  # of scores; of what a scenario's errors share
N_SCENARIOS, N_REPEATS, MANY = (6, 10, 20, 40), 2, 20
RATE, HIT, FALSE_ALARM = 0.2, 0.8, 0.01  # of an event: how often it occurs, and the judge's yes


def on_scale(values: Array) -> Array:
    return np.clip(np.round(2 * values) / 2, 0, 10)


def scores(dice: np.random.Generator, n: int, n_turns: int) -> Array:
    """What people say, by scenario and turn."""
    return on_scale(dice.normal(LEVEL, SPREAD, (n, 1)) + dice.normal(0, OWN, (n, n_turns)))


def verdicts(dice: np.random.Generator, true: Array, bias: float, noise: float) -> Array:
    like = dice.normal(0, LIKE, (len(true), 1))
    return on_scale(true + bias + like + dice.normal(0, noise, true.shape))


def events(dice: np.random.Generator, n: int, n_turns: int) -> tuple[Array, Array]:
    """Whether judge and people see an event; it is more frequent in some scenarios."""
    true = dice.random((n, n_turns)) < dice.beta(4 * RATE, 4 * (1 - RATE), (n, 1))
    return dice.random(true.shape) < np.where(true, HIT, FALSE_ALARM), true


def paired(first: Array, second: Array) -> list[list[tuple]]:
    rows = zip(first.tolist(), second.tolist(), strict=True)
    return [[*zip(*row, strict=True)] for row in rows]


def known_judges() -> Iterator[str]:
    """Coverage by number of scenarios, of two dialogues each, and of bias if these are clusters."""
    heads = ("scenarios", "judge: bias, noise", "bias", "by dialogue", "deviation", "kappa")
    yield f"| {' | '.join(heads)} | precision | precision 1 | kappa, labels shuffled |"
    yield "|---|---|---|---|---|---|---|---|---|"
    n_turns = N_REPEATS * N_TURNS
    for bias, noise in JUDGES:
        dice = np.random.default_rng([SEED, int(10 * noise)])
        label = scores(dice, TRUTH, n_turns)
        judge = verdicts(dice, label, bias, noise)
        errors = judge - label
        kappa = agreement.weighted_kappa([*zip(judge.ravel(), label.ravel(), strict=True)])
        seen, true = events(dice, TRUTH, n_turns)
        truths = errors.mean(), errors.mean(), errors.std(), kappa, true[seen].mean()
        for n in N_SCENARIOS:
            yield coverage_of_calibration(dice, n, (bias, noise), truths)


def coverage_of_calibration(
    dice: np.random.Generator, n: int, judge_of: tuple[float, float], truths: Sequence[float]
) -> str:
    n_turns, held, n_known, by_chance, n_perfect = N_REPEATS * N_TURNS, np.zeros(5), 0, [], 0
    for _ in range(N_TRIALS):
        label = scores(dice, n, n_turns)
        judge = verdicts(dice, label, *judge_of)
        clusters = paired(judge, label)
        dialogues = paired(judge.reshape(-1, N_TURNS), label.reshape(-1, N_TURNS))
        seen, true = events(dice, n, n_turns)
        hits = [[float(t) for s, t in pairs if s] for pairs in paired(seen, true)]
        some_hits = [values for values in hits if values]
        precision = clustered(some_hits) if some_hits else None
        rate = wilson_interval(precision) if precision else None
        intervals = (
            jackknifed(clusters, agreement.bias).interval(),
            jackknifed(dialogues, agreement.bias).interval(),
            deviation_interval(clusters),
            jackknifed(clusters, agreement.weighted_kappa).interval(),
            rate,
        )
        n_known += rate is not None
        n_perfect += precision is not None and precision.mean == 1
        held += [
            interval is not None and interval.low <= truth <= interval.high
            for interval, truth in zip(intervals, truths, strict=True)
        ]
        if rate and rate.high <= rate.low:
            hold(0, (1, 1), "an interval of no width")
        shuffled = paired(judge.reshape(1, -1), dice.permutation(label.reshape(1, -1), axis=1))
        by_chance.append(agreement.weighted_kappa(shuffled[0]))
    shares = held / N_TRIALS
    shares[4] *= N_TRIALS / n_known
    bias, noise = judge_of
    name = f"{n} scenarios, bias {bias:+g}, noise {noise:g}"
    least = (0.91, 1) if n < MANY else (0.93, 0.97)
    for word, share in zip(("bias", "deviation"), shares[[0, 2]], strict=True):
        hold(share, least, f"{name}: the interval of its {word}")
    chance = float(np.mean(by_chance))
    hold(chance, (-0.02, 0.02), f"{name}: kappa with shuffled labels")
    cells = " | ".join(f"{share:.1%}" for share in shares)
    perfect = n_perfect / N_TRIALS
    return f"| {n} | {bias:+g}, {noise:g} | {cells} | {perfect:.0%} | {chance:+.3f} |"


# --- corrected figures ---

N_CORRECTED = 1_000
N_CELLS, N_PLAYED, N_OF_DIALOGUE = 24, 5, 8  # scenarios, dialogues of each by a model, their turns
APART, THRESHOLD = 0.5, 6.0
N_LABELLED = (10, 20, 40, 80)


def played(dice: np.random.Generator, n: int = N_CELLS) -> Array:
    """What people say, by model, scenario, dialogue and turn; the first model is better."""
    shared = dice.normal(LEVEL, 0.8, (1, n, 1, 1))
    own = dice.normal(0, 0.5, (2, n, 1, 1)) + np.array([APART, 0]).reshape(2, 1, 1, 1)
    dialogue = dice.normal(0, 0.8, (2, n, N_PLAYED, 1))
    turns = dice.normal(0, OWN, (2, n, N_PLAYED, N_OF_DIALOGUE))
    return on_scale(shared + own + dialogue + turns)


def leaning(dice: np.random.Generator, true: Array) -> Array:
    """A judge that is the kinder, the worse the reply."""
    return on_scale(true + 0.3 * (9 - true) + dice.normal(0, 1, true.shape))


def worthless(dice: np.random.Generator, true: Array) -> Array:
    """A judge that goes by the scenario and by chance alone."""
    own = dice.normal(0, 0.8, (*true.shape[:2], 1, 1))
    return on_scale(LEVEL + own + dice.normal(0, 1.5, true.shape))


def anywhere(dice: np.random.Generator, judge: Array) -> tuple[Array, Array]:
    """All turns of a dialogue are labelled."""
    del dice
    return np.ones(judge.shape, bool), np.ones(judge.shape)


def near(dice: np.random.Generator, judge: Array) -> tuple[Array, Array]:
    """Turns near the threshold more often."""
    chance = np.where(np.abs(judge - 8) <= 1, 0.9, 0.15)
    return dice.random(judge.shape) < chance, chance


def samples(
    dice: np.random.Generator, judge: Array, label: Array, n: int, draw: Callable
) -> Iterator[tuple[list[Judged], list[Labelled], list[Labelled]]]:
    """The verdicts and labels of each model, `n` dialogues of which are labelled; the labels also
    without their weights.
    """
    share = 1 / N_OF_DIALOGUE
    scenario = np.repeat(np.arange(N_CELLS), N_PLAYED)
    for verdict, value in zip(judge, label, strict=True):
        by_judge, by_people = (rows.reshape(-1, N_OF_DIALOGUE) for rows in (verdict, value))
        is_drawn, chance = draw(dice, by_judge)
        chosen = np.zeros((len(scenario), 1), bool)
        chosen[dice.choice(len(scenario), n, replace=False)] = True
        means = by_judge.mean(axis=1).tolist()
        judged = [Judged(int(c), mean) for c, mean in zip(scenario, means, strict=True)]
        places = [*zip(*np.nonzero(chosen & is_drawn), strict=True)]
        rows = [
            (int(scenario[d]), float(by_judge[d, t]), float(by_people[d, t]), chance[d, t])
            for d, t in places
        ]
        yield (
            judged,
            [Labelled(c, j, y, share / p) for c, j, y, p in rows],
            [Labelled(c, j, y, share) for c, j, y, _ in rows],
        )


def by_dialogue_alone(parts: Sequence) -> Estimate:
    """The correction as if dialogues of one scenario were independent, with lambda 1."""
    value = error = 0.0
    for sign, (judged, labelled, _) in zip((1, -1), parts, strict=True):
        n = len(labelled) // N_OF_DIALOGUE
        rows = [labelled[k * N_OF_DIALOGUE : (k + 1) * N_OF_DIALOGUE] for k in range(n)]
        gaps = [np.mean([turn.label - turn.judge for turn in row]) for row in rows]
        values = [turn.judge for turn in judged]
        value += sign * (np.mean(values) + np.mean(gaps))
        error += np.var(gaps, ddof=1) / n + np.var(values, ddof=1) / len(values)
    return Estimate(value=value, error=math.sqrt(error), n_clusters=2 * n)


def corrected() -> Iterator[str]:
    """The corrected difference of two models: coverage and width."""
    yield (
        "| judge | labelled dialogues | drawn | as judged | corrected | labels alone | "
        "by dialogue | width, of labels alone | mean without weights | corrected rate |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|"
    dice = np.random.default_rng(SEED)
    population = played(dice, TRUTH // N_PLAYED)
    truth = population[0].mean() - population[1].mean()
    mean, rate = population[0].mean(), (population[0] < THRESHOLD).mean()
    cells = [(judge, n, anywhere) for judge in (leaning, worthless) for n in N_LABELLED]
    for judge_of, n, draw in [*cells, (leaning, 20, near), (leaning, 40, near)]:
        held, widths = np.zeros(6), []
        for _ in range(N_CORRECTED):
            label = played(dice)
            judge = judge_of(dice, label)
            parts = [*samples(dice, judge, label, n, draw)]
            estimate = correct(*(Sample(judged, labelled) for judged, labelled, _ in parts))
            alone = label_estimate(*(labelled for _, labelled, _ in parts))
            bare = correct(Sample(parts[0][0], parts[0][2]))
            low, low_label = (np.where(rows < THRESHOLD, 1.0, 0.0) for rows in (judge, label))
            judged, labelled, _ = next(samples(dice, low, low_label, n, anywhere))
            of_rate = correct(Sample(judged, labelled))
            widths.append(width(estimate) / width(alone))
            held += (
                holds(judge_estimate(*(judged for judged, *_ in parts)), truth),
                holds(estimate, truth),
                holds(alone, truth),
                draw is anywhere and holds(by_dialogue_alone(parts), truth),
                holds(bare, mean),
                rate_holds(of_rate, rate),
            )
        shares, name = held / N_CORRECTED, f"{judge_of.__name__}, {n} dialogues, {draw.__name__}"
        hold(shares[1], (0.92, 0.985), f"{name}: the corrected interval")
        hold(max(widths), (0, 1 + 1e-9), f"{name}: width of a corrected interval")
        hold(shares[5], (0.92, 1), f"{name}: the corrected rate's interval")
        drawn = "whole" if draw is anywhere else "near 8"
        by_dialogue_share = f"{shares[3]:.1%}" if draw is anywhere else "-"
        yield (
            f"| {judge_of.__name__} | {n} | {drawn} | {shares[0]:.1%} | {shares[1]:.1%} | "
            f"{shares[2]:.1%} | {by_dialogue_share} | {np.mean(widths):.2f} | {shares[4]:.1%} | "
            f"{shares[5]:.1%} |"
        )


def width(estimate: Estimate) -> float:
    interval = t_limits(estimate.value, estimate.error, estimate.n_clusters)
    return interval.high - interval.low


def holds(estimate: Estimate, truth: float) -> bool:
    interval = t_limits(estimate.value, estimate.error, estimate.n_clusters)
    return interval.low <= truth <= interval.high


def rate_holds(estimate: Estimate, truth: float) -> bool:
    interval = estimate.interval(0, 1, is_rate=True)
    return interval is not None and interval.low <= truth <= interval.high


def main() -> int:
    parts = (known_judges, corrected, human_rows)
    wanted = [part for part in parts if part.__name__ in sys.argv] or parts
    return tell("simulated", lambda: "\n\n".join("\n".join(part()) for part in wanted))


if __name__ == "__main__":
    sys.exit(main())
