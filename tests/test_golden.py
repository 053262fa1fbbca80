"""The benchmark `golden`: known truths come out, formats are read, rules and juries decide."""

import json
import threading
from base64 import b64encode
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from msgspec.structs import replace

from socratic_bench.benchmarks.golden.checks import Check, apply
from socratic_bench.benchmarks.golden.optimising import Optimiser
from socratic_bench.benchmarks.golden.rows import read_images, read_rows
from socratic_bench.benchmarks.golden.settings import Settings
from socratic_bench.emulator import Emulator, parse_fault
from socratic_bench.emulator import Settings as EmulatorSettings
from socratic_bench.errors import ModelError, UsageError
from socratic_bench.models.bedrock.request import estimated_tokens
from socratic_bench.studies.calibrate.session import LabellingRequest, prepare_labelling
from socratic_bench.studies.report import study as report_study
from socratic_bench.studies.report.leaderboard import latency
from socratic_bench.studies.sweep.profiles import read_profiles
from tests.command import ROOT, account, begin, run
from tests.fakes import wait_until
from tests.golden_runs import (
    DATA,
    JUDGE,
    KINDS,
    data_set,
    fitting,
    golden,
    model,
    played,
    row,
    served,
    shipped,
)

# By kind of answer: the rate of passing, of refusals, and what each item fails by.
TRUTH = {
    "right": (1, 0, set()),
    "half-right": (0, 0, {"completeness"}),
    "wrong": (0, 0, {"correctness", "completeness"}),
    "refuses": (0, 1, set()),
    "off-format": (0, 0, {"format", "following_instructions"}),
}


def jurors(*ids):
    return [word for juror in ids for word in ("--judge-model", juror)]


def results(document):
    return {turn["item_id"]: turn["result"] for turn in document["turns"]}


# --- models of known truth ---


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_of_known_truth_comes_out_at_its_values(kind):
    document = played(kind=kind)
    success, refused, faults = TRUTH[kind]

    assert document["metrics"]["success_rate"] == success
    assert document["metrics"]["success_rate_of_all"] == success
    assert document["metrics"]["refused"] == refused
    assert all(faults <= {*turn["failed_by"]} for turn in document["turns"])
    assert document["success"]["n"] == document["success_of_all"]["n_items"] == 24
    assert [task["n"] for task in document["tasks"]] == [4] * 6
    assert document["unprocessed"] == []


def test_each_score_and_criterion_has_its_quotation():
    document = played(kind="half-right")
    bridge = next(turn for turn in document["turns"] if turn["item_id"] == "qa-bridge")

    assert bridge["events"] == {"criterion_1": bridge["question"]}
    assert {*bridge["quotes"].values()} == {bridge["question"]}
    assert bridge["unquoted"] == []
    assert bridge["criteria_met"] == 0.5


# --- what a data set may look like ---

EXAMPLES = ROOT / "tests" / "data" / "eval360"  # the files that 360-Eval's page prints


class Picture(BaseHTTPRequestHandler):
    def do_GET(self):
        body = (DATA / "bars.png").read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def test_scenarios_of_360_eval_s_page_run_as_they_are(tmp_path):
    path = tmp_path / "units.json"
    with ThreadingHTTPServer(("127.0.0.1", 0), Picture) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        host = f"http://127.0.0.1:{server.server_port}"
        text = (EXAMPLES / "units.json").read_text()
        path.write_text(text.replace("https://example.com", host))
        words = ("--dataset", str(path), "--image-host", "127.0.0.1")
        document = played(*words, kind="wrong")
        server.shutdown()
    tasks = [task["task_type"] for task in document["tasks"]]
    first = played("--dataset", str(EXAMPLES / "my_first_benchmark.jsonl"), kind="wrong")

    assert tasks == ["Summarization", "Image Description", "Creative Writing"]
    assert document["items"]["answered"] == 3
    assert [turn["item_id"] for turn in document["turns"]] == ["1", "2", "3"]
    own = {"professional_tone", "empathetic_language", "brand_voice_consistency"}
    assert own | {"solution_oriented"} < {*document["turns"][2]["scores"]}
    assert [task["task_type"] for task in first["tasks"]] == ["Question-Answering", "Summarization"]


def test_tables_of_360_eval_s_page_run_by_their_columns():
    columns = (
        *("--column", "prompt=customer_query"),
        *("--column", "golden_answer=expected_response_type"),
    )
    support = played("--dataset", str(EXAMPLES / "support.csv"), *columns, kind="wrong")
    sample = played("--dataset", str(EXAMPLES / "sample.csv"), kind="wrong")

    assert (support["items"]["answered"], sample["items"]["answered"]) == (5, 2)
    assert support["turns"][1]["golden_answer"].startswith("State specific hours, timezone")


