"""The frozen configuration of one run, and what makes one valid."""

import re
from collections.abc import Iterator
from typing import Literal, get_args

from msgspec import Struct

from socratic_bench.config.files import MAX_TEXT_BYTES
from socratic_bench.config.settings import setting_problems
from socratic_bench.types import Guardrail, LatencyProfile, ServiceTier

DEFAULT_JUDGE_MODEL = "anthropic.claude-3-5-sonnet-20241022-v1:0"
MAX_TURNS = 500
LONGEST_ID = 2048
MAX_SEED = 2**53 - 1  # the largest integer that every JSON reader keeps exact

Pressure = Literal["none", "low", "high"]
PRESSURES: tuple[Pressure, ...] = get_args(Pressure)

_ARN = r"arn:aws[\w-]*:bedrock:(?P<region>[a-z0-9-]*):\d*:[\w.-]+/.+"
_ROLE_ARN = r"arn:aws[\w-]*:iam::\d{12}:role/.+"
# What no key can carry whole, and parts of a path that some readers would resolve.
_UNFIT = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029]|(^|/)\.\.?(/|$)")
# S3's bound, and the longest key of a run, which names it below `journal/identities/`.
MAX_KEY_BYTES = 1024
LONGEST_KEY_BYTES = 82
_BUCKET = r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]"
_STRANGE = re.compile(r"[\x00-\x20\x7f-\xa0\u2028\u2029\ud800-\udfff]")
_KMS_ALIAS = r"alias/[A-Za-z0-9/_-]{1,250}"
_KMS_ID = r"([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|mrk-[0-9a-f]{32})"
_KMS_ARN = rf"arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{{12}}:(key/{_KMS_ID}|{_KMS_ALIAS})"
_KMS_KEY = rf"{_KMS_ID}|{_KMS_ALIAS}|{_KMS_ARN}"
_REGION = re.compile(r"[a-z]{2,}(-[a-z]+)+-\d+")


class Gate(Struct, frozen=True):
    """A bound that a metric has to reach: the run fails under `minimum`.

    `metric` is a path below the document's `metrics`, such as `violation_rates.form`.
    """

    metric: str
    minimum: float


