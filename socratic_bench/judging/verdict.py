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
_NOT_SEEN = ("null", "none", "no", "false", "n/a", "not seen")


class Unreadable(Struct, frozen=True):
    """Why an answer holds no verdict; `reason` is a word for machines."""

    reason: str
    problem: str


def read_verdict(
    answer: Completion, rubric: Rubric, *, judge_model: str, reply: str = ""
) -> Verdict | Unreadable:
    """The verdict of an answer on `reply`.

    What a verdict counts by are its scores. Events or quotes that it lacks are null, or flagged.
    """
    found = said_arguments(answer, {dimension.name for dimension in rubric.dimensions})
    if isinstance(found, Unreadable):
        return found
    problems = list(_score_problems(found, rubric))
    if problems:
        return Unreadable("invalid_verdict", " ".join(problems))
    scores = {d.name: _number(found[d.name]) for d in rubric.dimensions}
    events = _seen_events(found, rubric)
    quotes = _by_dimension(found, "quotes", rubric) if rubric.has_quotes else None
    return Verdict(
        scores={name: value for name, value in scores.items() if value is not None},
        rationale=_by_dimension(found, "rationale", rubric),
        judge_model=judge_model,
        events=events,
        quotes=quotes,
        unquoted=None if quotes is None else _unquoted({**quotes, **(events or {})}, reply),
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
    have none of the `names` in them. The stop reason is looked at before the text.
    """
    if answer.stop_reason in STOPS:
        return Unreadable(STOPS[answer.stop_reason], f"it ended with {answer.stop_reason}.")
    uses = [block.arguments for block in answer.message.content if isinstance(block, ToolUse)]
    whole = [use for use in uses if isinstance(use, dict) and is_shallow(use)]
    objects = whole if uses else _in_words(answer.message.text)
    if isinstance(objects, Unreadable):
        return objects
    if not objects:
        return Unreadable("unreadable_verdict", "it holds no JSON object.")
    objects = [one for one in objects if one.keys() & {*names}] or objects
    if any(other != objects[0] for other in objects[1:]):
        return Unreadable("unreadable_verdict", "it holds more than one JSON object.")
    return objects[0]


def _in_words(text: str) -> list[dict[str, Json]] | Unreadable:
    if not text.strip():
        return Unreadable("empty_verdict", "it is empty.")
    if len(text) > MAX_REPLY_CHARS:
        return Unreadable("unreadable_verdict", f"it has {len(text)} characters.")
    from socratic_bench.judging.thoughts import said_objects

    try:
        return said_objects(text)
    except (ValueError, RecursionError) as error:
        return Unreadable("unreadable_verdict", f"its JSON is broken ({error}).")


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


def _by_dimension(found: Mapping[str, Json], key: str, rubric: Rubric) -> dict[str, str | None]:
    """What the verdict says of each dimension, its reason or its quote."""
    told = found.get(key)
    given = told if isinstance(told, dict) else {}
    return {d.name: _text(given.get(d.name)) for d in rubric.dimensions}


def _seen_events(found: Mapping[str, Json], rubric: Rubric) -> dict[str, str] | None:
    """The words of each event that the verdict says was seen, none for one without; `None` if it
    does not tell what was seen.
    """
    told = found.get("events")
    if not rubric.events or not isinstance(told, dict):
        return None
    given = {event.name: told.get(event.name) for event in rubric.events}
    if not all(value is None or isinstance(value, str | bool) for value in given.values()):
        return None
    return {name: _text(value) or "" for name, value in given.items() if _is_seen(value)}


def _is_seen(value: Json) -> bool:
    """Nothing, no, and words for either are no event."""
    said = value.strip(" .\"'()-").casefold() if isinstance(value, str) else value
    return bool(said) and said not in _NOT_SEEN


def _unquoted(quotes: Mapping[str, str | None], reply: str) -> tuple[str, ...]:
    from socratic_bench.judging.quotes import is_quoted

    return tuple(name for name, words in quotes.items() if not is_quoted(words or "", reply))


def _text(value: Json) -> str | None:
    return clean(value)[:MAX_REASON_CHARS] if isinstance(value, str) and value.strip() else None
