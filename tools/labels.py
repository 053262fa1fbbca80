# ruff: noqa: INP001 - a script, not a package
"""What calibration and correction withstand, where the truth is known.

    python tools/labels.py [--page docs/calibration.md]

1. A judge of known bias and noise: how often the intervals of bias and deviation hold the truth,
   which is that of the difference after rounding and clipping; and what shuffled labels give.
2. The same through the emulator and the command.
3. How often intervals of means and rates hold the truth, as judged, corrected, and corrected by
   labels that were drawn near a threshold and are taken as they are.
4. A bag of words and a noisy oracle play judge of human-labelled rows, through the command: the AUC
   is that of scipy. The rows are not part of the project: they are looked for in $SOCRATIC_LABELS,
   or in ../shared/labels beside the checkout.

Prints the tables, or fills them into a page. Ends with 1 if something is not as the page promises.
"""

import math
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from human_rows import NUMBERS, human_rows
from pages import SEED, hold, tell

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from socratic_bench.statistics import agreement  # noqa: E402
from socratic_bench.statistics.intervals import jackknifed  # noqa: E402
from socratic_bench.statistics.ppi import (  # noqa: E402
    Estimate,
    Judged,
    Labelled,
    correct_mean,
    correct_rate,
    judge_mean,
)
from socratic_bench.studies.calibrate.agreement import deviation_interval  # noqa: E402
from tests.command import run  # noqa: E402
from tests.labelled import labels as small_labels  # noqa: E402
from tests.labelled import write_jsonl  # noqa: E402

HELD = (0.93, 0.97)
Array = np.ndarray

# --- a judge of known bias and noise ---

N_TRIALS, N_DIALOGUES, N_TURNS = 4_000, 30, 5
TRUTH_DIALOGUES = 200_000
JUDGES = ((0.5, 1.0), (-1.0, 0.5), (0.0, 1.5))  # bias and noise, before steps and range
LEVEL, SPREAD, OWN, LIKE = 6.5, 1.2, 1.2, 0.3  # of scores, and of what a dialogue's errors share


def on_scale(values: Array) -> Array:
    return np.clip(np.round(2 * values) / 2, 0, 10)


def scores(dice: np.random.Generator, n: int, n_turns: int = N_TURNS) -> Array:
    """What people say, by dialogue and turn."""
    level = dice.normal(LEVEL, SPREAD, (n, 1))
    return on_scale(level + dice.normal(0, OWN, (n, n_turns)))


def verdicts(dice: np.random.Generator, true: Array, bias: float, noise: float) -> Array:
    like = dice.normal(0, LIKE, (len(true), 1))
    return on_scale(true + bias + like + dice.normal(0, noise, true.shape))


def known_judges() -> Iterator[str]:
    heads = ("judge: bias, noise", "realised bias, deviation", "bias held", "deviation held")
    yield f"| {' | '.join(heads)} | kappa, labels shuffled |"
    yield "|---|---|---|---|---|"
    for bias, noise in JUDGES:
        dice = np.random.default_rng([SEED, int(10 * noise)])
        true = scores(dice, TRUTH_DIALOGUES)
        errors = verdicts(dice, true, bias, noise) - true
        truth = errors.mean(), errors.std()
        held = np.zeros(2)
        by_chance = []
        for _ in range(N_TRIALS):
            label = scores(dice, N_DIALOGUES)
            judge = verdicts(dice, label, bias, noise)
            clusters = [
                [*zip(*rows, strict=True)]
                for rows in zip(judge.tolist(), label.tolist(), strict=True)
            ]
            mean = jackknifed(clusters, agreement.bias).interval()
            spread = deviation_interval(clusters)
            held += mean.low <= truth[0] <= mean.high, spread.low <= truth[1] <= spread.high
            shuffled = dice.permutation(label.ravel()).tolist()
            by_chance.append(
                agreement.weighted_kappa([*zip(judge.ravel().tolist(), shuffled, strict=True)])
            )
        shares = held / N_TRIALS
        name = f"bias {bias:+g}, noise {noise:g}"
        for word, share in zip(("bias", "deviation"), shares, strict=True):
            hold(share, HELD, f"{name}: the interval of its {word}")
        chance = float(np.mean(by_chance))
        hold(chance, (-0.01, 0.01), f"{name}: kappa with shuffled labels")
        yield (
            f"| {bias:+g}, {noise:g} | {truth[0]:+.3f}, {truth[1]:.3f} | {shares[0]:.1%} | "
            f"{shares[1]:.1%} | {chance:+.3f} |"
        )


