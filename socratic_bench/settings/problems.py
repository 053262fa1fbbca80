"""Finds every mistake in a configuration: of each setting alone, and of several together."""

import os
import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from math import isfinite

from msgspec.structs import replace

from socratic_bench.catalogue.models import family_of
from socratic_bench.errors import LONGEST_SHOWN, Problem
from socratic_bench.settings.core import CoreConfig
from socratic_bench.settings.endpoints import BEDROCK, models_of, provider_of
from socratic_bench.settings.files import MAX_TEXT_BYTES
from socratic_bench.settings.reader import foreign_problem
from socratic_bench.settings.table import convert_values, settings_of_other_benchmarks, table
from socratic_bench.types import is_text, plural

_ARN = r"arn:aws[\w-]*:bedrock:(?P<region>[a-z0-9-]*):\d*:[\w.-]+/.+"
_ROLE_ARN = r"arn:aws[\w-]*:iam::\d{12}:role/.+"
# Characters that a key of S3 cannot hold, and parts of a path that some readers would resolve.
_UNFIT_FOR_KEYS = r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029]|(^|/)\.\.?(/|$)"
MAX_KEY_BYTES = 1024  # S3's bound
LONGEST_KEY_BYTES = 82  # a run's longest key below the prefix, in `journal/identities/`
LONGEST_ID_CHARS = 2048  # no model id is longer
EMULATOR_PREFIX = "emulator."
MAX_SUGGESTIONS = 3
_BUCKET = r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]"
_NOT_IN_IDS = r"[\x00-\x20\x7f-\xa0\u2028\u2029\ud800-\udfff]"
_KMS_ALIAS = r"alias/[A-Za-z0-9/_-]{1,250}"
_KMS_ID = r"([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|mrk-[0-9a-f]{32})"
_KMS_ARN = rf"arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{{12}}:(key/{_KMS_ID}|{_KMS_ALIAS})"
_KMS_KEY = rf"{_KMS_ID}|{_KMS_ALIAS}|{_KMS_ARN}"
_REGION = r"[a-z]{2,}(-[a-z]+)+-\d+"

# The patterns are those of the service's own model.
_GUARDRAIL_ID = r"[a-z0-9]+|arn:aws(-[^:]+)?:bedrock:[a-z0-9-]{1,20}:[0-9]{12}:guardrail/[a-z0-9]+"
_GUARDRAIL_VERSION = r"[1-9][0-9]{0,7}|DRAFT"
_METADATA_KEY = r"[a-zA-Z0-9\s:_@$#=/+,\-.]{1,256}"
_METADATA_VALUE = r"[a-zA-Z0-9\s:_@$#=/+,\-.]{0,256}"


def problems_of(config: CoreConfig, max_turns: int) -> tuple[Problem, ...]:
    """Every mistake in the values, one sentence each; empty if the run can be prepared.

    `max_turns` is the benchmark's own bound.
    """
    config, mistyped = convert_values(config)
    return (
        *mistyped,
        *_foreign_problems(config),
        *_tested_problems(config),
        *model_problems(config, "model"),
        *_jury_problems(config),
        *_text_problems(config),
        *_gate_problems(config),
        *_bounds_problems(config, max_turns),
        *_thinking_problems(config),
        *_metadata_problems(config),
        *_guardrail_problems(config),
        *_place_problems(config),
        *_bucket_problems(config),
        *_batch_problems(config),
        *_resume_problems(config),
    )


def _bounds_problems(config: CoreConfig, max_turns: int) -> Iterator[Problem]:
    for name, field in table(type(config)).items():
        if name == "turns":
            field = replace(field, setting=replace(field.setting, high=max_turns))  # noqa: PLW2901
        if problem := field.bounds_problem(getattr(config, name)):
            yield problem


def _foreign_problems(config: CoreConfig) -> Iterator[Problem]:
    kind = type(config)
    for name, owners in settings_of_other_benchmarks(kind, config.benchmark).items():
        if getattr(config, name) != table(kind)[name].default:
            yield foreign_problem(name, owners, config.benchmark)


def _tested_problems(config: CoreConfig) -> Iterator[Problem]:
    if not config.model:
        yield Problem.of("No model to test: give {model} with a Bedrock model id.")
    elif config.model_ids is not None and config.model not in config.model_ids:
        yield Problem.of(
            _not_allowed(config, config.model_ids),
            asked=config.model,
            nearest=nearest_models(config.model, config.model_ids),
        )


def _not_allowed(config: CoreConfig, allowed: Sequence[str]) -> str:
    if not config.offline:
        return "Model not found in {model_ids}: {asked!r}{nearest}."
    if all(name.startswith(EMULATOR_PREFIX) for name in allowed):
        return (
            "{offline} runs mock models only, and {asked!r} is none{nearest}. "
            "Take one of these, which socratic-runner models {offline} lists, too, or leave "
            "{offline} out."
        )
    return (
        "Model not found in {model_ids}, which counts with {offline}, too: {asked!r}{nearest}. "
        "Unset it to use the mock models."
    )


