"""A configuration as plain JSON, so that a run can go on without its flags being given again."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple, replace

from socratic_bench.config.run_config import Gate, RunConfig
from socratic_bench.types import Guardrail

# Told afresh by whoever goes on: where the run is kept, and what may be tested.
AFRESH = (
    "output_dir",
    "s3_bucket",
    "s3_prefix",
    "model_ids",
    "resume",
    "resume_run_id",
)
FILES = ("scenario_file", "system_prompt_file", "transcript", "prices_file")
# Flags whose field has another name than their own.
FIELDS = {
    "call-timeout": "call_timeout_s",
    "deadline": "deadline_s",
    "enable-thinking": "thinking_budget_tokens",
    "fail-under": "gates",
    "no-judge": "judge_model",
    "no-prompt-cache": "prompt_cache",
    "no-stream": "stream",
    "prices": "prices_file",
    "student": "student_model",
}


def to_stored(config: RunConfig) -> dict[str, Any]:
    """Field name -> plain value; paths absolute, since another process may stand elsewhere."""
    stored = {
        name: getattr(config, name) for name in config.__struct_fields__ if name not in AFRESH
    }
    for name in FILES:
        if stored[name] is not None:
            stored[name] = str(Path(stored[name]).absolute())
    return {name: to_plain(value) for name, value in stored.items()}


def to_plain(value: Any) -> Any:  # noqa: ANN401 -- any value of a configuration
    """A value as JSON carries it: what is made of parts becomes a list of them."""
    if isinstance(value, Struct):
        return list(astuple(value))
    return [to_plain(item) for item in value] if isinstance(value, tuple) else value


def from_stored(stored: Mapping[str, Any]) -> RunConfig:
    """The reverse; fields that this version does not know are left out.

    Raises `TypeError`, `ValueError` or `KeyError` for anything that `to_stored` did not make.
    """
    names = set(RunConfig.__struct_fields__) - {*AFRESH}
    known = {name: value for name, value in stored.items() if name in names}
    known["gates"] = tuple(Gate(*gate) for gate in stored["gates"])
    known["guardrail"] = Guardrail(*stored["guardrail"]) if stored["guardrail"] else None
    known["request_metadata"] = tuple((name, value) for name, value in stored["request_metadata"])
    return RunConfig(**known)


def continued(stored: RunConfig, asked: RunConfig, flags: Iterable[str]) -> RunConfig:
    """The stored configuration with what the given `flags` say, and the places of `asked`."""
    names = set(RunConfig.__struct_fields__)
    said = {FIELDS.get(flag, flag.replace("-", "_")) for flag in flags} & names
    # What was encrypted stays so, in the bucket that it is in.
    key = asked.s3_kms_key_id or (stored.s3_kms_key_id if asked.s3_bucket else None)
    afresh = {name: getattr(asked, name) for name in (*AFRESH, *said)}
    return replace(stored, **{**afresh, "s3_kms_key_id": key})