def test_profiles_of_360_eval_s_page_are_read_as_they_are():
    """Their models have other regions and tiers than each other: each is run with its own."""
    plan = read_profiles(
        str(EXAMPLES / "models_profiles.jsonl"), str(EXAMPLES / "judge_profiles.jsonl")
    )
    limited = read_profiles(str(EXAMPLES / "rate_limited.jsonl"))

    assert plan.flags["models"] == [NOVA, "openai/gpt-4o", "gemini/gemini-2.0-flash-exp"]
    west = {"region": "us-west-2"}
    tiers = ("default", "priority", "flex")
    assert plan.ways[NOVA] == [{**west, "service_tier": tier} for tier in tiers]
    assert plan.ways["openai/gpt-4o"] == [{**west, "service_tier": "default"}]
    assert plan.prices().of("openai/gpt-4o").tiers["default"].output == 10
    assert plan.prices().of("gemini/gemini-2.0-flash-exp") is None  # 0 is no price
    assert limited.flags == {"models": [NOVA], "target-rpm": [f"{NOVA}=60"]}
    assert limited.by_model[NOVA] == {"region": "us-west-2"}


def test_csv_is_read_by_the_columns_that_are_named(tmp_path):
    path = tmp_path / "support.csv"
    path.write_text(
        "customer_query,expected_response_type,checks\r\n"
        '"How do I return\na product?","Within 30 days.",'
        '"[{""type"": ""contains"", ""value"": ""30""}]"\r\n'
        "What are your hours?,Nine to five.,\r\n"
    )
    columns = (
        *("--column", "prompt=customer_query"),
        *("--column", "golden_answer=expected_response_type"),
    )
    document = played("--dataset", str(path), *columns, "--task-type", "Support", kind="wrong")

    assert [turn["golden_answer"] for turn in document["turns"]] == [
        "Within 30 days.",
        "Nine to five.",
    ]
    assert [turn["checks_met"] for turn in document["turns"]] == [0, None]
    assert {turn["task_type"] for turn in document["turns"]} == {"Support"}


def test_a_picture_in_a_cell_may_be_longer_than_csv_s_own_limit(tmp_path):
    picture = b64encode((DATA / "bars.png").read_bytes() + bytes(150_000)).decode()
    path = tmp_path / "pictures.csv"
    path.write_text(f"prompt,image\nWhat is shown?,{picture}\n")
    document = played("--dataset", str(path), "--dry-run")

    assert document["first_rows"][0]["has_image"]


def test_a_cell_of_csv_may_hold_dimensions_as_json(tmp_path):
    path = tmp_path / "items.csv"
    path.write_text(
        'prompt,golden_answer,dimensions\np1,g,"[{""name"": ""tone"", ""low"": 0, ""high"": 10}]"\n'
    )
    (read,) = read_rows(Settings(model="m", dataset=str(path))).rows

    assert [(own.name, own.low, own.high) for own in read.dimensions] == [("tone", 0, 10)]


def test_an_answer_for_the_emulator_may_be_json_itself(tmp_path):
    answers = ['{"city": "Paris"}', '{"wrong": "Lyon"}', "[1, 2]", "{not JSON"]
    rows = [row(f"r{n}", emulator_answer=answer) for n, answer in enumerate(answers)]
    path = data_set(tmp_path / "items.jsonl", *rows)
    read = [one.emulator_answer for one in read_rows(Settings(model="m", dataset=path)).rows]

    assert read == [{"": answers[0]}, {"wrong": "Lyon"}, {"": answers[2]}, {"": answers[3]}]


def test_dimensions_of_any_script_have_names_of_their_own(tmp_path):
    path = data_set(tmp_path / "items.jsonl", row(dimensions="Verständlichkeit, 温度, 湿度, тон"))
    (read,) = read_rows(Settings(model="m", dataset=path)).rows
    names = [dimension.name for dimension in read.dimensions]
    document = played("--dataset", path)

    assert names[0] == "verstandlichkeit"
    assert len({*names}) == 4
    assert all(name.isascii() and name.isidentifier() for name in names)
    assert "温度" in next(iter(read.dimensions[1].levels.values()))
    assert {*names} < {*document["turns"][0]["scores"]}


@pytest.mark.parametrize(("number", "text"), [(42, "42"), (0, "0"), (-2.5, "-2.5")])
def test_a_number_as_golden_answer_is_its_text(tmp_path, number, text):
    path = data_set(tmp_path / "items.jsonl", {"prompt": "How many?", "golden_answer": number})
    (read,) = read_rows(Settings(model="m", dataset=path)).rows

    assert read.golden_answer == text


def test_images_lie_in_a_data_set_s_folder_or_beside_its_file(tmp_path):
    path = data_set(tmp_path / "items.jsonl", row(image="bars.png"))
    (tmp_path / "bars.png").write_bytes((DATA / "bars.png").read_bytes())
    for dataset in (path, str(tmp_path)):
        settings = Settings(model=model("right"), dataset=dataset, latency_only=True)
        images = read_images(settings, read_rows(settings).rows)

        assert images["capital"].format == "png"


