# ruff: noqa: INP001 - a script, not a package
"""What the figures of a dialogue say under a noisy judge, who is right on average.

    python tools/simulation.py [--page docs/benchmark.md | --check]

Dialogues of 40 judged turns whose true scores are known; the judge adds normal noise of a given
deviation and answers in half steps between 0 and 10. Prints the tables, or fills them into a page;
--check makes none. Ends with 1 if a figure misses what the page promises of it.
"""

import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from pages import MISSED, SEED, tell

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from socratic_bench import RunConfig  # noqa: E402
from socratic_bench.benchmarks.socratic.trend import (  # noqa: E402
    lapses,
    stretches,
    trend_of,
)

N_TURNS, N_DIALOGUES, REPEATS = 40, 1000, 10
ISOLATED = 0.05  # of the turns
LONGEST = 5
MOST_BIAS, MOST_SPREAD, LEAST_RIGHT, LEAST_NAMED = 1.0, 2.0, 0.95, 0.90
DEVIATIONS = (0.0, 0.5, 1.0, 1.5)
THRESHOLD, COMPLIANCE = 8.0, 3.0
LAPSE_TURNS = RunConfig(model="m", prompt="p", region="r").lapse_turns
T_OF_9 = 2.262  # two-sided 95 % point of Student's t with nine degrees of freedom
Scores = list[float]

STEP = [9.0] * 20 + [4.0] * 20
STABLE = [8.5] * N_TURNS
SLOPE = [9.5 - 5.5 * turn / (N_TURNS - 1) for turn in range(N_TURNS)]


def isolated(dice: random.Random) -> Scores:
    """Nine, and four in one turn of twenty."""
    return [4.0 if dice.random() < ISOLATED else 9.0 for _ in range(N_TURNS)]


SHAPES: Mapping[str, Callable[[random.Random], Scores]] = {
    "stable 8.5": lambda _: STABLE,
    "step 9 to 4 at 20": lambda _: STEP,
    "slope 9.5 to 4": lambda _: SLOPE,
    "isolated lapses": isolated,
}


def judged(true: Scores, deviation: float, dice: random.Random) -> Scores:
    """What the judge says: in half steps, within the bounds."""
    return [min(10.0, max(0.0, round(2 * dice.gauss(one, deviation)) / 2)) for one in true]


def under(scores: Scores) -> list[tuple[int, bool]]:
    return [(turn, score < THRESHOLD) for turn, score in enumerate(scores)]


def half_life(scores: Scores) -> float:
    return next((turn for turn, is_under in under(scores) if is_under), len(scores))


def sustained(scores: Scores, least: int = LAPSE_TURNS) -> float:
    found = lapses(stretches(under(scores)), least)
    return found[0].start if found else len(scores)


def least_squares(scores: Scores) -> float:
    middle = (len(scores) - 1) / 2
    spread = sum((turn - middle) ** 2 for turn in range(len(scores)))
    return sum((turn - middle) * score for turn, score in enumerate(scores)) / spread


FIGURES: Mapping[str, Callable[[Scores], float]] = {
    "half_life": half_life,
    "turns_held": sustained,
    "lapse_rate": lambda scores: fmean(is_under for _, is_under in under(scores)),
    "n_lapses": lambda scores: len(lapses(stretches(under(scores)), LAPSE_TURNS)),
    "compliance_rate": lambda scores: fmean(score >= COMPLIANCE for score in scores),
    "overall_score": fmean,
    "slope": least_squares,
}
# Those that the stable dialogue should beat.
CHANGES = ("step 9 to 4 at 20", "slope 9.5 to 4")
LOWER_IS_BETTER = ("lapse_rate", "n_lapses")


def is_better(figure: str, one: float, other: float) -> bool:
    return one < other if figure in LOWER_IS_BETTER else one > other


def covers(values: Sequence[float], true: float) -> bool:
    """Whether Student's interval of the mean of some dialogues holds the true figure."""
    half = T_OF_9 * stdev(values) / sqrt(len(values))
    return abs(fmean(values) - true) <= half + 1e-9


def rows(shape: str, deviation: float, dice: random.Random) -> Iterator[dict[str, Any]]:
    truths = [SHAPES[shape](dice) for _ in range(N_DIALOGUES)]
    seen = [judged(true, deviation, dice) for true in truths]
    rivals = [judged(STABLE, deviation, dice) for _ in truths]
    for name, figure in FIGURES.items():
        found, meant = [*map(figure, seen)], [*map(figure, truths)]
        errors = [said - true for said, true in zip(found, meant, strict=True)]
        groups = [range(at, at + REPEATS) for at in range(0, N_DIALOGUES, REPEATS)]
        right = [
            is_better(name, figure(rival), said) for rival, said in zip(rivals, found, strict=True)
        ]
        yield {
            "figure": name,
            "true": fmean(meant),
            "bias": fmean(errors),
            "spread": stdev(errors),
            "coverage": fmean(
                covers([found[at] for at in group], fmean(meant[at] for at in group))
                for group in groups
            ),
            "pairs": fmean(right) if shape in CHANGES else None,
        }


