"""A sweep through the command: its cells, its document, and how it goes on."""

import json
import re
import shutil
import signal
import subprocess
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cli import sweep as sweep_parser
from cli import sweep_run
from cli.arguments import parse
from cli.sweep_display import display_for
from socratic_bench.documents import encode
from socratic_bench.documents.encoding import plain_keys
from socratic_bench.emulator import Emulator, Settings, parse_fault
from socratic_bench.errors import Stopped
from socratic_bench.models.cancel import wait_for_first
from socratic_bench.runs import CancelToken
from socratic_bench.studies.sweep.sweep import perform_sweep
from tests import command
from tests.command import Outcome, account, assert_valid, environment, printed, run
from tests.test_resume import Service

JUDGE, JUROR = "emulator.judge-v1:0", "emulator.judge-bias-5-v1:0"
STEADY, LECTURER = "emulator.socratic-v1:0", "emulator.lecturer-v1:0"
SCENARIOS = ("ai-ethics", "career-change")
GRID = ("--models", STEADY, LECTURER, "--scenarios", *SCENARIOS, "--turns", "2", "--seed", "7")


def sweep(*words: str, folder: Path) -> Outcome:
    return run("sweep", "--offline", *words, "--output-dir", str(folder))


def sweep_at(
    now: datetime, *words: str, folder: Path, cancel_token: CancelToken | None = None
) -> dict[str, Any]:
    """The document of a sweep that begins at this time of day."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment().items():
            patch.setenv(name, value)
        words = ("--offline", *words, "--output-dir", str(folder))
        result = perform_sweep(
            sweep_run.read_request(*parse(sweep_parser.build_parser(), words)),
            display=display_for({}, quiet=True),
            cancel_token=cancel_token or CancelToken(),
            now=lambda: now,
            call=sweep_run.flag_of,
        )
        document, _ = sweep_run.document_and_exit_code(result)
    found: dict[str, Any] = json.loads(encode(plain_keys(document)))
    return found


def curated(folder: Path) -> dict[str, dict[str, Any]]:
    paths = (folder / "curated" / "runs").glob("*.json")
    return {path.stem: json.loads(path.read_bytes()) for path in paths}


def rows(folder: Path) -> list[dict[str, Any]]:
    """What the index holds, in the order in which it was written."""
    paths = sorted(folder.glob("sweeps/*/cells/*.jsonl"))
    return [json.loads(line) for path in paths for line in path.read_text().splitlines()]


def begin(*words: str, folder: Path) -> subprocess.Popen[bytes]:
    kept = ("--output-dir", str(folder))
    return command.begin("sweep", "--offline", *words, *kept, stderr=subprocess.DEVNULL)


def wait_for_turns(process: subprocess.Popen[bytes], folder: Path, name: str) -> None:
    """Until two runs have a file of that name."""
    while len(list(folder.glob(f"raw/runs/*/{name}"))) < 2:
        assert process.poll() is None
        time.sleep(0.02)


def repeated_calls(folder: Path) -> list[str]:
    """Calls that were answered more than once, by the runs' journals."""
    found = []
    for path in folder.glob("journal/runs/*.jsonl"):
        entries = [json.loads(line) for line in path.read_text().splitlines()]
        answered = [json.dumps(e["key"]) for e in entries if e["kind"] == "answered"]
        found += [key for key in answered if answered.count(key) > 1]
        assert answered
    return found


def last_sent(folder: Path, model: str) -> datetime:
    """When a model was sent its last request, by the journals."""
    lines = (path.read_text().splitlines() for path in folder.glob("journal/runs/*.jsonl"))
    entries = [json.loads(line) for of_run in lines for line in of_run]
    tried = [one for e in entries if e["kind"] == "answered" for one in e["completion"]["attempts"]]
    return max(
        datetime.fromisoformat(one["started_at"]) for one in tried if one["model_id"] == model
    )


def ended_by_waiting() -> tuple[CancelToken, list[float]]:
    """A token that ends a sweep as it begins to wait for longer than 10 s, and how long it was to
    wait.
    """
    waits: list[float] = []

    def wait(futures: Any, timeout_s: float | None) -> None:
        if timeout_s is not None and 10 < timeout_s <= 64:
            waits.append(timeout_s)
            token.end(Stopped("Enough.", end_reason="interrupted"))
        wait_for_first(futures, timeout_s)

    token = CancelToken(wait=wait)
    return token, waits


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Outcome]:
    folder = tmp_path_factory.mktemp("sweep")
    return folder, sweep(*GRID, "--repeats", "2", folder=folder)


