"""Whole runs on a service that fails: what the document counts is what the service has seen."""

from collections import Counter

import pytest

from socratic_bench import CancelToken, RunConfig, run
from socratic_bench.emulator import Emulator, Settings, parse_fault
from tests.command import daily

# Of all calls 7.5 % each, which makes 27 % together, since one fault hides the next.
FAILING = ("internal:p=0.075", "unavailable:p=0.075", "reset:p=0.075", "cut:p=0.075")
CONFIG = RunConfig(
    model="emulator.drift-12-v1:0",
    judge_model="emulator.judge-v1:0",
    student_model="emulator.student-v1:0",
    prompt="I wonder about trains.",
    turns=40,
    seed=7,
    region="us-east-1",
)


class Hurried(CancelToken):
    """Does not wait between attempts."""

    def sleep(self, seconds: float) -> None:
        self.check()


@pytest.mark.parametrize("mode", daily(["legacy", "standard", "adaptive"], "adaptive"))
def test_no_retry_stands_behind_ours(keys, monkeypatch, mode):
    """Whatever the SDK's environment says, each request at the service is an attempt of ours."""
    monkeypatch.setenv("AWS_RETRY_MODE", mode)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "5")
    with Emulator(Settings(seed=3, faults=tuple(map(parse_fault, FAILING)))) as emulator:
        monkeypatch.setenv("AWS_ENDPOINT_URL", emulator.url)
        found = run(CONFIG, cancel_token=Hurried()).document
        seen = Counter(record.model_id for record in emulator.requests)
        struck = sum(record.fault is not None for record in emulator.requests)

    usage = found["usage"]
    assert (found["end_reason"], found["judge"]["judged_turns"]) == ("max_turns", 40)
    assert seen == {
        CONFIG.model: usage["tutor"]["attempts"],
        CONFIG.judge_model: usage["judge"]["attempts"],
        CONFIG.student_model: usage["student"]["attempts"],
    }
    assert struck == usage["total"]["attempts"] - usage["total"]["calls"] > 20
    assert sum(role["unanswered_maybe_billed"] for role in found["latency"].values()) == struck
