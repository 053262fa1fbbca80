"""The files that a sweep is given: prompts, and plans."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from socratic_bench.catalogue.prices import builtin_prices
from socratic_bench.documents.sweep_plan import ModelPlan
from socratic_bench.errors import UsageError
from socratic_bench.settings import MAX_TEXT_BYTES, flag_names
from socratic_bench.studies.sweep.plan_file import PlanFile, read_plan_file
from socratic_bench.studies.sweep.request import MAX_PROMPTS, Prompt, read_prompts
from tests.command import ROOT, environment, run
from tests.schemas import breaches


def prompts_file(folder: Path, content: str | bytes, name: str = "prompts.txt") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def mistakes(read, path: Path) -> list[str]:
    """What is wrong with the file, without its path, with settings called by their flags."""
    with pytest.raises(UsageError) as raised:
        read(path)
    raised.value.call_settings(flag_names(()))
    assert all(one.startswith(f"{path}: ") for one in raised.value.problems)
    return [one.removeprefix(f"{path}: ") for one in raised.value.problems]


def read_plan(path: Path) -> PlanFile:
    plan = read_plan_file(path)
    if plan.mistakes:
        raise UsageError(plan.mistakes)
    return plan


class TestPrompts:
    def test_text_has_an_opening_a_line(self, tmp_path):
        path = prompts_file(
            tmp_path, "\ufeff# Openings\r\nWhy?\r\n\n  What #1 is {it}?  \n\t# no more\nÉ\u2028?"
        )

        assert read_prompts(path) == (
            Prompt("Why?", 2),
            Prompt("What #1 is {it}?", 4),
            Prompt("É\u2028?", 6),
        )

    def test_jsonl_has_an_object_a_line(self, tmp_path):
        lines = [{"prompt": " Why?\nHow? ", "id": "why"}, {"prompt": "# What?"}]
        assert [breaches("prompts_line", line) for line in lines] == [[], []]
        content = "\n\n".join(json.dumps(line) for line in lines)

        for name in ("prompts.jsonl", "PROMPTS.JSONL"):
            assert read_prompts(str(prompts_file(tmp_path, content, name))) == (
                Prompt(" Why?\nHow? ", 1, "why"),
                Prompt("# What?", 3),
            )

    def test_every_mistake_in_text_is_told_with_its_line(self, tmp_path):
        content = b'Why?\n{"prompt": "What?"}\n\xff\nWhy?\n' + b"x" * (MAX_TEXT_BYTES + 1)

        assert mistakes(read_prompts, prompts_file(tmp_path, content)) == [
            "line 2: it looks like JSON: name the file so that it ends with .jsonl.",
            "line 3: it is not UTF-8 text (byte 1 of the line).",
            "line 4: the prompt is that of line 1: keep one; --repeats repeats each.",
            "line 5: the prompt has more than 1000000 bytes.",
        ]

    def test_every_mistake_in_jsonl_is_told_with_its_line(self, tmp_path):
        lines = """\
{"prompt": "Why?", "id": "a"}
{"promt": "Why?", "{x}": 1}
{"prompt": 3, "id": 3}
{"prompt": " ", "id": ""}
["Why?"]
{"prompt": "Wh
{"prompt": "What?", "id": "a"}
{"prompt": "Why?"}
{"prompt": "\\ud800"}
# a comment"""

        assert mistakes(read_prompts, prompts_file(tmp_path, lines, "p.jsonl")) == [
            "line 2: 'promt' is not known; did you mean prompt?",
            "line 2: '{x}' is not known; a line has prompt, and may have id.",
            "line 2: prompt is missing.",
            "line 3: prompt must be text.",
            "line 3: id must be text.",
            "line 4: id must have 1 to 100 characters that can be printed, not blanks alone.",
            'line 5: it must be an object, such as {"prompt": "Why is it so?"}.',
            "line 6: it is not JSON (unexpected end of data, column 15).",
            "line 7: the id 'a' is that of line 1: keep one.",
            "line 8: the prompt is that of line 1: keep one; --repeats repeats each.",
            "line 9: it is not JSON (no low surrogate in string, column 13).",
            "line 10: it is not JSON (unexpected character, expected a JSON value, column 1).",
        ]

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            ("\n# nothing\n", "there is no prompt in it: give one a line."),
            (
                "\n".join(map(str, range(MAX_PROMPTS + 1))),
                "it has 100001 prompts, but at most 100000 are taken.",
            ),
            ("\n" * 200_001, "it has 200001 lines, but at most 200000 are read."),
        ],
        ids=["none", "too many", "too many lines"],
    )
    def test_a_file_may_have_too_few_or_too_many(self, tmp_path, content, said):
        assert mistakes(read_prompts, prompts_file(tmp_path, content)) == [said]

    def test_a_file_that_cannot_be_read_is_a_mistake(self, tmp_path):
        assert mistakes(read_prompts, tmp_path / "none.txt") == [
            "it cannot be read: No such file or directory."
        ]
        assert mistakes(read_prompts, tmp_path) == ["it cannot be read: it is not a regular file."]