@pytest.fixture
def copied(played: tuple[Path, Outcome], tmp_path: Path) -> Path:
    """A folder with all that was kept of it."""
    return shutil.copytree(played[0], tmp_path / "copied")


class TestDocument:
    def test_each_combination_is_an_ordinary_run(self, played):
        folder, outcome = played
        runs = curated(folder)
        asked = sorted((doc["model"], doc["scenario"]) for doc in runs.values())

        assert (outcome.exit_code, outcome.document["status"]) == (0, "completed")
        assert_valid("sweep", outcome.document)
        assert asked == sorted((m, s) for m in (STEADY, LECTURER) for s in SCENARIOS * 2)
        for document in runs.values():
            assert_valid("curated", document)

    def test_groups_are_the_means_of_their_runs_the_best_first(self, played):
        folder, outcome = played
        groups = outcome.document["groups"]
        assert [group["value"] for group in groups["model"]] == [STEADY, LECTURER]
        for axis, key in (("model", "model"), ("scenario", "scenario")):
            for group in groups[axis]:
                docs = [doc for doc in curated(folder).values() if doc[key] == group["value"]]
                scores = [doc["metrics"]["overall_score"] for doc in docs]
                mean = group["metrics"]["overall_score"]
                assert mean["mean"] == pytest.approx(sum(scores) / 4)
                assert mean["n"] == 4
                costs = [doc["cost"]["total"]["total_usd"] for doc in docs]
                assert group["cost_usd"] == pytest.approx(sum(costs))
                assert group["usage"]["calls"] == sum(d["usage"]["total"]["calls"] for d in docs)

    def test_seeds_follow_from_sample_and_repeat_never_from_the_model(self, played):
        folder, _ = played
        seeds: dict[tuple[str, int], set[str]] = {}
        for doc in curated(folder).values():
            seeds.setdefault((doc["scenario"], doc["seed"]), set()).add(doc["model"])

        assert len(seeds) == 4
        assert all(models == {STEADY, LECTURER} for models in seeds.values())

    def test_cells_have_the_same_keys_and_runs_wherever_and_however_fast(self, played, tmp_path):
        _, outcome = played
        other = sweep(*GRID, "--repeats", "2", "--max-connections", "1", folder=tmp_path)

        def keys(found: Outcome) -> list[tuple[str, float]]:
            return [(cell["key"], cell["value"]) for cell in found.document["runs"]]

        assert keys(other) == keys(outcome)

    def test_each_beginning_of_the_order_is_balanced(self, played):
        cells = [cell["axes"] for cell in played[1].document["runs"]]

        for n in (2, 4, 6):
            models = [cell["model"] for cell in cells[:n]]
            assert models.count(STEADY) == models.count(LECTURER)
        assert [cell["scenario"] for cell in cells[:4]] == [s for s in SCENARIOS for _ in "ab"]
        assert {cells[0]["model"], cells[2]["model"]} == {STEADY, LECTURER}


