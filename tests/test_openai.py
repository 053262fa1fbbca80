"""Models behind endpoints of OpenAI's protocol, on the same engine as Bedrock's."""

import json
import os
import signal
import subprocess
import sys
from itertools import count
from typing import Any

import pytest

from socratic_bench.emulator import Emulator, Settings
from socratic_bench.generation import GenerateConfig
from socratic_bench.models.openai_chat import ChatProvider, FailedChatError
from socratic_bench.settings.endpoints import Endpoint
from socratic_bench.types import Message, Request
from tests import command
from tests.chat_server import CUT, QUESTION, ChatServer
from tests.command import PLAIN_RUBRIC, ROOT, environment
from tests.fakes import PATIENCE_S
from tests.golden_runs import data_set, fitting, row

KEY = "sk-of-the-users-own-0123456789"
TUTOR, JUDGE = "openai/tutor-1", "openai/judge-1"
WORDS = (
    *("--model", TUTOR, "--judge-model", JUDGE),
    *("--scenario", "time-management", "--turns", "3", "--seed", "1", "--quiet"),
    *("--rubric", PLAIN_RUBRIC),  # its judge is asked for nothing but verdicts
)
PRICES = {
    "models": {
        TUTOR: {"default": {"input": 1.0, "output": 2.0, "cache_read": 1.0}},
        JUDGE: {"default": {"input": 3.0, "output": 4.0, "cache_read": 3.0}},
    }
}


@pytest.fixture
def service():
    with ChatServer() as server:
        yield server


def variables(service: ChatServer, *models: str, **more: str) -> dict[str, str]:
    """Nothing of AWS: no region, no keys."""
    return environment(
        OPENAI_BASE_URL=service.url,
        OPENAI_API_KEY=KEY,
        BEDROCK_MODEL_IDS=json.dumps(models or [TUTOR]),
        **more,
    )


def play(service: ChatServer, *words: str, exit_code: int = 0) -> dict[str, Any]:
    outcome = command.run(*WORDS, *words, env=variables(service))
    assert outcome.exit_code == exit_code, outcome
    assert KEY not in outcome.stdout.decode() + outcome.stderr
    return outcome.document


def refused(*words: str, env: dict[str, str]) -> str:
    outcome = command.run(*WORDS, *words, env=env)
    assert outcome.exit_code == 2, outcome
    assert KEY not in outcome.stderr
    return outcome.stderr


def test_it_plays_tutor_and_judge_and_tries_again(service, tmp_path):
    service.refuses = [503, 429, CUT]
    document = play(service, "--output-dir", str(tmp_path))

    assert (document["status"], document["n_turns"], document["overall_score"]) == (
        *("completed", 3),
        9.5,
    )
    inputs = document["inputs"]
    assert (inputs["provider"], inputs["region"]) == ("openai", None)
    assert inputs["sdk_version"].startswith("openai ")
    assert inputs["models"]["tutor"]["asked"] == TUTOR
    usage = document["usage"]["tutor"]
    assert (usage["input_tokens"], usage["cache_read_tokens"]) == (300, 60)
    attempts = sum(document["usage"][role]["attempts"] for role in ("tutor", "judge"))
    assert attempts == len(service.sent) == 9
    assert service.keys == {f"Bearer {KEY}"}
    assert {sent["model"] for sent in service.sent} == {"tutor-1", "judge-1"}
    assert {turn["question"] for turn in document["turns"]} == {QUESTION}
    assert document["latency"]["tutor"]["ttft_ms"]["p50"] > 0


def test_a_tutor_there_and_a_judge_on_bedrock(service):
    with Emulator(Settings()) as emulator:
        outcome = command.run(
            *("--model", TUTOR, "--judge-model", "emulator.judge-v1:0"),
            *("--scenario", "time-management", "--turns", "2", "--seed", "1", "--quiet"),
            env={**variables(service), **command.account(emulator.url, TUTOR)},
        )
        judged = {request.model_id for request in emulator.requests}

    assert outcome.exit_code == 0, outcome
    assert outcome.document["judge"]["judged_turns"] == 2
    assert {sent["model"] for sent in service.sent} == {"tutor-1"}
    assert judged == {"emulator.judge-v1:0"}


