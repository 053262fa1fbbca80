"""The dashboard's jobs and its form, without a browser: what tests/browser/test_dashboard.py has no
time for."""

import json
import os
import sys
import time
import tomllib
from pathlib import Path

import msgspec
import pytest

from socratic_bench.dashboard.jobs import Jobs, store_flags
from socratic_bench.dashboard.plan_form import form_of_plan, plan_of_form, to_toml
from socratic_bench.dashboard.workspace import Command, Workspace
from socratic_bench.documents.calibration import Label
from socratic_bench.errors import ArtifactError
from socratic_bench.storage.stores import store_at
from socratic_bench.studies.calibrate.session import labels_with
from socratic_bench.studies.places import begun_sweeps
from tests.command import run

NOTING = "import sys; open(sys.argv[1], 'a').write('started\\n')"
PLAN = 'models = ["a"]\nseed = 1\n'


def jobs_of(place, marks):
    program = (sys.executable, "-c", NOTING, str(marks))
    return Jobs(store_at(str(place), lambda: "us-east-1"), str(place), place / "files", program)


def wait_for_end(jobs, job_id):
    for _ in range(500):
        jobs.advance()
        if (job := jobs.get(job_id)).state == "ended":
            return job
        time.sleep(0.02)
    raise AssertionError(job)


def test_of_two_dashboards_one_starts_what_waits(tmp_path):
    first, second = (jobs_of(tmp_path / "store", tmp_path / "marks") for _ in range(2))
    waiting = [first.add(name, PLAN) for name in ("one", "two")]
    for jobs in (second, first, second, first):
        jobs.advance()

    assert (first.leads_queue, second.leads_queue) == (False, True)
    assert not first.start(waiting[0])
    ended = [wait_for_end(second, job.id) for job in waiting]
    assert [job.exit_code for job in ended] == [0, 0]
    assert (tmp_path / "marks").read_text() == "started\n" * 2
    second.close()
    first.add("three", PLAN)
    first.advance()
    assert first.leads_queue
    wait_for_end(first, first.all()[-1].id)
    first.close()


def test_a_command_that_has_ended_while_no_dashboard_ran_is_noted(tmp_path):
    first = jobs_of(tmp_path / "store", tmp_path / "marks")
    job = first.add("one", PLAN)
    first.start(job)
    first._processes[job.id].wait()
    second = jobs_of(tmp_path / "store", tmp_path / "marks")

    assert wait_for_end(second, job.id).exit_code is None


def test_a_job_of_another_host_runs_until_somebody_says_that_it_has_ended(tmp_path):
    jobs = jobs_of(tmp_path / "store", tmp_path / "marks")
    job = jobs.add("one", PLAN)
    key = f"dashboard/jobs/{job.id}.json"
    store = store_at(str(tmp_path / "store"), lambda: "")
    stored = {**json.loads(store.get(key)), "state": "running", "host": "elsewhere", "pid": 1}
    store.put(key, json.dumps(stored).encode())
    jobs.advance()

    assert jobs.get(job.id).state == "running"
    jobs.forget(jobs.get(job.id))
    assert jobs.get(job.id).state == "ended"


def test_a_second_click_starts_nothing(tmp_path):
    jobs = jobs_of(tmp_path / "store", tmp_path / "marks")
    job = jobs.add("one", PLAN)
    assert jobs.start(jobs.get(job.id))
    assert not jobs.start(jobs.get(job.id))
    wait_for_end(jobs, job.id)
    assert (tmp_path / "marks").read_text() == "started\n"


def test_a_job_that_is_just_being_started_has_not_ended(tmp_path, monkeypatch):
    jobs, other = (jobs_of(tmp_path / "store", tmp_path / "marks") for _ in range(2))
    job = jobs.add("one", PLAN)
    begin = jobs._begin

    def begin_slowly(claimed):
        other.advance()
        jobs.advance()
        return begin(claimed)

    monkeypatch.setattr(jobs, "_begin", begin_slowly)
    assert jobs.start(job)
    assert jobs.get(job.id).pid
    assert wait_for_end(jobs, job.id).exit_code == 0


def test_the_dashboard_that_started_a_command_notes_its_exit_code(tmp_path):
    first, second = (jobs_of(tmp_path / "store", tmp_path / "marks") for _ in range(2))
    job = first.add("one", PLAN)
    first.start(job)
    os.waitid(os.P_PID, first.get(job.id).pid, os.WEXITED | os.WNOWAIT)
    second.advance()

    assert wait_for_end(first, job.id).exit_code == 0