def test_a_dry_run_shows_columns_and_the_first_rows_and_calls_nothing(tmp_path):
    path = data_set(
        tmp_path / "items.jsonl", *({"q": f"Question {n}?", "a": "Yes."} for n in range(5))
    )
    words = ("--dataset", path, "--column", "prompt=q", "--column", "golden_answer=a", "--dry-run")
    document = played(*words)

    assert document["columns"] == ["q", "a"]
    assert [row["prompt"] for row in document["first_rows"]] == [f"Question {n}?" for n in range(3)]
    assert document["usage"]["model"]["calls"] == document["usage"]["judge"]["calls"] == 5


def test_given_responses_of_a_bedrock_data_set_are_judged_without_a_call(tmp_path):
    rows = [
        {
            "prompt": "What is the capital of France?",
            "referenceResponse": "Paris is the capital of France.",
            "category": "Capitals",
            "modelResponses": [
                {"response": answer, "modelIdentifier": model("right")},
                {"response": "Lyon", "modelIdentifier": "my-model"},
            ],
        }
        for answer in ("Paris is the capital of France.", "Nobody knows that.")
    ]
    document, requests = served("--dataset", data_set(tmp_path / "given.jsonl", *rows))

    assert results(document) == {"1": "passed", "2": "failed"}
    assert {request.role for request in requests} == {"judge"}
    assert document["usage"]["model"]["calls"] == 0

    for answer in rows:
        answer["modelResponses"][1]["modelIdentifier"] = "our tutor/2.1 (beta)"
    words = ("--dataset", data_set(tmp_path / "named.jsonl", *rows), "--max-cost-usd", "1")
    words = (*words, "--offline", "--benchmark", "golden", "--model", "our tutor/2.1 (beta)")
    named = fitting(json.loads(run(*words).stdout))
    assert (named["status"], named["success"]["passed"]) == ("completed", 0)
    assert named["cost"]["total"]["total_usd"] > 0

    rows[1]["modelResponses"] = rows[1]["modelResponses"][1:]
    refused = golden("--dataset", data_set(tmp_path / "lacking.jsonl", *rows))
    assert refused.exit_code == 2
    assert "no response of --model for 1 item, such as 2: name one of" in refused.stderr


NOVA, LITE = "us.amazon.nova-pro-v1:0", "us.amazon.nova-lite-v1:0"
PROFILE = json.loads((EXAMPLES / "rate_limited.jsonl").read_text())


def test_profiles_of_360_eval_are_a_sweep_by_model_region_tier_and_price(tmp_path):
    tiers = [{**PROFILE, "service_tier": t, "target_rpm": 600.0} for t in ("default", "flex")]
    east = {**PROFILE, "model_id": f"bedrock/{LITE}", "region": "us-east-1", "target_rpm": None}
    models = data_set(tmp_path / "models_profiles.jsonl", *tiers, east)
    judges, items = str(EXAMPLES / "judge_profiles.jsonl"), str(EXAMPLES / "sample.csv")
    words = (models, "--judge-profiles", judges, "--dataset", items, "--benchmark", "golden")
    with Emulator() as emulator:
        env = account(emulator.url, NOVA, LITE)
        outcome = run(
            "sweep", *words, "--seed", "1", "--output-dir", str(tmp_path / "out"), env=env
        )
        assert outcome.exit_code == 0, outcome.stderr
        (judge,) = {request.model_id for request in emulator.requests if request.role == "judge"}
    ways = [run["axes"] for run in outcome.document["runs"]]

    assert judge == "us.amazon.nova-premier-v1:0"
    assert sorted((way["model"], way["region"], way["service_tier"]) for way in ways) == [
        (LITE, "us-east-1", "default"),
        (NOVA, "us-west-2", "default"),
        (NOVA, "us-west-2", "flex"),
    ]
    rows = report_study.read_rows([str(tmp_path / "out")], str)
    quick = [
        replace(run, turns=tuple(replace(turn, overhead_ms=0.0) for turn in run.turns))
        for run in rows.runs
    ]
    table = latency(report_study.Study(replace(rows, runs=quick))).figures[0]
    assert sorted(row[1:3] for row in table.rows) == [
        ["us-east-1", "default"],
        ["us-west-2", "default"],
        ["us-west-2", "flex"],
    ]
    prices = read_profiles(models, judges).prices()
    assert prices.of(NOVA, "us-west-2").tiers["flex"].output == 3.2
    assert prices.of("us.amazon.nova-premier-v1:0").tiers["default"].input == 2.5


def test_mistakes_in_profiles_are_told_by_line_and_field(tmp_path):
    rows = [
        {**PROFILE, "region": "Mars"},
        {**PROFILE, "input_token_cost": -1},
        {**PROFILE, "rpm": 3},
        {**PROFILE, "model_id": "bedrock/other"},
        PROFILE,
        PROFILE,
    ]
    with pytest.raises(UsageError) as caught:
        read_profiles(data_set(tmp_path / "models.jsonl", *rows))
    problems = caught.value.problems

    for text in ("line 1, region:", "line 2, input_token_cost:", "line 3: ", "is there twice"):
        assert any(text in problem for problem in problems), text


