# ruff: noqa: INP001 - a script's part, not a package
"""Rows that people labelled, and judges of them whose AUC scipy knows, too; see labels.py."""

import json
import math
import os
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from pages import SEED, hold
from scipy import stats

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from socratic_bench.emulator import Emulator, Settings  # noqa: E402
from tests.command import account, run  # noqa: E402
from tests.labelled import write_jsonl  # noqa: E402

NUMBERS = ("form", "substance", "purity")
SOURCES = (("mrbench", "reveals_answer"), ("mathdial", "telling"))
JUDGE = "own.judge-v1:0"
ALIKE = 1e-6


def human_rows() -> Iterator[str]:
    folder = Path(os.environ.get("SOCRATIC_LABELS", ROOT.parent / "shared" / "labels")) / "dev"
    if not folder.is_dir():
        yield "The rows that people labelled were not at hand."
        return
    yield "| rows, label | judge | AUC | within authors |"
    yield "|---|---|---|---|"
    for source, label in SOURCES:
        with (folder / f"{source}.jsonl").open(encoding="utf-8") as lines:
            rows = [row for row in map(json.loads, lines) if label in row["labels"]]
        for name, score in (
            ("bag of words", bag_of_words(rows, label)),
            ("noisy oracle", oracle(rows, label)),
        ):
            told, within = auc_by_command(rows, label, score, f"{source}, {label}, {name}")
            yield f"| {source}, {label} | {name} | {told:.3f} | {within} |"


def words_of(text: str) -> set[str]:
    return set(re.findall(r"[a-z']+|\d+", text.lower()))


def bag_of_words(rows: Sequence[Mapping], label: str) -> list[float]:
    """The log odds of its words (naive Bayes), learned from the other half of the dialogues."""
    side = [sum(row["group"].encode()) % 2 for row in rows]
    odds = []
    for half in (0, 1):
        counts = {True: Counter(), False: Counter()}
        totals = Counter()
        for row, own in zip(rows, side, strict=True):
            if own != half:
                counts[row["labels"][label]].update(words_of(row["text"]))
                totals[row["labels"][label]] += 1
        odds.append(
            {
                word: math.log((counts[True][word] + 0.5) / (totals[True] + 1))
                - math.log((counts[False][word] + 0.5) / (totals[False] + 1))
                for word in {*counts[True], *counts[False]}
            }
        )
    return [
        sum(odds[own].get(word, 0.0) for word in words_of(row["text"]))
        for row, own in zip(rows, side, strict=True)
    ]


def oracle(rows: Sequence[Mapping], label: str) -> list[float]:
    dice = np.random.default_rng(SEED)
    return [row["labels"][label] + dice.normal(0, 0.8) for row in rows]


def auc_by_command(
    rows: Sequence[Mapping], label: str, strength: Sequence[float], what: str
) -> tuple[float, str]:
    """The judge gives less purity the more it thinks so; by its place among all, in half points."""
    places = stats.rankdata(strength) / len(strength)
    purity = [round(8 * (1 - place)) / 2 for place in places]
    known = dict(zip([shown(n, row) for n, row in enumerate(rows)], purity, strict=True))

    def judge(body: Mapping) -> Mapping:
        asked = body["messages"][0]["content"][0]["text"]
        reply = re.search(r"<reply-(\w+)>\n(.*?)\n</reply-\1>", asked, re.DOTALL)[2]
        reasons = dict.fromkeys(NUMBERS, "So.")
        return {"form": 1, "substance": 1, "purity": known[reply], "rationale": reasons}

    labelled = [
        {
            "labeller": "people",
            "dialogue": row["group"],
            "author": row["meta"].get("tutor"),
            "prompt": row.get("context") or "(nothing yet)",
            "reply": shown(n, row),
            "events": {label: row["labels"][label]},
        }
        for n, row in enumerate(rows)
    ]
    own = Settings(speakers={JUDGE: judge})
    with tempfile.TemporaryDirectory() as folder, Emulator(own) as service:
        path = write_jsonl(Path(folder) / "labels.jsonl", labelled)
        words = ("calibrate", "--labels", path, "--match", f"{label}=purity<2", "-q", "--no-stream")
        rubric = (
            "--rubric",
            str(ROOT / "tests" / "data" / "rubric_without_events.toml"),
            "--judge-model",
            JUDGE,
        )
        document = run(*words[:-1], *rubric, env=account(service.url)).document
    found = document["events"][label]
    is_yes = [row["labels"][label] for row in rows]
    expected = auc(purity, is_yes)
    hold(abs(found["auc"]["value"] - expected), (0, ALIKE), f"{what}: the AUC")
    groups = defaultdict(list)
    for row, value in zip(rows, purity, strict=True):
        groups[row["meta"].get("tutor")].append((value, row["labels"][label]))
    for author, some in groups.items():
        own = auc(*zip(*some, strict=True))
        if author is not None and own is not None:
            hold(
                abs(found["auc_by_author"][author] - own), (0, ALIKE), f"{what}, {author}: the AUC"
            )
    within = found["auc_within_authors"]["value"]
    return expected, "-" if len(groups) == 1 else f"{within:.3f}"


def shown(n: int, row: Mapping) -> str:
    """Texts that occur twice are told apart, since the judge knows a reply by its words."""
    return f"{row['text']} [{n}]"


def auc(purity: Sequence[float], is_yes: Sequence[bool]) -> float | None:
    yes = [-value for value, one in zip(purity, is_yes, strict=True) if one]
    no = [-value for value, one in zip(purity, is_yes, strict=True) if not one]
    if not (yes and no):
        return None
    return float(stats.mannwhitneyu(yes, no).statistic / (len(yes) * len(no)))