def test_a_job_whose_claimer_has_vanished_ends(tmp_path, monkeypatch):
    jobs = jobs_of(tmp_path / "store", tmp_path / "marks")
    job = jobs.add("one", PLAN)
    monkeypatch.setattr(jobs, "_begin", lambda _: None.vanished)
    with pytest.raises(AttributeError):
        jobs.start(job)
    jobs.advance()
    assert jobs.get(job.id).state == "running"
    monkeypatch.setattr("socratic_bench.dashboard.jobs.STARTING_S", 0.0)
    jobs.advance()
    assert jobs.get(job.id).state == "ended"


def test_a_job_that_cannot_be_started_goes_on_waiting(tmp_path):
    jobs = jobs_of(tmp_path / "store", tmp_path / "marks")
    job = jobs.add("one", PLAN)
    (tmp_path / "store" / "files").mkdir()
    (tmp_path / "store" / "files" / "commands").write_text("in the way")
    with pytest.raises(ArtifactError, match="one cannot be started: File exists"):
        jobs.start(job)
    assert jobs.get(job.id) == job


def test_a_key_that_no_plan_has_is_not_dropped():
    plan = {"benchmark": "socratic", "max-cost-usdd": 1, "models": ["a"], "resume": True}
    assert plan_of_form(form_of_plan(plan), plan) == {
        "benchmark": "socratic",
        "models": ["a"],
        "max-cost-usdd": 1,
    }


def test_a_value_after_a_name_may_have_commas():
    plan = {
        "benchmark": "golden",
        "column": ["prompt=Question, long", "id=No"],
        "endpoint": "local=http://x/v1,KEY",
    }
    assert plan_of_form(form_of_plan(plan), plan) == plan


def test_labels_of_raters_on_two_machines_are_all_kept():
    def line(labeller, score):
        label = Label(reply="r", labeller=labeller, scores={"socratic": score})
        return msgspec.json.encode(label) + b"\n"

    stored = line("ann", 3.0) + line("ben", 4.0)
    own = line("ann", 1.0) + line("ben", 7.0) + line("ben", 8.0)
    merged = labels_with("ben", own, stored)
    assert sorted(merged.splitlines(True)) == sorted([line("ann", 3.0), *own.splitlines(True)[1:]])
    assert labels_with("ben", own, None) == line("ben", 7.0) + line("ben", 8.0)


def test_a_command_names_the_store(tmp_path):
    assert store_flags("s3://bucket/a/b") == ["--s3-bucket", "bucket", "--s3-prefix", "a/b"]
    assert store_flags("runs") == ["--output-dir", "runs"]


@pytest.mark.parametrize("text", ['"quoted" \\ back', "\x7f\x00\n\u2028", "'''", "été"])
def test_a_plan_survives_its_file_and_its_form(text):
    plan = {
        "benchmark": "socratic",
        "models": [{"id": "a", "region": "us-east-1", "prices": {"default": {"input": 1.5}}}],
        "scenarios": ["ai-ethics", "career-change"],
        "temperatures": [0, 0.5],
        "turns": 3,
        "offline": True,
        "scenario_file": text,
        "endpoints": {"x.y": {"base_url": text}},
    }
    assert tomllib.loads(to_toml(plan)) == plan
    form = form_of_plan(plan)
    form["scenario_file"] = "file.toml"
    assert plan_of_form(form, plan) == {**plan, "scenario_file": "file.toml"}


def files_in(place):
    """All files but those of the dashboard."""
    files = (path for path in Path(place).rglob("*") if path.is_file())
    return [path for path in files if "dashboard" not in path.relative_to(place).parts]


@pytest.fixture
def workspace(tmp_path):
    place = str(tmp_path / "runs")
    for seed in ("1", "2"):
        words = ("--models", "emulator.socratic-v1:0", "--scenarios", "ai-ethics", "--turns", "2")
        done = run("sweep", "--offline", *words, "--seed", seed, "--output-dir", place)
        assert done.exit_code == 0
    command = Command(program=(), read_plan=lambda _: None, call=str, region=lambda: "")
    return Workspace(place, command)


def test_a_deleted_sweep_leaves_nothing_and_its_neighbour_whole(workspace):
    before = files_in(workspace.place)
    deleted, kept = (sweep.sweep_id for sweep in begun_sweeps(workspace.store))
    workspace.rename(deleted, "unwanted")
    assert workspace.names() == {deleted: "unwanted"}
    workspace.delete(deleted)

    assert [sweep.sweep_id for sweep in begun_sweeps(workspace.store)] == [kept]
    assert len(files_in(workspace.place)) == len(before) / 2
    listed = run("list", workspace.place, "--json").document
    assert [sweep["sweep_id"] for sweep in listed["sweeps"]] == [kept]
    assert listed["runs"] == []
    assert workspace.names() == {}
