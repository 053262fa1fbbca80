"""Every documented call of the command, its environment included, gives the documented fields."""

import json

import boto3
import pytest

from socratic_bench.emulator import Emulator, Settings
from tests.command import CLAUDE, LLAMA, MISTRAL, OPENING, TITAN, account, assert_valid, run

BUCKET = "socratic-benchmark-runs"
ROLE = "arn:aws:iam::123456789012:role/BedrockInvokeRole"

# Field -> type, as the users' documentation shows them.
SHORT = {
    "run_id": str,
    "model": str,
    "scenario": str,
    "n_turns": int,
    "overall_score": float,
    "compliance_rate": float,
    "half_life": int,
}
METRICS = {
    "overall_score": float,
    "compliance_rate": float,
    "half_life": int,
    "mean_form": float,
    "mean_substance": float,
    "mean_purity": float,
    "violation_rates": {"form": float, "substance": float, "purity": float},
}
LONG = {
    **SHORT,
    "prompt": str,
    "metrics": METRICS,
    "turns": [
        {
            "turn": int,
            "score": float,
            "form": float,
            "substance": float,
            "purity": float,
            "question": str,
        }
    ],
    "timestamps": {"started_at": str, "completed_at": str, "duration_seconds": float},
}
PLACES = {"raw": str, "curated": str}
HEURISTICS = {
    "has_question": bool,
    "question_count": int,
    "open_ended": bool,
    "has_advice": bool,
    "is_leading": bool,
}
RAW_TURN = {
    "run_id": str,
    "turn": int,
    "student_prompt": str,
    "ai_response": str,
    "tokens": {"input": int, "output": int},
    "latency_ms": float,
    "timestamp": str,
}
RAW_JUDGE = {
    "run_id": str,
    "turn": int,
    "overall_score": float,
    "form": float,
    "substance": float,
    "purity": float,
    "heuristics": HEURISTICS,
    "rationale": {"form": str, "substance": str, "purity": str},
    "judge_model": str,
    "timestamp": str,
}
CURATED = {**SHORT, "timestamps": {"started_at": str, "completed_at": str}}


def misfits(value, shape, path="$"):
    """Where a value lacks a documented name or has another type."""
    if isinstance(shape, dict):
        return [
            misfit
            for name, part in shape.items()
            for misfit in (
                misfits(value[name], part, f"{path}.{name}")
                if name in value
                else [f"{path}.{name} is missing"]
            )
        ]
    if isinstance(shape, list):
        return [m for i, item in enumerate(value) for m in misfits(item, shape[0], f"{path}[{i}]")]
    return [] if type(value) is shape else [f"{path} is {value!r}, no {shape.__name__}"]


@pytest.fixture(scope="module")
def bedrock():
    with Emulator(Settings()) as served:
        yield served.url


@pytest.fixture(scope="module")
def aws(moto_url):
    s3 = client("s3", moto_url)
    s3.create_bucket(Bucket=BUCKET)
    s3.close()
    return moto_url


def client(service, url):
    return boto3.client(
        service,
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="AKIAEXAMPLE",
        aws_secret_access_key="example",
    )


def stored(url, key):
    s3 = client("s3", url)
    body = json.loads(s3.get_object(Bucket=BUCKET, Key=key)["Body"].read())
    s3.close()
    return body


def keys(url, prefix):
    s3 = client("s3", url)
    listed = s3.list_objects_v2(Bucket=BUCKET, Prefix=prefix).get("Contents", [])
    s3.close()
    return sorted(item["Key"] for item in listed if "/journal/" not in f"/{item['Key']}")


def test_basic_run_takes_forty_turns_by_default(bedrock):
    outcome = run("--model", CLAUDE, "--prompt", OPENING, env=account(bedrock, CLAUDE))
    document = outcome.document

    assert outcome.exit_code == 0
    assert misfits(document, LONG) == []
    assert (document["n_turns"], document["scenario"]) == (40, "career-change")
    assert document["s3_artifacts"] is None
    assert document["judge"]["model"] == CLAUDE


