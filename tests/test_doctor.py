"""`doctor`: what a run needs is looked at before it, each failure with what to do about it."""

import json
import re
import signal
import threading

import pytest

from socratic_bench.emulator import Emulator, Settings, parse_fault
from socratic_bench.models.bedrock.account import quotas_by_model
from tests.command import CLAUDE, LLAMA, MISTRAL, account, begin, environment, printed, run
from tests.fakes import FakeBedrock, Said, answer, relayed, xml
from tests.terminal import COLOUR, run_in_terminal, width

ROLE = "arn:aws:iam::123456789012:role/BedrockInvokeRole"
ALLOWED = (CLAUDE, LLAMA, "emulator.uncached-v1:0", "nobody.knows")


def looked(*words, faults=(), env=None, **settings):
    """What the doctor finds at an emulator with these faults."""
    with Emulator(Settings(faults=tuple(map(parse_fault, faults)), **settings)) as served:
        return run("doctor", *words, env={**account(served.url, *ALLOWED), **(env or {})})


def checks_of(model):
    return {check["check"]: check for check in model["checks"]}


def by_role(document):
    return {role: model for model in document["models"] for role in model["roles"]}


def account_checks(document):
    return {check["check"]: check for check in document["checks"]}


@pytest.fixture(scope="module")
def offline():
    """With a store and without a prompt, through the command."""
    return run("doctor", "--offline", "--model", "emulator.socratic-v1:0")


def test_offline_all_is_well_without_an_account(offline):
    document = offline.document
    models = by_role(document)

    assert (offline.exit_code, document["status"], document["error"]) == (0, "ok", None)
    assert (document["n_failed"], document["n_warnings"], document["n_unknown"]) == (0, 0, 0)
    assert list(models) == ["tutor", "judge"]
    assert [*checks_of(models["tutor"])] == ["answer", "streaming", "cache_points", "price"]
    assert [*checks_of(models["judge"])] == [
        "answer",
        "streaming",
        "tools",
        "cache_points",
        "price",
    ]
    assert models["judge"]["capabilities"]["forced_tool"] == {"table": True, "found": True}
    assert models["tutor"]["capabilities"]["forced_tool"] == {"table": True, "found": None}
    assert document["billed"] is False
    assert document["cost_usd"] == pytest.approx(sum(one["cost_usd"] for one in models.values()))
    assert max(one["output_tokens"] for one in models.values()) <= 128
    assert "ready: no problem found, 2 models" in offline.stderr


def test_without_a_model_all_that_may_be_tested_are_asked_once_and_at_once():
    """None is answered before all have been asked."""
    names = [f"a.model-{n}" for n in range(4)]
    asked = threading.Barrier(len(names) + 1, timeout=60)

    def together(_):
        asked.wait()
        return answer("Yes.")

    with FakeBedrock(dict.fromkeys((*names, CLAUDE), together)) as served:
        outcome = run("doctor", "--no-stream", env=account(served.url, *names))

    assert sorted(sent.model_id for sent in served.sent) == sorted((*names, CLAUDE))
    assert outcome.exit_code == 0
    assert [model["model_id"] for model in outcome.document["models"]] == [*names, CLAUDE]


@pytest.mark.parametrize(
    ("fault", "code", "hint"),
    [
        ("access_denied:role=student", "access_denied", "Allow bedrock:InvokeModel"),
        ("not_found:role=judge", "unknown_model", "Check the model id"),
        ("on_demand:role=tutor", "needs_profile", "Use an inference profile"),
        ("daily_quota:role=judge", "daily_quota", "run again tomorrow"),
        ("expired_token:role=tutor", "expired_credentials", "Renew the credentials"),
    ],
)
def test_a_model_that_cannot_be_called_fails_in_its_role_alone_and_says_what_to_do(
    fault, code, hint
):
    words = ("--model", CLAUDE, "--student-model", LLAMA)
    outcome = looked(*words, faults=[fault])
    failing = fault.partition("role=")[2]
    found = {role: checks_of(one)["answer"] for role, one in by_role(outcome.document).items()}

    assert outcome.exit_code == 3
    assert outcome.document["status"] == "failed"
    assert {role: one["status"] for role, one in found.items()} == {
        role: "failed" if role == failing else "ok" for role in ("tutor", "student", "judge")
    }
    assert found[failing]["code"] == code
    assert hint in found[failing]["hint"]


