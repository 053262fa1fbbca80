"""How tests read a configuration from flags and variables."""

from collections.abc import Mapping
from typing import Any

import pytest

from cli.settings import Options
from socratic_bench import Gate, RunConfig
from socratic_bench.errors import UsageError
from socratic_bench.generation import Guardrail
from socratic_bench.runs import prepare
from socratic_bench.settings import Sources, flag_names, read_config

ENVIRON = {"BEDROCK_MODEL_IDS": '["m", "n"]', "AWS_REGION": "us-east-1"}
FLAGS = {"model": "m", "prompt": "Hello."}
OFFLINE_MODELS = ("emulator.socratic-v1:0", "emulator.judge-v1:0")
CONFIG = RunConfig(model="m", prompt="Hello.", model_ids=("m", "n"), region="us-east-1")
CALL = flag_names((RunConfig, Options))


def sources(
    flags: Mapping[str, Any],
    environ: Mapping[str, str] = ENVIRON,
    *,
    stdin: str = "",
    profile_region: str | None = None,
) -> Sources:
    return Sources(
        flags=flags,
        environ=environ,
        read_stdin=lambda _bound: stdin.encode(),
        profile_region=lambda: profile_region,
        offline_models=lambda: OFFLINE_MODELS,
    )


def read_in(given: Sources) -> tuple[RunConfig, tuple[str, ...]]:
    """What the command reads, with its mistakes in its own words."""
    config, misread = read_config(RunConfig, given)
    return config, tuple(problem.render(CALL) for problem in misread)


def read(**flags: Any) -> tuple[RunConfig, tuple[str, ...]]:
    """The configuration of the usual command with more flags."""
    named = {name.replace("_", "-"): value for name, value in flags.items()}
    return read_in(sources({**FLAGS, **named}))


def read_environ(**variables: str) -> tuple[RunConfig, tuple[str, ...]]:
    return read_in(sources(FLAGS, {**ENVIRON, **variables}))


def problems(flags: Mapping[str, Any], environ: Mapping[str, str] = ENVIRON) -> tuple[str, ...]:
    """Every mistake of a command, as the user gets to see them."""
    config, misread = read_config(RunConfig, sources(flags, environ))
    with pytest.raises(UsageError) as refused:
        prepare(config, misread)
    refused.value.call_settings(CALL)
    return refused.value.problems


BY_FLAG: dict[str, tuple[Any, Any]] = {
    "model": ("n", "n"),
    "prompt": ("Why?", "Why?"),
    "scenario": ("career-change", "career-change"),
    "scenario_file": ("mine.toml", "mine.toml"),
    "turns": ("3", 3),
    "judge_model": ("other-judge", "other-judge"),
    "student_model": ("child", "child"),
    "pressure": ("high", "high"),
    "transcript": ("talk.json", "talk.json"),
    "transcript_turns": ("4", 4),
    "seed": ("5", 5),
    "region": ("eu-west-1", "eu-west-1"),
    "assume_role_arn": ("arn:aws:iam::123456789012:role/R", "arn:aws:iam::123456789012:role/R"),
    "output_dir": ("out", "out"),
    "s3_bucket": ("bucket", "bucket"),
    "s3_prefix": ("/a/b/", "a/b"),
    "s3_kms_key_id": ("alias/artifacts", "alias/artifacts"),
    "system_prompt_file": ("tutor.md", "tutor.md"),
    "temperature": ("0.5", 0.5),
    "top_p": ("0.9", 0.9),
    "max_tokens": ("99", 99),
    "service_tier": ("flex", "flex"),
    "latency_profile": ("optimized", "optimized"),
    "guardrail": ("abc123:DRAFT", Guardrail("abc123", "DRAFT")),
    "request_metadata": (["team=a", "note=x=y"], (("team", "a"), ("note", "x=y"))),
    "max_attempts": ("2", 2),
    "call_timeout": ("9.5", 9.5),
    "deadline": ("60", 60.0),
    "max_cost_usd": ("0.5", 0.5),
    "prices": ("prices.json", "prices.json"),
    "compliance_threshold": ("4", 4.0),
    "half_life_threshold": ("7.5", 7.5),
    "min_judge_coverage": ("0.5", 0.5),
    "fail_under": (
        ["overall_score=7", "violation_rates.form=-1e-1"],
        (Gate("overall_score", 7.0), Gate("violation_rates.form", -0.1)),
    ),
}
BY_VARIABLE = {
    "RUNNER_DEFAULT_TURNS": ("turns", "3", 3, "4", 4),
    "RUNNER_JUDGE_MODEL": ("judge_model", "j", "j", "k", "k"),
    "RUNNER_STUDENT_MODEL": ("student_model", "s", "s", "t", "t"),
    "RUNNER_OUTPUT_DIR": ("output_dir", "a", "a", "b", "b"),
    "RUNNER_S3_BUCKET": ("s3_bucket", "aaa", "aaa", "bbb", "bbb"),
    "RUNNER_S3_PREFIX": ("s3_prefix", "a/", "a", "b", "b"),
    "RUNNER_S3_KMS_KEY_ID": ("s3_kms_key_id", "alias/a", "alias/a", "alias/b", "alias/b"),
    "BEDROCK_ASSUME_ROLE_ARN": ("assume_role_arn", "a", "a", "b", "b"),
    "AWS_REGION": ("region", "eu-west-1", "eu-west-1", "eu-west-2", "eu-west-2"),
}


def refused(config: RunConfig, misread: tuple[str, ...] = ()) -> tuple[str, ...]:
    """What `prepare` has against it; anything but a usage error flies."""
    try:
        prepare(config, misread)
    except UsageError as error:
        return error.problems
    return ()
