"""A run that was cut short goes on in another process, and pays for nothing twice."""

import json
import signal
import time
from collections import Counter

import pytest

from tests.command import assert_valid, daily, environment, run
from tests.resuming import (
    AT_ONCE,
    BOTH,
    NEVER,
    WORDS,
    Service,
    account_of,
    assert_refused,
    bodies,
    changed,
    comparable,
    entries,
    journal,
    n_answered,
    start,
    wait_for_calls,
    whole_entries,
)


@pytest.fixture
def service():
    service = Service()
    yield service
    service.close()


class TestTakingUp:
    @pytest.mark.parametrize("how", ["resume", "--resume"])
    def test_a_killed_run_goes_on_and_repeats_what_was_on_its_way_only(
        self, service, tmp_path, how
    ):
        env = account_of(service)
        words = (*BOTH, "--turns", "8", "--seed", "3")
        whole = run(*words, "--output-dir", str(tmp_path / "whole"), env=env).document
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
        document = run(*words, "--resume", env=env).document

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
        document = run(*words, "--resume", env=env).document

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
        document = run(*words, "1", env=env).document
        lost = document["cost"]["maybe_billed"]

        assert document["usage"]["tutor"]["attempts"] == 3
        assert lost["attempts"] == 2
        assert document["latency"]["tutor"]["unanswered_maybe_billed"] == 2
        assert lost["at_most_usd"] > 0

    def test_a_complete_run_gives_its_own_document_without_a_call(self, service, tmp_path):
        env = account_of(service)
        words = (*BOTH, "--turns", "3", "--output-dir", str(tmp_path), "--resume")
        first = run(*words, env=env)
        service.reset()
        second = run(*words, env=env)
        third = run("resume", first.document["run_id"], "--output-dir", str(tmp_path), env=env)

        assert first.stdout == second.stdout == third.stdout
        assert (first.exit_code, second.exit_code, third.exit_code) == (0, 0, 0)
        assert service.requests == []

    def test_its_exit_code_follows_the_gates_of_now(self, service, tmp_path):
        env = account_of(service)
        words = (*WORDS, "--turns", "7", "--output-dir", str(tmp_path), "--resume")
        assert run(*words, env=env).exit_code == 0
        service.reset()
        outcome = run(*words, "--fail-under", "half_life=7", env=env)

        assert (outcome.exit_code, outcome.document["error"]["code"]) == (5, "gate")
        assert service.requests == []

    def test_no_credentials_are_needed_for_what_is_complete(self, service, tmp_path):
        env = account_of(service)
        words = (*WORDS, "--turns", "1", "--output-dir", str(tmp_path), "--resume")
        first = run(*words, env=env)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            del env[name]
        role = ("--assume-role-arn", "arn:aws:iam::123456789012:role/any")

        assert run(*words, *role, env=env).stdout == first.stdout

    def test_turns_may_grow(self, service, tmp_path):
        env = account_of(service)
        store = ("--output-dir", str(tmp_path))
        short = run(*BOTH, "--turns", "2", "--seed", "5", *store, env=env).document
        long = run("resume", short["run_id"], *store, "--turns", "4", env=env).document
        straight = run(*BOTH, "--turns", "4", "--seed", "5", env=env).document

        assert long["run_id"] == short["run_id"]
        # The judge was asked about the shorter dialogue as a whole, too.
        usage, usage_of_straight = long.pop("usage"), straight.pop("usage")
        assert usage["judge"]["calls"] == usage_of_straight["judge"]["calls"] + 1
        assert comparable(long) == comparable(straight)
        assert len([e for e in entries(tmp_path) if e["kind"] == "answered"]) == 4 + 3 + 4 + 2

    def test_turns_may_not_shrink(self, service, tmp_path):
        env = account_of(service)
        store = ("--output-dir", str(tmp_path))
        run_id = run(*WORDS, "--turns", "3", *store, env=env).document["run_id"]
        outcome = run("resume", run_id, *store, "--turns", "2", env=env)

        assert outcome.exit_code == 2
        assert "has 3 turns, which may become more, but 2 are asked for" in outcome.stderr

    def test_the_same_line_starts_a_run_where_there_is_none(self, service, tmp_path):
        words = (*WORDS, "--turns", "1", "--output-dir", str(tmp_path), "--resume")
        outcome = run(*words, env=account_of(service))

        assert (outcome.exit_code, outcome.document["n_turns"]) == (0, 1)

    def test_the_same_line_takes_the_newest_of_its_own(self, service, tmp_path):
        env = account_of(service)
        words = (*WORDS, "--turns", "1", "--output-dir", str(tmp_path))
        ids = [run(*words, env=env).document["run_id"] for _ in range(2)]
        other = run(*words, "--temperature", "0.5", env=env).document["run_id"]
        seeded = run(*words, "--seed", "1", env=env).document["run_id"]

        assert run(*words, "--resume", env=env).document["run_id"] == ids[1]
        more = ("--temperature", "0.5", "--resume")
        assert run(*words, *more, env=env).document["run_id"] == other
        assert run(*words, "--seed", "1", "--resume", env=env).document["run_id"] == seeded
        new = run(*words, "--seed", "2", "--resume", env=env).document["run_id"]
        assert new not in (*ids, other, seeded)

    def test_a_judge_that_was_gone_judges_what_it_missed(self, service, tmp_path):
        env = account_of(service)
        words = (*WORDS, "--turns", "3", "--output-dir", str(tmp_path), "--max-attempts", "1")
        service.reset(faults=["unavailable:role=judge"])
        first = run(*words, env=env)
        assert (first.exit_code, first.document["n_turns"]) == (4, 3)
        assert f"socratic-runner resume {first.document['run_id']}" in first.stderr
        service.reset()
        second = run(*words, "--resume", env=env)

        assert second.exit_code == 0
        assert [turn["score"] is not None for turn in second.document["turns"]] == [True] * 3
        assert len(service.requests) == 3
        assert list(tmp_path.glob("curated/runs/*.json"))

    def test_what_the_service_refuses_for_good_is_not_asked_again(self, service, tmp_path):
        env = account_of(service)
        service.reset(faults=["context_window:role=tutor:after=2"])
        words = (*WORDS, "--turns", "5", "--output-dir", str(tmp_path), "--resume")
        first = run(*words, env=env)
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
        whole = run(*words, env=env).document
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
        partial = run(*words, env=env)
        (tmp_path / "cut.json").write_bytes(partial.stdout)
        service.reset()
        store = ("--output-dir", str(tmp_path / "store"))
        outcome = run("--resume-from", str(tmp_path / "cut.json"), *store, env=env)

        assert outcome.exit_code == 0
        assert len(list(tmp_path.glob("store/raw/runs/*/turn_*.json"))) == 3
        service.reset()
        assert run(*words, *store, "--resume", env=env).stdout == outcome.stdout
        assert service.requests == []

    def test_a_kept_or_complete_run_carries_no_journal(self, service, tmp_path):
        env = account_of(service)
        assert run(*WORDS, "--turns", "1", env=env).document["journal"] is None
        service.reset(faults=["access_denied:role=tutor:after=1"])
        kept = run(*WORDS, "--turns", "2", "--output-dir", str(tmp_path), env=env)
        assert (kept.exit_code, kept.document["journal"]) == (3, None)

    @pytest.mark.parametrize(
        ("content", "says"),
        daily(
            [
                (b'{"journal":[{"kind":"run","version":99}]}', "another version"),
                (b"", "no whole JSON document"),
                (b'{"kind":"run"', "no whole JSON document"),
                (b'{"journal":[{"elapsed_s":NaN}]}', "unexpected character"),
                (b"[]", "carries no journal"),
                (b'{"journal":null}', "carries no journal"),
                (b'{"journal":[]}', "no journal of a run"),
                (b'{"journal":[{"kind":"run"}]}', "no journal of a run"),
            ],
            first=5,
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
                ({"identity": 5}, "not a journal of a run"),
                ({"seed": -3}, "not a journal of a run"),
                ({"seed": "x"}, "not a journal of a run"),
                ({"started_at": "2026-01-01T00:00:00"}, "not a journal of a run"),
                ({"run_id": 7}, "not a journal of a run"),
                ({"config": {"turns": 10**9}}, "not a journal of a run"),
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
        assert "give --output-dir, or leave out --brief" in outcome.stderr

    @pytest.fixture
    def partial(self, service):
        service.reset(faults=["access_denied:role=tutor:after=3"])
        outcome = run(*WORDS, "--turns", "5", env=account_of(service))
        assert outcome.exit_code == 3
        service.reset()
        return outcome

    def test_a_document_that_is_not_there_is_refused(self, tmp_path):
        outcome = run("--resume-from", str(tmp_path / "none.json"), env=environment())
        assert_refused(outcome, "cannot be read")
