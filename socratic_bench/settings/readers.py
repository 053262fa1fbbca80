"""The settings whose value depends on more than their own flag and variables."""

import codecs
import json
from collections.abc import Callable, Mapping
from typing import Any

from socratic_bench.generation import MIN_THINKING_TOKENS
from socratic_bench.settings.files import MAX_TEXT_BYTES
from socratic_bench.settings.reader import Reader

OFFLINE_REGION = "us-east-1"
BEDROCK = "bedrock"  # the provider that has regions, and a list of the models that may be tested
MODEL_IDS_FORM = (
    """a JSON array of model ids, such as '["anthropic.claude-3-5-sonnet-20241022-v1:0"]'"""
)


def _prompt(reader: Reader) -> str | None:
    prompt = reader.sources.flags.get("prompt")
    if not isinstance(prompt, str):
        return None
    return _piped_prompt(reader) if prompt == "-" else prompt


def _piped_prompt(reader: Reader) -> str:
    """Standard input without its final line break, which is not part of the prompt."""
    try:
        # One byte more than a prompt may have shows that it is too long.
        content = reader.sources.read_stdin(MAX_TEXT_BYTES + 1)
        text = _decoded(content)
    except OSError as error:
        reader.note("The prompt on standard input cannot be read: {why}.", why=error.strerror)
        return "-"
    except UnicodeDecodeError as error:
        reader.note(f"The prompt on standard input is no UTF-8 text (byte {error.start + 1}).")
        return "-"
    if len(content) > MAX_TEXT_BYTES:
        reader.note(f"The prompt has more than {MAX_TEXT_BYTES} bytes.")
    return text[:-1].removesuffix("\r") if text.endswith("\n") else text


def _decoded(content: bytes) -> str:
    """The text of what was read; of too much of it the end may be half a character."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    return decoder.decode(content, final=len(content) <= MAX_TEXT_BYTES)


def _judge_model(reader: Reader) -> str | tuple[str, ...] | None:
    if reader.given("no-judge"):
        if reader.given("judge-model"):
            reader.note("{no_judge} and {judge_model} are both given: keep one.")
        return None
    named: tuple[str, ...] = reader.read("judge_model")
    found = named if reader.given("judge-model") else _by_variables(reader)
    if found:
        return found[0] if len(found) == 1 else found
    if reader.given("offline"):
        return next((id_ for id_ in reader.sources.offline_models() if "judge" in id_), None)
    default: str = reader.default("judge_model")
    return default


def _by_variables(reader: Reader) -> tuple[str, ...]:
    judge = reader.sources.environ.get("RUNNER_JUDGE_MODEL")
    jury = reader.sources.environ.get("RUNNER_JURY_MODELS", "")
    if jury.strip():
        named = model_ids_of(reader, jury, "RUNNER_JURY_MODELS") or ()
        found = tuple(dict.fromkeys(named))
        for juror in found:
            if named.count(juror) > 1:
                said = "RUNNER_JURY_MODELS names {id} twice: a juror has one vote."
                reader.note(said, id=juror)
        return found
    return (judge,) if judge else ()


def _model_ids(reader: Reader) -> tuple[str, ...] | None:
    text = reader.sources.environ.get("BEDROCK_MODEL_IDS", "").strip()
    if not text:
        if reader.given("offline"):
            return reader.sources.offline_models()
        if reader.read("provider") != BEDROCK:
            return None
        reader.note("{model_ids} is not set: it takes {form}.", form=MODEL_IDS_FORM)
        return None
    return model_ids_of(reader, text, "{model_ids}")


def model_ids_of(reader: Reader, text: str, called: str) -> tuple[str, ...] | None:
    """The ids in a JSON array; `None`, and a note, for anything else."""
    try:
        ids = json.loads(text)
    except (ValueError, RecursionError) as error:
        reader.note(
            f"{called} is no JSON ({{error}}): it takes {{form}}.",
            error=str(error),
            form=MODEL_IDS_FORM,
        )
        return None
    if not isinstance(ids, list) or not ids or not all(isinstance(i, str) and i for i in ids):
        reader.note(f"{called} must be {{form}}.", form=MODEL_IDS_FORM)
        return None
    return tuple(ids)


def _region(reader: Reader) -> str | None:
    region: str | None = reader.read("region")
    if region is None and reader.read("provider") == BEDROCK:
        return OFFLINE_REGION if reader.given("offline") else _profile_region(reader)
    return region


def _profile_region(reader: Reader) -> str | None:
    region = reader.sources.profile_region()
    problem = None if region else reader.sources.profile_problem()
    if problem:
        reader.note("{problem}", problem=problem)
    return region


def _role(reader: Reader) -> str | None:
    # A real role must never be assumed for the embedded endpoint.
    role: str | None = reader.read("assume_role_arn")
    return None if reader.given("offline") else role


def _prefix(reader: Reader) -> str:
    prefix: str = reader.read("s3_prefix")
    return prefix.strip("/")


def _thinking_budget(reader: Reader) -> int | None:
    """`None` without the switch."""
    budget: int | None = reader.read("thinking_budget_tokens")
    if reader.given("enable-thinking"):
        return MIN_THINKING_TOKENS if budget is None else budget
    if reader.given("thinking-budget-tokens"):
        reader.note("{thinking_budget_tokens} needs {enable_thinking}.")
    return None


def _max_tokens(reader: Reader) -> int:
    """Thinking counts against the bound, so that its budget comes on top of the default."""
    bound: int = reader.read("max_tokens")
    if reader.given("max-tokens"):
        return bound
    return bound + max(0, _thinking_budget(reader) or 0)


READERS: Mapping[str, Callable[[Reader], Any]] = {
    "prompt": _prompt,
    "judge_model": _judge_model,
    "model_ids": _model_ids,
    "region": _region,
    "assume_role_arn": _role,
    "s3_prefix": _prefix,
    "thinking_budget_tokens": _thinking_budget,
    "max_tokens": _max_tokens,
}
