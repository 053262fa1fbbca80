"""`validate`: files of one's own are checked alone, all of them and all their mistakes at once."""

import json

import pytest

from socratic_bench.benchmarks import load_benchmark
from socratic_bench.benchmarks.socratic.scenarios.loading import DATA
from socratic_bench.studies.sweep.preflight import validate
from tests.command import environment, run
from tests.terminal import run_in_terminal, width

MODEL = "anthropic.claude-3-5-sonnet-20241022-v1:0"
GOOD_PLAN = f"""
scenarios = ["career-change", "time-management"]
repeats = 2
prices = "prices.json"
target_rpm = ["a.judge.by.a.variable=60"]

[[models]]
id = "{MODEL}"
region = "eu-west-1"
target_rpm = 30
"""
BAD_PLAN = """
models = ["a", "b"]
scenarios = ["carer-change"]
turn = 4
repeats = 0
"""
# Each key by itself is as it should be.
CONTRARY_PLAN = """
models = ["a.model"]
prompts = "none.txt"
scenarios = ["career-change"]
max_cost_usd = 1.0
enable_thinking = true
max_tokens = 100
"""
# A key that is wrong by itself hides no other mistake.
EARLY_PLAN = """
models = ["a.model"]
turns = 0
prompts = "none.txt"
max_cost_usd = 1.0
judge_model = "a.judge"
target_rpm = ["a.judge=60", "a.modl=60"]
"""
PRICES = {"models": {"a": {"default": {"input": 1, "output": 2}}}}


def scenario(**changes):
    text = (DATA / "career-change.toml").read_text(encoding="utf-8")
    for name, value in changes.items():
        lines = text.splitlines()
        text = "\n".join(
            f'{name} = "{value}"' if one.startswith(f"{name} =") else one for one in lines
        )
    return text


FILES = {
    "good_plan.toml": GOOD_PLAN,
    "good.jsonl": '{"prompt": "Why?", "id": "why"}\n{"prompt": "How?"}\n',
    "good.txt": "Why?\n\n# a comment\nHow?\n",
    "prices.json": json.dumps(PRICES),
    "bad_plan.toml": BAD_PLAN,
    "contrary_plan.toml": CONTRARY_PLAN,
    "early_plan.toml": EARLY_PLAN,
    "bad.jsonl": '{"prompt": "Why?"}\n{"prompt": 3}\nnope\n',
    "bad_prices.json": '{"models": {"a": {"default": {"input": -1}}}}',
    "own.toml": scenario(id="mine", age="old", family="none"),
    "broken.toml": "models = [",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("files")
    for name, text in FILES.items():
        (found / name).write_text(text, encoding="utf-8")
    return found


@pytest.fixture(scope="module")
def outcome(folder):
    """All of them in one command, with neither account nor region."""
    return run(
        "validate", *(str(folder / name) for name in (*FILES, "gone.toml")), env=environment()
    )


@pytest.fixture(scope="module")
def found(outcome, folder):
    return {one["file"].removeprefix(f"{folder}/"): one for one in outcome.document["files"]}


def test_every_file_is_told_by_what_it_is(outcome, found):
    kinds = {name: one["file_kind"] for name, one in found.items()}

    assert outcome.exit_code == 2
    assert outcome.document["ok"] is False
    assert kinds == {
        "good_plan.toml": "plan",
        "good.jsonl": "prompts",
        "good.txt": "prompts",
        "prices.json": "prices",
        "bad_plan.toml": "plan",
        "contrary_plan.toml": "plan",
        "early_plan.toml": "plan",
        "bad.jsonl": "prompts",
        "bad_prices.json": "prices",
        "own.toml": "scenario",
        "broken.toml": "unknown",
        "gone.toml": "unknown",
    }
    assert {name for name, one in found.items() if one["ok"]} == {
        *("good_plan.toml", "good.jsonl", "good.txt", "prices.json")
    }
    told = [problem for one in found.values() for problem in one["problems"]]
    assert outcome.document["n_problems"] == len(told)
    assert [one for one in found.values() if one["ok"] == bool(one["problems"])] == []


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        (
            "bad_plan.toml",
            (
                "scenarios: no scenario is called",
                "turn: unknown key; did you mean turns?",
                "repeats is 0",
            ),
        ),
        (
            "contrary_plan.toml",
            (
                "none.txt: it cannot be read",
                "must be less than max_tokens (100)",
                "needs the price of",
            ),
        ),
        (
            "early_plan.toml",
            (
                "turns is 0",
                "none.txt: it cannot be read",
                "needs the price of models a.model",
                "needs the price of judge_model a.judge",
                "target_rpm names 'a.modl', which no run calls. They call a.judge, a.model.",
            ),
        ),
        ("bad.jsonl", ("line 2: prompt must be text.", "line 3: it is not JSON")),
        (
            "bad_prices.json",
            ("models['a'].default.input", "models['a'].default.output is missing"),
        ),
        ("own.toml", ("family: ", 'age: "old" is not one of')),
        ("broken.toml", ("not valid TOML",)),
        ("gone.toml", ("cannot be read: No such file",)),
    ],
)
def test_all_mistakes_of_a_file_are_told_with_their_places(found, name, parts):
    problems = found[name]["problems"]

    assert [part for part in parts if not any(part in problem for problem in problems)] == []
    assert len(problems) == len(parts)