class RunConfig(Struct, frozen=True, kw_only=True):
    """Everything that one run depends on.

    Attributes:
        model: the tutor under test: a model id, an inference-profile id or an ARN.
        prompt: the student's opening; `None` takes the scenario's first one.
        scenario: id of a built-in scenario; `None` finds it by the prompt, else `custom`.
        scenario_file: path of a scenario file of the user's own.
        turns: turns to play at most, 1..500; replayed ones are not counted.
        judge_model: the model that scores each turn; `None` leaves judging out.
        student_model: the model that plays the student; `None` takes the scripted student.
        pressure: how often the student pushes for answers.
        transcript: path of a recorded dialogue that is replayed before the tutor under test plays.
        transcript_turns: turns of it to replay, 1 or more; `None` replays all.
        seed: fixes everything that is chosen by chance, 0..2**53-1; `None` draws one.
        model_ids: models that may be tested; `None` allows any.
        region: AWS region of the Bedrock endpoint.
        assume_role_arn: IAM role taken for Bedrock calls only.
        output_dir, s3_bucket, s3_prefix: where artifacts go; `None` and "" leave them out.
        s3_kms_key_id: KMS key that objects are encrypted with, an id, alias or ARN; `None` leaves
            that to the bucket.
        system_prompt_file: the tutor's system prompt; `None` takes the built-in one.
        temperature: of the tutor, 0..1; `None` leaves it to the model.
        top_p: of the tutor, 0..1; `None` leaves it to the model.
        max_tokens: bound of one reply of the tutor, in tokens, its thinking included.
        thinking_budget_tokens: of the tutor's extended thinking; `None` does not ask for any.
        service_tier, latency_profile, guardrail: of the tutor's calls; `None` sends no such field.
        request_metadata: pairs that go with every call of every role, for the account's logs.
        stream: have the tutor's replies streamed where model and account allow it.
        prompt_cache: have what repeats in requests cached where the model does so.
        max_attempts: requests that one call may take.
        call_timeout_s: seconds that one request may take.
        deadline_s: seconds that the run may take; `None` is no bound.
        max_cost_usd: USD that the run may cost; `None` is no bound.
        prices_file: prices of the user's own, before the built-in ones.
        offline: play on the embedded endpoint, with no account.
        compliance_threshold, half_life_threshold: scores of the metrics of the same names, 0..10.
        min_judge_coverage: share of turns that must be judged, 0..1.
        gates: bounds on metrics.
        benchmark: name of the benchmark.
        resume: go on with the newest run of the same identity in the stores, if there is one.
        resume_run_id: go on with this run of the stores.
    """

    model: str
    prompt: str | None = None
    scenario: str | None = None
    scenario_file: str | None = None
    turns: int = 40
    judge_model: str | None = DEFAULT_JUDGE_MODEL
    student_model: str | None = None
    pressure: Pressure = "none"
    transcript: str | None = None
    transcript_turns: int | None = None
    seed: int | None = None
    model_ids: tuple[str, ...] | None = None
    region: str | None = None
    assume_role_arn: str | None = None
    output_dir: str | None = None
    s3_bucket: str | None = None
    s3_prefix: str = ""
    s3_kms_key_id: str | None = None
    system_prompt_file: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int = 1024
    thinking_budget_tokens: int | None = None
    service_tier: ServiceTier | None = None
    latency_profile: LatencyProfile | None = None
    guardrail: Guardrail | None = None
    request_metadata: tuple[tuple[str, str], ...] = ()
    stream: bool = True
    prompt_cache: bool = True
    max_attempts: int = 10
    call_timeout_s: float = 300.0
    deadline_s: float | None = None
    max_cost_usd: float | None = None
    prices_file: str | None = None
    offline: bool = False
    compliance_threshold: float = 3.0
    half_life_threshold: float = 8.0
    min_judge_coverage: float = 0.9
    gates: tuple[Gate, ...] = ()
    benchmark: str = "socratic"
    resume: bool = False
    resume_run_id: str | None = None

    def problems(self) -> tuple[str, ...]:
        """Every mistake in the values, one sentence each; empty if the run can be prepared."""
        return (
            *_model_problems(self),
            *_opening_problems(self),
            *_pressure_problems(self),
            *_range_problems(self),
            *setting_problems(self),
            *_place_problems(self),
            *_resume_problems(self),
        )


def _model_problems(config: RunConfig) -> Iterator[str]:
    if not config.model:
        yield "No model to test: give --model with a Bedrock model id."
    elif config.model_ids is not None and config.model not in config.model_ids:
        yield f"Model not found in BEDROCK_MODEL_IDS: {config.model!r}{_nearest(config)}."
    for name, model in (
        ("--model", config.model),
        ("--judge-model", config.judge_model),
        ("--student-model", config.student_model),
    ):
        is_arn = model is not None and model.startswith("arn:")
        match = re.fullmatch(_ARN, model or "") if is_arn else None
        region = match["region"] if match else ""
        if region and config.region and region != config.region:
            yield f"{name} names an ARN in {region}, but the region is {config.region}."
        if is_arn and not match:
            yield f"{name} is no Bedrock ARN: {model!r}."
        if model and (strange := _STRANGE.search(model)):
            yield f"{name} holds a character that no model id has ({strange[0]!r}): {model!r}."


def _nearest(config: RunConfig) -> str:
    from difflib import get_close_matches

    # Comparing takes the square of a length, and no id is longer.
    asked = config.model[:LONGEST_ID]
    near = get_close_matches(asked, config.model_ids or (), n=3, cutoff=0.3)
    if near:
        return f" (nearest: {', '.join(near)})"
    return f" ({len(config.model_ids or ())} ids are allowed, none of them near)"