def nearest_models(model: str, allowed: tuple[str, ...]) -> str:
    """The models with the most similar ids, or the first of all, in parentheses."""
    # Comparing takes quadratic time, so the id is cut.
    matches = get_close_matches(model[:LONGEST_ID_CHARS], allowed, n=MAX_SUGGESTIONS, cutoff=0.5)
    if matches:
        return f" (nearest: {', '.join(matches)})"
    more = f" and {len(allowed) - MAX_SUGGESTIONS} more" if len(allowed) > MAX_SUGGESTIONS else ""
    return f" (allowed: {', '.join(allowed[:MAX_SUGGESTIONS])}{more})"


def _jury_problems(config: CoreConfig) -> Iterator[Problem]:
    """Mistakes in the judges' ids and in how many of them must vote."""
    jurors = config.jurors
    for juror in dict.fromkeys(jurors):
        yield from model_problems(config, "judge_model", juror)
        if jurors.count(juror) > 1:
            yield Problem.of("{judge_model} names {id} twice: a juror has one vote.", id=juror)
    if isinstance(config.judge_model, tuple) and len(jurors) == 1:
        yield Problem.of("A jury has two jurors or more: give one judge as its id alone.")
    if isinstance(config.judge_model, tuple) and not jurors:
        yield Problem.of("{judge_model} is empty: use {no_judge}.")
    if config.quorum is not None and config.quorum > len(jurors):
        size = plural(len(jurors), "juror") if jurors else "none"
        yield Problem.of(
            "{quorum} is {needed}, but {size} could vote.", needed=config.quorum, size=size
        )


def model_problems(config: CoreConfig, name: str, model_id: str | None = None) -> Iterator[Problem]:
    """Mistakes in the model id of the setting `name`, or in `model_id` where it has several."""
    model: str | None = model_id or getattr(config, name)
    if not model:
        return
    if model.startswith("arn:"):
        match = re.fullmatch(_ARN, model)
        region = match["region"] if match else ""
        if region and config.region and region != config.region:
            yield Problem.of(
                f"{{{name}}} names an ARN in {{arns}}, but the region is {{runs}}.",
                arns=region,
                runs=config.region,
            )
        if not match:
            yield Problem.of(f"{{{name}}} is not a Bedrock ARN: {{id!r}}.", id=model)
    is_plain = model.isascii() and model.isprintable() and " " not in model
    if not is_plain and (strange := re.search(_NOT_IN_IDS, model)):
        yield Problem.of(
            f"{{{name}}} holds a character that no model id has ({{strange!r}}): {{id!r}}.",
            strange=strange[0],
            id=model,
        )


def _gate_problems(config: CoreConfig) -> Iterator[Problem]:
    for gate in config.all_gates:
        if not isfinite(gate.bound):
            text = f"{{{gate.setting}}} {{metric}}: the bound is {{bound}}, but must be finite."
            yield Problem.of(text, metric=gate.metric, bound=gate.bound)


def _resume_problems(config: CoreConfig) -> Iterator[Problem]:
    resumes = config.resume or config.resume_run_id is not None
    if resumes and not (config.output_dir or config.s3_bucket):
        yield NOTHING_TO_RESUME


NOTHING_TO_RESUME = Problem.of("Nothing to resume from: give {output_dir} or {s3_bucket}.")


def _place_problems(config: CoreConfig) -> Iterator[Problem]:
    is_on_bedrock = any(provider_of(model) == BEDROCK for model in models_of(config))
    if is_on_bedrock and not config.region and not config.offline:
        yield Problem.of("No region: set AWS_REGION or give {region}.")
    if config.region and not re.fullmatch(_REGION, config.region):
        yield Problem.of("The region {given!r} is not of the form us-east-1.", given=config.region)
    role = config.assume_role_arn
    if role and not re.fullmatch(_ROLE_ARN, role):
        yield Problem.of("The role to assume is not an IAM role ARN: {role!r}.", role=role)


def _batch_problems(config: CoreConfig) -> Iterator[Problem]:
    """What batch inference lacks. By `auto` a run that lacks it is called now."""
    names = [name for name in ("via", "judge_via") if getattr(config, name) == "batch"]
    role, root = config.batch_role_arn, config.batch_s3
    if role and not re.fullmatch(_ROLE_ARN, role):
        yield Problem.of("{batch_role_arn} is not an IAM role ARN: {role!r}.", role=role)
    if root and not re.fullmatch(rf"s3://{_BUCKET}(/[\w./=-]+)?/?", root):
        yield Problem.of("{batch_s3} is not of the form s3://BUCKET/PREFIX: {root!r}.", root=root)
    if not names:
        return
    first = f"{{{names[0]}}} batch"
    lacking = {
        f"{first} needs S3 and Bedrock: leave {{offline}} out.": config.offline,
        f"{first} needs {{batch_role_arn}}.": not role,
        f"{first} needs a place for its records: {{batch_s3}}.": not config.batch_root,
        "{via} batch has a tier of its own: leave out {service_tier} and {latency_profile}.": (
            "via" in names and (config.service_tier or config.latency_profile)
        ),
        "{judge_via} batch has no judge to call.": "judge_via" in names and not config.jurors,
    }
    yield from (Problem.of(text) for text, is_so in lacking.items() if is_so)
    models = {"via": (config.model,), "judge_via": config.jurors}
    pairs = [(name, model) for name in names for model in models[name]]
    for way, model in pairs:
        if provider_of(model) != BEDROCK:
            yield Problem.of(f"{{{way}}} batch: {{id}} is not on Bedrock.", id=model)