PLAN = """
scenarios = ["family:puzzlement", "career-change"]
repeats = 3
turns = 10
judge_model = "emulator.judge-v1:0"
temperatures = [0, 0.5]
pressure = "high"
no-stream = true
offline = false
output-dir = "runs"
system-prompt-file = "tutor.md"
prompts = "/p.jsonl"
request-metadata = ["team=a"]
fail_under = "overall_score=7"
student = "scripted"
target-rpm = [600, "b=3"]

[[models]]
id = "a"
region = "eu-west-1"
service_tier = "flex"
target_rpm = 60
target_tpm = 5000
prices.default = {input = 3, output = 15}

[[models]]
id = "b"
"""


def plan_file(folder: Path, content: str | bytes) -> Path:
    return prompts_file(folder, content, "plan.toml")


class TestPlan:
    def test_its_keys_are_flags_of_the_command(self, tmp_path):
        path = plan_file(tmp_path, PLAN)
        plan = read_plan(path)

        assert breaches_of_plan(PLAN) == []
        assert plan.flags == {
            "scenarios": ["family:puzzlement", "career-change"],
            "repeats": "3",
            "turns": "10",
            "judge-model": "emulator.judge-v1:0",
            "temperatures": ["0", "0.5"],
            "pressure": ["high"],
            "no-stream": True,
            "output-dir": "runs",
            "system-prompt-file": str(tmp_path / "tutor.md"),
            "prompts": "/p.jsonl",
            "request-metadata": ["team=a"],
            "fail-under": ["overall_score=7"],
            "student": "scripted",
            "target-rpm": ["600", "b=3", "a=60"],
            "target-tpm": ["a=5000"],
            "models": ["a", "b"],
        }

    def test_a_model_has_settings_of_its_own(self, tmp_path):
        plan = read_plan(plan_file(tmp_path, PLAN))
        a, b = plan.models
        prices = plan.prices()

        assert (a.id, a.region, a.service_tier) == ("a", "eu-west-1", "flex")
        assert (a.target_rpm, a.target_tpm, b) == (60, 5000, ModelPlan(id="b"))
        assert plan.by_model == {"a": {"region": "eu-west-1", "service_tier": "flex"}, "b": {}}
        assert prices is not None
        known = prices.of("a", "us-east-1")
        assert known is not None
        assert (known.tiers["default"].input, known.tiers["default"].output) == (3, 15)
        # Others keep their prices.
        assert prices.of("b") is None
        assert prices.of("amazon.nova-lite-v1:0") == builtin_prices().of("amazon.nova-lite-v1:0")

    def test_models_may_be_ids_alone(self, tmp_path):
        content = """models = ["a", {id = "b"}]"""
        hyphened = """models = ["a", {id = "b", service-tier = "flex"}]"""
        plan = read_plan(plan_file(tmp_path, content))

        assert breaches_of_plan(content) == []
        assert plan == PlanFile(
            name=str(tmp_path / "plan.toml"),
            flags={"models": ["a", "b"]},
            models=(ModelPlan(id="a"), ModelPlan(id="b")),
            ids=("a", "b"),
        )
        assert plan.prices() is None
        plan = read_plan(plan_file(tmp_path, hyphened))
        assert plan.by_model == {"a": {}, "b": {"service_tier": "flex"}}

    def test_every_mistake_is_told_with_its_place_and_what_to_do(self, tmp_path):
        content = """
kind = "plan"
scenarios = ["family:puzzle", "career-chang"]
repeats = 0
turns = "10"
seed = true
judge_model = 3
judge-model = "x"
temperatures = [0, 2, 0.5]
regions = [1]
no-stream = 1
pressure = ["none", "hard"]
service_tier = []
target-rpm = [0, "b=x"]
request-metadata = ["a"]
student = "robot"
prompts = ["a", "b"]
call_timeout = 1e9
modls = ["x"]
aws_secret_access_key = "x"
day = 2026-01-01
socratic = {}

[[models]]
id = "emulator socratic"
region = "mars"
service_tier = "fast"
tier = "flex"
target_rpm = "x"
target_tpm = -1
prices = {default = {input = 3}}
turns = 3
session_token = "x"

[[models]]
region = 3

[[models]]
id = "b"
target_rpm = 0

[[models]]
id = "b"
"""
        assert mistakes(read_plan, plan_file(tmp_path, content)) == [
            "judge-model: the same as judge_model: keep one.",
            "kind: must be 'sweep_plan', not 'plan'.",
            "scenarios: no family is called 'puzzle'; did you mean puzzlement?",
            "scenarios: no scenario is called 'career-chang'; did you mean career-change?",
            "repeats is 0, but must lie in 1..1000.",
            "turns: must be a whole number, not text.",
            "seed: must be a whole number, not true or false.",
            "judge_model: must be text in quotation marks, or a list of such, not a number.",
            "temperatures is 2.0, but must lie in 0..1.",
            "regions: must be text in quotation marks, or a list of such, not a number.",
            "no_stream: must be true or false, not a number.",
            "pressure is 'hard', but must be one of none, low, high.",
            "service_tier: the list is empty: name one at least.",
            "target_rpm takes N or MODEL=N, such as 60, not '0'.",
            "target_rpm takes N or MODEL=N, such as 60, not 'b=x'.",
            "request_metadata takes KEY=VALUE, such as team=physics, not 'a'.",
            "student is 'robot', but must be one of scripted, model.",
            "prompts: must be text in quotation marks, not a list.",
            "call_timeout is 1000000000.0, but must lie in 0.001..3600.",
            "modls: unknown key; did you mean models?",
            (
                "the key aws_secret_access_key is unknown. Credentials come from the "
                "environment or an AWS profile."
            ),
            "day: unknown key; see socratic-runner init.",
            "socratic: unknown key; see socratic-runner init.",
            "models, item 1, tier: unknown key; did you mean service_tier?",
            "models, item 1, turns: belongs above the first table.",
            (
                "models, item 1, the key session_token is unknown. Credentials come from the "
                "environment or an AWS profile."
            ),
            "models, item 1, service_tier is 'fast', but must be one of default, priority, flex.",
            "models, item 1, id holds a character that no model id has (' '): 'emulator socratic'.",
            "models, item 1: The region 'mars' is not of the form us-east-1.",
            "models, item 1, target_rpm: must be a whole number over 0, not text.",
            "models, item 1, target_tpm: must be a whole number over 0, not -1.",
            "models, item 1, prices.default.output is missing.",
            'models, item 2, id: missing; give the model as id = "ID".',
            "models, item 2, region: must be text in quotation marks, not a number.",
            "models, item 3, target_rpm: must be a whole number over 0, not 0.",
            (
                "models, item 4, id: 'b' is that of item 3: keep one. regions and service_tier, as "
                "lists, compare a model with itself."
            ),
        ]

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            ("models = []", "models: must be a list of ids, or tables, each begun with [[models]]"),
            ("models = 3", "models: must be a list of ids, or tables, each begun with [[models]]"),
            ("models = [3]", "models, item 1: must be an id or a table, not a number."),
            ("models = [' ']", "models, item 1, id: is empty."),
            (
                "target_rpm = 'a=3'\n[[models]]\nid = 'a'\ntarget_rpm = 4",
                "target_rpm: names 'a', which has its own: keep one.",
            ),
            (
                "scenarios = ['x'" + ", 'x'" * 1000 + "]",
                "scenarios: 1001 values are given; at most",
            ),
            ("models = ['x'" + ", 'x'" * 1000 + "]", "models: 1001 are given; at most 1000"),
            ("turns = ", "not valid TOML: "),
            (b"turns = 3 # \xff", "not UTF-8 text (line 1)."),
            (".".join("a" * 100) + " = 1", "a name of more than 20 parts (line 1)."),
            ("#" * MAX_TEXT_BYTES + "##", "it cannot be read: it has more than 1000000 bytes."),
        ],
    )
    def test_one_mistake_is_told(self, tmp_path, content, said):
        (mistake,) = mistakes(read_plan, plan_file(tmp_path, content))

        assert mistake.startswith(said)

    def test_the_schema_finds_what_is_of_the_wrong_form(self):
        for wrong in ("turns = 'x'", "models = []", "modls = ['x']", "models = [{region = 'x'}]"):
            assert breaches_of_plan(wrong) != []

    def test_the_plans_that_the_documents_show_can_be_read(self, tmp_path):
        page = (ROOT / "docs/sweep.md").read_text()
        plans = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)

        assert len(plans) == 2
        for content in plans:
            assert breaches_of_plan(content) == []
            assert read_plan(plan_file(tmp_path, content)).models


