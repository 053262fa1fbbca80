# ruff: noqa: INP001 - a script, not a package
"""The heuristics against people's labels: kappa with its interval, per source and label.

The labels are not part of the project (they may not be given on). They are looked for in the
folder $SOCRATIC_LABELS, or in ../shared/labels beside the checkout. Ends with 1 where a kappa is
under its goal.

With --rules it tells instead by how much each rule raises the kappas: what they lose without it.
With --growth it measures how time grows from 50 to 200 KB of odd text (4 is linear), and how many
short utterances a second are read.
"""

import json
import os
import random
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from socratic_bench.benchmarks.socratic.heuristics import Heuristics

ROOT = Path(__file__).resolve().parent.parent
FIELDS = ("has_question", "open_ended", "has_advice", "is_leading")
ON_QUESTIONS = ("open_ended", "is_leading")
# Kappa that each label must reach: on MRDA, always saying yes has F1 .67 for advice, but kappa 0.
GOALS = {
    ("annomi", "has_advice"): 0.10,
    ("annomi", "has_question"): 0.85,
    ("annomi", "open_ended"): 0.70,
    ("annomi", "open_ended|questions only"): 0.52,
    ("cima", "has_question"): 0.74,
    ("mrda", "has_advice"): 0.45,
    ("mrda", "is_leading"): 0.85,
    ("mrda", "open_ended"): 0.35,
    ("reddit_advice", "has_advice"): 0.40,
}
RESAMPLES = 400
LEAST = 0.0005
ODD = (
    "?", "? ", " ", "word ", "a", "\n", '"', "'", "\"'", "'a ", "\u2018a\u2019 ", "`", "` `` ",
    "```\n", "so so ", "so well ", "what you ", "do you ", "i would ", "[", "[a](", "<a", "http://",
    "www.?", "*", "_a ", "|a", "# a\n", "- a\n", "> a\n", ".", "a. ", "e.g. ", "= a ? ", "(? ",
    "maybe ", "be ", "a, ", "if a, ", "\uff1f", "\U0001f600", "-- ", "    a = b\n", "~~~\n",
    'question "a" ', "**a?** b\n", "a?\n---\n", "**a?**\n\n", "way ", "i i ", "if then ",
    "what, ", "you you ", "let's take ", "would be ", "'a'b ", "`a``b", "try ", "i like to ",
)  # fmt: skip
SHORT = ("Why?", "So what would you say that courage is?", "Okay.", "Try the other side first.")


@dataclass(frozen=True, slots=True)
class Table:
    """The four counts of one yes-or-no label."""

    both: int = 0
    said_only: int = 0
    missed: int = 0
    neither: int = 0

    def __add__(self, other: "Table") -> "Table":
        return Table(
            self.both + other.both,
            self.said_only + other.said_only,
            self.missed + other.missed,
            self.neither + other.neither,
        )

    @property
    def n(self) -> int:
        return self.both + self.said_only + self.missed + self.neither

    @property
    def yes(self) -> int:
        """How many people say yes to."""
        return self.both + self.missed

    @property
    def f1_if_all(self) -> float:
        """F1 of always saying yes."""
        return 2 * self.yes / max(1, self.yes + self.n)

    @property
    def precision(self) -> float:
        return self.both / max(1, self.both + self.said_only)

    @property
    def recall(self) -> float:
        return self.both / max(1, self.yes)

    @property
    def f1(self) -> float:
        return 2 * self.both / max(1, 2 * self.both + self.said_only + self.missed)

    @property
    def kappa(self) -> float:
        said, true = self.both + self.said_only, self.yes
        agreed = (self.both + self.neither) / self.n
        chance = (said * true + (self.n - said) * (self.n - true)) / self.n**2
        return 1.0 if chance == 1 else (agreed - chance) / (1 - chance)


ByGroup = dict[str, Table]
Found = dict[tuple[str, str], ByGroup]


def rows(folder: Path) -> Iterator[dict]:
    for path in sorted(folder.glob("*.jsonl")):
        with path.open(encoding="utf-8") as lines:
            yield from (json.loads(line) for line in lines if line.strip())


def readings(labelled: Iterable[dict]) -> "list[Heuristics]":
    from socratic_bench.benchmarks.socratic.heuristics import analyse

    return [analyse(row["text"]) for row in labelled]


def tables(labelled: Iterable[dict], said: "Iterable[Heuristics]") -> Found:
    """A table for every source and label, apart for each dialogue, so that these can be resampled.

    A field that the heuristics leave unknown is not counted here.
    """
    found: Found = defaultdict(lambda: defaultdict(Table))
    for row, reading in zip(labelled, said, strict=True):
        gold = {**row.get("proxy", {}), **row["labels"]}
        for field in set(FIELDS) & set(gold):
            answer = getattr(reading, field)
            if answer is None:
                continue
            for name in names(field, asked=bool(gold.get("has_question"))):
                cell = found[row["source"], name]
                cell[row["group"]] += one(said=answer, true=gold[field])
    return found


def names(field: str, *, asked: bool) -> list[str]:
    only = [f"{field}|questions only"] if asked and field in ON_QUESTIONS else []
    return [field, *only]