MISTAKES = {
    "prompt: missing or empty.": {"prompt": " "},
    "temperature: Expected `float` <= 1.0.": {"temperature": 3},
    "expected_output_tokens: Expected `int`, got `str`.": {"expected_output_tokens": "many"},
    "criteria[0].text: Expected `str` of length >= 1.": {"criteria": [{"text": ""}]},
    "criteria: none has a positive weight.": {"criteria": [{"text": "No.", "weight": -1}]},
    "checks[0].type: Invalid enum value 'like'.": {"checks": [{"type": "like", "value": "x"}]},
    "checks[1]: value must be a number.": {
        "checks": [{"type": "exact", "value": "x"}, {"type": "number", "value": "x"}]
    },
    "checks[0]: value is not a regular expression": {"checks": [{"type": "regex", "value": "("}]},
    "checks[0]: value is not a valid JSON Schema": {
        "checks": [{"type": "json_schema", "value": {"type": "text"}}]
    },
    "checks[0]: value is nested too deep.": {
        "checks": [{"type": "json_schema", "value": json.loads('{"not":' * 200 + "{}" + "}" * 200)}]
    },
    "criteria[0]: Object contains unknown field `wieght`.": {
        "criteria": [{"text": "It errs.", "wieght": -1}, {"text": "It is short."}]
    },
    "dimensions[0]: Object contains unknown field `range`.": {
        "dimensions": [{"name": "tone", "range": [0, 10]}]
    },
    "checks[0]: Object contains unknown field `tolerence`.": {
        "checks": [{"type": "number", "value": 3, "tolerence": 0.5}]
    },
    "dimensions: 'Format' is a dimension of every item": {"dimensions": "tone, Format"},
    "dimensions: tone: the range 5 to 1 is empty.": {"dimensions": "tone:5-1"},
    "golden_anwser: unknown; did you mean golden_answer?": {"golden_anwser": "x"},
}


def test_every_mistake_is_told_by_line_and_field_before_the_first_call(tmp_path):
    rows = [row(f"r{n}", **fields) for n, fields in enumerate(MISTAKES.values())]
    path = data_set(tmp_path / "wrong.jsonl", *rows, row("r0"))
    with pytest.raises(UsageError) as caught:
        read_rows(Settings(model="m", dataset=path, columns=(("image", "no"), ("picture", "x"))))
    problems = caught.value.problems

    for number, mistake in enumerate(MISTAKES, start=1):
        assert any(f"line {number}, {mistake}" in problem for problem in problems), mistake
    assert any("2 rows have the id 'r0'" in problem for problem in problems)
    assert sum("column" in problem for problem in problems) == 2
    _, requests = served("--dataset", path, exit_code=2)
    assert requests == []


# --- checks ---

CHECKS = [
    (Check(type="exact", value="Paris"), " paris\n", True),
    (Check(type="exact", value="Paris"), "Paris, France", False),
    (Check(type="contains", value="Paris"), "It is PARIS.", True),
    (Check(type="not_contains", value="Lyon"), "It is Paris.", True),
    (Check(type="number", value=1250), "At first 3, in the end 1,250.00 euros", True),
    (Check(type="number", value=1250), "1,250, that is 3 more", False),
    (Check(type="number", value=3.14, tolerance=0.01), "3.1415", True),
    (Check(type="number", value=-2), "It is -2", True),
    (Check(type="number", value=5), "five", False),
    (Check(type="number", value=20), "It is 10-20", True),
    (Check(type="number", value=2024), "06-2024", True),
    (Check(type="number", value=1250), "1 250", True),
    (Check(type="number", value=-1250.5), "(-1\u202f250.5)", True),
    (Check(type="number", value=250), "of 2024 250", True),
    (Check(type="number", value=250), "room 1 250", True),
    (Check(type="number", value=250), "1,250", False),
    (Check(type="number", value=-3), "x = \u22123", True),
    (Check(type="number", value=-0.5), "-.5", True),
    (Check(type="regex", value=r"^\d{4}-\d\d$"), "2024-06", True),
    (Check(type="regex", value=r"(a+)+$"), "a" * 60 + "b", False),
    (Check(type="json_schema", value={"required": ["a"]}), '```json\n{"a": 1}\n```', True),
    (Check(type="json_schema", value={"required": ["a"]}), '{"b": 1}', False),
    (Check(type="json_schema", value={"$ref": "http://127.0.0.1:1/x"}), "{}", False),
    (Check(type="json_schema", value={}), "no JSON", False),
    (Check(type="json_schema", value={"$ref": "#"}), "1", False),
    (Check(type="json_schema", value={"pattern": "(a+)+$"}), f'"{"a" * 60}b"', False),
]


