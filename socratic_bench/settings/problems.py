"""Mistakes in a configuration: each setting by its line in the table, then several together."""

import re
from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any, TypeVar

from msgspec import ValidationError
from msgspec.structs import replace

from socratic_bench.errors import Problem
from socratic_bench.settings.core import CoreConfig
from socratic_bench.settings.readers import BEDROCK
from socratic_bench.settings.table import foreign, table
from socratic_bench.settings.texts import text_problems
from socratic_bench.types import counted

Config = TypeVar("Config", bound=CoreConfig)

_ARN = r"arn:aws[\w-]*:bedrock:(?P<region>[a-z0-9-]*):\d*:[\w.-]+/.+"
_ROLE_ARN = r"arn:aws[\w-]*:iam::\d{12}:role/.+"
# Characters that a key cannot hold, and parts of a path that some readers would resolve.
_UNFIT = r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029]|(^|/)\.\.?(/|$)"
# S3's bound, and the longest key of a run, which names it below `journal/identities/`.
MAX_KEY_BYTES = 1024
LONGEST_ID = 2048
EMBEDDED = "emulator."
MOST_NAMED = 3
LONGEST_KEY_BYTES = 82
_BUCKET = r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]"
_STRANGE = r"[\x00-\x20\x7f-\xa0\u2028\u2029\ud800-\udfff]"
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


def typed(config: Config) -> tuple[Config, tuple[Problem, ...]]:
    """The configuration with each value in its field's type, and those that are of none.

    Their defaults stand in for these, so that all else can be checked in the same go.
    """
    read: dict[str, Any] = {}
    problems: list[Problem] = []
    for one in table(type(config)).values():
        value = getattr(config, one.name)
        if value is one.default:
            continue
        try:
            found = one.typed(value)
        except (ValidationError, TypeError, UnicodeEncodeError) as error:  # half of a character
            found = one.default
            problems.append(one.type_problem(value, error))
        if found != value:  # a whole number stays one in a field for any
            read[one.name] = found
    return replace(config, **read) if read else config, tuple(problems)


def problems_of(config: CoreConfig, max_turns: int) -> tuple[Problem, ...]:
    """Every mistake in the values, one sentence each; empty if the run can be prepared.

    `max_turns` is the benchmark's own bound.
    """
    config, mistyped = typed(config)
    declared = {**table(type(config))}
    declared["turns"] = declared["turns"].up_to(max_turns)
    alone = (one.problem(getattr(config, one.name)) for one in declared.values())
    return (
        *mistyped,
        *_foreign_problems(config),
        *_tested_problems(config),
        *model_problems(config, "model"),
        *jury_problems(config),
        *text_problems(config),
        *_gate_problems(config),
        *(problem for problem in alone if problem),
        *_thinking_problems(config),
        *_metadata_problems(config),
        *_guardrail_problems(config),
        *_place_problems(config),
        *_bucket_problems(config),
        *_resume_problems(config),
    )


def _foreign_problems(config: CoreConfig) -> Iterator[Problem]:
    kind = type(config)
    for name, owners in foreign(kind, config.benchmark).items():
        if getattr(config, name) != table(kind)[name].default:
            yield foreign_problem(name, owners, config.benchmark)


def foreign_problem(name: str, owners: Sequence[str], benchmark: str) -> Problem:
    """A setting is given that the chosen benchmark does not have."""
    return Problem.of(
        f"{{{name}}} is a setting of {{owners}}, but {{benchmark}} is to be played.",
        owners=" and ".join(owners),
        benchmark=benchmark,
    )


def _tested_problems(config: CoreConfig) -> Iterator[Problem]:
    if not config.model:
        yield Problem.of("No model to test: give {model} with a Bedrock model id.")
    elif config.model_ids is not None and config.model not in config.model_ids:
        yield Problem.of(
            _not_allowed(config, config.model_ids),
            asked=config.model,
            nearest=_nearest(config.model, config.model_ids),
        )