def breaches_of_plan(content: str) -> list[str]:
    return breaches("sweep_plan", tomllib.loads(content))


STEADY, DRIFTING = "emulator.socratic-v1:0", "emulator.drift-5-v1:0"
SAME = f"""
models = ["{STEADY}", "{DRIFTING}"]
scenarios = "career-change"
turns = 1
seed = 7
judge_model = "emulator.judge-v1:0"
"""
OWN = f"""
scenarios = "career-change"
turns = 9
seed = 7
service_tier = "flex"
offline = true

[[models]]
id = "{STEADY}"
region = "eu-west-1"
service_tier = "priority"
prices.priority = {{input = 1000, output = 0}}

[[models]]
id = "{DRIFTING}"
"""


class TestSweepOfAPlan:
    def test_its_cells_are_those_of_the_same_flags(self, tmp_path):
        plan = run("sweep", plan_file(tmp_path, SAME), "--offline", "-o", tmp_path / "a")
        flags = run(
            *("sweep", "--offline", "--models", STEADY, DRIFTING, "--scenarios", "career-change"),
            *("--turns", "1", "--seed", "7", "-o", tmp_path / "b"),
        )

        assert (plan.exit_code, flags.exit_code) == (0, 0)
        keys = [[cell["key"] for cell in one.document["runs"]] for one in (plan, flags)]
        assert keys[0] == keys[1]
        assert len({*keys[0]}) == 2

    def test_a_flag_counts_before_it_and_a_model_s_own_before_both(self, tmp_path):
        outcome = run("sweep", plan_file(tmp_path, OWN), "--turns", "1", "-o", tmp_path / "runs")
        paths = (tmp_path / "runs/curated/runs").glob("*.json")
        runs = {doc["model"]: doc for doc in (json.loads(path.read_bytes()) for path in paths)}
        told = {
            model: (doc["inputs"]["region"], doc["inputs"]["service_tier"], doc["n_turns"])
            for model, doc in runs.items()
        }

        assert outcome.exit_code == 0
        assert told == {
            STEADY: ("eu-west-1", "priority", 1),
            DRIFTING: ("us-east-1", "flex", 1),
        }
        tutor = runs[STEADY]["cost"]["tutor"]
        usage = runs[STEADY]["usage"]["tutor"]
        assert tutor["input_usd"] == pytest.approx(usage["input_tokens"] / 1000)
        assert tutor["output_usd"] == 0

    def test_its_mistakes_are_told_with_those_of_the_command_line(self, tmp_path):
        path = plan_file(tmp_path, OWN + "turns = 3")
        outcome = run("sweep", path, "--no-such-flag")

        assert outcome.exit_code == 2
        message = outcome.document["error"]["message"]
        assert "Unknown flag '--no-such-flag'" in message
        assert f"{path}: models, item 2, turns: belongs above the first table." in message

    def test_the_word_of_an_unknown_flag_is_no_plan(self, tmp_path):
        words = ("--no-such-flag", "X", plan_file(tmp_path, OWN), "--quite", "-o", str(tmp_path))
        outcome = run("sweep", *words, "--tuns", "3")

        assert outcome.exit_code == 2
        assert [line for line in outcome.stderr.splitlines() if line.startswith("  - ")] == [
            "  - Unknown flag '--no-such-flag'.",
            "  - Unknown flag '--quite'; did you mean --quiet?",
            "  - Unknown flag '--tuns'; did you mean --turns?",
        ]

    def test_a_plan_behind_a_misspelt_switch_is_read(self, tmp_path):
        outcome = run("sweep", "--quite", plan_file(tmp_path, OWN), "-o", str(tmp_path))

        assert outcome.exit_code == 2
        assert outcome.document["error"]["message"] == (
            "Unknown flag '--quite'; did you mean --quiet?"
        )

    @pytest.mark.parametrize("command", ["sweep", "doctor"])
    def test_all_its_mistakes_are_told_at_once(self, tmp_path, command):
        """Those of a key by itself, of the files it names, and of the runs that it asks for."""
        plan = 'models = ["no.model"]\nturns = 0\nprompts = "none.txt"\noutput_dir = 3'
        path = plan_file(tmp_path, plan)
        outcome = run(
            *(command, path),
            env=environment(AWS_REGION="us-east-1", BEDROCK_MODEL_IDS='["a.model"]'),
        )

        assert outcome.exit_code == 2
        told = outcome.stderr.splitlines()[1:5]
        assert [line.removeprefix("  - ").replace(str(tmp_path), "") for line in told] == [
            f"/{path.name}: turns is 0, but must lie in 1..500.",
            f"/{path.name}: output_dir: must be text in quotation marks, not a number.",
            "/none.txt: it cannot be read: No such file or directory.",
            "Model not found in BEDROCK_MODEL_IDS: 'no.model' (nearest: a.model).",
        ]
        assert "4 problems" in outcome.stderr

    def test_a_model_s_own_setting_and_several_for_all_contradict(self, tmp_path):
        tiers = ("--service-tier", "default", "flex")
        outcome = run("sweep", plan_file(tmp_path, OWN), *tiers, "-o", tmp_path / "runs")

        assert outcome.exit_code == 2
        assert outcome.document["error"]["message"] == (
            f"--service-tier names several values, but the plan gives '{STEADY}' one of its own: "
            "keep one of both."
        )