def _opening_problems(config: RunConfig) -> Iterator[str]:
    if config.prompt is not None and not config.prompt.strip():
        yield "The prompt is empty: give the student's opening words."
    if config.prompt and len(config.prompt.encode(errors="replace")) > MAX_TEXT_BYTES:
        yield f"The prompt has more than {MAX_TEXT_BYTES} bytes."
    given = (config.scenario, config.scenario_file, config.transcript)
    if config.prompt is None and not any(given):
        yield "Nothing to open the dialogue with: give --prompt or --scenario."
    if config.prompt is not None and config.transcript:
        yield "--prompt and --transcript are both given: a transcript has its own opening."
    if config.transcript_turns is not None and not config.transcript:
        yield "--transcript-turns is given without --transcript."
    if config.scenario and config.scenario_file:
        yield "--scenario and --scenario-file are both given: keep one."


def _pressure_problems(config: RunConfig) -> Iterator[str]:
    if config.pressure not in PRESSURES:
        yield f"--pressure is {config.pressure!r}, but must be none, low or high."


def _range_problems(config: RunConfig) -> Iterator[str]:
    bounds: tuple[tuple[str, float | None, float, float], ...] = (
        ("turns", config.turns, 1, MAX_TURNS),
        ("transcript-turns", config.transcript_turns, 1, 100_000),
        ("seed", config.seed, 0, MAX_SEED),
        ("temperature", config.temperature, 0, 1),
        ("top-p", config.top_p, 0, 1),
        ("max-tokens", config.max_tokens, 1, 1_000_000),
        ("max-attempts", config.max_attempts, 1, 100),
        ("call-timeout", config.call_timeout_s, 0.001, 3600),
        ("deadline", config.deadline_s, 0.001, 30 * 86400),
        ("max-cost-usd", config.max_cost_usd, 0.000001, 1_000_000),
        ("compliance-threshold", config.compliance_threshold, 0, 10),
        ("half-life-threshold", config.half_life_threshold, 0, 10),
        ("min-judge-coverage", config.min_judge_coverage, 0, 1),
    )
    for name, value, low, high in bounds:
        if value is not None and not low <= value <= high:
            yield f"--{name} is {value}, but must lie in {low}..{high}."


def _resume_problems(config: RunConfig) -> Iterator[str]:
    asked = config.resume or config.resume_run_id is not None
    if asked and not (config.output_dir or config.s3_bucket):
        yield "Nothing to resume from: give --output-dir or --s3-bucket."


def _place_problems(config: RunConfig) -> Iterator[str]:
    if not config.region and not config.offline:
        yield "No region: set AWS_REGION or give --region."
    if config.region and not _REGION.fullmatch(config.region):
        yield f"The region {config.region!r} is not of the form us-east-1."
    if config.assume_role_arn and not re.fullmatch(_ROLE_ARN, config.assume_role_arn):
        yield f"The role to assume is no IAM role ARN: {config.assume_role_arn!r}."
    if config.s3_bucket and not re.fullmatch(_BUCKET, config.s3_bucket):
        yield f"The bucket name {config.s3_bucket!r} is not a valid S3 bucket name."
    if config.s3_prefix and not config.s3_bucket:
        yield "An S3 prefix is given without a bucket: set RUNNER_S3_BUCKET or give --s3-bucket."
    yield from _key_problems(config)
    yield from prefix_problems(config.s3_prefix)


def prefix_problems(prefix: str) -> Iterator[str]:
    """Why no object could have a key of a run's that begins with this prefix."""
    if _UNFIT.search(prefix):
        yield (
            f"The S3 prefix {prefix[:100]!r} must hold no control characters, and neither '.' nor "
            "'..' as a part."
        )
    most_bytes = MAX_KEY_BYTES - LONGEST_KEY_BYTES - len("/")
    if (n_bytes := len(prefix.encode(errors="replace"))) > most_bytes:
        yield (
            f"The S3 prefix has {n_bytes} bytes, but at most {most_bytes} leave room for the keys "
            f"of a run: S3 takes {MAX_KEY_BYTES}."
        )


def _key_problems(config: RunConfig) -> Iterator[str]:
    key = config.s3_kms_key_id
    if key and not re.fullmatch(_KMS_KEY, key):
        yield f"The KMS key {key!r} is neither a key id, nor alias/NAME, nor an ARN of these."
    if key and not config.s3_bucket:
        yield "A KMS key is given without a bucket: set RUNNER_S3_BUCKET or give --s3-bucket."