def test_stop_reasons_are_neutral_with_the_endpoints_own_beside_them(service):
    service.stops = [("stop", True), ("length", False), ("content_filter", False)]
    document = play(service)

    reasons = [(turn["stop_reason"], turn["provider_stop_reason"]) for turn in document["turns"]]
    assert reasons == [
        ("refusal", "stop"),
        ("max_tokens", "length"),
        ("content_filtered", "content_filter"),
    ]
    assert document["turns"][0]["outcome"] == "refused"
    assert document["end_reason"] == "content_filtered"


@pytest.mark.parametrize("field", ["max_tokens", "stream_options", "stream", "tools"])
def test_a_field_that_a_model_refuses_is_left_out_from_then_on(service, field):
    service.lacks = {field}
    document = play(service)

    assert (document["status"], document["judge"]["judged_turns"]) == ("completed", 3)
    # Verdicts are asked for side by side, so that only the tutor is sure to know of its refusal.
    to_tutor = [sent for sent in service.sent if sent["model"] == "tutor-1"]
    assert sum(field in sent for sent in to_tutor) == (field != "tools")
    assert any("continues without it" in notice for notice in document["notices"])


def test_without_counters_usage_and_cost_are_not_known(service):
    service.has_usage = False
    document = play(service)

    assert document["status"] == "completed"
    assert document["usage"]["tutor"]["input_tokens"] is None
    assert document["usage"]["tutor"]["calls"] == 3


def test_a_budget_holds_and_the_run_goes_on_with_a_larger_one(service, tmp_path):
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps(PRICES))
    kept = ("--output-dir", str(tmp_path / "out"), "--prices", str(prices))
    short = play(service, *kept, "--max-cost-usd", "0.01", exit_code=6)
    n_sent = len(service.sent)

    assert (short["end_reason"], short["status"]) == ("budget", "partial")
    assert 0 < short["cost"]["total"]["total_usd"] <= 0.01

    whole = play(service, *kept, "--max-cost-usd", "1", "--resume")
    assert (whole["run_id"], whole["status"]) == (short["run_id"], "completed")
    assert len(service.sent) == 6
    assert 0 < n_sent < 6
    cost = whole["cost"]
    assert cost["tutor"]["total_usd"] == pytest.approx(3 * (100 * 1 + 10 * 2) / 1e6)
    assert cost["judge"]["total_usd"] == pytest.approx(3 * (100 * 3 + 10 * 4) / 1e6)


@pytest.mark.parametrize(
    ("refusal", "end_reason", "code"),
    [
        (401, "credentials", "no_credentials"),
        (403, "access", "access_denied"),
        ((404, "no such model"), "unknown_model", "unknown_model"),
        ((400, "maximum context length is 8192 tokens"), "context_window", "gate"),
    ],
)
def test_a_refusal_ends_the_run_by_its_kind(service, refusal, end_reason, code):
    service.refuses = [refusal]
    outcome = command.run(*WORDS, env=variables(service))

    assert outcome.document["end_reason"] == end_reason
    assert outcome.document["error"]["code"] == code
    assert sum("tools" not in sent for sent in service.sent) == 1


FILTERED = (400, "The prompt triggered the content management policy.", "content_filter")


def test_an_item_whose_prompt_a_filter_refuses_is_a_refusal_and_not_asked_again(service, tmp_path):
    rows = [row(name, checks=[{"type": "contains", "value": "mean"}]) for name in ("a", "b")]
    words = ("--benchmark", "golden", "--model", TUTOR, "--no-judge", "--seed", "1", "--quiet")
    words = (*words, "--dataset", data_set(tmp_path / "items.jsonl", *rows))
    words = (*words, "--output-dir", str(tmp_path / "out"))
    service.refuses = [FILTERED]
    first = command.run(*words, env=variables(service))
    again = command.run(*words, "--resume", env=variables(service))

    for outcome in (first, again):
        assert outcome.exit_code == 0, outcome
        document = fitting(json.loads(outcome.stdout))
        assert sorted(turn["result"] for turn in document["turns"]) == ["passed", "refused"]
        assert document["metrics"]["refused"] == 0.5
    assert len(service.sent) == 2