@pytest.mark.parametrize(
    ("kind", "code"), [("throttled:ms=1", "throttled"), ("internal", "server_error")]
)
def test_throttling_and_failures_that_pass_are_no_denial(kind, code):
    outcome = looked("--model", CLAUDE, "--no-judge", faults=[kind])
    (model,) = outcome.document["models"]
    found = checks_of(model)["answer"]

    assert (outcome.exit_code, outcome.document["status"]) == (0, "ok")
    assert (model["status"], found["code"]) == ("unknown", code)
    assert CLAUDE not in found["message"], "which its subject tells"
    assert model["n_requests"] == 3
    assert model["n_throttled"] == (3 if code == "throttled" else 0)
    assert account_checks(outcome.document)["region"]["status"] == "ok"


def test_a_model_that_is_throttled_at_first_is_asked_again():
    outcome = looked("--model", CLAUDE, "--no-judge", faults=["throttled:count=1:ms=1"])
    (model,) = outcome.document["models"]

    assert (model["status"], model["n_requests"], model["n_throttled"]) == ("ok", 2, 1)
    assert "after 1 request that the quota refused" in model["checks"][0]["message"]


def test_what_a_model_refuses_against_the_table_is_a_warning():
    words = ("--model", "emulator.uncached-v1:0", "--judge-model", LLAMA)
    outcome = looked(*words, faults=["denied_streaming:role=tutor"])
    models = by_role(outcome.document)
    tutor, judge = checks_of(models["tutor"]), checks_of(models["judge"])

    assert outcome.exit_code == 0
    assert models["tutor"]["status"] == "warning"
    assert models["tutor"]["capabilities"]["prompt_cache"] == {"table": True, "found": False}
    assert (tutor["cache_points"]["status"], tutor["cache_points"]["code"]) == (
        "warning",
        "differs",
    )
    assert "bedrock:InvokeModelWithResponseStream" in tutor["streaming"]["hint"]
    assert tutor["streaming"]["message"].startswith("Streaming of emulator.uncached-v1:0 is denied")
    assert tutor["cache_points"]["message"].startswith("refuses cache points, which the table")
    # What the table knows of Llama is as it should be, and is not sent.
    assert models["judge"]["capabilities"]["forced_tool"] == {"table": False, "found": None}
    assert judge["tools"]["message"].startswith("asked for JSON in words")
    assert (models["judge"]["status"], judge["tools"]["status"]) == ("ok", "ok")


def test_a_stream_that_a_model_refuses_for_its_tool_alone_is_told_of_the_judge():
    outcome = looked("--model", CLAUDE, "--judge-model", "emulator.whole-tools-v1:0")
    judge = checks_of(by_role(outcome.document)["judge"])

    assert (judge["streaming"]["status"], judge["tools"]["status"]) == ("warning", "ok")
    assert "tool calls in a stream" in judge["streaming"]["message"]


def test_a_judge_that_does_not_call_its_tool_is_a_warning():
    with FakeBedrock({CLAUDE: [answer("Ten of ten!")]}) as served:
        outcome = run("doctor", "--model", CLAUDE, "--no-stream", env=account(served.url))
    judge = by_role(outcome.document)["judge"]

    assert (outcome.exit_code, judge["status"]) == (0, "warning")
    assert checks_of(judge)["tools"]["code"] == "no_tool_call"


