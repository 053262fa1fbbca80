"""Many runs in one process, from threads of their own: what they take, in a process for it.

    python bench/many.py --runs 64 [--turns 10] [--folder DIR] [--target-rpm 1200]
    python bench/many.py --items 60 [--at-once 16]

Bedrock is where the environment says. Nothing but the library is imported, so that an older tree
can be measured by the same words: with PYTHONPATH set to it. Where it has `Services`, the runs
share them. Prints JSON; start-up is not counted: a first run of one turn is played before.
"""

import argparse
import json
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import socratic_bench
from socratic_bench import RunConfig, RunResult, run

TUTOR, STUDENT, JUDGE = "bench.tutor-v1:0", "bench.student-v1:0", "bench.judge-v1:0"
LOOK_S = 0.02
THROTTLED = 429

Play = Callable[..., RunResult]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--folder")
    parser.add_argument("--target-rpm", type=int, help="of each model, where the tree has targets")
    parser.add_argument("--items", type=int)
    parser.add_argument("--at-once", type=int, default=16)
    found = parser.parse_args()
    with ExitStack() as stack:
        play = _shared(stack, found.target_rpm)
        _whole(play(config_of(turns=1)), 1)
        _emulator("reset", b"")
        if found.items:
            from many_items import play_items  # beside this file, which is run by its path

            measured = play_items(play, found.items, found.at_once)
        else:
            configs = [
                config_of(turns=found.turns, seed=number, output_dir=found.folder)
                for number in range(found.runs)
            ]
            measured = _runs(play, configs)
        requests = json.loads(_emulator("requests"))
    answered = [one for one in requests if one["status"] != THROTTLED]
    by_model = Counter(one["model_id"] for one in answered)
    measured |= {
        "requests": len(requests),
        "busiest": max(by_model.values()),
        "refused": len(requests) - len(answered),
    }
    if found.items:
        measured["wall_s"] = measured["ended_at_s"] - min(one["time"] for one in requests)
    print(json.dumps(measured))


def _emulator(page: str, body: bytes | None = None) -> bytes:
    url = os.environ["AWS_ENDPOINT_URL_BEDROCK_RUNTIME"]
    with urlopen(f"{url}/_emulator/{page}", body) as answer:  # noqa: S310 -- http
        found: bytes = answer.read()
    return found


def _shared(stack: ExitStack, target_rpm: int | None) -> Play:
    """`run`, over services that all runs share, if there are any."""
    make = getattr(socratic_bench, "Services", None)
    if make is None:
        return run
    services = stack.enter_context(make(**_targets(target_rpm)))
    return lambda config, **more: run(config, services=services, **more)


def _targets(target_rpm: int | None) -> dict[str, Any]:
    if target_rpm is None or not hasattr(socratic_bench, "RateTargets"):
        return {}
    target = socratic_bench.RateTarget(requests_per_minute=target_rpm)
    return {"rate_targets": socratic_bench.RateTargets([target])}


def config_of(*, turns: int, seed: int = 0, output_dir: str | None = None) -> RunConfig:
    return RunConfig(
        model=TUTOR,
        student_model=STUDENT,
        judge_model=JUDGE,
        scenario="career-change",
        region="us-east-1",
        turns=turns,
        seed=seed,
        output_dir=output_dir,
    )


def _runs(play: Play, configs: Sequence[RunConfig]) -> dict[str, float]:
    """All at once, each in a thread of its own."""
    results: list[RunResult] = []
    threads = [
        threading.Thread(target=lambda one=one: results.append(play(one))) for one in configs
    ]
    before_mb, cpu_s, began_s = _memory_mb("VmRSS"), time.process_time(), time.monotonic()
    for thread in threads:
        thread.start()
    most_threads = 0
    while any(thread.is_alive() for thread in threads):
        most_threads = max(most_threads, threading.active_count())
        time.sleep(LOOK_S)
    wall_s, cpu_s = time.monotonic() - began_s, time.process_time() - cpu_s
    for result in results:
        _whole(result, configs[0].turns)
    if len(results) < len(configs):
        sys.exit("A run raised an error.")
    return {
        "wall_s": wall_s,
        "cpu_s": cpu_s,
        "threads": most_threads,
        "mb_per_run": (_memory_mb("VmHWM") - before_mb) / len(configs),
    }


def _whole(result: RunResult, turns: int) -> None:
    document = dict(result.document)
    if (document["n_turns"], document["judge"]["coverage"]) != (turns, 1.0):
        sys.exit(f"A run was not whole: {document['error']}")


def _memory_mb(field: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:")) / 1024


if __name__ == "__main__":
    os.environ.pop("BEDROCK_MODEL_IDS", None)
    main()