def test_a_redirect_is_not_followed(service):
    with ChatServer() as other:
        service.redirects_to = f"{other.url}/chat/completions"
        document = play(service, exit_code=3)

        assert document["error"]["code"] == "invalid_endpoint"
        assert other.sent == []


def test_each_named_endpoint_gets_its_own_key_alone(service):
    with ChatServer() as own:
        env = variables(service, "school/tutor", OWN_KEY="own-key-of-the-school-1234")
        outcome = command.run(
            *("--model", "school/tutor", "--judge-model", JUDGE, "--turns", "1", "--quiet"),
            *("--prompt", "Help me.", "--rubric", PLAIN_RUBRIC, "--seed", "1"),
            *("--endpoint", f"school={own.url},OWN_KEY"),
            env=env,
        )

        assert outcome.exit_code == 0, outcome
        assert own.keys == {"Bearer own-key-of-the-school-1234"}
        assert service.keys == {f"Bearer {KEY}"}
        assert "own-key" not in outcome.stdout.decode() + outcome.stderr


def test_an_endpoint_without_a_key_gets_none(service):
    outcome = command.run(
        *("--model", "school/tutor", "--no-judge", "--prompt", "Help me.", "--turns", "1"),
        *("--endpoint", f"school={service.url}", "--quiet"),
        env=variables(service, "school/tutor"),
    )

    assert outcome.exit_code == 0, outcome
    assert service.keys == {None}


def test_mistakes_of_endpoints_are_named_before_anything_is_sent(service):
    env = variables(service)
    assert "OPENAI_API_KEY" in refused(env={**env, "OPENAI_API_KEY": "", "OPENAI_BASE_URL": ""})
    assert "--offline" in refused("--offline", env=env)
    assert "No endpoint 'school'" in refused("--judge-model", "school/judge", env=env)
    assert "--endpoint takes NAME=URL" in refused("--endpoint", "school=ftp://x", env=env)
    assert "unencrypted" in refused(env={**env, "OPENAI_BASE_URL": "http://example.com/v1"})
    assert "no header can have" in refused(env={**env, "OPENAI_API_KEY": f"{KEY}\nX: 1"})
    assert "not an http(s) URL" in refused(
        env={**env, "OPENAI_BASE_URL": "https://me:pw@example.com"}
    )
    assert "AZURE_OPENAI_ENDPOINT" in refused("--judge-model", "azure/gpt", env=env)
    assert "BEDROCK_MODEL_IDS" in refused(env={**env, "BEDROCK_MODEL_IDS": '["openai/other"]'})
    assert service.sent == []


def test_a_missing_extra_is_named(service, tmp_path):
    (tmp_path / "openai").mkdir()
    (tmp_path / "openai" / "__init__.py").write_text("raise ModuleNotFoundError(name='openai')")
    env = {**variables(service), "PYTHONPATH": f"{tmp_path}:{ROOT}"}

    assert "pip install 'socratic-runner[openai]'" in refused(env=env)


