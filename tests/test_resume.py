"""A run that was cut short goes on in another process, and pays for nothing twice."""

import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from socratic_bench.emulator import Emulator, Settings
from socratic_bench.emulator.faults import parse_fault
from socratic_bench.emulator.records import RequestRecord
from tests.command import OPENING, ROOT, Outcome, account, assert_valid, daily, environment, run
from tests.fakes import FakeBedrock, answer, scored
from tests.in_process import played

TUTOR, STUDENT, JUDGE = "emulator.drift-5-v1:0", "emulator.student-v1:0", "emulator.judge-v1:0"
WORDS = (
    *("--model", TUTOR, "--prompt", OPENING, "--judge-model", JUDGE),
    *("--rubric", "socratic-disposition-1"),  # a verdict a turn, and no other call of the judge
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
        self._emulator = Emulator()
        self.url = self._emulator.url
        self._port = int(self.url.rpartition(":")[2])

    def reset(self, *, latency_ms: float = 0, faults: Sequence[str] = ()) -> None:
        """Forget all requests; from now on answer so late, with these faults."""
        self.close()
        settings = Settings(latency_ms=latency_ms, faults=tuple(map(parse_fault, faults)))
        self._emulator = Emulator(settings, port=self._port)

    @property
    def requests(self) -> list[RequestRecord]:
        return self._emulator.requests

    def close(self) -> None:
        self._emulator.close()


@pytest.fixture
def service():
    service = Service()
    yield service
    service.close()


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
    return subprocess.Popen(
        [sys.executable, "-m", "cli", *words],
        cwd=ROOT,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


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


class TestTakingUp:
    @pytest.mark.parametrize("how", ["resume", "--resume"])
    def test_a_killed_run_goes_on_and_repeats_what_was_on_its_way_only(
        self, service, tmp_path, how
    ):
        env = account_of(service)
        words = (*BOTH, "--turns", "8", "--seed", "3")
        whole = played(*words, "--output-dir", str(tmp_path / "whole"), env=env).document
        expected = bodies(service)
        service.reset(latency_ms=30)

        process = start(*words, "--output-dir", str(tmp_path / "cut"), env=env)
        wait_for_calls(service, 11)
        process.kill()
        process.communicate()
        run_id = journal(tmp_path / "cut").stem
        before, kept = bodies(service), n_answered(whole_entries(tmp_path / "cut"))
        service.reset()
        store = ("--output-dir", str(tmp_path / "cut"))
        again = ("resume", run_id, *store) if how == "resume" else (*words, *store, "--resume")
        outcome = run(*again, env=env)

        assert (outcome.exit_code, outcome.document["run_id"]) == (0, run_id)
        assert_valid("run", outcome.document)
        assert comparable(outcome.document) == comparable(whole)
        assert bodies(service).total() == expected.total() - kept
        made = before + bodies(service)
        assert set(made) == set(expected)
        assert (made - expected).total() <= AT_ONCE
        asked = {json.dumps(e["key"]) for e in entries(tmp_path / "cut") if e["kind"] == "asked"}
        assert len(asked) == sum(expected.values())

    def test_what_was_lost_on_the_way_counts_as_maybe_billed(self, service, tmp_path):
        env = account_of(service)
        service.reset(faults=[NEVER])
        words = (*WORDS, "--turns", "2", "--output-dir", str(tmp_path))
        process = start(*words, env=env)
        wait_for_calls(service, 1)
        process.kill()
        process.communicate()
        service.reset(latency_ms=0)
        document = played(*words, "--resume", env=env).document

        assert document["usage"]["tutor"]["calls"] == 2
        assert document["usage"]["tutor"]["attempts"] == 3

    def test_requests_that_failed_before_the_kill_count_too(self, service, tmp_path):
        env = account_of(service)
        service.reset(faults=["cut:role=tutor:after=2:count=4", "hang:role=tutor:after=2:ms=60000"])
        words = (*WORDS, "--turns", "4", "--max-attempts", "20", "--output-dir", str(tmp_path))
        process = start(*words, env=env)
        while sum(request.role == "tutor" for request in service.requests) < 7:
            time.sleep(0.01)
        process.kill()
        process.communicate()
        before = Counter(request.role for request in service.requests)
        service.reset()
        document = played(*words, "--resume", env=env).document

        after = Counter(request.role for request in service.requests)
        assert document["usage"]["tutor"]["attempts"] == before["tutor"] + after["tutor"]
        assert document["latency"]["tutor"]["unanswered_maybe_billed"] == 5

    def test_every_kill_counts_and_so_does_what_it_may_have_cost(self, service, tmp_path):
        """Three processes: two of them killed while the tutor's first reply was under way."""
        env = account_of(service)
        words = (*WORDS, "--output-dir", str(tmp_path), "--resume", "--turns")
        for _ in range(2):
            service.reset(faults=[NEVER])
            process = start(*words, "1", env=env)
            wait_for_calls(service, 1)
            process.kill()
            process.communicate()
        service.reset(latency_ms=0)
        document = played(*words, "1", env=env).document
        lost = document["cost"]["maybe_billed"]

        assert document["usage"]["tutor"]["attempts"] == 3
        assert lost["attempts"] == 2
        assert document["latency"]["tutor"]["unanswered_maybe_billed"] == 2
        assert lost["at_most_usd"] > 0

    def test_a_complete_run_gives_its_own_document_without_a_call(self, service, tmp_path):
        env = account_of(service)
        words = (*BOTH, "--turns", "3", "--output-dir", str(tmp_path), "--resume")
        first = played(*words, env=env)
        service.reset()
        second = run(*words, env=env)
        third = run("resume", first.document["run_id"], "--output-dir", str(tmp_path), env=env)

        assert first.stdout == second.stdout == third.stdout
        assert (first.exit_code, second.exit_code, third.exit_code) == (0, 0, 0)
        assert service.requests == []

    def test_its_exit_code_follows_the_gates_of_now(self, service, tmp_path):
        env = account_of(service)
        words = (*WORDS, "--turns", "7", "--output-dir", str(tmp_path), "--resume")
        assert played(*words, env=env).exit_code == 0
        service.reset()
        outcome = run(*words, "--fail-under", "half_life=7", env=env)

        assert (outcome.exit_code, outcome.document["error"]["code"]) == (5, "gate")
        assert service.requests == []

    def test_no_credentials_are_needed_for_what_is_complete(self, service, tmp_path):
        env = account_of(service)
        words = (*WORDS, "--turns", "1", "--output-dir", str(tmp_path), "--resume")
        first = played(*words, env=env)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            del env[name]
        role = ("--assume-role-arn", "arn:aws:iam::123456789012:role/any")

        assert run(*words, *role, env=env).stdout == first.stdout

    def test_turns_may_grow(self, service, tmp_path):
        env = account_of(service)
        store = ("--output-dir", str(tmp_path))
        short = played(*BOTH, "--turns", "2", "--seed", "5", *store, env=env).document
        long = run("resume", short["run_id"], *store, "--turns", "4", env=env).document
        straight = played(*BOTH, "--turns", "4", "--seed", "5", env=env).document

        assert long["run_id"] == short["run_id"]
        assert comparable(long) == comparable(straight)
        assert len([e for e in entries(tmp_path) if e["kind"] == "answered"]) == 4 + 3 + 4

    def test_turns_may_not_shrink(self, service, tmp_path):
        env = account_of(service)
        store = ("--output-dir", str(tmp_path))
        run_id = played(*WORDS, "--turns", "3", *store, env=env).document["run_id"]
        outcome = run("resume", run_id, *store, "--turns", "2", env=env)

        assert outcome.exit_code == 2
        assert "has 3 turns, which may become more, but 2 are asked for" in outcome.stderr

    def test_the_same_line_starts_a_run_where_there_is_none(self, service, tmp_path):
        words = (*WORDS, "--turns", "1", "--output-dir", str(tmp_path), "--resume")
        outcome = played(*words, env=account_of(service))

        assert (outcome.exit_code, outcome.document["n_turns"]) == (0, 1)

    def test_the_same_line_takes_the_newest_of_its_own(self, service, tmp_path):
        env = account_of(service)
        words = (*WORDS, "--turns", "1", "--output-dir", str(tmp_path))
        ids = [played(*words, env=env).document["run_id"] for _ in range(2)]
        other = played(*words, "--temperature", "0.5", env=env).document["run_id"]
        seeded = played(*words, "--seed", "1", env=env).document["run_id"]

        assert run(*words, "--resume", env=env).document["run_id"] == ids[1]
        more = ("--temperature", "0.5", "--resume")
        assert played(*words, *more, env=env).document["run_id"] == other
        assert played(*words, "--seed", "1", "--resume", env=env).document["run_id"] == seeded
        new = played(*words, "--seed", "2", "--resume", env=env).document["run_id"]
        assert new not in (*ids, other, seeded)

    def test_a_judge_that_was_gone_judges_what_it_missed(self, service, tmp_path):
        env = account_of(service)
        words = (*WORDS, "--turns", "3", "--output-dir", str(tmp_path), "--max-attempts", "1")
        service.reset(faults=["unavailable:role=judge"])
        first = run(*words, env=env)
        assert (first.exit_code, first.document["n_turns"]) == (4, 3)
        assert f"socratic-runner resume {first.document['run_id']}" in first.stderr
        service.reset()
        second = played(*words, "--resume", env=env)

        assert second.exit_code == 0
        assert [turn["score"] is not None for turn in second.document["turns"]] == [True] * 3
        assert len(service.requests) == 3
        assert list(tmp_path.glob("curated/runs/*.json"))

    def test_what_the_service_refuses_for_good_is_not_asked_again(self, service, tmp_path):
        env = account_of(service)
        service.reset(faults=["context_window:role=tutor:after=2"])
        words = (*WORDS, "--turns", "5", "--output-dir", str(tmp_path), "--resume")
        first = played(*words, env=env)
        service.reset()
        second = run(*words, env=env)

        assert first.document["end_reason"] == "context_window"
        assert first.stdout == second.stdout
        assert service.requests == []


class TestWithoutAStore:
    @pytest.mark.parametrize("source", ["file", "-"])
    def test_a_partial_document_is_gone_on_with(self, service, tmp_path, source):
        env = account_of(service)
        words = (*BOTH, "--turns", "6", "--seed", "4")
        whole = played(*words, env=env).document
        expected = bodies(service)
        service.reset(latency_ms=40)
        process = start(*words, env=env)
        wait_for_calls(service, 7)
        process.send_signal(signal.SIGTERM)
        printed, stderr = process.communicate()
        before = bodies(service)
        service.reset()
        assert process.returncode == 143
        assert b"--resume-from FILE" in stderr
        partial = json.loads(printed)
        assert_valid("run", partial)
        path = tmp_path / "cut.json"
        path.write_bytes(printed)
        name = str(path) if source == "file" else "-"
        stdin = printed if source == "-" else b""
        outcome = run("--resume-from", name, env=env, stdin=stdin)

        assert (outcome.exit_code, outcome.document["run_id"]) == (0, partial["run_id"])
        assert comparable(outcome.document) == comparable(whole)
        assert bodies(service).total() == expected.total() - n_answered(partial["journal"])
        assert (before + bodies(service) - expected).total() <= AT_ONCE

    def test_it_may_go_on_into_a_store(self, service, tmp_path):
        env = account_of(service)
        words = (*WORDS, "--turns", "3")
        service.reset(faults=["access_denied:role=tutor:after=2"])
        partial = played(*words, env=env)
        (tmp_path / "cut.json").write_bytes(partial.stdout)
        service.reset()
        store = ("--output-dir", str(tmp_path / "store"))
        outcome = run("--resume-from", str(tmp_path / "cut.json"), *store, env=env)

        assert outcome.exit_code == 0
        assert len(list(tmp_path.glob("store/raw/runs/*/turn_*.json"))) == 3
        service.reset()
        assert played(*words, *store, "--resume", env=env).stdout == outcome.stdout
        assert service.requests == []

    def test_a_kept_or_complete_run_carries_no_journal(self, service, tmp_path):
        env = account_of(service)
        assert played(*WORDS, "--turns", "1", env=env).document["journal"] is None
        service.reset(faults=["access_denied:role=tutor:after=1"])
        kept = played(*WORDS, "--turns", "2", "--output-dir", str(tmp_path), env=env)
        assert (kept.exit_code, kept.document["journal"]) == (3, None)

    @pytest.mark.parametrize(
        ("content", "says"),
        daily(
            [
                (b'{"journal":[{"kind":"run","version":99}]}', "another version"),
                (b"", "no whole JSON document"),
                (b'{"kind":"run"', "no whole JSON document"),
                (b"[]", "carries no journal"),
                (b'{"journal":null}', "carries no journal"),
                (b'{"journal":[]}', "no journal of a run"),
                (b'{"journal":[{"kind":"run"}]}', "no journal of a run"),
            ],
            first=4,
        ),
    )
    def test_any_other_document_is_refused(self, tmp_path, content, says):
        path = tmp_path / "other.json"
        path.write_bytes(content)
        outcome = run("--resume-from", str(path), env=environment())

        assert_refused(outcome, says)

    @pytest.mark.parametrize(
        ("change", "says"),
        daily(
            [
                ({"identity": 5}, "no journal of a run"),
                ({"seed": -3}, "no journal of a run"),
                ({"seed": "x"}, "no journal of a run"),
                ({"started_at": "2026-01-01T00:00:00"}, "no journal of a run"),
                ({"run_id": 7}, "no journal of a run"),
                ({"config": {"turns": 10**9}}, "no journal of a run"),
                ({"config": {"model": 7}}, "does not tell how the run was asked for"),
                ({"config": {"temperature": "hot"}}, "does not tell how the run was asked for"),
                ({"config": {"gates": 3}}, "does not tell how the run was asked for"),
            ],
            first=7,
        ),
        ids=str,
    )
    def test_a_journal_with_odd_contents_is_refused_before_anything_is_called(
        self, service, tmp_path, partial, change, says
    ):
        (tmp_path / "odd.json").write_text(json.dumps(changed(partial.document, change)))
        outcome = run("--resume-from", str(tmp_path / "odd.json"), env=account_of(service))

        assert_refused(outcome, says)
        assert outcome.document["turns"] == []
        assert service.requests == []

    def test_a_journal_that_answers_something_else_is_refused_as_if_nothing_had_been(
        self, service, tmp_path, partial
    ):
        """Its seed is another one, so that its student says something else."""
        (tmp_path / "odd.json").write_text(json.dumps(changed(partial.document, {"seed": 4711})))
        outcome = run("--resume-from", str(tmp_path / "odd.json"), env=account_of(service))

        assert_refused(outcome, "answers another question")
        assert (outcome.document["run_id"], outcome.document["turns"]) == (None, [])

    def test_the_short_form_does_not_promise_what_it_lacks(self, service):
        service.reset(faults=["access_denied:role=tutor:after=1"])
        outcome = run(*WORDS, "--turns", "2", "--brief", env=account_of(service))

        assert (outcome.exit_code, len(outcome.document)) == (3, 8)
        assert "--resume-from" not in outcome.stderr
        assert "give --output-dir, or no --brief" in outcome.stderr

    @pytest.fixture
    def partial(self, service):
        service.reset(faults=["access_denied:role=tutor:after=3"])
        outcome = played(*WORDS, "--turns", "5", env=account_of(service))
        assert outcome.exit_code == 3
        service.reset()
        return outcome

    def test_a_document_that_is_not_there_is_refused(self, tmp_path):
        outcome = run("--resume-from", str(tmp_path / "none.json"), env=environment())
        assert_refused(outcome, "cannot be read")


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
        run_id = played(*WORDS, "--turns", "1", "--seed", "3", *store, env=env).document["run_id"]
        service.reset()
        outcome = run(
            "resume", run_id, *store, *(w.format(folder=tmp_path) for w in words), env=env
        )

        assert_refused(outcome, says)
        assert service.requests == []

    def test_what_is_no_identity_may_change(self, service, tmp_path):
        env = account_of(service)
        store = ("--output-dir", str(tmp_path))
        run_id = played(*WORDS, "--turns", "1", *store, env=env).document["run_id"]
        more = ("--max-attempts", "3", "--deadline", "60", "--call-timeout", "9", "--pretty")
        gates = ("--fail-under", "mean_form=0", "--compliance-threshold", "5")

        assert run_pretty("resume", run_id, *store, *more, *gates, env=env) == 0

    def test_a_file_that_changed_is_named(self, service, tmp_path):
        env = account_of(service)
        prompt = tmp_path / "prompt.md"
        prompt.write_text("Ask one question.")
        store = ("--output-dir", str(tmp_path / "store"))
        words = (*WORDS, "--turns", "1", *store, "--system-prompt-file", str(prompt))
        run_id = played(*words, env=env).document["run_id"]
        assert played("resume", run_id, *store, env=env).exit_code == 0
        prompt.write_text("Ask two questions.")

        says = "The system prompt has other contents than when it began"
        assert_refused(run("resume", run_id, *store, env=env), says)

    @pytest.mark.parametrize(
        ("words", "says"),
        [
            (("resume",), "Which run"),
            (("resume", "run-01K9ZN5V2E3T4R5Y6U7J8K9M0N"), "Nothing to resume from"),
            (("resume", "run-1", "--output-dir", "{folder}"), "no journal of run-1"),
            (("resume", "../../etc/passwd", "--output-dir", "{folder}"), "no run id"),
            (("resume", "run-1", "--resume", "--output-dir", "{folder}"), "does not go with"),
            ((*WORDS, "--resume"), "Nothing to resume from"),
            ((*WORDS, "--resume", "--resume-from", "x"), "keep one"),
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
    json.loads(done.stdout)
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

        assert played(*words, env=env).exit_code == 0

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
        first = played(*WORDS, "--turns", "2", *store, env=account_of(service)).document["run_id"]
        outcome = run(*WORDS, "--turns", "1", *store, env=account_of(service))

        assert outcome.exit_code == 0
        assert f"{first} is passed over: it has 2 turns, and 1 is asked for" in outcome.stderr


class TestDamage:
    @pytest.fixture
    def cut(self, service, tmp_path):
        """A run of three turns that the tutor's service ended after two."""
        service.reset(faults=["access_denied:role=tutor:after=2"])
        env = account_of(service)
        store = ("--output-dir", str(tmp_path))
        outcome = played(*WORDS, "--turns", "3", "--seed", "1", *store, env=env)
        assert outcome.exit_code == 3
        service.reset()
        run_id = outcome.document["run_id"]
        return lambda by=run: by("resume", run_id, *store, env=env)

    def test_a_line_that_was_cut_off_is_removed(self, service, tmp_path, cut):
        path = journal(tmp_path)
        content = path.read_bytes()
        last = content.rindex(b'{"kind":"answered"')
        path.write_bytes(content[: last + 200])
        outcome = cut()

        assert outcome.exit_code == 0
        assert "was cut off half-way and was removed" in outcome.stderr
        assert len(service.requests) == 3
        assert all(line.endswith(b"}") for line in path.read_bytes().splitlines())

    def test_a_line_that_was_changed_does_not_count(self, service, tmp_path, cut):
        path = journal(tmp_path)
        lines = path.read_text().splitlines()
        nth = next(i for i, line in enumerate(lines) if '"answered"' in line and "judge" in line)
        lines[nth] = re.sub(r'\\"form\\": ?[0-9.]+', r'\\"form\\": 0', lines[nth])
        path.write_text("\n".join(lines) + "\n")
        outcome = cut()

        assert outcome.exit_code == 0
        assert "1 damaged entry left out" in outcome.stderr
        assert len(service.requests) == 3

    @pytest.mark.parametrize("left", daily(["nothing", "half a line", "a changed line"], first=2))
    def test_a_run_whose_first_process_is_not_told_has_the_turns_it_began_with(
        self, service, tmp_path, cut, left
    ):
        path = journal(tmp_path)
        first, second, *_ = path.read_bytes().splitlines(keepends=True)
        kept = {"nothing": b"", "half a line": second[:20], "a changed line": b"7" + second}[left]
        path.write_bytes(first + kept)
        outcome = cut(played)

        assert (outcome.exit_code, outcome.document["n_turns"]) == (0, 3)

    def test_the_same_line_passes_a_damaged_beginning_over_and_says_so(
        self, service, tmp_path, cut
    ):
        path = journal(tmp_path)
        path.write_bytes(path.read_bytes().replace(b'"version":2', b'"version":3', 1))
        words = (*WORDS, "--turns", "3", "--seed", "1", "--output-dir", str(tmp_path))
        outcome = run(*words, "--resume", env=account_of(service))

        assert outcome.exit_code == 0
        assert f"{path} is damaged at its beginning and is passed over" in outcome.stderr
        assert len(service.requests) == 6
        assert_refused(cut(), "is damaged at its beginning")

    @pytest.mark.parametrize(
        "content", daily([b"", b"hello\n", b'{"kind":"turn"}\n', b"\0" * 99], first=2)
    )
    def test_a_file_that_is_no_journal_is_left_alone(self, service, tmp_path, cut, content):
        path = journal(tmp_path)
        path.write_bytes(content)
        outcome = cut()

        assert outcome.exit_code == 2
        assert path.read_bytes() == content
        assert service.requests == []

    def test_the_journal_of_another_run_does_not_fit(self, service, tmp_path, cut):
        """Its answers are to other questions, whatever its first line says."""
        path = journal(tmp_path)
        other = tmp_path / "other"
        env = account_of(service)
        words = ("--model", TUTOR, "--prompt", "Why is the sky blue?", "--judge-model", JUDGE)
        played(*words, "--turns", "2", "--output-dir", str(other), env=env)
        own, foreign = path.read_bytes().splitlines(), journal(other).read_bytes().splitlines()
        path.write_bytes(b"\n".join([*own[:2], *foreign[2:]]) + b"\n")
        service.reset()
        outcome = cut()

        assert (outcome.exit_code, outcome.document["n_turns"]) == (2, 0)
        assert "answers another question" in outcome.stderr
        assert service.requests == []

    @pytest.mark.parametrize(
        ("name", "spoil"),
        [
            ("turn_000", lambda content: content[:40]),
            (
                "judge_000",
                lambda content: re.sub(rb'"overall_score":\d', b'"overall_score":1', content),
            ),
            ("judge_000", lambda _: b"[]"),
        ],
        ids=["cut", "changed", "foreign"],
    )
    def test_an_artifact_that_was_cut_off_or_changed_is_written_anew(
        self, tmp_path, cut, name, spoil
    ):
        (path,) = tmp_path.glob(f"raw/runs/*/{name}.json")
        content = path.read_bytes()
        path.write_bytes(spoil(content))
        assert path.read_bytes() != content
        outcome = cut()

        assert outcome.exit_code == 0
        assert f"{name}.json was cut off or changed by others; it is written anew" in outcome.stderr
        assert path.read_bytes() == content

    def test_a_journal_that_cannot_be_written_ends_the_run_and_goes_into_the_document(
        self, service, tmp_path
    ):
        env = account_of(service)
        words = (*WORDS, "--turns", "40", "--seed", "2")
        store = ("--output-dir", str(tmp_path))
        script = 'ulimit -f 12; trap "" XFSZ; exec "$@"'
        done = subprocess.run(
            ["bash", "-c", script, "bash", sys.executable, "-m", "cli", *words, *store],
            cwd=ROOT,
            env=env,
            capture_output=True,
            check=False,
        )
        document = json.loads(done.stdout)

        assert (done.returncode, document["end_reason"]) == (4, "artifacts")
        assert 0 < document["n_turns"] < 40
        assert b"could not be written: File too large" in done.stderr
        (tmp_path / "cut.json").write_bytes(done.stdout)
        service.reset()
        outcome = played("--resume-from", str(tmp_path / "cut.json"), env=env)
        whole = played(*words, env=env)
        assert comparable(outcome.document) == comparable(whole.document)


class TestGoneOver:
    """What a reviewer's tools would try."""

    def test_turns_grow_from_one(self, service, tmp_path):
        env = account_of(service)
        words = (*WORDS, "--seed", "7", "--output-dir", str(tmp_path))
        first = played(*words, "--turns", "1", env=env).document
        grown = played(*words, "--turns", "3", "--resume", env=env)

        assert (grown.exit_code, grown.document["n_turns"]) == (0, 3)
        assert grown.document["run_id"] == first["run_id"]

    def test_a_run_that_grew_goes_on_by_its_id_alone(self, service, tmp_path):
        env = account_of(service)
        store = ("--output-dir", str(tmp_path))
        run_id = played(*WORDS, "--turns", "2", *store, env=env).document["run_id"]
        service.reset(faults=["access_denied:role=tutor:after=1"])
        cut = played("resume", run_id, *store, "--turns", "5", env=env)
        assert (cut.exit_code, cut.document["n_turns"]) == (3, 3)
        service.reset()
        whole = run("resume", run_id, *store, env=env)

        assert (whole.exit_code, whole.document["n_turns"]) == (0, 5)
        service.reset()
        assert played("resume", run_id, *store, env=env).stdout == whole.stdout
        assert service.requests == []

    @pytest.mark.parametrize(
        "words", [("--service-tier", "flex"), ("--latency-profile", "standard")], ids="".join
    )
    def test_how_an_answer_is_served_may_change(self, service, tmp_path, words):
        env = account_of(service)
        line = (*WORDS, "--turns", "2", "--output-dir", str(tmp_path))
        first = played(*line, env=env).document
        service.reset()
        outcome = played(*line, "--resume", *words, env=env)

        assert (outcome.exit_code, outcome.document["run_id"]) == (0, first["run_id"])
        assert service.requests == []

    def test_a_run_that_goes_on_and_is_ended_still_tells_what_was_finished(self, service, tmp_path):
        """Whatever the moment: what was answered before is in the document."""
        env = account_of(service)
        service.reset(faults=["access_denied:role=tutor:after=3"])
        cut = played(*WORDS, "--turns", "9", env=env)
        (tmp_path / "cut.json").write_bytes(cut.stdout)
        service.reset(faults=["hang:role=tutor:ms=60000"])
        process = start("--resume-from", str(tmp_path / "cut.json"), env=env)
        wait_for_calls(service, 1)
        process.send_signal(signal.SIGTERM)
        printed, _ = process.communicate()
        document = json.loads(printed)

        assert (process.returncode, document["n_turns"]) == (143, 3)
        assert [turn["score"] is not None for turn in document["turns"]] == [True] * 3
        answered = [e for e in document["journal"] if e["kind"] == "answered"]
        assert len(answered) == 3 + 3

    def test_the_journal_of_another_run_under_this_name_is_refused(self, service, tmp_path):
        env = account_of(service)
        store = ("--output-dir", str(tmp_path))
        played(*WORDS, "--turns", "1", *store, env=env)
        other = "run-01K9ZN5V2E3T4R5Y6U7J8K9M0N"
        path = journal(tmp_path)
        path.with_name(f"{other}.jsonl").write_bytes(path.read_bytes())

        assert_refused(run("resume", other, *store, env=env), f"is no journal of {other}")

    def test_a_signal_ends_the_wait_for_a_document_that_does_not_come(self):
        words = [sys.executable, "-m", "cli", "--resume-from", "-"]
        pipe = subprocess.PIPE
        with subprocess.Popen(
            words, cwd=ROOT, env=environment(), stdin=pipe, stdout=pipe, stderr=pipe
        ) as process:
            while len(list(Path(f"/proc/{process.pid}/task").iterdir())) < 3:
                time.sleep(0.05)  # until somebody waits for the document beside the main thread
            process.send_signal(signal.SIGTERM)
            assert process.stdout
            document = json.loads(process.stdout.read())

        assert (process.returncode, document["end_reason"]) == (143, "interrupted")
