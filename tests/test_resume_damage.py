"""Journals that are cut, broken or foreign, and runs that went on from them."""

import json
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.command import ROOT, daily, environment, printed, run
from tests.resuming import (
    JUDGE,
    TUTOR,
    WORDS,
    Service,
    account_of,
    assert_refused,
    comparable,
    journal,
    start,
    wait_for_calls,
)


@pytest.fixture
def service():
    service = Service()
    yield service
    service.close()


def hidden(folder: Path) -> list[Path]:
    return [path.relative_to(folder) for path in folder.rglob(".*")]


class TestDamage:
    @pytest.fixture
    def cut(self, service, tmp_path):
        """A run of three turns that the tutor's service ended after two."""
        service.reset(faults=["access_denied:role=tutor:after=2"])
        env = account_of(service)
        store = ("--output-dir", str(tmp_path))
        outcome = run(*WORDS, "--turns", "3", "--seed", "1", *store, env=env)
        assert outcome.exit_code == 3
        service.reset()
        run_id = outcome.document["run_id"]
        return lambda: run("resume", run_id, *store, env=env)

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

    def test_what_a_killed_process_left_half_written_is_removed(self, tmp_path, cut):
        """Drafts of this run alone: nobody else writes them while it is locked."""
        run_id = journal(tmp_path).stem
        drafts = [
            f"raw/runs/{run_id}/.turn_001.json.5b00ed72",
            f"curated/runs/.{run_id}.json.00c0ffee",
        ]
        foreign = ["curated/runs/.run-other.json.00c0ffee", f"raw/runs/{run_id}/.notes"]
        for name in (*drafts, *foreign):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(b'{"turn')
        outcome = cut()

        assert outcome.exit_code == 0
        assert sorted(map(str, hidden(tmp_path))) == sorted(foreign)

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

    def test_a_kill_between_an_invalid_verdict_and_its_repair_is_no_damage(self, service, tmp_path):
        """Other calls go on meanwhile, so that the journal has more after the verdict."""
        faults = ["out_of_range:role=judge:count=1", "access_denied:role=tutor:after=2"]
        service.reset(faults=faults)
        env = account_of(service)
        words = (*WORDS, "--turns", "3", "--seed", "1", "--output-dir", str(tmp_path))
        assert run(*words, env=env).exit_code == 3
        path = journal(tmp_path)
        lines = path.read_bytes().splitlines(keepends=True)
        keys = [json.loads(line).get("key") or {} for line in lines]
        repaired = next(key["index"] for key in keys if key.get("repeat") == 1)
        left = [(line, key) for line, key in zip(lines, keys, strict=True) if not key.get("repeat")]
        *_, last = (key for _, key in left if key)
        assert (last["role"], last["index"]) != ("judge", repaired)
        path.write_bytes(b"".join(line for line, _ in left))
        next(tmp_path.glob(f"raw/runs/*/judge_{repaired:03d}.json")).unlink()

        service.reset()
        outcome = run("resume", path.stem, "--output-dir", str(tmp_path), env=env)
        assert outcome.exit_code == 0, outcome.document["error"]
        assert outcome.document["judge"]["judged_turns"] == 3
        assert Counter(request.role for request in service.requests) == {"judge": 2, "tutor": 1}

    @pytest.mark.parametrize("left", daily(["nothing", "half a line", "a changed line"], first=2))
    def test_a_run_whose_first_process_is_not_told_has_the_turns_it_began_with(
        self, service, tmp_path, cut, left
    ):
        path = journal(tmp_path)
        first, second, *_ = path.read_bytes().splitlines(keepends=True)
        second_line = {"nothing": b"", "half a line": second[:20], "a changed line": b"7" + second}[
            left
        ]
        path.write_bytes(first + second_line)
        outcome = cut()

        assert (outcome.exit_code, outcome.document["n_turns"]) == (0, 3)

    def test_the_same_line_passes_a_damaged_beginning_over_and_says_so(
        self, service, tmp_path, cut
    ):
        path = journal(tmp_path)
        path.write_bytes(path.read_bytes().replace(b'"version":2', b'"version":3', 1))
        words = (*WORDS, "--turns", "3", "--seed", "1", "--output-dir", str(tmp_path))
        outcome = run(*words, "--resume", env=account_of(service))

        assert outcome.exit_code == 0
        assert f"{path} is damaged at its beginning and is skipped" in outcome.stderr
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
        run(*words, "--turns", "2", "--output-dir", str(other), env=env)
        lines, foreign = path.read_bytes().splitlines(), journal(other).read_bytes().splitlines()
        path.write_bytes(b"\n".join([*lines[:2], *foreign[2:]]) + b"\n")
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
                lambda content: re.sub(rb'"overall_score":[\d.]+', b'"overall_score":1.5', content),
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
        said = f"{name}.json was truncated or changed by another program; it was rewritten"
        assert said in outcome.stderr
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
            # Python would cut off the modules that it caches, too.
            env={**env, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            check=False,
        )
        document = printed(done.stdout)

        assert (done.returncode, document["end_reason"]) == (4, "artifacts")
        assert 0 < document["n_turns"] < 40
        assert b"could not be written: File too large" in done.stderr
        (tmp_path / "cut.json").write_bytes(done.stdout)
        service.reset()
        outcome = run("--resume-from", str(tmp_path / "cut.json"), env=env)
        whole = run(*words, env=env)
        assert comparable(outcome.document) == comparable(whole.document)