class TestGoingOn:
    def test_what_has_ended_is_not_played_again_and_new_cells_are(self, played, copied):
        _, outcome = played
        again = sweep(*GRID, "--repeats", "2", "--resume", folder=copied)
        n_rows = len(rows(copied))
        more = sweep(*GRID, "--repeats", "3", "--resume", folder=copied)

        assert again.document["runs"] == outcome.document["runs"]
        assert again.document["sweep_id"] == more.document["sweep_id"]
        assert more.document["runs"][:8] == outcome.document["runs"]
        assert (n_rows, len(rows(copied)), len(curated(copied))) == (8, 12, 12)

    def test_rows_that_are_lost_are_read_from_the_runs(self, played, copied):
        _, outcome = played
        for path in copied.glob("sweeps/*/cells/*.jsonl"):
            path.write_text("{}\nrubbish")
        again = sweep(*GRID, "--repeats", "2", "--resume", folder=copied)

        assert again.document["runs"] == outcome.document["runs"]
        assert again.document["groups"] == outcome.document["groups"]
        assert len(curated(copied)) == 8

    @pytest.mark.parametrize("began", ["yesterday", "0001-01-01T00:00:00+00:00"])
    def test_what_began_at_no_moment_is_no_sweep(self, tmp_path, began):
        words = ("--models", STEADY, "--scenarios", "ai-ethics", "--turns", "1", "--no-judge")
        folder = tmp_path / "sweeps" / f"sweep-7{25 * 'Z'}"
        first = sweep(*words, folder=tmp_path)
        (kept,) = tmp_path.glob("sweeps/*/sweep.json")
        folder.mkdir()
        told = {**json.loads(kept.read_bytes()), "sweep_id": folder.name, "started_at": began}
        (folder / "sweep.json").write_text(json.dumps(told))
        again = sweep(*words, "--resume", folder=tmp_path)

        assert again.exit_code == 0
        assert again.document["sweep_id"] == first.document["sweep_id"] < folder.name
        assert again.document["runs"] == first.document["runs"]

    @pytest.mark.parametrize("is_indexed", [True, False])
    def test_gates_are_those_of_the_command_that_goes_on(self, played, copied, is_indexed):
        words = (*GRID, "--repeats", "2", "--resume")
        steady = [name for name, one in curated(copied).items() if one["model"] == STEADY]
        path, other = (copied / "curated" / "runs" / f"{name}.json" for name in steady[:2])
        document = json.loads(path.read_bytes())
        document["judge"] |= {"judged_turns": 2, "unjudged_turns": 2}
        path.write_text(json.dumps(document))
        other.unlink()  # whose row stays as it is
        for index in copied.glob("sweeps/*/cells/*.jsonl"):  # as if it had been played so
            rows = [json.loads(line) for line in index.read_text().splitlines()]
            rows = [row | {"files": None, "curated_sha256": None} for row in rows]
            kept = [row for row in rows if is_indexed or row["run_id"] == other.stem]
            index.write_text("".join(json.dumps(row) + "\n" for row in kept))

        def gated(*gate: str) -> tuple[int, str | None]:
            outcome = sweep(*words, *gate, folder=copied)
            error = outcome.document["error"]
            assert outcome.document["n_completed"] == 8
            return outcome.exit_code, error and error["message"] + error["hint"]

        missed = "missed a gate or the judge coverage.The sweep itself is complete; each run"
        half = ("--min-judge-coverage", "0.5")
        high = gated(*half, "--fail-under", "overall_score=9")
        below = "overall_score of emulator.lecturer-v1:0 is 0, but must be at least 9."
        assert high == (5, f"{below}The sweep itself is complete.")
        assert gated("--min-judge-coverage", "0.8") == (5, f"1 run {missed} says its metrics.")
        assert gated(*half, "--fail-under", "overall_score=0") == (0, None)

    def test_gates_that_cells_missed_before_may_be_left_out(self, tmp_path):
        gate = ("--fail-under", "overall_score=9")
        missed = sweep(*GRID, *gate, folder=tmp_path)
        again = sweep(*GRID, *gate, "--resume", folder=tmp_path)
        without = sweep(*GRID, "--resume", folder=tmp_path)

        assert (missed.exit_code, again.exit_code, without.exit_code) == (5, 5, 0)
        assert again.document["error"] == missed.document["error"]
        assert without.document["error"] is None

    @pytest.mark.parametrize("torn", [b"", b'{"kind":"run","vers'])
    def test_a_cell_that_was_killed_before_its_first_entry_begins(self, played, copied, torn):
        _, outcome = played
        cell = outcome.document["runs"][1]
        for path in copied.glob("sweeps/*/cells/*.jsonl"):
            path.unlink()
        (copied / "curated" / "runs" / f"{cell['run_id']}.json").unlink()
        (copied / "journal" / "runs" / f"{cell['run_id']}.jsonl").write_bytes(torn)
        again = sweep(*GRID, "--repeats", "2", "--resume", folder=copied)

        assert (again.exit_code, again.document["runs"]) == (0, outcome.document["runs"])

    @pytest.mark.parametrize("later_s", [1, 40])
    def test_with_targets_it_waits_until_the_last_request_before_is_a_minute_old(
        self, copied, later_s
    ):
        """By the time of day, which is so much later than the last run's end."""
        ended = max(datetime.fromisoformat(row["completed_at"]) for row in rows(copied))
        now = ended + timedelta(seconds=later_s)
        token, waits = ended_by_waiting()
        words = (*GRID, "--repeats", "3", "--resume", "--target-rpm", "1")
        document = sweep_at(now, *words, folder=copied, cancel_token=token)

        assert waits == [pytest.approx(63 - later_s, abs=1)]
        assert (document["n_missing"], document["pace"]) == (4, [])
        assert "The first request waits" in " ".join(document["notices"])

    def test_so_it_does_for_requests_of_cells_that_have_not_ended(self, copied):
        sent = max(last_sent(copied, model) for model in (STEADY, LECTURER, JUDGE))
        for path in (*copied.glob("sweeps/*/cells/*.jsonl"), *copied.glob("curated/runs/*.json")):
            path.unlink()
        token, waits = ended_by_waiting()
        words = (*GRID, "--repeats", "2", "--resume", "--target-rpm", "60")
        now = sent + timedelta(seconds=9)
        document = sweep_at(now, *words, folder=copied, cancel_token=token)

        assert waits == [pytest.approx(63 - 9, abs=1)]
        assert document["n_missing"] == 8

    def test_without_targets_or_after_a_minute_nothing_waits(self, copied):
        ended = max(datetime.fromisoformat(row["completed_at"]) for row in rows(copied))
        grid = (*GRID, "--repeats", "3", "--resume", "--limit", "1")
        for targets, later_s in ((("--target-rpm", "6000"), 64), ((), 1)):
            now = ended + timedelta(seconds=later_s)
            document = sweep_at(now, *grid, *targets, folder=copied)

            assert document["notices"] == []

    def test_a_limit_leaves_the_rest_for_later(self, tmp_path):
        some = sweep(*GRID, "--limit", "3", folder=tmp_path)
        rest = sweep(*GRID, "--resume", folder=tmp_path)

        assert (some.exit_code, some.document["status"]) == (4, "partial")
        assert (some.document["n_completed"], some.document["n_missing"]) == (3, 1)
        assert some.document["error"]["code"] == "missing_runs"
        assert some.document["error"]["hint"] == "Run the same command with --resume."
        untested = [group["metrics"] for group in some.document["groups"]["model"]]
        assert all("overall_score" in metrics for metrics in untested)
        assert (rest.exit_code, rest.document["n_completed"]) == (0, 4)

    def test_a_signal_ends_it_and_what_was_under_way_goes_on(self, tmp_path):
        words = [*GRID[:-4], "--turns", "15", "--max-connections", "2"]
        process = begin(*words, folder=tmp_path)
        wait_for_turns(process, tmp_path, "turn_003.json")
        process.send_signal(signal.SIGINT)
        document = printed(process.communicate()[0])
        begun = {path.name for path in tmp_path.glob("raw/runs/*")}
        again = sweep(*words, "--resume", folder=tmp_path)

        assert (process.returncode, document["end_reason"]) == (130, "interrupted")
        assert document["n_completed"] + document["n_missing"] == document["n_runs"]
        assert (again.exit_code, again.document["n_completed"]) == (0, 4)
        assert begun <= {cell["run_id"] for cell in again.document["runs"]}
        assert repeated_calls(tmp_path) == []

    def test_two_processes_do_not_play_one_sweep(self, tmp_path):
        words = (*GRID[:-4], "--turns", "60", "--seed", "7", "--no-judge")
        process = begin(*words, folder=tmp_path)
        wait_for_turns(process, tmp_path, "turn_001.json")
        second = sweep(*words, "--resume", folder=tmp_path)
        process.kill()
        process.communicate()

        assert (second.exit_code, second.document["end_reason"]) == (2, "usage")
        assert "is in use by another process" in second.document["error"]["message"]


