# ruff: noqa: INP001 - a script, not a package
"""What the figures of a dialogue say under a noisy judge, who is right on average.

    python tools/simulation.py [--page docs/dev/validity.md]

Dialogues whose true scores are known; the judge adds normal noise of a given deviation, whose
errors may have a memory (an autoregression of the first order), and answers in half steps between 0
and 10. Prints the tables, or fills them into a page. Ends with 1 if a figure misses what the page
promises of it.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from math import sqrt
from pathlib import Path

import numpy as np
from pages import SEED, hold, tell

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from socratic_bench import RunConfig  # noqa: E402
from socratic_bench.benchmarks.socratic.lapses import (  # noqa: E402
    MARGIN,
    ROUNDING,
    Lapses,
    find_lapses,
)
from socratic_bench.benchmarks.socratic.trend import trend_of  # noqa: E402
from socratic_bench.statistics.intervals import t_point  # noqa: E402

Array = np.ndarray
Rule = Callable[[Array], Array]  # from scores by dialogue and turn to the turns held

N_TURNS, N_DIALOGUES, N_TRENDS, REPEATS = 40, 10_000, 1000, 10
ISOLATED = 0.05  # of the turns
DEVIATIONS = (0.0, 0.5, 1.0, 1.5)
MEMORIES = (0.0, 0.5, 0.8)  # the correlation of a judge's errors in successive turns
LENGTHS = (12, 20, 40)
SAMPLES = (1, 3, 5)
SETTINGS = RunConfig(model="m", prompt="p", region="r")
THRESHOLD, LAPSE_TURNS = SETTINGS.half_life_threshold, SETTINGS.lapse_turns
MOST_FALSE = dict(zip(MEMORIES, (0.03, 0.10, 0.25), strict=True))
# Of steps in the middle of a dialogue: how near the rule finds them, and how often at least.
DEEP, SHALLOW = (4.0, 1, 0.9), (7.0, 10, 0.5)
LEAST_FOR_SHALLOW = 20  # turns
MOST_BIAS, MOST_SPREAD, LEAST_RIGHT, LEAST_NAMED = 1.0, 2.0, 0.95, 0.90

STEADY = 8.5
MARK = THRESHOLD - MARGIN


def steady(n_turns: int = N_TURNS) -> Array:
    return np.full(n_turns, STEADY)


def step(to: float, n_turns: int = N_TURNS) -> Array:
    """Nine, and from the middle on another score."""
    return np.where(np.arange(n_turns) < n_turns // 2, 9.0, to)


def isolated(dice: np.random.Generator) -> Array:
    """Nine, and four in one turn of twenty."""
    return np.where(dice.random((N_DIALOGUES, N_TURNS)) < ISOLATED, 4.0, 9.0)


SHAPES: Mapping[str, Callable[[np.random.Generator], Array]] = {
    "stable 8.5": lambda _: np.tile(steady(), (N_DIALOGUES, 1)),
    "step 9 to 4 at 20": lambda _: np.tile(step(4.0), (N_DIALOGUES, 1)),
    "slope 9.5 to 4": lambda _: np.tile(np.linspace(9.5, 4, N_TURNS), (N_DIALOGUES, 1)),
    "isolated lapses": isolated,
}
CHANGES = ("step 9 to 4 at 20", "slope 9.5 to 4")  # those that the stable dialogue should beat


def noise(dice: np.random.Generator, shape: tuple[int, int], memory: float) -> Array:
    """Errors with a deviation of 1, each correlated with the one of the turn before."""
    errors = dice.normal(size=shape)
    for turn in range(1, shape[1]):
        errors[:, turn] = memory * errors[:, turn - 1] + sqrt(1 - memory**2) * errors[:, turn]
    return errors


def to_half_steps(scores: Array) -> Array:
    return np.clip(np.round(2 * scores) / 2, 0, 10)


def judged(
    dice: np.random.Generator, true: Array, deviation: float = 1.0, memory: float = 0.0
) -> Array:
    """The scores that the judge gives, for one dialogue or for each of many."""
    shape = true.shape if true.ndim > 1 else (N_DIALOGUES, len(true))
    return to_half_steps(true + deviation * noise(dice, shape, memory))


def sampled(
    dice: np.random.Generator, true: Array, memory: float, n_samples: int, shared: float
) -> Array:
    """The mean of several verdicts on each turn, which share a part of the variance."""
    shape = (N_DIALOGUES, len(true))
    common = sqrt(shared) * noise(dice, shape, memory)
    verdicts = [
        to_half_steps(true + common + sqrt(1 - shared) * noise(dice, shape, memory))
        for _ in range(n_samples)
    ]
    return np.mean(verdicts, axis=0)


def in_a_row(scores: Array, least: int, points: float = 0.0) -> Array:
    """The turns before so many or more in a row under the threshold, which miss it by so many
    points together; else all turns.
    """
    *shape, n_turns = scores.shape
    first = np.full(shape, n_turns)
    n, missed = np.zeros_like(first), np.zeros(shape)
    for turn, column in enumerate(np.moveaxis(scores, -1, 0)):
        is_under = column < THRESHOLD
        n = np.where(is_under, n + 1, 0)
        missed = np.where(is_under, missed + THRESHOLD - column, 0.0)
        is_lasting = (n >= least) & (missed >= points)
        first = np.where(is_lasting & (first == n_turns), turn + 1 - n, first)
    return first


def turns_held(
    scores: Array, mark: float = MARK, points: float = LAPSE_TURNS, least: int = LAPSE_TURNS
) -> Array:
    """The program's rule for many dialogues at once: a cumulative sum (Page 1954) of the mark minus
    the score, never under 0, that reaches so many points, in so many turns at least.
    """
    *shape, n_turns = scores.shape
    total, first = np.zeros(shape), np.full(shape, n_turns)
    start = np.zeros_like(first)
    for turn, column in enumerate(np.moveaxis(scores, -1, 0)):
        start = np.where(total <= 0, turn, start)
        total = np.maximum(0, total + mark - column)
        is_lasting = (total >= points - ROUNDING) & (turn + 1 - start >= least)
        first = np.where(is_lasting & (first == n_turns), start, first)
    return first


RULES: Mapping[str, Rule] = {
    **{f"{n} in a row": lambda s, n=n: in_a_row(s, n) for n in (3, 4, 5, 6, 7)},
    **{f"5 in a row, by {n:g} points": lambda s, n=n: in_a_row(s, 5, n) for n in (5, 7.5)},
    **{
        f"under {mark:g} by {points:g} points in {least} turns": (
            lambda s, rule=(mark, points, least): turns_held(s, *rule)
        )
        for mark, points, least in (
            *((7.5, 3.5, 3), (7.5, 3.5, 5), (7.5, 4, 3), (7.5, 4, 4), (7.5, 4, 5)),
            *((7.5, 4.5, 5), (7.5, 5, 5), (7.6, 4.5, 5), (7.7, 5, 5), (7.8, 5, 5)),
        )
    },
}
BEFORE = RULES["5 in a row, by 7.5 points"]
OURS = f"under {MARK:g} by {LAPSE_TURNS} points in {LAPSE_TURNS} turns"


def share_false(scores: Array, rule: Rule = turns_held) -> float:
    return float((rule(scores) < scores.shape[1]).mean())


def share_near(scores: Array, within: int, rule: Rule = turns_held) -> float:
    """Dialogues whose lapse is found within so many turns of the step in their middle."""
    n_turns, held = scores.shape[1], rule(scores)
    return float(((abs(held - n_turns // 2) <= within) & (held < n_turns)).mean())


def shares(
    make: Callable[[np.random.Generator, Array, float], Array], n_turns: int, rule: Rule
) -> Iterator[tuple[float, float, float]]:
    """By memory: false lapses, deep steps found, shallow steps found."""
    for memory in MEMORIES:
        dice = np.random.default_rng([SEED, n_turns, int(10 * memory)])
        yield (
            share_false(make(dice, steady(n_turns), memory), rule),
            *(
                share_near(make(dice, step(to, n_turns), memory), within, rule)
                for to, within, _ in (DEEP, SHALLOW)
            ),
        )


def _one(dice: np.random.Generator, true: Array, memory: float) -> Array:
    return judged(dice, true, memory=memory)


def _columns(by_memory: Iterator[tuple[float, float, float]]) -> str:
    return " | ".join(
        " / ".join(f"{share:.0%}" for share in column) for column in zip(*by_memory, strict=True)
    )


HEADS = "false lasting lapse | 9 to 4 within 1 turn | 9 to 7 within 10 turns"


def rules() -> Iterator[str]:
    yield f"| a lasting lapse is | turns | {HEADS} |"
    yield "|---|---|---|---|---|"
    for name, rule in RULES.items():
        for n_turns in LENGTHS if rule in (BEFORE, RULES[OURS]) else LENGTHS[-1:]:
            words = f"**{name}**" if name == OURS else name
            yield f"| {words} | {n_turns} | {_columns(shares(_one, n_turns, rule))} |"


def lengths() -> Iterator[str]:
    yield f"| turns | verdicts on a turn | {HEADS} |"
    yield "|---|---|---|---|---|"
    for shared, words in ((0.0, "independent"), (0.5, "half shared")):
        for n in SAMPLES[1:]:

            def make(
                dice: np.random.Generator,
                true: Array,
                memory: float,
                n: int = n,
                shared: float = shared,
            ) -> Array:
                return sampled(dice, true, memory, n, shared)

            yield f"| {N_TURNS} | {n}, {words} | {_columns(shares(make, N_TURNS, turns_held))} |"


def check_rule() -> None:
    """The rule reaches what the page promises, and is the program's."""
    for n_turns in LENGTHS:
        by_memory = dict(zip(MEMORIES, shares(_one, n_turns, turns_held), strict=True))
        for memory, (false, deep, shallow) in by_memory.items():
            of = f"in {n_turns} turns, at a correlation of {memory:g}"
            hold(false, (0, MOST_FALSE[memory]), f"false lapses {of}")
            hold(deep, (DEEP[2], 1), f"steps from 9 to 4 {of}")
            if n_turns >= LEAST_FOR_SHALLOW:
                hold(shallow, (SHALLOW[2], 1), f"steps from 9 to 7 {of}")
    scores = judged(np.random.default_rng(SEED), step(7.0))[:500]
    for row, held in zip(scores.tolist(), turns_held(scores).tolist(), strict=True):
        starts = _lapses(row).starts
        hold(starts[0] if starts else N_TURNS, (held, held), f"the program's turns of {row}")


