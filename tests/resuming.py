"""What tests of resumed runs share: an endpoint that starts afresh, and how runs are compared."""

import json
import subprocess
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from socratic_bench.emulator import Emulator, Settings
from socratic_bench.emulator.faults import parse_fault
from socratic_bench.emulator.service import RequestRecord
from tests import ports
from tests.command import OPENING, PLAIN_RUBRIC, Outcome, account, assert_valid, begin, run

TUTOR, STUDENT, JUDGE = "emulator.drift-5-v1:0", "emulator.student-v1:0", "emulator.judge-v1:0"
WORDS = (
    *("--model", TUTOR, "--prompt", OPENING, "--judge-model", JUDGE),
    *("--rubric", PLAIN_RUBRIC),  # a verdict a turn, and no other call of the judge
)
BOTH = (*WORDS, "--student-model", STUDENT)
# Tutor or student, and the judges that work beside them.
AT_ONCE = 1 + 4
NEVER = "hang:role=tutor:ms=600000"
# What may differ between a run that was resumed and one that was not.
OWN = ("run_id", "timestamps", "latency", "cost", "s3_artifacts", "output_artifacts")


class Service:
    """The embedded endpoint at one address, started afresh for each part of a test."""

    def __init__(self) -> None:
        self._holding = ports.reserved()
        self._port = ports.number(self._holding)
        self._emulator = Emulator(port=self._port)
        self.url = self._emulator.url

    def reset(self, *, latency_ms: float = 0, faults: Sequence[str] = ()) -> None:
        """Forget all requests; from now on answer so late, with these faults."""
        self._emulator.close()
        settings = Settings(latency_ms=latency_ms, faults=tuple(map(parse_fault, faults)))
        self._emulator = Emulator(settings, port=self._port)

    @property
    def requests(self) -> list[RequestRecord]:
        return self._emulator.requests

    def close(self) -> None:
        self._emulator.close()
        self._holding.close()


def store_run(tmp_path: Path, service: Service, *, complete: bool) -> tuple[Path, str]:
    """Play a run to its end or to its third turn: the folder that has it, and its id."""
    out = tmp_path / "out"
    store, env = ("--output-dir", str(out)), account(service.url, TUTOR)
    if not complete:
        return out, cut_short(service, *store, env=env)
    service.reset()
    outcome = run(*WORDS, "--turns", "3", "--seed", "3", *store, env=env)
    assert outcome.exit_code == 0, outcome.stderr
    service.reset()
    return out, outcome.document["run_id"]


def cut_short(service: Service, *store: str, env: Mapping[str, str]) -> str:
    """Play a run that is refused its third turn: its id."""
    service.reset(faults=("access_denied:role=tutor:after=2",))
    outcome = run(*WORDS, "--turns", "4", *store, env=env)
    assert (outcome.exit_code, outcome.document["n_turns"]) == (3, 2), outcome.stderr
    service.reset()
    return str(outcome.document["run_id"])


def comparable(document: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in document.items() if key not in OWN}
    drop = {"latency", "attempts", "cache_read_tokens", "cache_write_tokens"}
    kept["turns"] = [{k: v for k, v in turn.items() if k != "latency"} for turn in kept["turns"]]
    return json.loads(
        json.dumps(kept), object_hook=lambda d: {k: v for k, v in d.items() if k not in drop}
    )


def bodies(service: Service) -> Counter[str]:
    """How often each request came in, told by what it says."""
    return Counter(request.body_sha256 for request in service.requests)


def start(*words: str, env: dict[str, str]) -> subprocess.Popen[bytes]:
    return begin(*words, env=env)


def n_answered(entries: Sequence[Mapping[str, Any]]) -> int:
    """The calls that a journal holds the answers of."""
    return sum(entry["kind"] == "answered" for entry in entries)


def wait_for_calls(service: Service, calls: int) -> None:
    while len(service.requests) < calls:
        time.sleep(0.01)


def journal(folder: Path) -> Path:
    (path,) = folder.glob("journal/runs/*.jsonl")
    return path


def entries(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in journal(folder).read_text().splitlines()]


def whole_entries(folder: Path) -> list[dict[str, Any]]:
    """Of a journal whose last line may have been cut."""
    return [json.loads(line) for line in journal(folder).read_bytes().split(b"\n")[:-1]]


def account_of(service: Service) -> dict[str, str]:
    return account(service.url, TUTOR)


def changed(document: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """The document with other contents in its journal's first entry."""
    first, *rest = document["journal"]
    config = {**first["config"], **change.get("config", {})}
    return {**document, "journal": [{**first, **change, "config": config}, *rest]}


def assert_refused(outcome: Outcome, says: str) -> None:
    assert outcome.exit_code == 2
    assert outcome.document["status"] == "failed"
    assert_valid("run", outcome.document)
    assert says in outcome.stderr