def test_settings_and_tier_go_with_the_model_under_test_alone():
    with FakeBedrock(
        {name: [answer("Yes.", serviceTier={"type": "default"})] for name in (CLAUDE, LLAMA)}
    ) as served:
        words = ("--model", CLAUDE, "--judge-model", LLAMA, "--service-tier", "priority")
        outcome = run(
            "doctor", *words, "--temperature", "0.5", "--no-stream", env=account(served.url)
        )
        (tutor,), (judge,) = (served.of(name) for name in (CLAUDE, LLAMA))
    models = by_role(outcome.document)

    assert tutor.body["serviceTier"] == {"type": "priority"}
    assert tutor.body["inferenceConfig"] == {"maxTokens": 16, "temperature": 0.5}
    assert "serviceTier" not in judge.body
    assert (models["tutor"]["service_tier"], models["tutor"]["served_tier"]) == (
        "priority",
        "default",
    )
    assert checks_of(models["tutor"])["service_tier"]["code"] == "other_tier"


def test_nothing_that_answers_is_a_failure_of_the_region_too():
    with FakeBedrock() as served:
        url = served.url
    outcome = run("doctor", "--model", CLAUDE, "--max-attempts", "1", env=account(url))
    region = account_checks(outcome.document)["region"]

    assert outcome.exit_code == 3
    assert (region["status"], region["subject"], region["code"]) == (
        "failed",
        "us-east-1",
        "connection",
    )
    assert url in region["hint"]


def test_mistakes_are_told_all_at_once_before_any_call():
    with FakeBedrock() as served:
        words = ("--model", "none", "--turns", "many", "--dry-run", "--promt", "x")
        outcome = run("doctor", *words, env=account(served.url))

    assert (outcome.exit_code, served.sent) == (2, [])
    message = outcome.document["error"]["message"]
    assert outcome.document["kind"] == "error"
    for part in (
        "--turns is 'many'",
        "'none'",
        "doctor does not take --dry-run",
        "did you mean --prompt",
    ):
        assert part in message
    assert "give --prompt or" not in message


@pytest.mark.parametrize("words", [(), ("--transcript", "none.json"), ("--prompt", "-")])
def test_mistakes_are_told_whether_or_not_there_are_opening_words(words):
    """Neither that they are there nor that they are not is one of them."""
    outcome = run(
        *("doctor", "--offline", "--model", "emulator.socratic-v1:0", "--fail-under", "unheard=1"),
        *words,
        stdin=b"Is it so?",
    )
    message = outcome.document["error"]["message"]

    assert outcome.exit_code == 2
    assert "unheard" in message
    assert "give --prompt" not in message
    assert "are both given" not in message
    assert "is empty" not in message


def test_opening_words_beside_a_transcript_are_a_mistake_if_they_are_given():
    words = ("--offline", "--model", "emulator.socratic-v1:0", "--transcript", "none.json")
    message = run("doctor", *words, "--prompt", "Is it so?").document["error"]["message"]

    assert "--prompt and --transcript are both given" in message


def test_help_tells_of_a_look_with_the_flags_of_a_run_or_a_sweep():
    of_run, of_sweep = (
        run("doctor", *words, "--help").stdout.decode() for words in ((), ("p.toml",))
    )

    for text in (of_run, of_sweep):
        assert "Preflight: checks what a run or a sweep" in text
        assert "3 a check failed" in text
        assert "runs are missing" not in text
    assert "--model ID" in of_run
    assert "  --models " in of_sweep


# --- sweeps ---------------------------------------------------------------------------------------

PLAN = f"""
target_rpm = 30

[[models]]
id = "{CLAUDE}"
target_rpm = 51

[[models]]
id = "{LLAMA}"
region = "eu-west-1"
service_tier = "priority"
"""


def test_the_models_of_a_sweep_are_asked_once_for_all_samples_and_temperatures():
    with FakeBedrock() as served:
        words = ("--models", CLAUDE, LLAMA, "--scenarios", "career-change", "time-management")
        more = ("--temperatures", "0.2", "0.7", "--repeats", "3", "--no-stream")
        outcome = run("doctor", *words, *more, env=account(served.url, *ALLOWED))

    assert outcome.exit_code == 0
    assert [(one["model_id"], one["roles"]) for one in outcome.document["models"]] == [
        *((CLAUDE, ["tutor"]), (LLAMA, ["tutor"]), (CLAUDE, ["judge"]))
    ]
    assert len(served.sent) == 3