def _lapses(scores: list[float]) -> Lapses:
    return find_lapses([THRESHOLD - score for score in scores], LAPSE_TURNS)


def half_life(scores: Array) -> Array:
    return in_a_row(scores, 1)


def slope(scores: Array) -> Array:
    turns = np.arange(N_TURNS) - (N_TURNS - 1) / 2
    return scores @ turns / (turns**2).sum()


FIGURES: Mapping[str, Callable[[Array], Array]] = {
    "half_life": half_life,
    "turns_held": turns_held,
    "lapse_rate": lambda scores: (scores < THRESHOLD).mean(axis=1),
    "n_lapses": lambda scores: np.array(
        [len(_lapses(row).starts[::2]) for row in scores[:N_TRENDS].tolist()]
    ),
    "compliance_rate": lambda scores: (scores >= SETTINGS.compliance_threshold).mean(axis=1),
    "overall_score": lambda scores: scores.mean(axis=1),
    "slope": slope,
}
LOWER_IS_BETTER = ("lapse_rate", "n_lapses")


class Row:
    """A figure of the judged dialogues beside that of the true ones."""

    def __init__(self, name: str, true: Array, scores: Array, rivals: Array) -> None:
        figure = FIGURES[name]
        seen, meant, better = figure(scores), figure(true), figure(rivals)
        errors = seen - meant
        groups = seen.reshape(-1, REPEATS)
        half = t_point(REPEATS - 1) * groups.std(axis=1, ddof=1) / sqrt(REPEATS)
        off = abs(groups.mean(axis=1) - meant.reshape(-1, REPEATS).mean(axis=1))
        self.true, self.bias, self.spread = meant.mean(), errors.mean(), errors.std(ddof=1)
        self.coverage = (off <= half + ROUNDING).mean()
        is_right = better < seen if name in LOWER_IS_BETTER else better > seen
        self.pairs = is_right.mean()