def _bucket_problems(config: CoreConfig) -> Iterator[Problem]:
    bucket, key = config.s3_bucket, config.s3_kms_key_id
    if bucket and not re.fullmatch(_BUCKET, bucket):
        yield Problem.of("The bucket name {name!r} is not a valid S3 bucket name.", name=bucket)
    missing = "without a bucket: set RUNNER_S3_BUCKET or give {s3_bucket}."
    if config.s3_prefix and not bucket:
        yield Problem.of(f"An S3 prefix is given {missing}")
    if key and not re.fullmatch(_KMS_KEY, key):
        yield Problem.of(
            "The KMS key {key!r} is neither a key id, nor alias/NAME, nor an ARN of these.", key=key
        )
    if key and not bucket:
        yield Problem.of(f"A KMS key is given {missing}")
    yield from prefix_problems(config.s3_prefix)


def prefix_problems(prefix: str) -> Iterator[Problem]:
    """Mistakes in a prefix for the keys of a run's objects."""
    if prefix and re.search(_UNFIT_FOR_KEYS, prefix):
        yield Problem.of(
            "The S3 prefix {prefix!r} must hold no control characters, and neither '.' nor '..' as "
            "a part.",
            prefix=prefix[:100],
        )
    most_bytes = MAX_KEY_BYTES - LONGEST_KEY_BYTES - len("/")
    if (n_bytes := len(prefix.encode(errors="replace"))) > most_bytes:
        yield Problem.of(
            f"The S3 prefix has {n_bytes} bytes, but at most {most_bytes} leave room for the keys "
            f"of a run: S3 takes {MAX_KEY_BYTES}."
        )


def _thinking_problems(config: CoreConfig) -> Iterator[Problem]:
    budget = config.thinking_budget_tokens
    if budget is None:
        return
    if budget >= config.max_tokens:
        yield Problem.of(
            "{thinking_budget_tokens} is {budget}, but must be less than {max_tokens} ({bound}), "
            "which bounds thinking and reply together.",
            budget=budget,
            bound=config.max_tokens,
        )
    family = family_of(config.model)  # for Claude it is so, for unknown models it may be
    thinks_at_one = family is None or family.thinking in ("budget", "adaptive")
    if config.temperature not in (None, 1) and thinks_at_one:
        yield Problem.of(
            "{enable_thinking} allows no {temperature} but 1, not {given:g}: leave it out.",
            given=config.temperature,
        )


def _metadata_problems(config: CoreConfig) -> Iterator[Problem]:
    pairs = config.request_metadata
    keys = [key for key, _ in pairs]
    for key in dict.fromkeys(key for key in keys if keys.count(key) > 1):
        yield Problem.of("{request_metadata} names the key {key!r} more than once.", key=key)
    for key, value in pairs:
        if not (re.fullmatch(_METADATA_KEY, key) and re.fullmatch(_METADATA_VALUE, value)):
            yield Problem.of(
                "{request_metadata} {key!r}={value!r}: key (1 to 256) and value (up to 256) take "
                "letters a to z, digits, white space and : _ @ $ # = / + , - .",
                key=key,
                value=value,
            )


def _guardrail_problems(config: CoreConfig) -> Iterator[Problem]:
    rail = config.guardrail
    if rail and not (
        re.fullmatch(_GUARDRAIL_ID, rail.id) and re.fullmatch(_GUARDRAIL_VERSION, rail.version)
    ):
        yield Problem.of(
            "{guardrail} takes ID:VERSION, the id or ARN of a guardrail and a number or DRAFT, "
            "not '{given}'.",
            given=str(rail) if rail.id else rail.version,
        )


def _text_problems(config: CoreConfig) -> Iterator[Problem]:
    """Mistakes in the folder's name and in the prompt. Half of a character in a prompt is none: it
    is replaced when the prompt is sent.
    """
    folder = config.output_dir or ""
    if not is_text(folder):
        yield Problem.of("{output_dir} is not UTF-8 text: {word!r}.", word=_bytes_of(folder))
    if config.prompt is not None and not config.prompt.strip():
        yield Problem.of("The prompt is empty: give the student's first message.")
    if config.prompt and len(config.prompt.encode(errors="replace")) > MAX_TEXT_BYTES:
        yield Problem.of(f"The prompt has more than {MAX_TEXT_BYTES} bytes.")


def _bytes_of(word: str) -> bytes | str:
    """The bytes that the command line held; the word itself if it can have been none."""
    try:
        return os.fsencode(word)[:LONGEST_SHOWN]
    except UnicodeEncodeError:
        return word[:LONGEST_SHOWN]