def test_a_plan_s_models_are_asked_with_their_own_settings_against_their_quotas(tmp_path):
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)
    quotas = Said(json.dumps({"Quotas": ROWS}).encode())
    with FakeBedrock({"": [quotas]}) as service:
        env = {"AWS_ENDPOINT_URL_SERVICE_QUOTAS": service.url}
        outcome = looked(str(plan), "--no-judge", env=env)
    models = {one["model_id"]: one for one in outcome.document["models"]}

    assert outcome.exit_code == 0
    assert [one["region"] for one in models.values()] == ["us-east-1", "eu-west-1"]
    assert models[LLAMA]["service_tier"] == "priority"
    assert [models[name]["quota"]["target_rpm"] for name in (CLAUDE, LLAMA)] == [51, 30]
    over = [one for one in models[CLAUDE]["checks"] if one["code"] == "over_quota"]
    assert [(one["status"], one["message"]) for one in over] == [
        ("warning", "50 requests a minute, but the target is 51")
    ]
    assert len(service.sent) == 2  # quotas are a region's


def test_mistakes_of_a_sweep_are_told_at_once_but_that_nothing_is_kept():
    with FakeBedrock() as served:
        words = ("doctor", "--models", CLAUDE, "nobody", "--repeats", "0")
        outcome = run(*words, env=account(served.url))

    assert (outcome.exit_code, served.sent) == (2, [])
    message = outcome.document["error"]["message"]
    assert "'nobody'" in message
    assert "--repeats is 0" in message
    assert "for its runs" not in message


# --- budget ---------------------------------------------------------------------------------------


def test_a_budget_that_has_no_room_is_kept_to_and_told():
    with FakeBedrock() as served:
        words = ("--model", CLAUDE, "--max-cost-usd", "0.00001")
        outcome = run("doctor", *words, env=account(served.url))
    document = outcome.document

    assert (outcome.exit_code, document["status"], served.sent) == (6, "incomplete", [])
    assert (document["cost_usd"], document["max_cost_usd"]) == (0, 0.00001)
    assert document["error"]["code"] == "budget"
    assert {one["checks"][0]["code"] for one in document["models"]} == {"budget"}


def test_a_deadline_ends_it_with_what_was_found_by_then():
    outcome = looked("--model", CLAUDE, "--no-judge", "--deadline", "0.05", latency_ms=30_000)
    document = outcome.document

    assert (outcome.exit_code, document["status"]) == (7, "incomplete")
    assert document["error"]["hint"] == "Raise --deadline."
    assert document["models"][0]["checks"][0]["status"] == "unknown"


def test_a_price_that_is_not_known_is_told_unless_a_budget_needs_it():
    outcome = looked("--model", "nobody.knows", "--no-judge", any_model=True)
    (model,) = outcome.document["models"]

    assert (outcome.exit_code, model["status"]) == (0, "ok")
    assert (model["cost_usd"], outcome.document["cost_usd"]) == (None, None)
    assert checks_of(model)["price"]["status"] == "unknown"
    assert "--prices" in checks_of(model)["price"]["hint"]
    refused = run(
        *("doctor", "--model", "nobody.knows", "--max-cost-usd", "1"),
        env=account("http://127.0.0.1:9", *ALLOWED),
    )
    assert refused.exit_code == 2


# --- credentials ----------------------------------------------------------------------------------


def test_credentials_and_role_are_told_by_whose_they_are(moto_url):
    words = ("--model", CLAUDE, "--no-judge")
    env = {"AWS_ENDPOINT_URL_STS": moto_url, "BEDROCK_ASSUME_ROLE_ARN": ROLE}
    outcome = looked(*words, env=env)
    found = account_checks(outcome.document)

    assert outcome.exit_code == 0
    assert found["credentials"]["status"] == found["role"]["status"] == "ok"
    assert re.fullmatch(r"arn:aws:(sts|iam)::\d+:\S+", found["credentials"]["subject"])
    assert found["role"]["subject"].endswith("assumed-role/BedrockInvokeRole/socratic-runner")
    assert found["role"]["message"] == "account 123456789012"


