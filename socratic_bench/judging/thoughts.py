"""Finds the JSON that a text says, apart from what it drafts in thoughts such as `<thinking>`."""

import json
import re

from socratic_bench.types import Json

# A JSON object, or why it is none.
_Found = dict[str, Json] | Exception

# The marks that models put around thoughts in plain text, such as <thinking>, <|end_of_thought|>
# and [THINK]; other brackets are Markdown.
_TAG = (
    r"[<\u25c1]\|?(?P<close>/|end_of_)?(?:\w+:)?(?:begin_of_)?(?:(?:inner|ant|my)[ _-]?)?"
    r"(?:think(?:ing)?|thoughts?|reason(?:ing)?|reflect(?:ion|ing)?|analysis|analy[sz]ing"
    r"|scratch[ _-]?pad|monologue|deliberation|drafts?)(?:\s[^<>]{0,200})?(?<!/)\|?[>\u25b7]"
    r"|\[(?P<close_think>/)?THINK\]"
)
# Other braces belong to prose.
_OBJECT = r'(?P<object>\{\s*["}])'
_NEXT_TAG = re.compile(_TAG, re.IGNORECASE)
_NEXT = re.compile(f"{_OBJECT}|{_TAG}", re.IGNORECASE)


def said_objects(text: str) -> list[dict[str, Json]]:
    """The outermost JSON objects that count: all, or those that stand outside of thoughts.

    A thought that is never closed reaches to the end, but the last object in it is what was meant.
    Prose and code fences are passed over. Raises `ValueError` or `RecursionError` for an object
    that is broken: what lies within it is no verdict of its own.
    """
    found, said = _scan(text)
    # With nothing said outside, or a thought behind it, what was thought may be meant as well.
    return [_whole(one) for one in ([*said, found[-1]] if said else found)]


def _scan(text: str) -> tuple[list[_Found], list[_Found]]:
    """All objects, and those outside of thoughts."""
    found: list[_Found] = []
    said: list[_Found] = []
    is_open, opened_at, end = False, 0, 0
    while mark := _NEXT.search(text, end):
        end = mark.end()
        if mark["object"]:
            value, end = _decoded(text, mark.start())
            found.append(value)
            if not is_open:
                said.append(value)
        elif not (mark["close"] or mark["close_think"]):
            opened_at = opened_at if is_open else len(found)
            is_open = True
        elif is_open:
            is_open = False
        else:
            # The mark that opens stood in the prompt, or was left out.
            said = []
    if is_open and len(found) > opened_at:
        said.append(found[-1])
    return found, said


def _decoded(text: str, start: int) -> tuple[_Found, int]:
    """The object at `start` and where it ends; a broken one ends at the next mark of a thought."""
    decoder = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_no_name_twice)
    try:
        return decoder.raw_decode(text, start)
    except (ValueError, RecursionError) as error:
        tag = _NEXT_TAG.search(text, start)
        return error, tag.start() if tag else len(text)


def _whole(value: _Found) -> dict[str, Json]:
    if isinstance(value, Exception):
        raise value
    return value


def _no_name_twice(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice in one object")
    return found


def _refuse_constant(word: str) -> Json:
    raise ValueError(f"{word} is no JSON number")
