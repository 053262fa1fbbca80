"""A verdict such as a judge may give, for estimates: whole and readable."""

from socratic_bench.turns import Rubric
from socratic_bench.types import Json


def expected_verdict(rubric: Rubric, reason: str) -> dict[str, Json]:
    """The arguments of the judge's tool call: full scores, no event, and the same reason for each
    score, from which it quotes as much again.
    """
    reasons: dict[str, Json] = {d.name: reason for d in rubric.dimensions}
    return {
        **({"quotes": reasons} if rubric.has_quotes else {}),
        **({"events": {event.name: None for event in rubric.events}} if rubric.events else {}),
        "rationale": reasons,
        **{d.name: d.high for d in rubric.dimensions},
    }


def expected_arguments(schema: Json, text: str) -> Json:
    """Arguments that fit a tool's schema: the first word of a choice, the least of numbers, and the
    text in the place of any other words.
    """
    if not isinstance(schema, dict):
        return text
    properties, words = schema.get("properties"), schema.get("enum")
    if isinstance(properties, dict):
        return {name: expected_arguments(one, text) for name, one in properties.items()}
    if isinstance(words, list) and words:
        return words[0]
    return schema.get("minimum", 0) if schema.get("type") in ("integer", "number") else text