def sts_refusal(code):
    said = f"<Error><Code>{code}</Code><Message>No.</Message></Error>"
    return Said(f"<ErrorResponse>{said}</ErrorResponse>".encode(), 403, content_type="text/xml")


STS_SAYS = {
    "InvalidClientTokenId": ("failed", "no_credentials"),
    "ExpiredToken": ("failed", "expired_credentials"),
    "AccessDenied": ("unknown", "access_denied"),
}


@pytest.mark.parametrize("code", STS_SAYS)
def test_whose_credentials_are_may_stay_unknown_but_not_that_they_are_bad(code):
    with FakeBedrock({"": [sts_refusal(code)]}) as sts:
        outcome = looked("--model", CLAUDE, "--no-judge", env={"AWS_ENDPOINT_URL_STS": sts.url})
    found = account_checks(outcome.document)["credentials"]

    assert (found["status"], found["code"]) == STS_SAYS[code]
    assert outcome.exit_code == (3 if found["status"] == "failed" else 0)
    assert found["hint"]


def test_a_role_that_cannot_be_taken_fails():
    with FakeBedrock({"": [sts_refusal("AccessDenied")]}) as sts:
        env = {"AWS_ENDPOINT_URL_STS": sts.url, "BEDROCK_ASSUME_ROLE_ARN": ROLE}
        outcome = looked("--model", CLAUDE, "--no-judge", env=env)
    found = account_checks(outcome.document)["role"]

    assert outcome.exit_code == 3
    assert (found["status"], found["code"], found["subject"]) == ("failed", "role_denied", ROLE)
    assert "BEDROCK_ASSUME_ROLE_ARN" in found["hint"]


def test_no_credentials_at_all_fail_with_how_to_give_some():
    env = environment(AWS_REGION="us-east-1", BEDROCK_MODEL_IDS=json.dumps([CLAUDE]))
    outcome = run("doctor", "--model", CLAUDE, "--no-judge", env=env)
    found = account_checks(outcome.document)["credentials"]

    assert outcome.exit_code == 3
    assert (found["status"], found["code"]) == ("failed", "no_credentials")
    assert "AWS_ACCESS_KEY_ID" in found["hint"]


# --- stores ---------------------------------------------------------------------------------------


def test_a_bucket_is_written_read_and_left_as_it_was(client, bucket, moto_url, tmp_path):
    words = ("--model", CLAUDE, "--s3-bucket", bucket, "--s3-prefix", "team", "-o", str(tmp_path))
    outcome = looked(*words, env={"AWS_ENDPOINT_URL_S3": moto_url})
    found = account_checks(outcome.document)

    assert outcome.exit_code == 0
    assert {found[f"bucket_{what}"]["status"] for what in ("write", "read", "delete")} == {"ok"}
    assert found["bucket_write"]["subject"].startswith(f"s3://{bucket}/team/journal/")
    assert client.list_objects_v2(Bucket=bucket)["KeyCount"] == 0
    assert found["folder"]["status"] == "ok"
    assert [*tmp_path.iterdir()] == []


def test_rights_that_a_run_does_not_need_are_unknown_where_they_are_denied(
    client, bucket, moto_url
):
    def deny(sent):
        return xml(403, "AccessDenied") if sent.method in ("GET", "DELETE") else None

    with relayed(moto_url, deny) as s3:
        words = ("--model", CLAUDE, "--no-judge", "--s3-bucket", bucket)
        env = {"AWS_ENDPOINT_URL_S3": s3.url}
        fresh = looked(*words, env=env)
        resumed = looked(*words, "--resume", env=env)
    found = account_checks(fresh.document)

    assert (fresh.exit_code, resumed.exit_code) == (0, 3)
    assert [found[f"bucket_{what}"]["status"] for what in ("write", "read", "delete")] == [
        *("ok", "unknown", "unknown")
    ]
    assert "s3:GetObject" in found["bucket_read"]["hint"]
    assert "It stays there" in found["bucket_delete"]["message"]
    assert account_checks(resumed.document)["bucket_read"]["status"] == "failed"