# --- the same through the emulator ---

N_COMMANDS = 20
BIASED = "emulator.judge-bias-5-noise-10-v1:0"


def through_the_command() -> Iterator[str]:
    """Labels are what the plain judge says, so that the difference is the fault alone."""
    with tempfile.TemporaryDirectory() as folder:
        documents = [trial(Path(folder), number) for number in range(N_COMMANDS)]
    pooled = {name: [d for one in documents for d in differences(one, name)] for name in NUMBERS}
    worst = max(gap(one, name) for one in documents for name in NUMBERS)
    held = [
        one["dimensions"][name][key]["low"] <= true <= one["dimensions"][name][key]["high"]
        for name, some in pooled.items()
        for key, true in (("bias", np.mean(some)), ("deviation", np.std(some)))
        for one in documents
    ]
    hold(worst, (0, 1e-6), "a figure of the command is not the library's")
    hold(np.mean(held), (0.85, 1), "intervals of the command")
    yield (
        f"{N_COMMANDS} calibrations of `{BIASED}` by the command: figures are the library's "
        f"within 1e-6; {sum(held)} of {len(held)} intervals hold the bias or the deviation "
        "of all together."
    )


def trial(folder: Path, number: int) -> dict:
    rows = small_labels(
        n_dialogues=N_DIALOGUES, n_turns=N_TURNS, seed=number, people=("plain",), events={}
    )
    for row in rows:
        row["prompt"] = f"{row['prompt']} ({number}, {row['dialogue']})"
    plain = calibrated(write_jsonl(folder / "labels.jsonl", rows))
    for row, turn in zip(rows, plain["turns"], strict=True):
        row["scores"] = {name: turn["judge"][name] for name in NUMBERS}
    return calibrated(write_jsonl(folder / "true.jsonl", rows), BIASED)


def gap(document: Mapping, name: str) -> float:
    """How far the command's figures are from the library's."""
    found, clusters = document["dimensions"][name], by_dialogue(document, name)
    mean, spread = jackknifed(clusters, agreement.bias), deviation_interval(clusters)
    return max(
        abs(found["bias"]["value"] - mean.value),
        abs(found["bias"]["low"] - mean.interval().low),
        abs(found["deviation"]["high"] - spread.high),
    )


def calibrated(path: str, model: str = "emulator.judge-v1:0") -> dict:
    return run("calibrate", "--labels", path, "--offline", "-q", "--judge-model", model).document


def by_dialogue(document: Mapping, name: str) -> list[list[tuple[float, float]]]:
    found = defaultdict(list)
    for turn in document["turns"]:
        found[turn["dialogue"]].append((turn["judge"][name], turn["label"][name]))
    return [*found.values()]


def differences(document: Mapping, name: str) -> list[float]:
    return [one - other for some in by_dialogue(document, name) for one, other in some]


# --- corrected figures ---

N_CORRECTED, N_JUDGED, N_OF_DIALOGUE = 1_500, 120, 8
THRESHOLD = 6.0
CALLS = Callable[[np.random.Generator, Array], tuple[Array, Array]]


def leaning(dice: np.random.Generator, true: Array) -> Array:
    """A judge that is the kinder, the worse the reply."""
    return on_scale(true + 0.3 * (9 - true) + dice.normal(0, 1.5, true.shape))


def anywhere(dice: np.random.Generator, judge: Array, share: float) -> tuple[Array, Array]:
    """Dialogues are drawn, all of their turns are labelled."""
    del dice
    return np.ones(judge.shape, bool), np.full(judge.shape, share)