def test_full_run_writes_raw_and_curated_artifacts_to_the_bucket(bedrock, aws):
    env = account(bedrock, CLAUDE, LLAMA, RUNNER_S3_BUCKET=BUCKET, AWS_ENDPOINT_URL_S3=aws)
    outcome = run("--model", CLAUDE, "--prompt", OPENING, "--turns", "10", env=env)
    document = outcome.document
    run_id = document["run_id"]
    raw = f"raw/runs/{run_id}/"

    assert outcome.exit_code == 0
    assert misfits(document, {**LONG, "s3_artifacts": PLACES}) == []
    assert document["s3_artifacts"] == {
        "raw": f"s3://{BUCKET}/{raw}",
        "curated": f"s3://{BUCKET}/curated/runs/{run_id}.json",
    }
    files = [f"{kind}_{index:03d}.json" for kind in ("turn", "judge") for index in range(10)]
    assert keys(aws, raw) == [f"{raw}{name}" for name in sorted([*files, "closing_verdict.json"])]
    for index, turn in enumerate(document["turns"]):
        raw_turn = stored(aws, f"{raw}turn_{index:03d}.json")
        raw_judge = stored(aws, f"{raw}judge_{index:03d}.json")
        assert_valid("turn", raw_turn)
        assert_valid("judge", raw_judge)
        assert misfits(raw_turn, RAW_TURN) == []
        assert list(raw_turn)[: len(RAW_TURN)] == list(RAW_TURN)
        assert misfits(raw_judge, RAW_JUDGE) == []
        assert list(raw_judge)[: len(RAW_JUDGE)] == list(RAW_JUDGE)
        assert (raw_turn["ai_response"], raw_judge["overall_score"]) == (
            turn["question"],
            turn["score"],
        )
    curated = stored(aws, f"curated/runs/{run_id}.json")
    assert_valid("curated", curated)
    assert misfits(curated, CURATED) == []
    assert list(curated)[: len(CURATED)] == list(CURATED)
    assert {k: curated[k] for k in SHORT} == {k: document[k] for k in SHORT}


def test_cross_account_run_takes_the_role_for_bedrock_only(bedrock, aws):
    env = account(
        bedrock,
        CLAUDE,
        BEDROCK_ASSUME_ROLE_ARN=ROLE,
        AWS_ENDPOINT_URL_STS=aws,
        RUNNER_DEFAULT_TURNS="2",
    )
    outcome = run(
        *("--model", CLAUDE, "--prompt", "I'm exploring ethical dilemmas in AI development."),
        env=env,
    )

    assert outcome.exit_code == 0
    assert misfits(outcome.document, LONG) == []
    assert (outcome.document["scenario"], outcome.document["n_turns"]) == ("ai-ethics", 2)


def test_custom_judge_model(bedrock):
    judge = "anthropic.claude-3-opus-20240229-v1:0"
    env = account(bedrock, CLAUDE, RUNNER_JUDGE_MODEL=judge, RUNNER_DEFAULT_TURNS="2")
    document = run("--model", CLAUDE, "--prompt", "Your prompt here", env=env).document

    assert misfits(document, LONG) == []
    assert (document["judge"]["model"], document["scenario"]) == (judge, "custom")


@pytest.mark.parametrize("model", [CLAUDE, LLAMA, MISTRAL, TITAN])
def test_each_documented_model_is_played_whatever_its_request_must_lack(bedrock, model):
    env = account(bedrock, CLAUDE, LLAMA, MISTRAL, TITAN, RUNNER_JUDGE_MODEL=model)
    outcome = run("--model", model, "--prompt", "Prompt 1", "--turns", "2", env=env)

    assert outcome.exit_code == 0
    assert misfits(outcome.document, LONG) == []
    assert outcome.document["notices"] == []


def test_a_prompt_of_the_batch_script_finds_its_scenario(bedrock, aws):
    env = account(bedrock, MISTRAL, RUNNER_S3_BUCKET=BUCKET, AWS_ENDPOINT_URL_S3=aws)
    outcome = run(
        "--model", MISTRAL, "--prompt", "I'm considering a career change.", "--turns", "5", env=env
    )

    assert outcome.exit_code == 0
    assert misfits(outcome.document, {**LONG, "s3_artifacts": PLACES}) == []
    assert (outcome.document["scenario"], outcome.document["n_turns"]) == ("career-change", 5)


def test_bucket_prefix_and_output_folder_hold_the_same_tree(bedrock, aws, tmp_path):
    env = account(bedrock, CLAUDE, RUNNER_S3_BUCKET=BUCKET, AWS_ENDPOINT_URL_S3=aws)
    words = ("--s3-prefix", "team/a", "--output-dir", str(tmp_path), "--turns", "2")
    document = run("--model", CLAUDE, "--prompt", OPENING, *words, env=env).document
    files = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*.json"))

    assert document["s3_artifacts"]["raw"].startswith(f"s3://{BUCKET}/team/a/raw/runs/run-")
    assert document["output_artifacts"]["raw"].startswith(str(tmp_path))
    assert keys(aws, "team/a/") == [f"team/a/{name}" for name in files]
    # Two turns, their verdicts, the one on the dialogue as a whole, and the curated file.
    assert len(files) == 6
    for name in files:
        assert json.loads((tmp_path / name).read_bytes()) == stored(aws, f"team/a/{name}")