@pytest.mark.parametrize("what", ["denied", "missing"])
def test_a_bucket_that_takes_nothing_fails(what, bucket, moto_url):
    def deny(sent):
        return xml(403, "AccessDenied") if what == "denied" and sent.method == "PUT" else None

    with relayed(moto_url, deny) as s3:
        name = bucket if what == "denied" else f"no-{bucket}"
        outcome = looked(
            *("--model", CLAUDE, "--no-judge", "--s3-bucket", name),
            env={"AWS_ENDPOINT_URL_S3": s3.url},
        )
    found = account_checks(outcome.document)["bucket_write"]

    assert (outcome.exit_code, found["status"]) == (3, "failed")
    assert found["message"].startswith("could not be written: ")
    assert ("s3:PutObject" if what == "denied" else "aws s3 mb") in found["hint"]


def test_a_folder_that_cannot_be_written_fails(tmp_path):
    (tmp_path / "file").write_text("")
    outcome = looked("--model", CLAUDE, "--no-judge", "-o", str(tmp_path / "file" / "below"))
    found = account_checks(outcome.document)["folder"]

    assert (outcome.exit_code, found["status"]) == (3, "failed")
    assert "is a file" in found["message"]


# --- quotas ---------------------------------------------------------------------------------------

PER_MINUTE = "model inference {} per minute for {}"


def quota(how, what, model, value):
    return {"QuotaName": f"{how} {PER_MINUTE.format(what, model)}", "Value": value}


ROWS = [
    quota("On-demand", "requests", "Anthropic Claude 3.5 Sonnet", 50.0),
    quota("On-demand", "tokens", "Anthropic Claude 3.5 Sonnet", 400000.0),
    quota("On-demand", "requests", "Anthropic Claude 3.5 Sonnet V2", 60.0),
    quota("Cross-region", "requests", "Anthropic Claude 3.5 Sonnet V2", 100.0),
    quota("Cross-region", "tokens", "Anthropic Claude Sonnet 4.5 V1", 500000.0),
    quota("Global cross-region", "tokens", "Anthropic Claude Sonnet 4.5 V1", 900000.0),
    quota("On-demand", "requests", "Meta Llama 3 70B Instruct", 400.0),
    quota("On-demand", "requests", "Meta Llama 3.3 70B Instruct", 800.0),
    quota("On-demand", "requests", "Amazon Nova Lite", 1000.0),
    quota("On-demand", "requests", "Mistral Large 2407", 7.0),
    {"QuotaName": "Batch inference job size (in GB) for Claude 3.5 Sonnet", "Value": 5.0},
]


@pytest.mark.parametrize(
    ("model_id", "requests", "tokens"),
    [
        ("anthropic.claude-3-5-sonnet-20240620-v1:0", 50, 400000),
        ("anthropic.claude-3-5-sonnet-20241022-v2:0", 60, None),
        ("us.anthropic.claude-3-5-sonnet-20241022-v2:0", 100, None),
        ("eu.anthropic.claude-sonnet-4-5-20250929-v1:0", None, 500000),
        ("global.anthropic.claude-sonnet-4-5-20250929-v1:0", None, 900000),
        ("meta.llama3-70b-instruct-v1:0", 400, None),
        ("amazon.nova-lite-v1:0", 1000, None),
        (MISTRAL, 7, None),
        ("nobody.knows", None, None),
    ],
)
def test_a_model_s_quotas_are_found_by_the_name_that_people_see(model_id, requests, tokens):
    found = quotas_by_model(ROWS, [model_id])[model_id]

    assert (found.requests_per_minute, found.tokens_per_minute) == (requests, tokens)