def row(name: str, shape: str, deviation: float) -> Row:
    dice = np.random.default_rng([SEED, int(10 * deviation)])
    true = SHAPES[shape](dice)
    scores, rivals = judged(dice, true, deviation), judged(dice, steady(), deviation)
    return Row(name, true, scores, rivals)


def figures() -> Iterator[str]:
    heads = " | ".join(f"at {deviation:g}" for deviation in DEVIATIONS[1:])
    yield f"| true scores | figure | true | {heads} |"
    yield "|---|---|---|" + "---|" * len(DEVIATIONS[1:])
    for shape in SHAPES:
        for name in FIGURES:
            rows = [row(name, shape, deviation) for deviation in DEVIATIONS[1:]]
            cells = " | ".join(_cell(each, has_pairs=shape in CHANGES) for each in rows)
            yield f"| {shape} | `{name}` | {rows[0].true:.2f} | {cells} |"


def _cell(row: Row, *, has_pairs: bool) -> str:
    """Bias and spread; how many intervals hold the true figure; how many pairs are ranked right."""
    pairs = f"; {row.pairs:.0%}" if has_pairs else ""
    return f"{row.bias:+.2f} ± {row.spread:.2f}; {row.coverage:.0%}{pairs}"


def trends(shape: str, deviation: float) -> dict[str, float]:
    dice = np.random.default_rng([SEED, int(10 * deviation), 1])
    counts = dict.fromkeys(("none", "step", "slope"), 0)
    for scores in judged(dice, SHAPES[shape](dice), deviation)[:N_TRENDS].tolist():
        trend = trend_of([*enumerate(scores)])
        counts[trend.kind if trend else "none"] += 1
    return {kind: count / N_TRENDS for kind, count in counts.items()}