def _n_connections(folder: Path, *words: str) -> int:
    """How many a judged sweep opened, its look at the models included."""
    service = Service()
    service.reset(latency_ms=40)
    words = (*GRID, "--judge-model", JUDGE, *words, "-o", str(folder))
    outcome = run("sweep", *words, env=account(service.url, STEADY, LECTURER))
    connections = {request.connection for request in service.requests}
    service.close()

    assert outcome.exit_code == (4 if "--limit" in words else 0)
    return len(connections)


class TestLimits:
    def test_all_cells_together_keep_to_one_budget(self, tmp_path):
        # So few at a time that some have ended when it is used up.
        words = (*GRID, "--repeats", "3", "--max-connections", "5")
        short = sweep(*words, "--max-cost-usd", "0.25", folder=tmp_path)
        spent = sum(row["cost_usd"] for row in rows(tmp_path))
        rest = sweep(*words, "--max-cost-usd", "9", "--resume", folder=tmp_path)

        assert (short.exit_code, short.document["end_reason"]) == (6, "budget")
        assert 0 < short.document["n_completed"] < 12
        assert "The budget of 0.25 USD" in short.document["error"]["message"]
        assert short.document["error"]["hint"] == (
            "Raise --max-cost-usd. Run the same command with --resume."
        )
        assert short.document["cost_usd"] == pytest.approx(spent)
        assert rest.document["spent_usd"] == pytest.approx(rest.document["cost_usd"])
        assert "with runs in progress" not in rest.stderr
        assert spent <= 0.25
        assert (rest.exit_code, rest.document["n_completed"]) == (0, 12)
        assert repeated_calls(tmp_path) == []

    def test_what_earlier_processes_spent_counts(self, played, copied):
        _, without = played
        more = sweep(*GRID, "--repeats", "3", "--max-cost-usd", "0.1", "--resume", folder=copied)

        assert without.document["spent_usd"] is None
        assert (more.exit_code, more.document["n_completed"]) == (6, 8)

    def test_no_more_requests_are_under_way_than_connections(self, tmp_path):
        assert _n_connections(tmp_path, "--max-connections", "3") == 3

    def test_fewer_runs_than_connections_have_all_of_them(self, tmp_path):
        """A judge's request takes none of those that its dialogue needs."""
        assert _n_connections(tmp_path, "--limit", "1") > 1

    def test_several_processes_are_refused_with_what_to_do(self, tmp_path):
        outcome = sweep(*GRID, "--processes", "2", folder=tmp_path)

        assert outcome.exit_code == 2
        assert outcome.document["error"]["message"] == (
            "--processes was removed: one process does --max-connections runs in parallel. To use "
            "several machines, give each a shard (--shard I/N)."
        )

    def test_targets_stand_beside_what_was_reached(self, tmp_path):
        words = ("--target-rpm", "6000", "--target-rpm", f"{LECTURER}=9000")
        outcome = sweep(*GRID, *words, "--target-tpm", "9000000", folder=tmp_path)
        pace = {entry["model"]: entry for entry in outcome.document["pace"]}
        usage = outcome.document["usage"]

        assert pace[STEADY]["target_rpm"] == 6000
        assert pace[LECTURER]["target_rpm"] == 9000
        assert pace[LECTURER]["target_tpm"] == 9000000
        assert pace[JUDGE]["target_rpm"] == 6000
        assert sum(entry["requests"] for entry in pace.values()) == usage["attempts"]

    def test_a_model_that_answers_nothing_is_stopped_and_the_others_go_on(self, tmp_path):
        faults = (parse_fault(f"unavailable:model={LECTURER}"),)
        with Emulator(Settings(faults=faults)) as emulator:
            outcome = run(
                *("sweep", *GRID, "--judge-model", JUDGE, "--stall", "0.02"),
                *("--output-dir", str(tmp_path)),
                env=account(emulator.url, STEADY, LECTURER),
            )
        document = outcome.document

        assert (outcome.exit_code, document["n_completed"]) == (4, 2)
        assert {one["error"]["code"] for one in document["failed"]} == {"stalled"}
        assert f"{LECTURER} in us-east-1 was stopped" in outcome.stderr
        untested = document["groups"]["model"][-1]
        assert untested["value"] == LECTURER
        assert untested["metrics"].keys() == document["groups"]["model"][0]["metrics"].keys()
        assert {metric["mean"] for metric in untested["metrics"].values()} == {None}
        pace = {entry["model"]: entry["stalled"] for entry in document["pace"]}
        assert pace == {STEADY: False, LECTURER: True, JUDGE: False}

    def test_a_reply_that_no_minute_has_room_for_is_a_mistake(self, tmp_path):
        outcome = sweep(*GRID, "--target-tpm", "1000", "--target-rpm", "0", folder=tmp_path)

        assert outcome.exit_code == 2
        assert "--max-tokens of 1024 is more than" in outcome.document["error"]["message"]
        assert "--target-rpm takes N or MODEL=N" in outcome.document["error"]["message"]