def near(dice: np.random.Generator, judge: Array, share: float) -> tuple[Array, Array]:
    """Of each drawn dialogue, turns near the threshold more often."""
    chance = np.where(np.abs(judge - 8) <= 1, 0.9, 0.15)
    return dice.random(judge.shape) < chance, share * chance


def corrected() -> Iterator[str]:
    yield (
        "| labelled dialogues | drawn | mean as judged | corrected | without weights | its bias | "
        "rate, Rogan-Gladen |"
    )
    yield "|---|---|---|---|---|---|---|"
    dice = np.random.default_rng(SEED)
    population = scores(dice, TRUTH_DIALOGUES, N_OF_DIALOGUE)
    truth = population.mean(), (population < THRESHOLD).mean()
    for name, draw in (("whole dialogues", anywhere), ("near 8", near)):
        for n in (20, 40):
            held, moved = np.zeros(4), []
            n_rates = 0
            for _ in range(N_CORRECTED):
                label = scores(dice, N_JUDGED, N_OF_DIALOGUE)
                judge = leaning(dice, label)
                chosen = np.zeros((N_JUDGED, 1), bool)
                chosen[dice.choice(N_JUDGED, n, replace=False)] = True
                is_drawn, chance = draw(dice, judge, n / N_JUDGED)
                places = [*zip(*np.nonzero(chosen & is_drawn), strict=True)]
                parts = pieces(judge, label, places, chance)
                bare = correct_mean(parts["judged"], parts["bare"])
                moved.append(bare.value - truth[0])
                rate = correct_rate(parts["judged_low"], parts["labelled_low"])
                n_rates += isinstance(rate, Estimate)
                held += (
                    holds(judge_mean(parts["judged"]), truth[0]),
                    holds(correct_mean(parts["judged"], parts["labelled"]), truth[0]),
                    holds(bare, truth[0]),
                    isinstance(rate, Estimate) and holds(rate, truth[1]),
                )
            shares = held / N_CORRECTED
            rates = shares[3] * N_CORRECTED / n_rates
            hold(shares[0], (0, 0.5), f"{name}, {n}: the naive interval")
            hold(shares[1], HELD, f"{name}, {n}: the corrected interval")
            hold(rates, (0.93, 1), f"{name}, {n}: the corrected rate's interval")
            if draw is near:
                hold(shares[2], (0, 0.92), f"{name}, {n}: without weights")
            yield (
                f"| {n} | {name} | {shares[0]:.1%} | {shares[1]:.1%} | {shares[2]:.1%} | "
                f"{np.mean(moved):+.3f} | {rates:.1%} |"
            )


def pieces(judge: Array, label: Array, places: Sequence, chance: Array) -> dict[str, list]:
    share = 1 / judge.shape[1]
    said = [(n, value) for n, row in enumerate(judge.tolist()) for value in row]
    drawn = [(c, float(judge[c, t]), float(label[c, t]), share / chance[c, t]) for c, t in places]
    return {
        "judged": [Judged(c, value, share) for c, value in said],
        "judged_low": [Judged(c, float(value < THRESHOLD), share) for c, value in said],
        "labelled": [Labelled(*one) for one in drawn],
        "bare": [Labelled(c, j, y, share) for c, j, y, _ in drawn],
        "labelled_low": [
            Labelled(c, float(j < THRESHOLD), float(y < THRESHOLD), w) for c, j, y, w in drawn
        ],
    }


def holds(found: Estimate, truth: float) -> bool:
    interval = found.interval(-math.inf, math.inf)
    return bool(interval and interval.low <= truth <= interval.high)


def main() -> int:
    parts = (known_judges, through_the_command, corrected, human_rows)
    wanted = [part for part in parts if part.__name__ in sys.argv] or parts
    return tell("simulated", lambda: "\n\n".join("\n".join(part()) for part in wanted))


if __name__ == "__main__":
    sys.exit(main())