def one(*, said: bool, true: bool) -> Table:
    cell = {(True, True): "both", (True, False): "said_only", (False, True): "missed"}
    return replace(Table(), **{cell.get((said, true), "neither"): 1})


def interval(groups: ByGroup) -> tuple[float, float]:
    """Of 95 % for kappa: whole dialogues are drawn anew, with a fixed seed."""
    dice, each = random.Random(7), list(groups.values())
    drawn = (sum(dice.choices(each, k=len(each)), Table()) for _ in range(RESAMPLES))
    kappas = sorted(table.kappa for table in drawn)
    return kappas[RESAMPLES // 40], kappas[-1 - RESAMPLES // 40]


def whole(groups: ByGroup) -> Table:
    return sum(groups.values(), Table())


def report(found: Found) -> Iterator[str]:
    yield (
        f"{'source':14} {'label':26} {'n':>5} {'yes':>5} {'prec':>6} {'rec':>6} {'F1':>6}"
        f" {'if all':>6} {'kappa':>6} {'95 % interval':>15} {'goal':>6}"
    )
    for key, groups in sorted(found.items()):
        table = whole(groups)
        low, high = interval(groups)
        goal = GOALS.get(key)
        verdict = "" if goal is None else f"{goal:6.2f} {'MISSED' if missed(key, table) else 'ok'}"
        yield (
            f"{key[0]:14} {key[1]:26} {table.n:5d} {table.yes:5d} {table.precision:6.3f}"
            f" {table.recall:6.3f} {table.f1:6.3f} {table.f1_if_all:6.3f} {table.kappa:6.3f}"
            f" {low:6.3f} to {high:5.3f} {verdict}".rstrip()
        )


def missed(key: tuple[str, str], table: Table) -> bool:
    return table.kappa < GOALS.get(key, -1.0)


def kappas(labelled: Iterable[dict], said: "Iterable[Heuristics]") -> dict[tuple[str, str], float]:
    return {key: whole(groups).kappa for key, groups in tables(labelled, said).items()}


def without_each_rule(labelled: Sequence[dict]) -> Iterator[str]:
    """What every kappa loses by a rule's absence; a minus is a gain.

    Only rows where the rule was seen to hold are read again: its absence changes no other.
    """
    from socratic_bench.benchmarks.socratic import heuristics as a

    held: list[str] = []
    each = [
        (rules, name, rule)
        for rules in (a.ASKING, a.NOT_ASKING, a.OPENING, a.ADVISING, a.NOT_ADVISING, a.LEADING)
        for name, rule in rules.items()
    ]
    for at, (rules, name, rule) in enumerate(each):
        rules[name] = lambda one, at=at, rule=rule: rule(one) and (held.append(at) or True)
    said, seen = [], []
    for row in labelled:
        held.clear()
        said.append(a.analyse(row["text"]))
        seen.append(set(held))
    with_all = kappas(labelled, said)
    for at, (rules, name, rule) in enumerate(each):
        rules[name] = lambda _: False
        again = zip(labelled, said, seen, strict=True)
        without = [
            a.analyse(row["text"]) if at in rule_ids else old for row, old, rule_ids in again
        ]
        rules[name] = rule
        lost = {key: with_all[key] - kappa for key, kappa in kappas(labelled, without).items()}
        told = (f"{' '.join(key)} {by:.3f}" for key, by in sorted(lost.items()) if abs(by) > LEAST)
        yield f"{name:22} {', '.join(told)}"


def seconds(text: str) -> float:
    from socratic_bench.benchmarks.socratic.heuristics import analyse

    start = time.process_time()
    analyse(text)
    return time.process_time() - start


def growth() -> Iterator[str]:
    for unit in ODD:
        small, large = (seconds(unit * (size // len(unit))) for size in (50_000, 200_000))
        yield f"{unit!r:16} {large:6.2f} s  x{large / max(small, 1e-4):.1f}"
    each = sum(min(seconds(text) for _ in range(200)) for text in SHORT) / len(SHORT)
    yield f"{1 / each:.0f} short utterances a second"


def labels_folder() -> Path | None:
    named = os.environ.get("SOCRATIC_LABELS")
    base = Path(named) if named else ROOT.parent / "shared" / "labels"
    for folder in (base / "dev", base):
        if any(folder.glob("*.jsonl")):
            return folder
    return None


def main() -> int:
    sys.path.insert(0, str(ROOT))
    if sys.argv[1:] == ["--growth"]:
        for line in growth():
            sys.stdout.write(line + "\n")
        return 0
    folder = labels_folder()
    if folder is None:
        sys.stdout.write("No labelled utterances here: set SOCRATIC_LABELS to their folder.\n")
        return 0
    labelled = list(rows(folder))
    if sys.argv[1:] == ["--rules"]:
        for line in without_each_rule(labelled):
            sys.stdout.write(line + "\n")
        return 0
    said = readings(labelled)
    found = tables(labelled, said)
    for line in report(found):
        sys.stdout.write(line + "\n")
    unread = sum(reading.has_question is None for reading in said)
    sys.stdout.write(f"Rows in a language that the rules do not know: {unread}\n")
    return int(any(missed(key, whole(groups)) for key, groups in found.items()))


if __name__ == "__main__":
    sys.exit(main())
