"""Clocks of the machine that are set while a run is under way, or between its processes."""

import json
import os
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from socratic_bench.documents import encode
from tests.command import (
    OFFLINE,
    ROOT,
    assert_valid,
    daily,
    environment,
    run,
)

# Stands before the standard library, as `sitecustomize`: the clock of the machine is set by so many
# seconds, once it has been asked for the time so often. No other clock is touched.
CLOCK = """
import datetime, importlib.abc, importlib.util, sys
asked = 0
class Shifted(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        global asked
        asked += 1
        now = datetime.datetime.now(tz)
        return now + datetime.timedelta(seconds={seconds} if asked > {after} else 0)

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != "socratic_bench.runs.context":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        run = spec.loader.exec_module
        def exec_module(module):
            run(module)
            module.datetime = Shifted
        spec.loader.exec_module = exec_module
        return spec

sys.meta_path.insert(0, Finder())
"""
HOURS_S = 7200


def clock(folder: Path, seconds: int, after: int = 0) -> dict[str, str]:
    """An environment in which the clock is wrong."""
    (folder / "clock").mkdir(exist_ok=True)
    (folder / "clock/sitecustomize.py").write_text(CLOCK.format(seconds=seconds, after=after))
    return environment(PYTHONPATH=f"{folder / 'clock'}{os.pathsep}{ROOT}")


def assert_consistent(document: dict[str, Any], at_most_s: float) -> None:
    assert_valid("run", document)
    times = document["timestamps"]
    started, completed = (moment(times[name]) for name in ("started_at", "completed_at"))
    # Times of day are in whole seconds.
    assert 0 <= times["duration_seconds"] <= (completed - started).total_seconds() + 1
    assert times["duration_seconds"] < at_most_s


def moment(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S%z")


def turns_in_order(folder: Path, document: dict[str, Any]) -> None:
    """Each turn's file tells a time that lies within the run's, after the turn before."""
    files = sorted(folder.glob("raw/runs/*/turn_*.json"))
    told = [json.loads(file.read_bytes())["timestamp"] for file in files]
    times = document["timestamps"]
    assert len(told) == document["n_turns"]
    assert [times["started_at"], *told, times["completed_at"]] == sorted(
        [times["started_at"], *told, times["completed_at"]]
    )


@pytest.mark.parametrize("seconds", daily([-HOURS_S, HOURS_S], first=1))
def test_a_clock_that_is_set_between_two_processes_leaves_durations_true(seconds, tmp_path):
    out = ("--output-dir", str(tmp_path / "out"))
    before_s = time.monotonic()
    first = run(*OFFLINE, "--turns", "2", *out)
    again = ("resume", first.document["run_id"], "--turns", "4", *out)
    second = run(*again, env=clock(tmp_path, seconds))
    took_s = time.monotonic() - before_s
    third = run(*again)
    (curated,) = (tmp_path / "out").glob("curated/runs/*.json")
    firsts_s = first.document["timestamps"]["duration_seconds"]

    for outcome in (first, second, third):
        assert outcome.exit_code == 0
        assert_consistent(outcome.document, took_s)
    # It is the sum of what both took.
    assert second.document["timestamps"]["duration_seconds"] > firsts_s
    assert third.document["timestamps"] == second.document["timestamps"]
    assert_valid("curated", json.loads(curated.read_bytes()))
    turns_in_order(tmp_path / "out", second.document)
    behind = [text for text in second.document["notices"] if "behind the run's last entry" in text]
    assert len(behind) == (seconds < 0)


@pytest.mark.parametrize("seconds", daily([-HOURS_S, HOURS_S], first=1))
def test_a_clock_that_is_set_while_a_run_is_under_way_leaves_durations_true(seconds, tmp_path):
    before_s = time.monotonic()
    outcome = run(
        *(*OFFLINE, "--turns", "4", "--output-dir", str(tmp_path / "out")),
        env=clock(tmp_path, seconds, after=12),
    )
    took_s = time.monotonic() - before_s

    assert outcome.exit_code == 0
    assert_consistent(outcome.document, took_s)
    turns_in_order(tmp_path / "out", outcome.document)


def test_a_partial_document_is_gone_on_with_before_it_was_made(tmp_path):
    """No store: the document alone tells what the first process took."""
    words = (*OFFLINE, "--turns", "3", "--seed", "1")
    before_s = time.monotonic()
    cut = run(*words, "--max-cost-usd", "0.01")
    file = tmp_path / "cut.json"
    file.write_bytes(cut.stdout)
    second = run("--resume-from", str(file), "--max-cost-usd", "9", env=clock(tmp_path, -HOURS_S))

    assert (cut.exit_code, second.exit_code) == (6, 0)
    assert_consistent(second.document, time.monotonic() - before_s)


def sealed(entry: dict[str, Any]) -> bytes:
    """A line of a folder's journal."""
    plain = {key: value for key, value in entry.items() if key != "sha256"}
    return encode({**plain, "sha256": sha256(encode(plain)).hexdigest()[:16]}) + b"\n"


def rewritten(journal: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """A journal of the same entries, each changed and sealed anew."""
    lines = [json.loads(line) for line in journal.read_bytes().splitlines()]
    for entry in lines:
        change(entry)
    journal.write_bytes(b"".join(sealed(entry) for entry in lines))


def as_before_elapsed_times(entry: dict[str, Any]) -> None:
    """As it was written before entries had a time of their own, by a clock that was set back."""
    entry.pop("elapsed_s", None)
    if entry["kind"] == "end":
        entry["duration_s"] = -7196.0
    if entry["kind"] in ("run", "process"):
        begun = datetime.fromisoformat(entry["started_at"])
        entry["started_at"] = (begun + timedelta(hours=2)).isoformat()


def test_a_run_goes_on_no_sooner_than_its_processes_took(tmp_path):
    """The last entries of a busy process may tell no time of day, or one that lies well before."""
    out = ("--output-dir", str(tmp_path / "out"))
    before_s = time.monotonic()
    cut = run(*OFFLINE, "--turns", "3", "--seed", "1", "--max-cost-usd", "0.01", *out)
    (journal,) = (tmp_path / "out").glob("journal/runs/*")
    rewritten(
        journal, lambda entry: entry.update({"elapsed_s": 9.5} if "elapsed_s" in entry else {})
    )
    again = ("resume", cut.document["run_id"], "--max-cost-usd", "9", *out)
    second = run(*again, env=clock(tmp_path, -HOURS_S))

    assert (cut.exit_code, second.exit_code) == (6, 0)
    assert_consistent(second.document, time.monotonic() - before_s + 9.5)
    assert second.document["timestamps"]["duration_seconds"] > 9.5


@pytest.mark.parametrize("turns", ["2", "3"], ids=["complete", "goes on"])
def test_a_journal_with_a_negative_duration_is_read(turns, tmp_path):
    out = ("--output-dir", str(tmp_path))
    first = run(*OFFLINE, "--turns", "2", *out)
    (journal,) = tmp_path.glob("journal/runs/*.jsonl")
    rewritten(journal, as_before_elapsed_times)
    before_s = time.monotonic()
    second = run("resume", first.document["run_id"], "--turns", turns, *out)

    assert second.exit_code == 0
    assert_consistent(second.document, time.monotonic() - before_s)
