"""Reads flags over environment variables over defaults into a `RunConfig`."""

import codecs
import json
from collections.abc import Iterator, Mapping

from socratic_bench.config.files import MAX_TEXT_BYTES
from socratic_bench.config.reader import Reader, Sources, parse_number
from socratic_bench.config.run_config import (
    DEFAULT_JUDGE_MODEL,
    MAX_SEED,
    PRESSURES,
    Gate,
    Pressure,
    RunConfig,
)
from socratic_bench.config.settings import (
    read_guardrail,
    read_latency_profile,
    read_max_tokens,
    read_metadata,
    read_service_tier,
    read_thinking_budget,
)
from socratic_bench.types import is_text

# What is read here and by the SDK; files and folders may have any name.
VARIABLES = ("AWS_", "BEDROCK_", "RUNNER_")
PATHS = ("_BUNDLE", "_DIR", "_FILE", "_PATH")
OFFLINE_REGION = "us-east-1"
MODEL_IDS_HINT = (
    """a JSON array of model ids, such as '["anthropic.claude-3-5-sonnet-20241022-v1:0"]'"""
)


def read_config(sources: Sources) -> tuple[RunConfig, tuple[str, ...]]:
    """The configuration that the sources describe, and what could not be read of them.

    What could not be read stands in the configuration as its default, so that the other values can
    be checked in the same go. Nothing may be run while there are problems.
    """
    reader = Reader(sources)
    reader.problems.extend(_undecodable(sources.environ))
    return _read(reader), tuple(reader.problems)


def _undecodable(environ: Mapping[str, str]) -> Iterator[str]:
    for name, value in environ.items():
        is_read = name.startswith(VARIABLES) and not name.endswith(PATHS)
        if is_read and not is_text(value):
            yield f"{name} is no UTF-8 text."


def _read(reader: Reader) -> RunConfig:
    offline = reader.switch("offline")
    thinking_budget_tokens = read_thinking_budget(reader)
    return RunConfig(
        model=reader.word("model") or "",
        prompt=_prompt(reader),
        scenario=reader.word("scenario"),
        scenario_file=reader.word("scenario-file"),
        turns=reader.integer("turns", "RUNNER_DEFAULT_TURNS", default=40),
        judge_model=_judge_model(reader, offline=offline),
        student_model=_student_model(reader),
        pressure=_pressure(reader),
        transcript=reader.word("transcript"),
        transcript_turns=_optional_integer(reader, "transcript-turns"),
        seed=_seed(reader),
        model_ids=_model_ids(reader, offline=offline),
        region=_region(reader, offline=offline),
        assume_role_arn=_role(reader, offline=offline),
        output_dir=reader.word("output-dir", "RUNNER_OUTPUT_DIR"),
        s3_bucket=reader.word("s3-bucket", "RUNNER_S3_BUCKET"),
        s3_prefix=(reader.word("s3-prefix", "RUNNER_S3_PREFIX") or "").strip("/"),
        s3_kms_key_id=reader.word("s3-kms-key-id", "RUNNER_S3_KMS_KEY_ID"),
        system_prompt_file=reader.word("system-prompt-file"),
        temperature=reader.optional_number("temperature"),
        top_p=reader.optional_number("top-p"),
        max_tokens=read_max_tokens(reader, thinking_budget_tokens),
        thinking_budget_tokens=thinking_budget_tokens,
        service_tier=read_service_tier(reader),
        latency_profile=read_latency_profile(reader),
        guardrail=read_guardrail(reader),
        request_metadata=read_metadata(reader),
        stream=not reader.switch("no-stream"),
        prompt_cache=not reader.switch("no-prompt-cache"),
        max_attempts=reader.integer("max-attempts", default=10),
        call_timeout_s=reader.number("call-timeout", default=300.0),
        deadline_s=reader.optional_number("deadline"),
        max_cost_usd=reader.optional_number("max-cost-usd"),
        prices_file=reader.word("prices"),
        offline=offline,
        compliance_threshold=reader.number("compliance-threshold", default=3.0),
        half_life_threshold=reader.number("half-life-threshold", default=8.0),
        min_judge_coverage=reader.number("min-judge-coverage", default=0.9),
        gates=_gates(reader),
        resume=reader.switch("resume"),
    )


def _prompt(reader: Reader) -> str | None:
    prompt = reader.sources.flags.get("prompt")
    if not isinstance(prompt, str):
        return None
    return _piped_prompt(reader) if prompt == "-" else prompt


