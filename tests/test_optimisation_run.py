"""Runs of the benchmark optimisation: scripted agents end in their true status; runs go on."""

import json
from functools import partial

import pytest

from socratic_bench.emulator import Emulator, Settings, parse_fault
from socratic_bench.emulator.models import agent
from tests import schemas
from tests.command import account, run
from tests.optimisation_emulated import known_tasks, prepare

fitting = partial(schemas.fitting, benchmark="optimisation")
SHOWN = ("stop", "patch", "correctness", "performance", "is_success", "is_overclaimed")
# What is true of each scripted agent, for an item whose human is 10 times as fast.
TRUTH = {
    "good": ("finished", "patched", "pass", "similar", True, False),
    "slow": ("finished", "patched", "pass", "worse", False, False),
    "noop": ("finished", "empty", None, None, False, True),
    "broken": ("finished", "patched", "fail", None, False, False),
    "edits-tests": ("finished", "patched", "tampered", None, False, False),
    "cheats": ("finished", "patched", "pass", "worse", False, True),
    "hangs": ("timeout", "empty", None, None, False, None),
}


def model(kind: str) -> str:
    return f"emulator.agent-{kind}-v1:0"


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    return prepare(tmp_path_factory.mktemp("task") / "task", "match", visible=False)


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    return prepare(tmp_path_factory.mktemp("task") / "task", "match", "render", visible=False)


@pytest.fixture(scope="module")
def store(two, tmp_path_factory):
    """The folder of two runs, one of which beats a human and one changes nothing."""
    folder = tmp_path_factory.mktemp("store")
    for kind in ("better", "noop"):
        play(two, folder, kind=kind)
    return folder


def play(task, folder, *words, kind="good", exit_code=0):
    outcome = run(
        *("run", "--offline", "--model", model(kind), "--output-dir", str(folder)),
        *(*task.words, *words),
    )
    assert outcome.exit_code == exit_code, outcome.stderr
    return fitting(json.loads(outcome.stdout)), outcome


@pytest.mark.parametrize("kind", TRUTH)
def test_each_scripted_agent_ends_in_its_true_status(task, tmp_path, kind):
    words = ("--time-budget-minutes", "0.02") if kind == "hangs" else ()
    document, _ = play(task, tmp_path, *words, kind=kind)

    (turn,) = document["turns"]
    assert tuple(turn[name] for name in SHOWN) == TRUTH[kind]
    assert document["success_rate"] == float(turn["is_success"])
    assert turn["whose_failure"] == (None if turn["is_success"] else "agent")
    steps = {step["step"]: step["n"] for step in document["funnel"]}
    assert steps["ran"] == 1
    assert steps["success"] == int(turn["is_success"])
    if kind == "good":
        assert document["speed_ratio"] == 1.0
        assert turn["diff"].startswith("diff --git a/textkit/match.py")
        assert turn["trajectory"][0].startswith("1. Step 1.\n   list_files()")
        assert document["usage"]["model"]["calls"] == turn["n_steps"] == 5
    elif kind == "cheats":
        assert "clock" in {sign["kind"] for sign in turn["evidence"]}
    else:
        assert document["failed_by"] == {turn["failed_by"]: 1}


def test_an_agent_beats_the_human(store):
    documents = [json.loads(path.read_text()) for path in store.glob("curated/runs/*.json")]
    (document,) = [document for document in documents if document["model"] == model("better")]

    performances = [turn["performance"] for turn in document["turns"]]
    assert performances == ["similar", "beats"]
    assert document["speed_ratio"] > 1.05


def test_the_files_of_an_item_have_the_names_of_the_original(store, two):
    folders = [path.parent for path in store.glob("raw/runs/*/items/*/journal.json")]
    files = [{path.name: path.read_text() for path in folder.iterdir()} for folder in folders]
    (patched, *_) = [of_item for of_item in files if of_item["model_patch.diff"]]

    assert len(files) == 4
    assert {*patched} == {
        *("journal.json", "prompt.json", "task.txt", "trajectory.json", "model_patch.diff"),
        *("diff_targets.json", "prediction.jsonl", "run_summary.json", "evaluation.json"),
    }
    statuses = [json.loads(of_item["journal.json"])["status"] for of_item in files]
    assert sorted(statuses) == ["error", "error", "success", "success"]
    prediction = json.loads(patched["prediction.jsonl"])
    assert prediction["instance_id"] in two.ids
    assert prediction["model_patch"] == patched["model_patch.diff"]
    assert json.loads(patched["diff_targets.json"])["ok"] is True


def test_expired_credentials_halt_the_run_and_it_goes_on(two, tmp_path):
    """The first agent makes five calls; then the token expires."""
    agent.learn(known_tasks())
    store = ("--output-dir", str(tmp_path), "--max-concurrency", "1")
    with Emulator(Settings(faults=(parse_fault("expired_token:after=7"),))) as emulator:
        outcome = run(
            *("run", "--model", model("good"), *two.words, *store),
            env=account(emulator.url, model("good")),
        )
    halted = json.loads(outcome.stdout)
    assert outcome.exit_code == 3
    assert [turn["item_id"] for turn in halted["turns"]] == two.ids[:1]
    assert halted["pending"] == [{"turn": 1, "item_id": two.ids[1]}]
    assert halted["failures_of"] == {"infrastructure": 1}
    assert halted["run_id"] in outcome.stderr
    note = tmp_path / "optimisation-work" / halted["run_id"] / "item-001" / "journal.json"
    assert json.loads(note.read_text())["stop"] == "credentials_expired"

    with Emulator(Settings(keep_bodies=True)) as emulator:
        outcome = run(
            *("resume", halted["run_id"], "--output-dir", str(tmp_path)),
            env=account(emulator.url, model("good")),
        )
        n_requests = len(emulator.requests)
    whole = fitting(json.loads(outcome.stdout))

    assert outcome.exit_code == 0
    assert n_requests == 3  # two of the second item's five were answered before
    assert [turn["performance"] for turn in whole["turns"]] == ["similar", "similar"]
    assert whole["usage"]["model"]["calls"] == 10


