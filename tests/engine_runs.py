"""What tests of engines share: the sweep that they play, what it has left, and engines that are
played: index, attempts, signals and the rules of their own files.
"""

import json
import random
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

import yaml

from tests.command import ROOT, account, begin, run
from tests.resuming import Service

MODELS = ("emulator.socratic-v1:0", "emulator.lecturer-v1:0")
# docs/engines.md has this table, and every file in deploy/ keeps to it.
NEVER_AGAIN, AGAIN = (0, 2, 3, 5, 6), (1, 4, 7, 129, 130, 137, 143)
Verdict = Literal["done", "again", "fail"]
APART = (
    *("sweep_id", "run_id", "timestamps", "pace", "output_artifacts", "s3_artifacts"),
    *("usage", "cost_usd"),
)


def plan(folder: Path, *, scenarios: Sequence[str], repeats: int) -> Path:
    """A plan file with a cell for each model, scenario and repeat."""
    path = folder / "sweep.toml"
    path.write_text(
        f"models = {json.dumps(MODELS)}\nscenarios = {json.dumps(scenarios)}\n"
        f'repeats = {repeats}\nturns = 2\nseed = 7\njudge_model = "emulator.judge-v1:0"\n'
        "no_prompt_cache = true\n"
    )
    return path


def figures(value: Any) -> Any:
    """All but what the killed processes change: requests without an answer, times and ids."""
    if isinstance(value, dict):
        return {key: figures(part) for key, part in value.items() if key not in APART}
    return [figures(part) for part in value] if isinstance(value, list) else value


def assert_played_once(service: Service, path: Path, out: Path, n_cells: int) -> None:
    """Every cell is complete and was played once, and all together are what one process plays."""
    status, collected = (run("sweep", name, str(out)) for name in ("status", "collect"))
    answered = Counter(
        (journal.stem, json.dumps(entry["key"]))
        for journal in (out / "journal" / "runs").glob("*.jsonl")
        for entry in map(json.loads, journal.read_text().splitlines())
        if entry["kind"] == "answered"
    )
    service.reset()
    env = account(service.url, *MODELS)
    whole = run("sweep", str(path), "-o", str(path.parent / "whole"), env=env)

    assert (status.exit_code, status.document["n_completed"]) == (0, n_cells), status.stderr
    assert collected.exit_code == 0, collected.stderr
    assert len({run_id for run_id, _ in answered}) == n_cells
    assert len([*(out / "curated" / "runs").glob("*.json")]) == n_cells
    assert {*answered.values()} == {1}  # no process played what another one had
    assert figures(collected.document) == figures(whole.document)


@dataclass
class ArrayEngine:
    """An array of tasks as an engine plays it. `judge` says what becomes of a task by its exit
    code. Tasks get their index in `variable`; `kill` ends a random one.
    """

    variable: str
    judge: Callable[[int, int], Verdict]  # of an exit code and the attempts so far
    words: Sequence[str]
    env: Mapping[str, str]
    count: int
    at_once: int
    grace_s: float = 30.0
    ended: dict[int, list[int]] = field(default_factory=dict)  # exit codes of attempts, by index
    failed: list[int] = field(default_factory=list)
    terminated_s: list[float] = field(default_factory=list)  # how long SIGTERM took
    n_killed: int = 0
    _running: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def play(self, *, n_kills: int = 0, seed: int = 0, every_s: float = 1.0) -> None:
        """Play all tasks to their end, and kill so many meanwhile."""
        waiting = [*range(self.count)]
        killer = threading.Thread(target=self._kill, args=(n_kills, seed, every_s), daemon=True)

        def work() -> None:
            while True:
                with self._lock:
                    if not waiting:
                        return
                    index = waiting.pop(0)
                self._play_task(index)

        threads = [threading.Thread(target=work) for _ in range(self.at_once)]
        for thread in (*threads, killer):
            thread.start()
        for thread in threads:
            thread.join()

    def _play_task(self, index: int) -> None:
        codes = self.ended.setdefault(index, [])
        while True:
            env = {**self.env, self.variable: str(index)}
            process = begin(*self.words, env=env, stderr=subprocess.DEVNULL)
            with self._lock:
                self._running[index] = process
            process.communicate()
            with self._lock:
                del self._running[index]
            code = process.returncode
            codes.append(code if code >= 0 else 128 - code)
            verdict = self.judge(codes[-1], len(codes))
            if verdict != "again":
                if verdict == "fail":
                    self.failed.append(index)
                return

    def _kill(self, n_kills: int, seed: int, every_s: float) -> None:
        chance = random.Random(seed)
        while n_kills:
            time.sleep(every_s * chance.uniform(0.5, 1.5))
            with self._lock:
                if not self._running:
                    return
                # Attempts are bounded: no task is killed more often than it may be.
                running = [p for index, p in self._running.items() if len(self.ended[index]) < 3]
            if not running:
                continue
            process = chance.choice(running)
            n_kills -= 1
            self.n_killed += 1
            if chance.random() < 0.5:
                process.kill()
                continue
            began_s = time.monotonic()
            process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(self.grace_s)
                self.terminated_s.append(time.monotonic() - began_s)
            process.kill()


def kubernetes_job() -> dict[str, Any]:
    documents = yaml.safe_load_all((ROOT / "deploy" / "kubernetes" / "sweep.yaml").read_text())
    (job,) = (document for document in documents if document["kind"] == "Job")
    return dict(job["spec"])


def kubernetes_verdict(spec: Mapping[str, Any], code: int, n_attempts: int) -> Verdict:
    """What an Indexed Job does with an index whose container has ended so."""
    if code == 0:
        return "done"
    for rule in spec["podFailurePolicy"]["rules"]:
        codes = rule.get("onExitCodes")
        is_matched = codes and (code in codes["values"]) == (codes["operator"] == "In")
        if is_matched and rule["action"] == "FailIndex":
            return "fail"
    return "again" if n_attempts <= spec["backoffLimitPerIndex"] else "fail"


def batch_definition() -> dict[str, Any]:
    path = ROOT / "deploy" / "aws-batch" / "job-definition.json"
    return dict(json.loads(path.read_text()))


def batch_verdict(definition: Mapping[str, Any], code: int, n_attempts: int) -> Verdict:
    """What AWS Batch does with a child whose container has ended so; without a match it retries."""
    if code == 0:
        return "done"
    strategy = definition["retryStrategy"]
    if n_attempts >= strategy["attempts"]:
        return "fail"
    for rule in strategy["evaluateOnExit"]:
        conditions = {
            "onExitCode": str(code),
            "onReason": "",
            "onStatusReason": "Essential container in task exited",
        }
        if all(fnmatchcase(text, rule.get(name, "*")) for name, text in conditions.items()):
            return "again" if rule["action"].upper() == "RETRY" else "fail"
    return "again"


def shard_words(words: Sequence[str], path: Path, out: Path, count: int) -> list[str]:
    """The words of a manifest with this plan and number of shards."""
    flags = {"--shard": f"auto/{count}", "--shards-at-once": str(min(count, 3))}
    named = [word.partition("=")[0] for word in words if word.startswith("--shard")]
    retry = [word for word in words if word == "--retry-failed"]
    given = [f"{name}={flags[name]}" for name in named]
    return ["sweep", str(path), *given, *retry, "-o", str(out)]