def test_what_the_environment_has_to_say_is_no_mistake_of_a_plan(outcome):
    told = outcome.stdout.decode() + outcome.stderr

    assert not [word for word in ("BEDROCK_MODEL_IDS", "region", "output_dir") if word in told]


def test_files_without_a_mistake_are_exit_0(folder):
    names = [str(folder / name) for name in ("good_plan.toml", "good.txt", "prices.json")]
    outcome, lines = run_in_terminal("validate", *names, columns=40)

    assert outcome.exit_code == 0
    assert (outcome.document["ok"], outcome.document["n_problems"]) == (True, 0)
    assert lines[-2:] == ["3 files, 0 problems", ""]
    assert [line for line in lines if width(line) > 40 and " " in line.strip()] == []


def test_no_file_at_all_is_a_mistake():
    outcome = run("validate", env=environment())

    assert (outcome.exit_code, outcome.document["error"]["code"]) == (2, "usage")
    assert "validate --help" in outcome.stderr


def test_a_mistake_names_a_file_where_that_is_another_one(tmp_path):
    (tmp_path / "p.jsonl").write_text("no JSON\n")
    (tmp_path / "plan.toml").write_text(
        f'models = ["a"]\nprompts = "{tmp_path}/p.jsonl"\nturns = "many"\n'
    )
    paths = [str(tmp_path / name) for name in ("p.jsonl", "plan.toml")]
    of_prompts, of_plan = (
        one["problems"] for one in run("validate", *paths, env=environment()).document["files"]
    )

    assert [one.partition(":")[0] for one in of_prompts] == ["line 1"]
    assert sorted(one.partition(":")[0] for one in of_plan) == [paths[0], "turns"]


def test_a_plan_is_told_of_its_axes_by_its_own_keys(tmp_path):
    plan = tmp_path / "plan.toml"
    plan.write_text('models = ["a.model"]\n')
    outcome = run("validate", str(plan), env=environment())

    assert outcome.exit_code == 2
    assert outcome.document["files"][0]["problems"] == ["prompts or scenarios is required."]


@pytest.mark.parametrize(
    ("plan", "told"),
    [
        ('modls = ["a"]\nscenarios = "career-change"', "modls: unknown key; did you mean models?"),
        ('models = ["a"]\nscenarios = 3', "scenarios: must be text in quotation marks"),
        ("[[models]]\nid = 'a'\nprompts = 'p.txt'", "models, item 1, prompts: belongs above"),
        ("scenarios = 'career-change'\n[[models]]\nid = 3", "models, item 1, id: must be text"),
    ],
)
def test_what_is_given_wrongly_is_not_told_as_missing_besides(tmp_path, plan, told):
    (tmp_path / "plan.toml").write_text(plan)
    report = validate([str(tmp_path / "plan.toml")], load_benchmark("socratic"))

    (problem,) = report.files[0].problems
    assert problem.startswith(told)
