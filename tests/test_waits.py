"""What people see of retries and long waits, at a terminal and in a log."""

import fcntl
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from cli.progress import Waits
from socratic_bench.emulator import Emulator, Settings, parse_fault
from socratic_bench.models.events import CallWaits
from socratic_bench.types import CallKey
from tests.command import CLAUDE, OFFLINE, account, begin, environment, run
from tests.fakes import relayed
from tests.terminal import run_in_terminal, width

TUTOR = "emulator.lecturer-v1:0"
DIALOGUE = ("--model", TUTOR, "--scenario", "career-change", "--turns")
PLAY = (*DIALOGUE, "1", "--judge-model", CLAUDE)
THROTTLED = "throttled:role=tutor:count=2:ms=2000"
FAULTS = (THROTTLED, "unavailable:role=judge:count=1", "hang:role=tutor:count=1:ms=8000")
KEYS = {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": "example"}
SLOW_S = 7.0


@contextmanager
def served(*faults: str, per_minute: float | None = None) -> Iterator[dict[str, str]]:
    settings = Settings(faults=tuple(map(parse_fault, faults)), requests_per_minute=per_minute)
    with Emulator(settings) as emulator:
        yield account(emulator.url, CLAUDE, TUTOR)


def in_log(*words: str) -> str:
    with served(*FAULTS) as env:
        return run(*PLAY, *words, env=env).stderr


def at_terminal(columns: int) -> list[str]:
    with served(THROTTLED) as env:
        return run_in_terminal(*PLAY, columns=columns, env=env)[1]


def until_rate_limited() -> str:
    """What is said then; the run is interrupted."""
    with served(per_minute=8) as env:
        process = begin(*DIALOGUE, "9", "--no-judge", env=env, stdout=subprocess.DEVNULL)
        lines = (line.decode() for line in process.stderr)
        found = next((line for line in lines if "rate limit" in line), "")
        process.send_signal(signal.SIGINT)
        process.communicate()
    return found


@pytest.fixture(scope="module")
def told() -> Iterator[dict[object, object]]:
    """All of them at once, since they mostly wait."""
    with ThreadPoolExecutor(6) as pool:
        screens = {columns: pool.submit(at_terminal, columns) for columns in (40, 80, 100)}
        limited = pool.submit(until_rate_limited)
        logs = {words: pool.submit(in_log, *words) for words in ((), ("--quiet",))}
        yield {name: found.result() for name, found in {**screens, **logs, "rate": limited}.items()}


def test_a_log_has_a_line_for_each_retry_and_for_each_long_wait(told):
    first, *lines = told[()].splitlines()
    told_of = [line[5:] for line in lines if " turn  " not in line]

    assert all(line.startswith(f"{first.partition(':')[0][-4:]} ") for line in lines)
    patterns = (
        r"turn 0: tutor throttled, attempt 1 of 10, next in [23] s",
        r"turn 0: tutor throttled, attempt 2 of 10, next in [23] s",
        r"turn 0: waiting for the tutor, \d+ s so far",
        # Of the verdict, or of what is asked beside it of the dialogue as a whole.
        r"(?:turn 0: )?judge server error, attempt 1 of 10, next in \d s",
        r"completed: .*",
    )
    assert len(told_of) == len(patterns), told_of
    for pattern, line in zip(patterns, told_of, strict=True):
        assert re.fullmatch(pattern, line)


@pytest.mark.parametrize("columns", [40, 80, 100])
def test_a_live_line_counts_the_seconds_down(told, columns):
    lines = [line[5:] for line in told[columns] if line[5:].startswith("turn 0: tutor throt")]
    left = [int(found[1]) for line in lines if (found := re.search(r", next in (\d+) s", line))]

    assert all(width(line) < columns - 5 for line in lines)
    assert len({*left}) > 1
    first = left[: left.index(min(left)) + 1]
    assert first == sorted(first, reverse=True)
    if columns > 40:
        assert any("throttled, attempt 1 of 10, next in " in line for line in lines)
        assert any("throttled, attempt 2 of 10, next in " in line for line in lines)


def test_quiet_keeps_silent(told):
    assert told["--quiet",] == ""


def test_a_place_in_the_rate_limit_is_told_of_where_it_is_far_off(told):
    assert re.search(r" turn \d: tutor waits for the rate limit, next in \d+ s$", told["rate"])


def test_stores_that_take_long_are_told_of(moto_url, bucket):
    def slow(sent):
        time.sleep(SLOW_S if "/judge_000" in sent.path and sent.method == "PUT" else 0)

    with relayed(moto_url, slow) as s3:
        env = environment(AWS_ENDPOINT_URL_S3=s3.url, **KEYS)
        outcome = run(*OFFLINE, "--turns", "1", "--s3-bucket", bucket, env=env)

    assert outcome.exit_code == 0
    assert re.search(
        r"^\w{4} waiting for the stores to take what was made, \d s so far$",
        outcome.stderr,
        re.MULTILINE,
    )


def test_a_run_that_another_process_takes_up_is_told_of(tmp_path):
    words = (*OFFLINE, "--turns", "1", "--seed", "7", "--resume", "-o", str(tmp_path))
    run(*words)
    (lock,) = tmp_path.rglob("*lock")
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        outcome = run(*words, "--deadline", "1")

    assert outcome.exit_code == 7
    assert "Another process is about to begin or resume this run: waiting" in outcome.stderr


def test_standard_input_that_says_nothing_is_told_of():
    words = ("--offline", "--model", TUTOR, "--turns", "1", "--prompt", "-", "--no-judge")
    process = begin(*words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    first = process.stderr.readline().decode()
    process.communicate(b"Hi")

    assert first == "waiting for the student's first message on standard input (5 s so far)\n"
    assert process.returncode == 0


def test_a_wait_that_others_put_off_is_told_of_again():
    clock = [100.0]
    waits = Waits(lambda: clock[0])
    key = CallKey(role="tutor", index=3)
    wait = waits.on_call(CallWaits(key=key, model_id="m", cause="rate_limit", wait_s=8))
    first, wait.printed_s = wait.text(100.0), 100.0
    late = []
    for clock[0] in (107.0, 112.0, 114.0):
        late.append(waits.overdue(again_s=60))

    assert first == "turn 3: tutor waits for the rate limit, next in 8 s"
    assert late == [None, None, wait]
    assert wait.text(114.0) == "turn 3: tutor waits for the rate limit, 14 s so far"
