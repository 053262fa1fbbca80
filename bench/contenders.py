"""What is measured, and what against: whole processes, from their start to their end."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COMMAND = (sys.executable, "-m", "cli")
BARE = (sys.executable, str(ROOT / "bench" / "bare.py"))
NOTHING = (sys.executable, "-c", "pass")
TUTOR, STUDENT, JUDGE = "bench.tutor-v1:0", "bench.student-v1:0", "bench.judge-v1:0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one process took: seconds by the clock, CPU seconds, and its peak of resident MB."""

    wall_s: float
    cpu_s: float
    peak_mb: float


def dialogue(turns: int) -> tuple[str, ...]:
    """The command for a dialogue with all three roles played by models."""
    models = ("--model", TUTOR, "--student-model", STUDENT, "--judge-model", JUDGE)
    return (*COMMAND, *models, "--scenario", "career-change", "--quiet", "--turns", str(turns))


def environment(url: str) -> dict[str, str]:
    """Stand-in keys, and Bedrock at `url`; no setting of the user's own."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("AWS_", "RUNNER_", "BEDROCK_", "PYTHON"))
    }
    return {
        **kept,
        "PYTHONPATH": str(ROOT),
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": url,
        "AWS_ACCESS_KEY_ID": "bench",
        "AWS_SECRET_ACCESS_KEY": "bench",
        "AWS_REGION": "us-east-1",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "BEDROCK_MODEL_IDS": json.dumps([TUTOR]),
    }


def cost_of(words: Sequence[str], url: str) -> tuple[Cost, bytes]:
    """Run a process to its end; what it took, and what it printed. Exits if it fails."""
    started_s = time.monotonic()
    process = subprocess.Popen(
        words, env=environment(url), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout is not None
    with process.stdout:
        printed = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    wall_s = time.monotonic() - started_s
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(words)} ended with {process.returncode}.")
    return Cost(
        wall_s=wall_s, cpu_s=used.ru_utime + used.ru_stime, peak_mb=used.ru_maxrss / 1024
    ), printed


def play(turns: int, url: str) -> Cost:
    """A dialogue in full, every turn of it judged."""
    cost, printed = cost_of(dialogue(turns), url)
    document = json.loads(printed)
    if (document["n_turns"], document["judge"]["coverage"]) != (turns, 1.0):
        sys.exit(f"The run was not whole: {document['end_reason']}, {document['judge']}")
    return cost


@contextmanager
def emulator(latency_ms: float = 0.0, *more: str) -> Iterator[str]:
    """The URL of an emulator in a process of its own, which answers after a fixed time."""
    serving = subprocess.Popen(
        [*COMMAND, "emulator", "--any-model", "--latency-ms", str(latency_ms), *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
    )
    assert serving.stdout is not None
    try:
        yield json.loads(serving.stdout.readline())["endpoint_url"]
    finally:
        serving.terminate()
        serving.wait()
        serving.stdout.close()