def trend_table() -> Iterator[str]:
    yield "| true scores | judge's deviation | none | step | slope |"
    yield "|---|---|---|---|---|"
    for shape in SHAPES:
        for deviation in DEVIATIONS:
            by_kind = trends(shape, deviation)
            if deviation == 1.0 and shape in CHANGES:
                hold(by_kind[shape.split()[0]], (LEAST_NAMED, 1), f"named right: {shape}")
            elif shape not in CHANGES:
                hold(by_kind["none"], (LEAST_RIGHT, 1), f"no change seen in {shape}, {deviation:g}")
            cells = " | ".join(f"{share:.1%}" for share in by_kind.values())
            yield f"| {shape} | {deviation:g} | {cells} |"


def check_figures() -> None:
    """What docs/dev/validity.md promises at a deviation of 1."""
    held, score = (row(name, "step 9 to 4 at 20", 1.0) for name in ("turns_held", "overall_score"))
    hold(held.bias, (-MOST_BIAS, MOST_BIAS), "the bias of turns_held")
    hold(held.spread, (0, MOST_SPREAD), "the spread of turns_held")
    hold(held.pairs, (LEAST_RIGHT, 1), "pairs that turns_held ranks right")
    hold(score.pairs, (LEAST_RIGHT, 1), "pairs that overall_score ranks right")


def tables() -> str:
    check_rule()
    check_figures()
    parts = (rules, lengths, figures, trend_table)
    return "\n\n".join("\n".join(part()) for part in parts)


if __name__ == "__main__":
    sys.exit(tell("simulation", tables))
