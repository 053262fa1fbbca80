"""Which runs are not gone on with, and how several processes share one."""

import json
import signal
import subprocess
import sys
import threading
import time

import pytest

from tests.command import ROOT, account, assert_valid, daily, run
from tests.fakes import FakeBedrock, answer, scored
from tests.resuming import (
    JUDGE,
    STUDENT,
    TUTOR,
    WORDS,
    Service,
    account_of,
    assert_refused,
    journal,
    start,
    wait_for_calls,
)


@pytest.fixture
def service():
    service = Service()
    yield service
    service.close()


class TestRefusals:
    @pytest.mark.parametrize(
        ("words", "says"),
        daily(
            [
                (("--prompt", "Else"), "The prompt was"),
                (("--temperature", "0.7"), "The temperature was not given, but now is 0.7."),
                (("--max-tokens", "99"), "The max tokens was 1024, but now is 99."),
                (("--seed", "9"), "The seed was 3, but now is 9."),
                (("--student-model", STUDENT), "The student model was not given"),
                (
                    ("--no-judge",),
                    "The judge model was 'emulator.judge-v1:0', but now is not given.",
                ),
                (("--scenario", "time-management"), "The scenario was 'career-change'"),
                (
                    ("--system-prompt-file", "{folder}/other.md"),
                    "The system prompt has other contents",
                ),
            ],
            first=3,
        ),
    )
    def test_another_run_is_named_and_refused(self, service, tmp_path, words, says):
        env = account_of(service)
        (tmp_path / "other.md").write_text("Ask.")
        store = ("--output-dir", str(tmp_path / "store"))
        run_id = run(*WORDS, "--turns", "1", "--seed", "3", *store, env=env).document["run_id"]
        service.reset()
        outcome = run(
            "resume", run_id, *store, *(w.format(folder=tmp_path) for w in words), env=env
        )

        assert_refused(outcome, says)
        assert service.requests == []

    def test_what_is_no_identity_may_change(self, service, tmp_path):
        env = account_of(service)
        store = ("--output-dir", str(tmp_path))
        run_id = run(*WORDS, "--turns", "1", *store, env=env).document["run_id"]
        more = ("--max-attempts", "3", "--deadline", "60", "--call-timeout", "9", "--pretty")
        gates = ("--fail-under", "mean_form=0", "--compliance-threshold", "5")

        assert run_pretty("resume", run_id, *store, *more, *gates, env=env) == 0

    def test_a_file_that_changed_is_named(self, service, tmp_path):
        env = account_of(service)
        prompt = tmp_path / "prompt.md"
        prompt.write_text("Ask one question.")
        store = ("--output-dir", str(tmp_path / "store"))
        words = (*WORDS, "--turns", "1", *store, "--system-prompt-file", str(prompt))
        run_id = run(*words, env=env).document["run_id"]
        assert run("resume", run_id, *store, env=env).exit_code == 0
        prompt.write_text("Ask two questions.")

        says = "The system prompt has other contents than when it began"
        assert_refused(run("resume", run_id, *store, env=env), says)

    @pytest.mark.parametrize(
        ("words", "says"),
        [
            (("resume",), "Missing argument RUN_ID"),
            (("resume", "run-01K9ZN5V2E3T4R5Y6U7J8K9M0N"), "Nothing to resume from"),
            (("resume", "run-1", "--output-dir", "{folder}"), "no journal of run-1"),
            (("resume", "../../etc/passwd", "--output-dir", "{folder}"), "not a run id"),
            (("resume", "run-1", "--resume", "--output-dir", "{folder}"), "does not take --resume"),
            ((*WORDS, "--resume"), "Nothing to resume from"),
            ((*WORDS, "--resume", "--resume-from", "x"), "not be combined"),
        ],
    )
    def test_a_run_that_cannot_be_found(self, service, tmp_path, words, says):
        env = account_of(service)
        outcome = run(*(word.format(folder=tmp_path) for word in words), env=env)

        assert_refused(outcome, says)
        assert service.requests == []


def run_pretty(*words: str, env: dict[str, str]) -> int:
    done = subprocess.run(
        [sys.executable, "-m", "cli", *words], cwd=ROOT, env=env, capture_output=True, check=False
    )
    document = json.loads(done.stdout)
    assert_valid(document["kind"], document)
    return done.returncode


class TestLock:
    def test_the_second_process_is_refused_and_told_who_is_at_work(self, service, tmp_path):
        env = account_of(service)
        service.reset(faults=["hang:role=tutor:after=2:ms=600000"])
        words = (*WORDS, "--turns", "4", "--output-dir", str(tmp_path), "--resume")
        process = start(*words, env=env)
        wait_for_calls(service, 3)
        run_id = journal(tmp_path).stem
        for again in (words, ("resume", run_id, "--output-dir", str(tmp_path))):
            outcome = run(*again, env=env)
            assert_refused(outcome, f"Another process is at work on {run_id}")
            assert f"process {process.pid} on " in outcome.stderr
        process.send_signal(signal.SIGINT)
        process.communicate()
        service.reset(latency_ms=0)

        assert run(*words, env=env).exit_code == 0

    def test_of_the_same_line_several_times_at_once_one_begins_a_run(self, service, tmp_path):
        """It has no answer before the others have ended."""
        others_ended = threading.Event()
        with FakeBedrock(
            {TUTOR: [answer("Why?", held=others_ended)], JUDGE: [scored(3, 3, 4)]}
        ) as served:
            words = (*WORDS, "--turns", "2", "--output-dir", str(tmp_path), "--resume")
            running = [start(*words, env=account(served.url, TUTOR)) for _ in range(4)]
            ended = []
            while running:
                for process in [one for one in running if one.poll() is not None]:
                    running.remove(process)
                    process.communicate()
                    ended.append(process.returncode)
                if len(ended) == 3:
                    others_ended.set()
                time.sleep(0.01)

        assert ended == [2, 2, 2, 0]
        assert len(list(tmp_path.glob("journal/runs/*.jsonl"))) == 1

    def test_the_same_line_with_fewer_turns_says_what_it_passes_over(self, service, tmp_path):
        store = ("--output-dir", str(tmp_path), "--seed", "1", "--resume")
        first = run(*WORDS, "--turns", "2", *store, env=account_of(service)).document["run_id"]
        outcome = run(*WORDS, "--turns", "1", *store, env=account_of(service))

        assert outcome.exit_code == 0
        assert f"{first} is skipped: it has 2 turns, and 1 is asked for" in outcome.stderr