@pytest.mark.parametrize(("check", "reply", "is_met"), CHECKS)
def test_a_check_decides_by_the_reply_alone(check, reply, is_met):
    result = apply(check, reply)

    assert result.is_met is is_met
    assert (result.why is None) is is_met


# --- what passes ---


def test_a_dimension_criteria_and_checks_each_can_fail_an_item(tmp_path):
    own = [{"name": "warmth", "low": 0, "high": 10}]
    rows = [
        row("plain"),
        row("check", checks=[{"type": "contains", "value": "Lyon"}]),
        row("dimension", dimensions=own),
        row("criteria", criteria=[{"text": "It names Paris."}, {"text": "It errs.", "weight": -1}]),
    ]
    path = data_set(tmp_path / "items.jsonl", *rows)
    document = played("--dataset", path)
    harsh = played("--dataset", path, *jurors("emulator.judge-bias--30-v1:0"))
    failed_by = {turn["item_id"]: turn["failed_by"] for turn in document["turns"]}

    assert failed_by == {"plain": [], "check": ["contains"], "dimension": [], "criteria": []}
    assert harsh["metrics"]["success_rate"] == 0
    assert harsh["metrics"]["correctness"] == 2
    assert "warmth" not in harsh["failed_by"]  # 7 of 10 is over the same share


def test_a_threshold_is_the_same_share_of_any_range(tmp_path):
    rows = [row("own", dimensions="warmth:0-10")]
    path = data_set(tmp_path / "items.jsonl", *rows)
    biased = jurors("emulator.judge-bias--20-v1:0")  # 3 of 5, and 8 of 10

    assert played("--dataset", path, *biased)["metrics"]["success_rate"] == 1
    stricter = played("--dataset", path, *biased, "--pass-threshold", "4")
    assert stricter["metrics"]["success_rate"] == 0
    assert "warmth" not in stricter["turns"][0]["failed_by"]


def test_the_mean_and_the_majority_of_jurors_may_differ(tmp_path):
    path = data_set(tmp_path / "items.jsonl", row())
    # 1, 3 and 3 of 5: the mean is under 3, two of three are not.
    jury = jurors(
        "emulator.judge-bias--40-v1:0",
        "emulator.judge-bias--20-v1:0",
        "emulator.judge-bias--21-v1:0",
    )

    assert results(played("--dataset", path, *jury)) == {"capital": "failed"}
    most = played("--dataset", path, *jury, "--pass-rule", "majority")
    assert results(most) == {"capital": "passed"}
    assert most["thresholds"]["pass_rule"] == "majority"


def test_a_refusing_juror_costs_its_vote_and_a_lone_one_processes_nothing():
    both = played(*jurors(JUDGE, "emulator.judge-bias-5-v1:0", "emulator.judge-refuses-v1:0"))
    alone = played(*jurors("emulator.judge-refuses-v1:0"), exit_code=5)

    assert both["metrics"]["success_rate"] == 1
    assert {*results(alone).values()} == {"unprocessed"}
    assert alone["metrics"]["success_rate"] is None
    assert alone["metrics"]["success_rate_of_all"] == 0
    assert {entry["reason"] for entry in alone["unprocessed"]} == {"unreadable_verdict"}


def test_a_filter_s_refusal_fails_the_item_and_no_judge_is_asked():
    document, requests = served(faults=["filtered:role=tutor:count=6"])

    assert sorted(results(document).values()) == ["passed"] * 18 + ["refused"] * 6
    assert document["metrics"]["success_rate"] == 0.75
    assert sum(request.role == "judge" for request in requests) == 18


def test_models_and_judges_are_shown_the_image():
    _, requests = served("--num-items", "22")
    bodies = [json.loads(request.body) for request in requests]
    shown = [
        (request.role, block["image"]["format"])
        for request, body in zip(requests, bodies, strict=True)
        for message in body["messages"]
        for block in message["content"]
        if "image" in block
    ]

    assert sorted(shown) == [("judge", "png")] * 2 + [("tutor", "png")] * 2


def test_an_image_that_may_not_be_read_and_a_judge_that_cannot_see_are_named(tmp_path):
    rows = [row("outside", image=str(DATA / "bars.png")), row("web", image="http://10.0.0.1/x.png")]
    path = data_set(tmp_path / "items.jsonl", *rows)
    blind = "mistral.mistral-large-2407-v1:0"
    outcome = golden("--dataset", path, *jurors(blind))

    assert outcome.exit_code == 2
    assert "The image of item outside: " in outcome.stderr
    assert "--image-folder" in outcome.stderr
    assert "10.0.0.1 is not allowed: allow it by --image-host" in outcome.stderr
    assert f"--judge-model {blind} takes no images, and 2 of --dataset" in outcome.stderr

    folder = data_set(tmp_path / "allowed.jsonl", rows[0])
    assert played("--dataset", folder, "--image-folder", str(DATA))["metrics"]["success_rate"] == 1


