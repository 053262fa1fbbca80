"""Reads a verdict out of a judge's answer: a whole, valid one, or the reason why there is none."""

import json
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from socratic_bench.turns import Rubric, Verdict
from socratic_bench.types import MALFORMED_STOPS, Completion, Json, ToolUse, clean

# Reasons for which the text must not even be looked at: what it says is not the judge's verdict.
STOPS: Mapping[str, str] = {
    "content_filtered": "content_filtered",
    "guardrail_intervened": "guardrail",
    "model_context_window_exceeded": "context_window",
    "max_tokens": "cut_off",
    **dict.fromkeys(MALFORMED_STOPS, "malformed_output"),
}
MAX_REPLY_CHARS = 200_000
MAX_REASON_CHARS = 4_000
MAX_DEPTH = 32


class Unreadable(Struct, frozen=True):
    """Why an answer holds no verdict; `reason` is a word for machines."""

    reason: str
    problem: str


def read_verdict(answer: Completion, rubric: Rubric, *, judge_model: str) -> Verdict | Unreadable:
    """The verdict of an answer. The stop reason is looked at before the text."""
    if answer.stop_reason in STOPS:
        return Unreadable(STOPS[answer.stop_reason], f"it ended with {answer.stop_reason}.")
    found = said_arguments(answer, {dimension.name for dimension in rubric.dimensions})
    if isinstance(found, Unreadable):
        return found
    problems = list(_score_problems(found, rubric))
    if problems:
        return Unreadable("invalid_verdict", " ".join(problems))
    scores = {d.name: _number(found[d.name]) for d in rubric.dimensions}
    return Verdict(
        scores={name: value for name, value in scores.items() if value is not None},
        rationale=_rationale(found, rubric),
        judge_model=judge_model,
    )


def raw_text(answer: Completion) -> str:
    """What the judge said, tool arguments as JSON, bounded in length."""
    parts = [
        json.dumps(block.arguments, ensure_ascii=False)
        if is_shallow(block.arguments)
        else "(JSON that is nested too deeply to be kept)"
        for block in answer.message.content
        if isinstance(block, ToolUse)
    ]
    return clean("\n".join([*parts, answer.message.text]).strip())[:MAX_REPLY_CHARS]


def is_shallow(value: Json) -> bool:
    """Whether a JSON value is nested no deeper than a verdict may be, so that it can be handled."""
    level: list[Json] = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for outer in level for inner in _inner(outer)]
    return not level


def _inner(value: Json) -> Iterable[Json]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def said_arguments(answer: Completion, names: Iterable[str]) -> dict[str, Json] | Unreadable:
    """The one object that the judge gave, by a tool or in words; others may stand beside it that
    have none of the `names` in them.
    """
    uses = [block.arguments for block in answer.message.content if isinstance(block, ToolUse)]
    objects = [use for use in uses if isinstance(use, dict) and is_shallow(use)]
    if not uses:
        text = answer.message.text
        if not text.strip():
            return Unreadable("empty_verdict", "it is empty.")
        if len(text) > MAX_REPLY_CHARS:
            return Unreadable("unreadable_verdict", f"it has {len(text)} characters.")
        from socratic_bench.judging.thoughts import said_objects

        try:
            objects = said_objects(text)
        except (ValueError, RecursionError) as error:
            return Unreadable("unreadable_verdict", f"its JSON is broken ({error}).")
    if not objects:
        return Unreadable("unreadable_verdict", "it holds no JSON object.")
    objects = [one for one in objects if one.keys() & {*names}] or objects
    if any(other != objects[0] for other in objects[1:]):
        return Unreadable("unreadable_verdict", "it holds more than one JSON object.")
    return objects[0]


def _score_problems(found: Mapping[str, Json], rubric: Rubric) -> Iterator[str]:
    for dimension in rubric.dimensions:
        if dimension.name not in found:
            yield f"{dimension.name} is missing."
            continue
        value = _number(found[dimension.name])
        if value is None:
            yield f"{dimension.name} is no number."
        elif not dimension.low <= value <= dimension.high:
            yield (
                f"{dimension.name} is {value:g}, out of {dimension.low:g} to {dimension.high:g}."
            )
        elif not (value / dimension.step).is_integer():
            yield f"{dimension.name} is {value:g}, not in steps of {dimension.step:g}."


def _number(value: Json) -> float | None:
    """The value if it is a JSON number that a score can be; a boolean or a text is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # Integers of any length come out of JSON; only small ones are scores.
    return float(value) if abs(value) < 1e6 else None  # noqa: PLR2004


def _rationale(found: Mapping[str, Json], rubric: Rubric) -> dict[str, str | None]:
    reasons = found.get("rationale")
    given = reasons if isinstance(reasons, dict) else {}
    return {d.name: _reason(given.get(d.name)) for d in rubric.dimensions}


def _reason(value: Json) -> str | None:
    return clean(value)[:MAX_REASON_CHARS] if isinstance(value, str) and value.strip() else None