def _not_allowed(config: CoreConfig, allowed: Sequence[str]) -> str:
    if not config.offline:
        return "Model not found in {model_ids}: {asked!r}{nearest}."
    if all(name.startswith(EMBEDDED) for name in allowed):
        return (
            "{offline} plays the embedded models alone, and {asked!r} is none of them{nearest}. "
            "Take one of these, which socratic-runner models {offline} lists, too, or leave "
            "{offline} out."
        )
    return (
        "Model not found in {model_ids}, which counts with {offline}, too: {asked!r}{nearest}. "
        "Leave it unset there to play the embedded models."
    )


def _nearest(model: str, allowed: tuple[str, ...]) -> str:
    from difflib import get_close_matches

    # Comparing takes quadratic time, and no id is longer.
    near = get_close_matches(model[:LONGEST_ID], allowed, n=MOST_NAMED, cutoff=0.5)
    if near:
        return f" (nearest: {', '.join(near)})"
    more = f" and {len(allowed) - MOST_NAMED} more" if len(allowed) > MOST_NAMED else ""
    return f" (allowed: {', '.join(allowed[:MOST_NAMED])}{more})"


def jury_problems(config: CoreConfig) -> Iterator[Problem]:
    """What is wrong with the ids of those who judge, and with the votes that they need."""
    jurors = config.jurors
    for juror in dict.fromkeys(jurors):
        yield from model_problems(config, "judge_model", juror)
        if jurors.count(juror) > 1:
            yield Problem.of("{judge_model} names {id} twice: a juror has one vote.", id=juror)
    if isinstance(config.judge_model, tuple) and len(jurors) == 1:
        yield Problem.of("A jury has two jurors or more: give one judge as its id alone.")
    if isinstance(config.judge_model, tuple) and not jurors:
        yield Problem.of("{judge_model} names nobody: leave it out with {no_judge}.")
    if config.quorum is not None and config.quorum > len(jurors):
        size = counted(len(jurors), "juror") if jurors else "nobody"
        yield Problem.of(
            "{quorum} is {needed}, but {size} could vote.", needed=config.quorum, size=size
        )


def model_problems(config: CoreConfig, name: str, model_id: str | None = None) -> Iterator[Problem]:
    """What is wrong with the setting `name`, which names a model, or several."""
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
            yield Problem.of(f"{{{name}}} is no Bedrock ARN: {{id!r}}.", id=model)
    is_plain = model.isascii() and model.isprintable() and " " not in model
    if not is_plain and (strange := re.search(_STRANGE, model)):
        yield Problem.of(
            f"{{{name}}} holds a character that no model id has ({{strange!r}}): {{id!r}}.",
            strange=strange[0],
            id=model,
        )


def _gate_problems(config: CoreConfig) -> Iterator[Problem]:
    for gate in config.gates:
        if not isfinite(gate.minimum):
            text = "{gates} {metric}: the bound is {bound}, but must be a finite number."
            yield Problem.of(text, metric=gate.metric, bound=gate.minimum)


def _resume_problems(config: CoreConfig) -> Iterator[Problem]:
    asked = config.resume or config.resume_run_id is not None
    if asked and not (config.output_dir or config.s3_bucket):
        yield NOTHING_TO_RESUME


NOTHING_TO_RESUME = Problem.of("Nothing to resume from: give {output_dir} or {s3_bucket}.")


def _place_problems(config: CoreConfig) -> Iterator[Problem]:
    if config.provider == BEDROCK and not config.region and not config.offline:
        yield Problem.of("No region: set AWS_REGION or give {region}.")
    if config.region and not re.fullmatch(_REGION, config.region):
        yield Problem.of("The region {given!r} is not of the form us-east-1.", given=config.region)
    role = config.assume_role_arn
    if role and not re.fullmatch(_ROLE_ARN, role):
        yield Problem.of("The role to assume is no IAM role ARN: {role!r}.", role=role)


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
    """Why this prefix cannot begin the keys of a run's objects."""
    if prefix and re.search(_UNFIT, prefix):
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
    if config.temperature not in (None, 1) and _thinks_at_one_temperature(config.model):
        yield Problem.of(
            "{enable_thinking} allows no {temperature} but 1, not {given:g}: leave it out.",
            given=config.temperature,
        )


def _thinks_at_one_temperature(model_id: str) -> bool:
    """Claude does, and an unknown model may."""
    from socratic_bench.catalogue.models import family_of

    family = family_of(model_id)
    return family is None or family.thinking in ("budget", "adaptive")


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