def _piped_prompt(reader: Reader) -> str:
    """Standard input without its last line break, which is the end of a file and no word of it."""
    try:
        # A byte more than a prompt may have tells one that is too long; it may cut a letter in two.
        content = reader.sources.read_stdin(MAX_TEXT_BYTES + 1)
        decoder = codecs.getincrementaldecoder("utf-8-sig")()
        text = decoder.decode(content, final=len(content) <= MAX_TEXT_BYTES)
    except OSError as error:
        reader.problems.append(f"The prompt on standard input cannot be read: {error.strerror}.")
        return "-"
    except UnicodeDecodeError as error:
        reader.problems.append(
            f"The prompt on standard input is no UTF-8 text (byte {error.start + 1})."
        )
        return "-"
    if len(content) > MAX_TEXT_BYTES:
        reader.problems.append(f"The prompt has more than {MAX_TEXT_BYTES} bytes.")
    return text[:-1].removesuffix("\r") if text.endswith("\n") else text


def _judge_model(reader: Reader, *, offline: bool) -> str | None:
    if reader.switch("no-judge"):
        if reader.given("judge-model"):
            reader.problems.append("--no-judge and --judge-model are both given: keep one.")
        return None
    model = reader.word("judge-model", "RUNNER_JUDGE_MODEL")
    if model is None and offline:
        return next((id_ for id_ in reader.sources.offline_models() if "judge" in id_), None)
    return model or DEFAULT_JUDGE_MODEL


def _student_model(reader: Reader) -> str | None:
    mode = reader.word("student")
    model = reader.word("student-model", "RUNNER_STUDENT_MODEL")
    if mode not in (None, "scripted", "model"):
        reader.problems.append(f"--student is {mode!r}, but must be scripted or model.")
    if mode == "model" and model is None:
        reader.problems.append("--student model needs an id: give --student-model.")
    if mode == "scripted":
        if reader.given("student-model"):
            reader.problems.append("--student scripted and --student-model contradict: keep one.")
        return None
    return model


def _pressure(reader: Reader) -> Pressure:
    word = reader.word("pressure")
    if word is None:
        return "none"
    for level in PRESSURES:
        if word == level:
            return level
    reader.problems.append(f"--pressure is {word!r}, but must be none, low or high.")
    return "none"


def _optional_integer(reader: Reader, flag: str) -> int | None:
    return reader.integer(flag, default=1) if reader.given(flag) else None


def _seed(reader: Reader) -> int | None:
    if not reader.given("seed"):
        return None
    seed = reader.integer("seed", default=0)
    return seed if 0 <= seed <= MAX_SEED else _note_seed(reader, seed)


def _note_seed(reader: Reader, seed: int) -> int:
    reader.problems.append(f"--seed is {seed}, but must lie in 0..{MAX_SEED}.")
    return 0


def _model_ids(reader: Reader, *, offline: bool) -> tuple[str, ...] | None:
    text = reader.sources.environ.get("BEDROCK_MODEL_IDS", "").strip()
    if not text:
        if offline:
            return reader.sources.offline_models()
        reader.problems.append(f"BEDROCK_MODEL_IDS is not set: it takes {MODEL_IDS_HINT}.")
        return None
    try:
        ids = json.loads(text)
    except (ValueError, RecursionError) as error:
        reader.problems.append(
            f"BEDROCK_MODEL_IDS is no JSON ({error}): it takes {MODEL_IDS_HINT}."
        )
        return None
    if not isinstance(ids, list) or not ids or not all(isinstance(i, str) and i for i in ids):
        reader.problems.append(f"BEDROCK_MODEL_IDS must be {MODEL_IDS_HINT}.")
        return None
    return tuple(ids)


def _region(reader: Reader, *, offline: bool) -> str | None:
    region = reader.word("region", "AWS_REGION", "AWS_DEFAULT_REGION")
    if region is None:
        return OFFLINE_REGION if offline else _profile_region(reader)
    return region


def _profile_region(reader: Reader) -> str | None:
    region = reader.sources.profile_region()
    problem = None if region else reader.sources.profile_problem()
    if problem:
        reader.problems.append(problem)
    return region


def _role(reader: Reader, *, offline: bool) -> str | None:
    # The embedded endpoint must never be the reason that a real role is assumed.
    role = reader.word("assume-role-arn", "BEDROCK_ASSUME_ROLE_ARN")
    return None if offline else role


def _gates(reader: Reader) -> tuple[Gate, ...]:
    gates = []
    for word in reader.words("fail-under"):
        metric, _, bound = word.partition("=")
        minimum = parse_number(bound)
        if not metric.strip() or minimum is None:
            reader.problems.append(
                f"--fail-under takes METRIC=VALUE, such as overall_score=7, not {word!r}."
            )
        else:
            gates.append(Gate(metric.strip(), minimum))
    return tuple(gates)
