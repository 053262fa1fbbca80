"""A signal ends the run at once, whatever it is doing: with one document, and what is finished."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from itertools import product
from pathlib import Path

import pytest

from cli.run_in_thread import run_in_thread
from socratic_bench.emulator import Emulator, Settings, parse_fault
from tests.command import CLAUDE, OFFLINE, account, assert_valid, begin, daily
from tests.fakes import PATIENCE_S, stored
from tests.interruptions import (
    SCENES,
    TURNS,
    Interrupted,
    Scene,
    hanging_folder,
    interrupt,
    writing,
)

CODES = {signal.SIGHUP: 129, signal.SIGINT: 130, signal.SIGTERM: 143}


def check(ended: Interrupted, number: signal.Signals, folder: Path) -> None:
    document = ended.document
    assert ended.exit_code == CODES[number]
    assert_valid("run", document)
    assert document["end_reason"] == "interrupted"
    assert document["error"]["hint"]
    assert f"signal {number:d} ({number.name})" in document["error"]["message"]
    assert "Traceback" not in ended.stderr
    run_id = document["run_id"]
    turns = [f"turn_{turn['turn']:03d}.json" for turn in document["turns"]]
    assert sorted(path.name for path in folder.rglob("turn_*.json")) == turns
    assert not (folder / f"curated/runs/{run_id}.json").exists()


# Each signal once, and each sort of wait: the others are variants.
CASES = [
    ("tutor silent", signal.SIGHUP),
    ("connecting", signal.SIGINT),
    ("waiting for the next attempt", signal.SIGTERM),
    ("check of the bucket silent", signal.SIGINT),
    ("credentials slow", signal.SIGTERM),
]


@pytest.mark.parametrize(("name", "number"), daily(product(SCENES, CODES), *CASES))
def test_a_signal_ends_the_run_whatever_it_is_doing(name, number, tmp_path):
    with SCENES[name](tmp_path) as scene:
        ended = interrupt(scene, number, "--output-dir", str(tmp_path / "out"))

    check(ended, number, tmp_path / "out")


def test_a_folder_that_hangs_delays_neither_the_verdicts_nor_the_end(tmp_path):
    out = tmp_path / "out"
    with hanging_folder(tmp_path) as scene:
        ended = interrupt(scene, signal.SIGINT, "--output-dir", str(out))

    assert ended.exit_code == 130
    assert_valid("run", ended.document)
    assert (ended.document["end_reason"], ended.document["n_turns"]) == ("interrupted", TURNS)
    assert "was not delivered in time" in ended.stderr
    assert list(out.rglob("*_[0-9]*.json")) == []


def test_a_signal_that_another_thread_gets_is_handled_all_the_same():
    """The main thread itself is never interrupted: it has to be told."""
    told = threading.Event()
    before = signal.signal(signal.SIGUSR1, lambda *_: told.set())

    def play() -> bool:
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
        return told.wait(PATIENCE_S)

    try:
        assert run_in_thread(play) is True
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_what_is_played_beside_returns_or_raises_as_it_would():
    assert run_in_thread(lambda: 7) == 7
    with pytest.raises(SystemExit, match="8"):
        run_in_thread(lambda: sys.exit(8))


@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_second_signal_ends_the_process_at_once(second):
    """After the first one it still writes a document, which nobody reads."""
    with writing() as process:
        process.send_signal(signal.SIGINT)
        # Two of a kind that are not yet taken are one.
        while process.poll() is None:
            process.send_signal(second)
            time.sleep(0.01)

    assert process.returncode == CODES[second]


def test_two_signals_of_one_event_are_one(tmp_path):
    """timeout(1) sends its signal to the command, and once more to the command's group."""
    with SCENES["tutor silent"](tmp_path) as scene:
        words = ("--output-dir", str(tmp_path / "out"))
        ended = interrupt(scene, signal.SIGINT, *words, then=signal.SIGTERM)

    assert ended.exit_code in (130, 143)  # the system may deliver them in either order
    assert_valid("run", ended.document)
    assert ended.document["end_reason"] == "interrupted"


def test_a_stdout_that_nobody_reads_leaves_the_artifacts_whole(tmp_path):
    words = (*OFFLINE, "--turns", "3", "--output-dir", str(tmp_path))
    with begin(*words, stderr=subprocess.DEVNULL) as process:
        assert process.stdout
        process.stdout.close()
        assert process.wait() == 4
    files = {name for name in stored(tmp_path) if name.endswith(".json")}

    assert sum("turn_" in name for name in files) == 3
    assert sum("judge_" in name for name in files) == 3
    assert sum(name.startswith("curated/") for name in files) == 1


def test_what_was_under_way_is_counted_and_kept(tmp_path):
    """Two attempts of the tutor's second call: one refused, one that nobody waited for."""
    faults = ("throttled:role=tutor:after=1:count=1:ms=1", "hang:role=tutor:after=1:ms=6000000")
    with Emulator(Settings(faults=tuple(map(parse_fault, faults)), any_model=True)) as served:
        env = account(served.url, CLAUDE)
        scene = Scene(env, lambda: [r.fault for r in served.requests if r.fault][1:])
        ended = interrupt(scene, signal.SIGTERM, "--output-dir", str(tmp_path))
        sent = Counter(request.role for request in served.requests)
    usage = ended.document["usage"]
    (journal,) = tmp_path.glob("journal/runs/*.jsonl")
    entries = [json.loads(line) for line in journal.read_text().splitlines()]
    # A verdict that was under way, too, has an entry of its own.
    calls = [entry for entry in entries if entry["kind"] == "failed"]
    (failed,) = [entry for entry in calls if entry["key"]["role"] == "tutor"]

    assert sent["tutor"] == 3
    assert {role: usage[role]["attempts"] for role in sent} == dict(sent)
    assert [(a["error"], a["may_have_been_billed"]) for a in failed["attempts"]] == [
        ("throttled", False),
        ("run_ended", True),
    ]
    assert ended.document["latency"]["tutor"]["unanswered_maybe_billed"] == 1
