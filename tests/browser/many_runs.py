"""Stored runs by the thousand, made of a few real ones: for reports of them.

Each turn has words of its own, drawn from a list of 4,000 by the frequencies of a language, so that
they compress as text does.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from ulid import ULID

from tests.command import run

MODELS = ("emulator.socratic-v1:0", "emulator.drift-5-v1:0", "emulator.lecturer-v1:0")
SCENARIOS = ("ai-ethics", "career-change", "giraffe-necks", "honest-friend", "time-management")
SEED = 7
N_WORDS = 4_000
BEGAN_S = 1_790_000_000.0
LETTERS = "eeeeetttaaaooiinnsshrrdlucmwfgypbvk"


def make(folder: Path, n_runs: int, n_turns: int, n_letters: int) -> None:
    """A folder as a sweep leaves it, as far as reports read it."""
    originals = _played(folder / "originals", n_turns)
    dice = Random(SEED)
    vocabulary = ["".join(dice.choices(LETTERS, k=dice.randint(2, 11))) for _ in range(N_WORDS)]
    weights = [1 / (n + 1) for n in range(N_WORDS)]
    words = _Words(dice, vocabulary, weights)
    (folder / "curated/runs").mkdir(parents=True)
    for n in range(n_runs):
        document, verdicts = originals[n % len(originals)]
        _write(
            folder, n, json.loads(document), [json.loads(one) for one in verdicts], words, n_letters
        )


class _Words:
    def __init__(self, dice: Random, vocabulary: list[str], weights: list[float]) -> None:
        self._stream = self._drawn(dice, vocabulary, weights)

    @staticmethod
    def _drawn(dice: Random, vocabulary: list[str], weights: list[float]) -> Iterator[str]:
        while True:
            yield from dice.choices(vocabulary, weights, k=10_000)

    def text(self, n_letters: int) -> str:
        found: list[str] = []
        n = 0
        while n < n_letters:
            found.append(next(self._stream))
            n += len(found[-1]) + 1
        return " ".join(found)


def _played(folder: Path, n_turns: int) -> list[tuple[bytes, list[bytes]]]:
    """Each model in each scenario, played by the command."""
    outcome = run(
        *("sweep", "--offline", "--models", *MODELS, "--scenarios", *SCENARIOS),
        *("--turns", str(n_turns), "--seed", str(SEED), "--output-dir", str(folder), "-q"),
    )
    assert outcome.exit_code == 0, outcome.stderr
    runs = sorted((folder / "curated/runs").glob("*.json"))
    raw = folder / "raw/runs"
    return [
        (one.read_bytes(), [path.read_bytes() for path in sorted((raw / one.stem).glob("judge_*"))])
        for one in runs
    ]


def _write(
    folder: Path,
    n: int,
    document: dict[str, Any],
    verdicts: list[dict[str, Any]],
    words: _Words,
    n_letters: int,
) -> None:
    run_id = f"run-{ULID.from_timestamp(BEGAN_S + n)}"
    raw = folder / "raw/runs" / run_id
    raw.mkdir(parents=True)
    document |= {"run_id": run_id, "seed": n, "output_artifacts": None}
    for turn, verdict in zip(document["turns"], verdicts, strict=True):
        turn |= {"question": words.text(n_letters), "student": words.text(150)}
        quote = turn["question"][: n_letters // 6]
        turn["quotes"] = dict.fromkeys(turn["quotes"] or (), quote)
        reasons = {name: words.text(60) for name in verdict["rationale"] or ()}
        verdict |= {"run_id": run_id, "quotes": turn["quotes"], "rationale": reasons}
        path = raw / f"judge_{turn['turn']:03d}.json"
        path.write_text(json.dumps(verdict), encoding="utf-8")
    path = folder / f"curated/runs/{run_id}.json"
    path.write_text(json.dumps(document), encoding="utf-8")