def test_a_call_that_hangs_is_left_when_the_run_is_told_to_end(service):
    service.hangs_at = 1
    process = subprocess.Popen(
        [sys.executable, "-m", "cli", *WORDS],
        env=variables(service),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert service.hangs.wait(PATIENCE_S)
    os.kill(process.pid, signal.SIGTERM)
    stdout, _ = process.communicate(timeout=PATIENCE_S)

    document = command.printed(stdout)
    assert (process.returncode, document["end_reason"]) == (143, "interrupted")
    assert document["usage"]["tutor"]["attempts"] == 1


def test_comments_that_keep_a_stream_open_do_not_stop_the_clock(service):
    service.only_comments = True
    moments = count(step=100)
    provider = ChatProvider(
        [Endpoint("school", service.url)],
        timeout_s=60,
        monotonic_s=lambda: float(next(moments)),
        clients={},
    )
    request = Request(messages=(Message.user("Why?"),), config=GenerateConfig(max_tokens=9))
    with pytest.raises(FailedChatError) as caught:
        provider.send("school/tutor", request, 60)
    kind = provider.error_kind(caught.value)

    assert kind is not None
    assert (kind.code, kind.is_retried) == ("read_timeout", True)


def test_the_doctor_asks_its_models_too(service):
    service.refuses = [429]
    words = ("--model", TUTOR, "--judge-model", JUDGE)
    outcome = command.run("doctor", *words, env=variables(service))
    document = outcome.document
    tutor, judge = document["models"]

    assert (outcome.exit_code, document["status"], document["n_failed"]) == (0, "ok", 0)
    assert max(sent["max_tokens"] for sent in service.sent) <= 128
    assert tutor["status"] == judge["status"] == "ok"
    assert tutor["n_throttled"] + judge["n_throttled"] == 1


def test_a_dry_run_foretells_it(service):
    document = play(service, "--dry-run")

    assert document["kind"] == "dry_run"
    assert service.sent == []


PLAN = """
models = ["school/tutor", "bedrock/emulator.socratic-v1:0"]
scenarios = "time-management"
turns = 2
judge_model = "emulator.judge-v1:0"

[endpoints.school]
base_url = "{url}"
key_variable = "SCHOOL_KEY"
prices.tutor.default = {{ input = 1.0, output = 2.0, cache_read = 0.5 }}
"""


def test_a_plan_names_endpoints_with_keys_and_prices(service, tmp_path):
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN.format(url=service.url))
    key = "key-of-the-school-1234567"
    with Emulator(Settings()) as emulator:
        outcome = command.run(
            *("sweep", str(plan), "--output-dir", str(tmp_path / "runs"), "--quiet"),
            env={
                **command.account(emulator.url, "school/tutor", "emulator.socratic-v1:0"),
                "SCHOOL_KEY": key,
            },
        )

    assert outcome.exit_code == 0, outcome
    models = [run["axes"]["model"] for run in outcome.document["runs"]]
    assert models == ["school/tutor", "emulator.socratic-v1:0"]
    assert service.keys == {f"Bearer {key}"}
    assert outcome.document["cost_usd"] > 0
    kept = b"".join(path.read_bytes() for path in (tmp_path / "runs").rglob("*") if path.is_file())
    assert key.encode() not in kept + outcome.stdout + outcome.stderr.encode()


def test_mistakes_of_endpoints_in_a_plan_name_their_place(service, tmp_path):
    plan = tmp_path / "plan.toml"
    text = PLAN.format(url=service.url).replace("input = 1.0", "inputs = 1.0")
    plan.write_text(text + '[endpoints.other]\nbase_url = "ftp://x"\n')
    outcome = command.run("sweep", str(plan), env=variables(service))

    assert outcome.exit_code == 2
    assert "endpoints.school, prices.tutor.default.inputs is not known" in outcome.stderr
    assert "endpoints.other: needs a name" in outcome.stderr


def test_a_file_of_variables_gives_keys_but_changes_none_that_is_set(service, tmp_path):
    path = tmp_path / ".env"
    path.write_text(
        f"# keys\nexport OPENAI_API_KEY='{KEY}'  # of the school\n\nOPENAI_BASE_URL={service.url}\n"
        "BEDROCK_MODEL_IDS=openai/none\n"
    )
    env = environment(BEDROCK_MODEL_IDS=json.dumps([TUTOR]))
    outcome = command.run(*WORDS, "--env-file", str(path), env=env)

    assert outcome.exit_code == 0, outcome
    assert service.keys == {f"Bearer {KEY}"}
    assert KEY not in outcome.stdout.decode() + outcome.stderr


def test_a_file_of_variables_that_cannot_be_read_is_named_without_its_lines(service, tmp_path):
    path = tmp_path / ".env"
    path.write_text(f"OPENAI_API_KEY={KEY}\n{KEY}\n")

    assert ".env: line 2 is not NAME=VALUE" in refused("--env-file", str(path), env=environment())
    assert "none.env cannot be read" in refused("--env-file", "none.env", env=environment())