class TestGoneOver:
    """What a reviewer's tools would try."""

    def test_turns_grow_from_one(self, service, tmp_path):
        env = account_of(service)
        words = (*WORDS, "--seed", "7", "--output-dir", str(tmp_path))
        first = run(*words, "--turns", "1", env=env).document
        grown = run(*words, "--turns", "3", "--resume", env=env)

        assert (grown.exit_code, grown.document["n_turns"]) == (0, 3)
        assert grown.document["run_id"] == first["run_id"]

    def test_a_run_that_grew_goes_on_by_its_id_alone(self, service, tmp_path):
        env = account_of(service)
        store = ("--output-dir", str(tmp_path))
        run_id = run(*WORDS, "--turns", "2", *store, env=env).document["run_id"]
        service.reset(faults=["access_denied:role=tutor:after=1"])
        cut = run("resume", run_id, *store, "--turns", "5", env=env)
        assert (cut.exit_code, cut.document["n_turns"]) == (3, 3)
        service.reset()
        whole = run("resume", run_id, *store, env=env)

        assert (whole.exit_code, whole.document["n_turns"]) == (0, 5)
        service.reset()
        assert run("resume", run_id, *store, env=env).stdout == whole.stdout
        assert service.requests == []

    @pytest.mark.parametrize(
        "words", [("--service-tier", "flex"), ("--latency-profile", "standard")], ids="".join
    )
    def test_how_an_answer_is_served_may_change(self, service, tmp_path, words):
        env = account_of(service)
        line = (*WORDS, "--turns", "2", "--output-dir", str(tmp_path))
        first = run(*line, env=env).document
        service.reset()
        outcome = run(*line, "--resume", *words, env=env)

        assert (outcome.exit_code, outcome.document["run_id"]) == (0, first["run_id"])
        assert service.requests == []

    def test_a_run_that_goes_on_and_is_ended_still_tells_what_was_finished(self, service, tmp_path):
        """Whatever the moment: what was answered before is in the document."""
        env = account_of(service)
        service.reset(faults=["access_denied:role=tutor:after=3"])
        cut = run(*WORDS, "--turns", "9", env=env)
        (tmp_path / "cut.json").write_bytes(cut.stdout)
        service.reset(faults=["hang:role=tutor:ms=60000"])
        process = start("--resume-from", str(tmp_path / "cut.json"), env=env)
        wait_for_calls(service, 1)
        process.send_signal(signal.SIGTERM)
        stdout, _ = process.communicate()
        document = printed(stdout)

        assert (process.returncode, document["n_turns"]) == (143, 3)
        assert [turn["score"] is not None for turn in document["turns"]] == [True] * 3
        answered = [e for e in document["journal"] if e["kind"] == "answered"]
        assert len(answered) == 3 + 3

    def test_the_journal_of_another_run_under_this_name_is_refused(self, service, tmp_path):
        env = account_of(service)
        store = ("--output-dir", str(tmp_path))
        run(*WORDS, "--turns", "1", *store, env=env)
        other = "run-01K9ZN5V2E3T4R5Y6U7J8K9M0N"
        path = journal(tmp_path)
        path.with_name(f"{other}.jsonl").write_bytes(path.read_bytes())

        assert_refused(run("resume", other, *store, env=env), f"is not a journal of {other}")

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
            document = printed(process.stdout.read())

        assert (process.returncode, document["end_reason"]) == (143, "interrupted")