@pytest.mark.parametrize("role", ["tutor", "judge"])
def test_what_is_lost_to_infrastructure_is_unprocessed_and_asked_again(tmp_path, role):
    words = ("--output-dir", str(tmp_path), "--max-attempts", "1")
    lost, _ = served(*words, faults=[f"unavailable:role={role}:count=3"], exit_code=4)

    assert lost["success"]["value"] == 1
    assert lost["success_of_all"]["value"] == round(21 / 24, 6)
    assert lost["success_rate_of_all"] == lost["success_of_all"]["value"]
    assert lost["metrics"]["success_rate_of_all"] == lost["success_of_all"]["value"]
    assert len(lost["unprocessed"]) == 3

    again, requests = served(*words, "--resume")
    assert fitting(again)["success_of_all"]["value"] == 1
    assert sum(request.role == role for request in requests) == 3


# --- the report ---


def test_the_report_recommends_a_model_by_task_and_names_what_failed(tmp_path):
    kinds = ("right", "half-right", "refuses")
    words = ("--benchmark", "golden", "--models", *map(model, kinds), "--seed", "1")
    folder, page = str(tmp_path / "runs"), tmp_path / "report.md"
    swept = run("sweep", "--offline", *words, "--output-dir", folder)
    assert swept.exit_code == 0, swept.stderr
    outcome = run("report", folder, "--markdown", str(page))
    text = page.read_text()

    assert outcome.document["winner"] == model("right")
    names = ["recommendations", "tasks", "task-map", "task-failures"]
    assert [name for name in outcome.document["sections"] if name in names] == names
    best = text.partition("## Which model for which task")[2].partition("\n## ")[0]
    assert best.count(f"| {model('right')} | 100 % (28 % to 100 %) |") == 6
    failed = text.partition("## Why items failed")[2].partition("\n## ")[0]
    assert "| completeness | 0 | 24 (100 %) | 0 |" in failed
    assert "| refused | 0 | 0 | 24 (100 %) |" in failed


# --- how items are asked ---


def test_items_are_asked_again_at_temperatures_around_their_own(tmp_path):
    words = ("--benchmark", "golden", "--models", model("right"), "--temperatures", "25%", "50%")
    outcome = run("sweep", "--offline", *words, "--seed", "1", "--output-dir", str(tmp_path))
    assert outcome.exit_code == 0, outcome
    shifts = {cell["axes"]["temperature_shift"] for cell in outcome.document["runs"]}
    assert shifts == {-0.5, -0.25, 0, 0.25, 0.5}

    document = played("--temperature-shift", "0.25", "--num-items", "2", "--invocations", "2")
    assert [(turn["round"], turn["temperature"]) for turn in document["turns"]] == [
        *[(0, 0.25)] * 2,
        *[(1, 0.25)] * 2,
    ]


def test_the_runs_temperature_is_for_items_without_one(tmp_path):
    path = data_set(tmp_path / "items.jsonl", row("own", temperature=0.2), row("none"))
    document = played("--dataset", path, "--temperature", "0.8")
    assert [turn["temperature"] for turn in document["turns"]] == [0.2, 0.8]

    outcome = golden("--temperature", "0.8")
    assert outcome.exit_code == 2
    assert "--temperature is for items that have none" in outcome.stderr


def test_repeats_of_an_item_wait_for_each_other(tmp_path):
    path = data_set(tmp_path / "items.jsonl", row())
    words = ("--dataset", path, "--invocations", "3", "--wait-between", "0.2")
    document = played(*words, "--latency-only", "--output-dir", str(tmp_path / "out"))
    files = sorted((tmp_path / "out").glob("raw/runs/*/turn_*.json"))
    starts = [
        datetime.fromisoformat(attempt["started_at"])
        for file in files
        for attempt in json.loads(file.read_text())["attempts"]
    ]

    assert document["n_turns"] == 3
    assert document["timestamps"]["duration_seconds"] >= 0.4
    assert sorted(starts) == starts


def test_no_repeat_waits_for_one_whose_optimiser_failed(monkeypatch, tmp_path):
    ask = Optimiser._ask
    failures = [ModelError("It is down.", code="unavailable", end_reason="unavailable")]

    def fail_once(self, context, item):
        if failures:
            raise failures.pop()
        return ask(self, context, item)

    monkeypatch.setattr(Optimiser, "_ask", fail_once)
    path = data_set(tmp_path / "items.jsonl", row())
    words = ("--dataset", path, "--invocations", "2", "--wait-between", "0.01", "--deadline", "20")
    words = (*words, "--prompt-optimization", "optimize_only", "--max-concurrency", "1")
    document = played(*words, "--latency-only", exit_code=4)

    assert document["n_turns"] == 1
    assert [entry["reason"] for entry in document["unprocessed"]] == ["missing"]