def test_a_set_up_that_fails_is_no_failure_of_the_agent(tmp_path):
    task = prepare(tmp_path / "task", "match", visible=False, setup_cmds=["exit 3"])
    document, _ = play(task, tmp_path)
    (turn,) = document["turns"]
    assert (turn["stop"], turn["is_evaluated"]) == ("setup_failed", False)
    assert document["failures_of"] == {"task": 1}
    assert document["success_rate"] is document["metrics"]["patched"] is None
    assert document["funnel"][0]["of_ended"]["value"] is None


def test_prepared_patches_are_measured_later(task, tmp_path):
    """Prepared without a certificate, by the words of the original; then evaluated with it."""
    words, store = list(task.words[2:]), ("--output-dir", str(tmp_path))
    at = words.index("--certificate")
    certificate, words = words[at : at + 2], words[1:at]
    model_words = ("--offline", "--model", model("good"))
    prepared = run(*("optimisation", "prepare", *words, "--max-workers", "1", *model_words, *store))
    assert prepared.exit_code == 0, prepared.stderr
    document = json.loads(prepared.stdout)
    assert document["success_rate"] is None
    assert document["metrics"]["patched"] == 1.0

    again = ("--resume", f"--run-id={document['run_id']}", "--max-workers=1")
    resumed = run("optimisation", "prepare", *words, *again, *store)
    assert resumed.exit_code == 0, resumed.stderr
    assert json.loads(resumed.stdout)["run_id"] == document["run_id"]

    evaluated = run("optimisation", "evaluate", document["run_id"], *certificate, *store)
    assert evaluated.exit_code == 0, evaluated.stderr
    assert json.loads(evaluated.stdout)["success_rate"] == 1.0
    assert "changed by another program" not in evaluated.stderr


def test_a_dry_run_runs_nothing(task, tmp_path):
    outcome = run(
        *("run", "--offline", "--dry-run", "--model", model("good"), *task.words),
        *("--work-dir", str(tmp_path)),
    )
    estimate = json.loads(outcome.stdout)

    assert outcome.exit_code == 0, outcome.stderr
    assert estimate["kind"] == "dry_run"
    assert not [*tmp_path.glob("run-*")]


def test_all_mistakes_are_named_before_anything_is_paid(task, tmp_path):
    plan = json.loads((task.fixture.folder / "plan.json").read_text())
    plan["items"] += [{"item_id": "a", "human": "0" * 40}, {"item_id": "b", "human": "f" * 40}]
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    bench = tmp_path / "bench.yaml"
    bench.write_text("agents: {default: mine, mine: {cli: 'no-such-agent {task_file}'}}")
    place = ("--work-dir", str(tmp_path / "work"))
    words = [*task.words, *place]
    words[words.index("--from-plan") + 1] = str(tmp_path / "plan.json")
    outcome = run("run", "--offline", "--model", model("good"), *words)
    other = run(
        *("run", "--offline", "--model", model("good")),
        *(*task.words, *place, "--bench-cfg", str(bench)),
    )

    message = json.loads(outcome.stdout)["error"]["message"]
    assert outcome.exit_code == other.exit_code == 2
    assert "a: there is no commit" in message
    assert "b: there is no commit" in message
    assert "'no-such-agent' is no program" in json.loads(other.stdout)["error"]["message"]


def test_a_plan_without_items_or_with_ids_that_clash_is_refused(two, tmp_path):
    plan = json.loads((two.fixture.folder / "plan.json").read_text())
    same = [{**item, "item_id": "same"} for item in plan["items"]]
    outside = [{**plan["items"][0], "item_id": "../x"}]
    spec = json.loads(two.fixture.task.read_text())
    spec["items"].popitem()
    (two.fixture.folder / "less.yaml").write_text(json.dumps(spec))
    cases = [
        (two.fixture.task, [], "The plan has no items."),
        (two.fixture.task, same, "The item 'same' is there 2 times."),
        (two.fixture.task, outside, "The item_id '../x' must be"),
        (two.fixture.folder / "less.yaml", plan["items"], f"{two.ids[1]} has no workloads"),
    ]
    for task_file, items, problem in cases:
        (tmp_path / "plan.json").write_text(json.dumps({**plan, "items": items}))
        outcome = run(
            *("optimisation", "validate", str(task_file), "--work-dir", str(tmp_path / "work")),
            *("--from-plan", str(tmp_path / "plan.json")),
        )
        assert outcome.exit_code == 2, outcome.stderr
        assert problem in json.loads(outcome.stdout)["error"]["message"]


def test_a_report_and_a_comparison_read_such_runs(store, tmp_path):
    compared = run("compare", str(store))
    reported = run("report", str(store), "--markdown", str(tmp_path / "report.md"))

    assert compared.exit_code == reported.exit_code == 0, compared.stderr + reported.stderr
    (pair,) = json.loads(compared.stdout)["pairs"]
    assert abs(pair["differences"]["success_rate"]["mean"]) == 1.0
    text = (tmp_path / "report.md").read_text()
    for title in ("Who made what faster", "From plan to success", "What items failed by"):
        assert f"## {title}" in text
    assert "diff --git a/textkit/match.py" in text
