"""What real time is the judge of: runs beside what was predicted of them; the end by a signal."""

import json
import signal
import subprocess
import sys
import time
from functools import cache
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

from bench.contenders import COMMAND, ROOT, dialogue, environment

TUTOR = "emulator.socratic-v1:0"
JUDGE = "emulator.judge-v1:0"
# The flags of a command, and what of its document is compared. The budget ends the run after more
# than twenty turns: after two, which of two requests is quicker would decide about half of it.
BUDGET = ("--turns", "40", "--judge-model", JUDGE, "--max-cost-usd", "0.3")
CASES = {
    "12 turns": (("--turns", "12", "--judge-model", JUDGE), "seconds"),
    "a judge that refuses fields": (
        ("--turns", "12", "--judge-model", "emulator.picky-v1:0"),
        "seconds",
    ),
    "a budget": (BUDGET, "seconds"),
    "a budget's turns": (BUDGET, "turns"),
    "a deadline's turns": (("--turns", "40", "--judge-model", JUDGE, "--deadline", "4"), "turns"),
}


def off_by(case: str, url: str, number: int) -> float:
    """The greater of what was predicted and what came about, over the lesser: 1 is exact.

    Cases of the same flags are read off the same run, of those with one `number`.
    """
    more, measure = CASES[case]
    told, found = _told_and_found(more, url, number)
    if measure == "turns":
        one, other = max(1, told["n_turns"]), max(1, found["n_turns"])
    else:
        one, other = told["duration_seconds"], found["timestamps"]["duration_seconds"]
    return float(max(one, other) / min(one, other))


@cache
def _told_and_found(
    more: tuple[str, ...], url: str, number: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A dry run knows nothing of what earlier runs have left in the prompt caches."""
    del number
    told = _document(url, *more, "--dry-run")
    _ask(url, "POST", "reset")
    return told, _document(url, *more)


def _document(url: str, *more: str) -> dict[str, Any]:
    words = (*COMMAND, "--model", TUTOR, "--scenario", "career-change", "--seed", "7", "--quiet")
    env = {**environment(url), "BEDROCK_MODEL_IDS": json.dumps([TUTOR])}
    done = subprocess.run(
        [*words, *more],
        env=env,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def signalled_s(url: str) -> float:
    """Seconds from SIGTERM to the end of a run whose first call nobody answers."""
    before = _n_requests(url)
    with subprocess.Popen(
        dialogue(5),
        env=environment(url),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        while _n_requests(url) == before:
            time.sleep(0.01)
        sent_s = time.monotonic()
        process.send_signal(signal.SIGTERM)
        process.communicate()
        took_s = time.monotonic() - sent_s
    if process.returncode != 128 + signal.SIGTERM:
        sys.exit(f"A run that was told to end ended with {process.returncode}.")
    return took_s


def _n_requests(url: str) -> int:
    return len(json.loads(_ask(url, "GET", "requests")))


def _ask(url: str, method: str, page: str) -> bytes:
    connection = HTTPConnection(urlsplit(url).netloc)
    connection.request(method, f"/_emulator/{page}")
    found = connection.getresponse().read()
    connection.close()
    return found