class TestMistakes:
    def test_all_are_told_before_anything_is_played(self, tmp_path):
        outcome = sweep(
            *("--models", STEADY, "no-such-model", "--scenarios", "carer-change", "--turns", "x"),
            *("--temperatures", "0.5", "warm", "7", "--repeats", "0", "--retry-failed"),
            *("--judge-model", JUDGE, "--judge-model", JUROR, "--target-rpm", f"{JUROR}=60"),
            *("--target-rpm", "nobody=60"),
            folder=tmp_path,
        )
        message = outcome.document["error"]["message"]

        assert (outcome.exit_code, outcome.document["end_reason"]) == (2, "usage")
        for part in (
            "'no-such-model'",
            "'carer-change'; did you mean career-change?",
            "--turns is 'x', which is not a whole number.",
            "--temperatures is 'warm', which is not a number.",
            "--temperatures is 7",
            "--repeats is 0",
            "--retry-failed is given without --resume.",
            f"--target-rpm names 'nobody', which no run calls. They call {JUROR}, {JUDGE}, ",
        ):
            assert part in message
        assert JUROR not in message.replace(f"call {JUROR}", "")
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        ("words", "told"),
        [
            (
                ("--benchmark", "no"),
                "No benchmark 'no'; available: execution, golden, optimisation, socratic.",
            ),
            (("--no-judge", "--judge-model", JUDGE), "are both given: keep one."),
        ],
    )
    def test_of_whom_nobody_knows_whether_cells_call_it_nothing_is_told(
        self, tmp_path, words, told
    ):
        message = sweep(*GRID, *words, "--target-rpm", "nobody=6", folder=tmp_path).document[
            "error"
        ]["message"]

        assert told in message
        assert "nobody" not in message

    def test_a_sweep_is_kept_somewhere(self):
        outcome = run("sweep", "--offline", *GRID)

        assert outcome.exit_code == 2
        assert "A sweep needs --output-dir or --s3-bucket" in outcome.document["error"]["message"]

    @pytest.mark.parametrize(
        "words",
        [
            ("--transcript", "none.json", "--system-prompt-file", "none.md", "--turns", "0"),
            ("--scenario-file", "none.toml"),
            ("--scenarios", "ai-ethics", "--calibration", f"none-{'c' * 300}"),
            ("--benchmark", "execution", "--dataset", f"none-{'d' * 300}"),
        ],
    )
    def test_a_file_that_is_not_there_is_told_with_other_mistakes(self, tmp_path, words):
        outcome = sweep("--models", STEADY, *words, folder=tmp_path)
        message = outcome.document["error"]["message"]

        assert (outcome.exit_code, outcome.document["end_reason"]) == (2, "usage")
        for file in (word for word in words if word.startswith("none")):
            assert re.search(f"{file}:? cannot be read: (No such file|File name too long)", message)
        assert ("--turns is 0" in message) == ("--turns" in words)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("flag", ["--seed", "--max-tokens"])
    def test_a_number_that_no_document_takes_is_told_with_other_mistakes(self, tmp_path, flag):
        words = ("--models", STEADY, "--scenarios", "ai-ethics", "--turns", "0", flag, "9" * 30)
        message = sweep(*words, folder=tmp_path).document["error"]["message"]

        assert message.count(f"{flag} is {'9' * 30}, but must lie in") == 1
        assert "--turns is 0, but must lie in" in message

    def test_mistakes_of_cells_are_told_in_the_order_of_the_cells(self, tmp_path):
        models = ("no-1", "no-2", "no-3")
        words = ("--models", *models, "--scenarios", "ai-ethics", "--repeats", "2")
        message = sweep(*words, folder=tmp_path).document["error"]["message"]

        assert re.findall(r"'(no-\d)' is none", message) == [*models]

    def test_a_value_twice_is_a_mistake(self, tmp_path):
        outcome = sweep("--models", STEADY, STEADY, "--scenarios", "ai-ethics", folder=tmp_path)

        assert "--models names" in outcome.document["error"]["message"]

    def test_a_limit_that_would_hold_nothing_or_two_of_the_same_are_mistakes(self, tmp_path):
        words = (*GRID, "--target-rpm", "60", "--target-tpm", f"{STEADY}=90000")
        judge, twice = f"{JUDGE}=60", ("--target-rpm", "90")
        typo = sweep(*words, "--target-rpm", "emulator.socratic=60", folder=tmp_path)
        both = sweep(*words, *twice, "--target-rpm", judge, folder=tmp_path)

        assert (typo.exit_code, both.exit_code) == (2, 2)
        assert typo.document["error"]["message"] == (
            "--target-rpm names 'emulator.socratic', which no run calls. They call "
            "emulator.judge-v1:0, emulator.lecturer-v1:0, emulator.socratic-v1:0."
        )
        assert both.document["error"]["message"] == (
            "--target-rpm is given more than once for models in general: keep one."
        )

    def test_that_no_model_is_named_is_told_once(self, tmp_path):
        outcome = sweep("--scenarios", "ai-ethics", folder=tmp_path)

        assert outcome.document["error"]["message"] == (
            "No models to test: give --models with one Bedrock model id or more."
        )