def test_latency_only_calls_no_judge_and_has_times():
    document = played("--latency-only")

    assert document["judge"] is None
    assert document["metrics"]["success_rate"] is None
    assert document["usage"]["judge"]["calls"] == 0
    assert {*results(document).values()} == {"unjudged"}
    names = ("latency_ms", "ttft_ms", "first_text_ms", "output_tokens_per_s")
    assert all(task[name] for task in document["tasks"] for name in names)

    (thinking,) = played("--latency-only", "--num-items", "1", "--enable-thinking")["tasks"]
    assert thinking["ttft_ms"] < thinking["first_text_ms"]


def test_optimised_prompts_are_compared_with_the_original_ones():
    """The emulator's half right models are right where a prompt was optimised."""
    words = ("--prompt-optimization", "evaluate_both", "--num-items", "6", "--invocations", "2")
    document = played(*words, kind="half-right")
    found = document["optimization"]

    assert (found["optimized"], found["pairs"], found["better"], found["worse"]) == (6, 6, 6, 0)
    assert found["difference"] == 1
    assert document["usage"]["optimizer"]["calls"] == 6
    assert document["cost"]["optimizer"]["total_usd"] > 0
    both = {turn["variant"]: turn for turn in document["turns"][:2]}
    assert both["original"]["prompt"] == shipped()[0]["prompt"]
    assert f"Task:\n{both['original']['prompt']}\n" in both["optimized"]["prompt"]


def test_original_and_optimised_prompts_stand_apart(tmp_path):
    """Metrics are of the original ones, and so alike with and without optimised ones."""
    folder, page = str(tmp_path / "runs"), tmp_path / "report.md"
    words = ("--num-items", "4", "--prompt-optimization", "evaluate_both", "--output-dir", folder)
    document = played(*words, kind="half-right")
    plain = played("--num-items", "4", kind="half-right")
    assert document["metrics"] == plain["metrics"]
    assert document["success"] == plain["success"]
    assert document["success_of_all"] == plain["success_of_all"]
    assert document["failed_by"] == plain["failed_by"]

    outcome = run("report", folder, "--markdown", str(page))
    text = page.read_text()
    names = [f"{model('half-right')}, variant {name}" for name in ("original", "optimized")]
    rates = [f"{name} {rate}" for name, rate in zip(names, ("0.00", "1.00"), strict=True)]
    assert outcome.exit_code == 0, outcome.stderr
    assert f"{model('half-right')}: success rate 0.00" in text
    assert f"Success rate of each way of asking: {'; '.join(rates)}." in text
    assert f"| Question answering | {names[1]} | 100 % " in text
    assert f"| Question answering | {names[0]} | 0 % " in text
    assert f"| Task | {names[0]} | {names[1]} |" in text
    assert f"| Failed by | {names[0]} | {names[1]} |" in text


def optimised(env_of, *faults):
    """A run that has two prompts optimised by an emulator with faults, and how often it asked."""
    with Emulator(EmulatorSettings(faults=tuple(map(parse_fault, faults)))) as emulator:
        words = ("--benchmark", "golden", "--model", model("right"), "--judge-model", JUDGE)
        words = (
            *words,
            "--num-items",
            "2",
            "--prompt-optimization",
            "optimize_only",
            "--seed",
            "1",
        )
        env = {**account(emulator.url, model("right")), AGENT: env_of(emulator)}
        outcome = run(*words, "--max-concurrency", "1", "--max-attempts", "2", env=env)
        asked = sum(request.operation == "OptimizePrompt" for request in emulator.requests)
    return json.loads(outcome.stdout), asked


AGENT = "AWS_ENDPOINT_URL_BEDROCK_AGENT_RUNTIME"


@pytest.mark.parametrize("kind", ["throttled", "cut_frame", "stream_error", "empty_body", "reset"])
def test_an_outage_of_the_optimiser_is_retried(kind):
    document, asked = optimised(lambda emulator: emulator.url, f"{kind}:role=optimizer:count=1")

    assert asked == 3
    assert (document["optimization"]["optimized"], document["status"]) == (2, "completed")


def test_repeats_of_a_sweep_share_optimised_prompts(tmp_path):
    """The first run pays for each; the journal of the other has them, too."""
    with Emulator() as emulator:
        words = ("sweep", "--benchmark", "golden", "--models", model("right"), "--repeats", "2")
        words = (*words, "--judge-model", JUDGE, "--num-items", "3", "--seed", "1", "-q")
        words = (*words, "--prompt-optimization", "optimize_only", "-o", str(tmp_path))
        env = {**account(emulator.url, model("right")), AGENT: emulator.url}
        outcome = run(*words, env=env)
        asked = sum(request.operation == "OptimizePrompt" for request in emulator.requests)
    runs = [json.loads(path.read_text()) for path in tmp_path.glob("curated/runs/*.json")]

    assert outcome.exit_code == 0, outcome.stderr
    assert asked == 3
    assert [one["optimization"]["optimized"] for one in runs] == [3, 3]
    tokens = [one["usage"]["optimizer"]["input_tokens"] for one in runs]
    assert sum(tokens) == sum(estimated_tokens(one["prompt"]) for one in shipped()[:3])