def test_quotas_are_read_page_by_page_and_told():
    def page(sent):
        assert sent.headers["X-Amz-Target"].endswith(".ListServiceQuotas")
        half = len(ROWS) // 2
        first = {"Quotas": ROWS[:half], "NextToken": "more"}
        rest = {"Quotas": ROWS[half:]}
        return Said(json.dumps(rest if "NextToken" in sent.body else first).encode())

    with FakeBedrock({"": page}) as service:
        env = {"AWS_ENDPOINT_URL_SERVICE_QUOTAS": service.url}
        outcome = looked("--model", CLAUDE, "--no-judge", env=env)
    (model,) = outcome.document["models"]

    assert len(service.sent) == 2
    assert model["quota"] == {
        "requests_per_minute": 50,
        "tokens_per_minute": 400000,
        "target_rpm": None,
        "target_tpm": None,
    }


def test_quotas_that_may_not_be_read_are_unknown():
    body = {"__type": "AccessDeniedException", "message": "No."}
    with FakeBedrock({"": [Said(json.dumps(body).encode(), 400)]}) as service:
        env = {"AWS_ENDPOINT_URL_SERVICE_QUOTAS": service.url}
        outcome = looked("--model", CLAUDE, "--no-judge", env=env)
    found = account_checks(outcome.document)["quota"]

    assert (outcome.exit_code, found["status"], found["code"]) == (0, "unknown", "access_denied")
    assert "servicequotas:ListServiceQuotas" in found["hint"]


# --- what people see ------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [40, 80, 100])
def test_the_table_fits_the_terminal_and_marks_what_fails(columns):
    words = ("doctor", "--model", CLAUDE, "--student-model", LLAMA)
    faults = [parse_fault("access_denied:role=student"), parse_fault("throttled:role=judge:ms=1")]
    with Emulator(Settings(faults=tuple(faults))) as served:
        outcome, lines = run_in_terminal(*words, columns=columns, env=account(served.url, *ALLOWED))
    marked = [found[1] + found[2][:9].rstrip() for line in lines if (found := COLOUR.search(line))]

    assert outcome.exit_code == 3
    assert {"31! student", "33? judge"} <= {*marked}
    for line in lines:
        assert width(line) <= columns or " " not in line.strip(), line


def test_a_log_has_the_marks_without_colour_and_quiet_leaves_failures_alone():
    faults = (parse_fault("access_denied:role=judge"),)
    with Emulator(Settings(faults=faults)) as served:
        words = ("doctor", "--model", CLAUDE)
        told = run(*words, env=account(served.url))
        quiet = run(*words, "--quiet", env=account(served.url))

    assert "\x1b" not in told.stderr
    assert re.search(r"^! judge +\S+ in us-east-1: AccessDenied", told.stderr, re.MULTILINE)
    assert re.search(r"^  tutor +\S+ in us-east-1: answered in", told.stderr, re.MULTILINE)
    assert quiet.stderr.startswith("! judge")
    assert "tutor" not in quiet.stderr


def test_a_signal_ends_it_with_what_was_found_by_then():
    held = threading.Event()
    with FakeBedrock({CLAUDE: [answer("Yes.", held=held)]}) as served:
        words = ("doctor", "--model", CLAUDE, "--no-judge", "--quiet")
        process = begin(*words, env=account(served.url))
        while not served.sent:
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        stdout, _ = process.communicate()
    document = printed(stdout)

    assert process.returncode == 143
    assert (document["kind"], document["status"]) == ("doctor", "incomplete")
    assert document["error"]["code"] == "interrupted"
    (model,) = document["models"]
    assert (model["status"], model["n_requests"]) == ("unknown", 1)
    assert model["cost_usd"] > 0  # what the request may be billed


def test_a_benchmark_without_opening_words_names_its_mistakes(tmp_path):
    words = ("--benchmark", "optimisation", "--task-file", tmp_path / "none.yaml")
    outcome = run("doctor", "--offline", "--model", "emulator.agent-good-v1:0", *map(str, words))
    assert outcome.exit_code == 2
    assert f"{tmp_path}/none.yaml cannot be read" in outcome.stderr