class TestBucket:
    """A sweep that only a bucket keeps."""

    @pytest.fixture
    def variables(self, moto_url: str) -> dict[str, str]:
        keys = {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": "example"}
        return environment(AWS_ENDPOINT_URL_S3=moto_url, **keys)

    def test_it_goes_on_from_there(self, client, bucket, variables):
        words = ("--offline", *GRID, "--s3-bucket", bucket, "--s3-prefix", "team")
        some = run("sweep", *words, "--limit", "3", env=variables)
        keys = _keys(client, bucket)
        rest = run("sweep", *words, "--resume", env=variables)

        assert (some.exit_code, some.document["n_missing"]) == (4, 1)
        assert (rest.exit_code, rest.document["n_completed"]) == (0, 4)
        assert rest.document["sweep_id"] == some.document["sweep_id"]
        place = rest.document["s3_artifacts"]["index"]
        assert place == f"s3://{bucket}/team/sweeps/{rest.document['sweep_id']}/cells/"
        assert sum(key.startswith("team/curated/runs/") for key in keys) == 3
        assert set(keys) <= set(_keys(client, bucket))

    def test_a_budget_counts_what_its_cells_under_way_have_cost(self, bucket, variables):
        words = ("--offline", *GRID, "--s3-bucket", bucket, "--max-cost-usd", "0.08")
        spent = []
        for more in ((), ("--resume", "--max-connections", "1")):
            message = run("sweep", *words, *more, env=variables).document["error"]["message"]
            told = re.search("budget of 0.08 USD.* up to ([0-9.]+) USD", message)
            assert told
            spent.append(float(told[1]))

        assert 0 < spent[0] <= spent[1]

    def test_what_its_index_lacks_is_read_from_the_runs(self, client, bucket, variables):
        words = ("--offline", *GRID, "--s3-bucket", bucket)
        first = run("sweep", *words, env=variables)
        for key in _keys(client, bucket):
            if "/cells/" in key:
                client.delete_object(Bucket=bucket, Key=key)
        curated_keys = [key for key in _keys(client, bucket) if key.startswith("curated/")]
        again = run("sweep", *words, "--resume", env=variables)

        assert again.document["runs"] == first.document["runs"]
        assert len(curated_keys) == 4
        assert any("/cells/" in key for key in _keys(client, bucket))

    @pytest.mark.torture
    def test_one_under_way_goes_on_by_the_call(self, client, bucket, variables):
        words = [*GRID[:-4], "--turns", "25", "--no-judge", "--max-connections", "2"]
        words += ["--s3-bucket", bucket]
        process = command.begin(
            *("sweep", "--offline", *words), env=variables, stderr=subprocess.DEVNULL
        )
        while sum(key.endswith("turn_004.json") for key in _keys(client, bucket)) < 2:
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        process.communicate()
        before = {key.split("/")[2] for key in _keys(client, bucket) if key.startswith("raw/")}
        again = run("sweep", "--offline", *words, "--resume", env=variables)
        after = {key.split("/")[2] for key in _keys(client, bucket) if key.startswith("raw/")}

        assert (again.exit_code, again.document["n_completed"]) == (0, 4)
        assert before <= after
        assert len(after) == 4


def _keys(client: Any, bucket: str) -> list[str]:
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket)
    return [row["Key"] for page in pages for row in page.get("Contents", ())]
