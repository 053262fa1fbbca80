"""How long a whole run takes against its critical path: both speakers in turn, then one verdict.

    python bench/critical_path.py [--turns 40] [--latency-ms 300] [--times 3]

Starts the emulator with a fixed latency in a process of its own, then the command as a user would,
and prints the ratio of each run, the best and the median. The judge's calls but the last one lie
beside the dialogue, so the path has turns tutor calls, turns - 1 student calls and one verdict.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COMMAND = [sys.executable, "-m", "cli"]
MODELS = {"tutor": "bench.tutor-v1:0", "student": "bench.student-v1:0", "judge": "bench.judge-v1:0"}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--latency-ms", type=float, default=300.0)
    parser.add_argument("--times", type=int, default=3)
    found = parser.parse_args()
    floor_s = 2 * found.turns * found.latency_ms / 1000
    serving = subprocess.Popen(
        [*COMMAND, "emulator", "--latency-ms", str(found.latency_ms)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
    )
    try:
        assert serving.stdout is not None
        url = json.loads(serving.stdout.readline())["endpoint_url"]
        ratios = [_run_s(url, found.turns) / floor_s for _ in range(found.times)]
    finally:
        serving.terminate()
        serving.wait()
    shown = " ".join(f"{ratio:.3f}" for ratio in ratios)
    print(f"critical path {floor_s:.1f} s; wall / critical path: {shown}")
    print(f"best {min(ratios):.3f}, median {statistics.median(ratios):.3f}")


def _run_s(url: str, turns: int) -> float:
    """Seconds of one whole process, from its start to its exit."""
    variables = {
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": url,
        "AWS_ACCESS_KEY_ID": "bench",
        "AWS_SECRET_ACCESS_KEY": "bench",
        "AWS_REGION": "us-east-1",
        "BEDROCK_MODEL_IDS": json.dumps([MODELS["tutor"]]),
    }
    words = ["--model", MODELS["tutor"], "--student-model", MODELS["student"]]
    words += ["--judge-model", MODELS["judge"], "--scenario", "career-change", "--quiet"]
    started_s = time.monotonic()
    done = subprocess.run(
        [*COMMAND, *words, "--turns", str(turns)],
        env={**os.environ, **variables},
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    took_s = time.monotonic() - started_s
    document = json.loads(done.stdout)
    if (document["n_turns"], document["judge"]["coverage"]) != (turns, 1.0):
        sys.exit(f"The run was not whole: {document['end_reason']}, {document['judge']}")
    return took_s


if __name__ == "__main__":
    main()