def trends(shape: str, deviation: float, dice: random.Random) -> dict[str, float]:
    said = ["none", "step", "slope"]
    counts = dict.fromkeys(said, 0)
    for _ in range(N_DIALOGUES):
        found = trend_of([*enumerate(judged(SHAPES[shape](dice), deviation, dice))])
        counts[found.kind if found else "none"] += 1
    return {kind: count / N_DIALOGUES for kind, count in counts.items()}


def lengths(dice: random.Random) -> Iterator[str]:
    """How many judged turns in a row should make a lapse: where the default comes from."""
    yield "| judge's deviation | turns in a row | bias | spread | pairs ranked right |"
    yield "|---|---|---|---|---|"
    for deviation in DEVIATIONS[1:]:
        for least in range(1, LONGEST + 1):
            steps = [sustained(judged(STEP, deviation, dice), least) for _ in range(N_DIALOGUES)]
            stable = [sustained(judged(STABLE, deviation, dice), least) for _ in range(N_DIALOGUES)]
            right = fmean(rival > said for rival, said in zip(stable, steps, strict=True))
            yield (
                f"| at {deviation:g} | {least} | {fmean(steps) - 20:+.1f} | {stdev(steps):.1f} "
                f"| {right:.0%} |"
            )


def table(dice: random.Random) -> Iterator[str]:
    heads = " | ".join(f"at {deviation:g}" for deviation in DEVIATIONS[1:])
    yield f"| true scores | figure | true | {heads} |"
    yield "|---|---|---|" + "---|" * len(DEVIATIONS[1:])
    for shape in SHAPES:
        found = [[*rows(shape, deviation, dice)] for deviation in DEVIATIONS[1:]]
        for cells in zip(*found, strict=True):
            first = f"| {shape} | `{cells[0]['figure']}` | {cells[0]['true']:.2f} | "
            yield first + " | ".join(map(cell, cells)) + " |"


def cell(row: Mapping[str, Any]) -> str:
    """Bias and spread; how many intervals hold the true figure; how many pairs are ranked right."""
    pairs = "" if row["pairs"] is None else f"; {row['pairs']:.0%}"
    return f"{row['bias']:+.2f} ± {row['spread']:.2f}; {row['coverage']:.0%}{pairs}"


def trend_table(dice: random.Random) -> Iterator[str]:
    yield "| true scores | judge's deviation | none | step | slope |"
    yield "|---|---|---|---|---|"
    for shape in SHAPES:
        for deviation in DEVIATIONS:
            shares = " | ".join(f"{one:.1%}" for one in trends(shape, deviation, dice).values())
            yield f"| {shape} | {deviation:g} | {shares} |"


def missed(dice: random.Random) -> Iterator[str]:
    """What docs/benchmark.md promises at a deviation of 1, and does not hold."""
    found = {row["figure"]: row for row in rows("step 9 to 4 at 20", 1.0, dice)}
    lasting = found["turns_held"]
    kinds = {shape: trends(shape, 1.0, dice) for shape in SHAPES}
    stable, alone = (
        [trends(shape, deviation, dice)["none"] for deviation in DEVIATIONS]
        for shape in ("stable 8.5", "isolated lapses")
    )
    promises = {
        "the bias of turns_held is under 1 turn": abs(lasting["bias"]) < MOST_BIAS,
        "its spread is under 2 turns": lasting["spread"] < MOST_SPREAD,
        "it ranks 95 % of pairs right": lasting["pairs"] >= LEAST_RIGHT,
        "overall_score ranks 95 % of pairs right": found["overall_score"]["pairs"] >= LEAST_RIGHT,
        "a step is told from a slope in 90 %": kinds["step 9 to 4 at 20"]["step"] >= LEAST_NAMED,
        "a slope is told from a step in 90 %": kinds["slope 9.5 to 4"]["slope"] >= LEAST_NAMED,
        "a stable dialogue is called a change in 5 %": min(stable) >= LEAST_RIGHT,
        "isolated lapses are called a change in 5 %": min(alone) >= LEAST_RIGHT,
    }
    yield from (promise for promise, holds in promises.items() if not holds)


def tables(dice: random.Random) -> str:
    return "\n\n".join("\n".join(part(dice)) for part in (lengths, table, trend_table))


def main() -> int:
    dice = random.Random(SEED)
    MISSED.extend(missed(dice))
    return tell("simulation", lambda: "" if "--check" in sys.argv else tables(dice))


if __name__ == "__main__":
    sys.exit(main())