def test_an_optimiser_that_is_not_reached_is_named_with_its_own_variable():
    document, asked = optimised(lambda _: "http://127.0.0.1:9")

    assert (asked, document["end_reason"]) == (0, "unavailable")
    assert AGENT in document["error"]["hint"]


def test_a_model_whose_prompts_cannot_be_optimised_gets_them_as_they_are():
    document = played("--prompt-optimization", "optimize_only", "--num-items", "2", kind="refuses")
    (refusal,) = document["optimization"]["refused"]

    assert "not supported for prompt optimization" in refusal
    assert [turn["not_optimized"] for turn in document["turns"]] == [refusal] * 2
    assert document["usage"]["model"]["calls"] == 2


def test_a_judge_is_calibrated_by_labels_of_items_with_their_golden_answers(tmp_path):
    document = played("--output-dir", str(tmp_path), kind="half-right")
    high = dict.fromkeys(("relevance", "format", "coherence"), 5)
    truth = {**high, "correctness": 4, "completeness": 2, "following_instructions": 4}
    labels = [
        {"labeller": "me", "run_id": document["run_id"], "turn": n, "scores": truth}
        for n in range(24)
    ]
    path = data_set(tmp_path / "labels.jsonl", *labels)
    words = ("--labels", path, "--runs", str(tmp_path), "--judge-model", JUDGE)
    outcome = run("calibrate", "--offline", *words, "--output-dir", str(tmp_path / "judge"))
    assert outcome.exit_code == 0, outcome.stderr
    agreement = outcome.document["dimensions"]

    assert outcome.document["judge"]["rubric"] == "golden"
    assert agreement["completeness"]["n_clusters"] == 24
    assert agreement["completeness"]["mean_absolute_error"]["value"] == 0
    again = played("--calibration", str(tmp_path / "judge"), "--num-items", "2")
    assert again["judge"]["calibration"]["status"] == "calibrated"


def test_labels_have_the_dimensions_of_each_item(tmp_path):
    folder, labels = str(tmp_path / "runs"), tmp_path / "labels.jsonl"
    path = data_set(tmp_path / "items.jsonl", row("a", dimensions="warmth:0-10"), row("b"))
    document = played("--dataset", path, "--output-dir", folder, kind="half-right")
    request = LabellingRequest(runs=(folder,), file=str(labels), labeller="me", n_turns=2)
    session = prepare_labelling(request, str).session
    asked = {0: [], 1: []}
    while session.place:
        turn, number = session.place
        asked[turn].append(session.questions[number].name)
        session.answer("" if asked[turn][-1] == "why" else "n" if number >= 7 else "4")
    words = ("--labels", str(labels), "--runs", folder, "--judge-model", JUDGE)
    outcome = run("calibrate", "--offline", *words)

    assert sorted("warmth" in names for names in asked.values()) == [False, True]
    assert outcome.exit_code == 0, outcome.stderr
    read = [json.loads(line)["scores"] for line in labels.read_text().splitlines()]
    assert sorted(len(scores) for scores in read) == [6, 7]
    scored = document["turns"][0]["scores"]["warmth"]
    warmth = outcome.document["dimensions"]["warmth"]
    assert warmth["mean_absolute_error"]["value"] == abs(scored - 4)


def test_the_shipped_items_are_what_the_page_says():
    rows = shipped()
    assert len(rows) == 24
    assert len({one["task_type"] for one in rows}) == 6
    assert sum("image" in one for one in rows) == 2


@pytest.mark.torture
def test_a_run_killed_at_item_500_of_1000_repeats_only_calls_under_way(tmp_path):
    rows = [{**row(f"r{n}"), "prompt": shipped()[n % 24]["prompt"]} for n in range(1000)]
    path, folder = data_set(tmp_path / "items.jsonl", *rows), str(tmp_path / "out")
    words = ("--benchmark", "golden", "--model", model("right"), "--judge-model", JUDGE)
    words = (*words, "--dataset", path, "--seed", "1", "--output-dir", folder, "-q")
    with Emulator(EmulatorSettings(latency_ms=20)) as emulator:
        env = account(emulator.url, model("right"))
        process = begin(*words, env=env)
        wait_until(lambda: count(emulator, "tutor") >= 500)
        process.kill()
        process.communicate()
        outcome = run(*words, "--resume", env=env)
        assert outcome.exit_code == 0, outcome.stderr
        n_asked, n_judged = count(emulator, "tutor"), count(emulator, "judge")
    document = fitting(json.loads(outcome.stdout))

    assert document["success_of_all"]["n"] == 1000
    assert document["unprocessed"] == []
    assert 1000 <= n_asked <= 1016  # --max-concurrency
    assert 1000 <= n_judged <= 1016


def count(emulator, role):
    return sum(request.role == role for request in emulator.requests)
