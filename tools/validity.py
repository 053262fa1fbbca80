# ruff: noqa: INP001 - a script, not a package
"""The heuristics against people's labels: precision, recall, F1 and kappa, per source and label.

The labels are not part of the project (they may not be given on). They are looked for in the
folder $SOCRATIC_LABELS, or in ../shared/labels beside the checkout.

With --growth it measures instead how time grows from 50 to 200 KB of odd text (4 is linear),
and how many short utterances a second are read.
"""

import json
import os
import random
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FIELDS = ("has_question", "open_ended", "has_advice", "is_leading")
ON_QUESTIONS = ("open_ended", "is_leading")
MUST = {
    ("annomi", "has_question"): 0.90,
    ("annomi", "open_ended"): 0.74,
    ("annomi", "open_ended|questions only"): 0.76,
    ("cima", "has_question"): 0.84,
    ("mrda", "has_advice"): 0.65,
    ("mrda", "is_leading"): 0.70,
    ("reddit_advice", "has_advice"): 0.55,
}
RESAMPLES = 400
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
    def precision(self) -> float:
        return self.both / max(1, self.both + self.said_only)

    @property
    def recall(self) -> float:
        return self.both / max(1, self.both + self.missed)

    @property
    def f1(self) -> float:
        return 2 * self.both / max(1, 2 * self.both + self.said_only + self.missed)

    @property
    def kappa(self) -> float:
        said, true = self.both + self.said_only, self.both + self.missed
        agreed = (self.both + self.neither) / self.n
        chance = (said * true + (self.n - said) * (self.n - true)) / self.n**2
        return 1.0 if chance == 1 else (agreed - chance) / (1 - chance)


ByGroup = dict[str, Table]


def rows(folder: Path) -> Iterator[dict]:
    for path in sorted(folder.glob("*.jsonl")):
        with path.open(encoding="utf-8") as lines:
            yield from (json.loads(line) for line in lines if line.strip())


def tables(labelled: Iterable[dict]) -> dict[tuple[str, str], ByGroup]:
    """A table for every source and label, apart for each dialogue, so that these can be resampled.

    A field that the heuristics leave unknown is not counted here, but by `unread`.
    """
    from socratic_bench.benchmarks.socratic.heuristics import analyse

    found: dict[tuple[str, str], ByGroup] = defaultdict(lambda: defaultdict(Table))
    for row in labelled:
        gold = {**row.get("proxy", {}), **row["labels"]}
        said = analyse(row["text"])
        for field in set(FIELDS) & set(gold):
            answer = getattr(said, field)
            if answer is None:
                continue
            for name in names(field, asked=bool(gold.get("has_question"))):
                cell = found[row["source"], name]
                cell[row["group"]] += one(said=answer, true=gold[field])
    return found


def unread(labelled: Iterable[dict]) -> int:
    from socratic_bench.benchmarks.socratic.heuristics import analyse

    return sum(analyse(row["text"]).has_question is None for row in labelled)


def names(field: str, *, asked: bool) -> list[str]:
    only = [f"{field}|questions only"] if asked and field in ON_QUESTIONS else []
    return [field, *only]


def one(*, said: bool, true: bool) -> Table:
    cell = {(True, True): "both", (True, False): "said_only", (False, True): "missed"}
    return replace(Table(), **{cell.get((said, true), "neither"): 1})


def low(groups: ByGroup) -> float:
    """F1 that 95 of 100 draws of whole dialogues reach, from a fixed seed."""
    dice, each = random.Random(7), list(groups.values())
    drawn = (sum(dice.choices(each, k=len(each)), Table()) for _ in range(RESAMPLES))
    return sorted(table.f1 for table in drawn)[RESAMPLES // 20]


def report(found: dict[tuple[str, str], ByGroup]) -> Iterator[str]:
    yield (
        f"{'source':14} {'label':26} {'n':>5} {'yes':>5} {'prec':>6} {'rec':>6} {'F1':>6}"
        f" {'low':>6} {'kappa':>6} {'must':>5}"
    )
    for (source, name), groups in sorted(found.items()):
        table = sum(groups.values(), Table())
        must = MUST.get((source, name))
        verdict = "" if must is None else f"{must:5.2f} {'ok' if table.f1 >= must else 'MISSED'}"
        yield (
            f"{source:14} {name:26} {table.n:5d} {table.both + table.missed:5d}"
            f" {table.precision:6.3f} {table.recall:6.3f} {table.f1:6.3f} {low(groups):6.3f}"
            f" {table.kappa:6.3f} {verdict}".rstrip()
        )


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
    for line in report(tables(labelled)):
        sys.stdout.write(line + "\n")
    sys.stdout.write(f"Rows in a language that the rules do not know: {unread(labelled)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
