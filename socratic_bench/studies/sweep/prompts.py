"""Reads a file of prompts: opening words, one run each."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import orjson
from msgspec import Struct

from socratic_bench.documents.sweep_plan import LONGEST_ID, PromptLine
from socratic_bench.errors import MOST_SHOWN, Problem, UsageError
from socratic_bench.settings import MAX_TEXT_BYTES, read_bounded
from socratic_bench.studies.sweep.plan_words import meant
from socratic_bench.types import Json

MAX_FILE_BYTES = 64 * 2**20
MAX_PROMPTS = 100_000
MAX_LINES = 2 * MAX_PROMPTS
JSONL = ".jsonl"
COMMENT = "#"


class Prompt(Struct, frozen=True):
    """Opening words, the line of the file in which they stand, counted from 1, and their name."""

    text: str
    line: int
    id: str | None = None


class _Mistake(Struct, frozen=True):
    """What is wrong with a line; settings stand in the text as in `Problem`."""

    line: int
    text: str


def read_prompts(path: Path | str) -> tuple[Prompt, ...]:
    """The prompts of a file: JSONL if its name ends with `.jsonl`, otherwise text with one a line.

    Raises `UsageError` with all mistakes in it.
    """
    found = [*_read(path)]
    prompts = [one for one in found if isinstance(one, Prompt)]
    mistakes = [one for one in found if isinstance(one, _Mistake)]
    mistakes += [*_repeated(prompts)]
    if mistakes:
        mistakes.sort(key=lambda one: one.line)
        raise _error(path, *(f"line {one.line}: {one.text}" for one in mistakes))
    if not prompts:
        raise _error(path, "there is no prompt in it: give one a line.")
    if len(prompts) > MAX_PROMPTS:
        n_prompts = len(prompts)
        raise _error(path, f"it has {n_prompts} prompts, but at most {MAX_PROMPTS} are taken.")
    return tuple(prompts)


def _error(path: Path | str, *texts: str) -> UsageError:
    return UsageError([Problem(text, (("path", path),), "{path}") for text in texts])


def _read(path: Path | str) -> Iterator[Prompt | _Mistake]:
    read_line = _json_line if str(path).lower().endswith(JSONL) else _text_line
    for number, line in enumerate(_lines(path), start=1):
        try:
            text = line.decode().strip()
        except UnicodeDecodeError as error:
            yield _Mistake(number, f"it is no UTF-8 text (byte {error.start + 1} of the line).")
            continue
        if text:
            yield from read_line(number, text)


def _lines(path: Path | str) -> list[bytes]:
    """Raises `UsageError` if the file cannot be read, or is too long."""
    try:
        content = read_bounded(path, bound=MAX_FILE_BYTES)
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise _error(path, f"it cannot be read: {why}.") from error
    if (n_lines := content.count(b"\n")) > MAX_LINES:
        raise _error(path, f"it has {n_lines} lines, but at most {MAX_LINES} are read.")
    return content.removeprefix(b"\xef\xbb\xbf").split(b"\n")


def _text_line(number: int, text: str) -> Iterator[Prompt | _Mistake]:
    if text.startswith(COMMENT):
        return
    if text.startswith('{"'):
        yield _Mistake(number, f"it looks like JSON: name the file so that it ends with {JSONL}.")
    else:
        yield from _prompt(number, text, None)


def _json_line(number: int, text: str) -> Iterator[Prompt | _Mistake]:
    try:
        found: Json = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        yield _Mistake(number, f"it is no JSON ({_escaped(error.msg)}, column {error.colno}).")
        return
    if not isinstance(found, dict):
        yield _Mistake(number, 'it must be an object, such as {{"prompt": "Why is it so?"}}.')
        return
    wrong = [*_wrong(found)]
    yield from (_Mistake(number, one) for one in wrong)
    prompt, name = found.get("prompt"), found.get("id")
    if not wrong and isinstance(prompt, str):
        yield from _prompt(number, prompt, name if isinstance(name, str) else None)


def _wrong(found: dict[str, Json]) -> Iterator[str]:
    strange = (name for name in found if name not in PromptLine.__struct_fields__)
    for name in islice(strange, MOST_SHOWN):
        near = meant(name, PromptLine.__struct_fields__)
        told = f"did you mean {near[0]}?" if near else "a line has prompt, and may have id."
        yield f"{_escaped(repr(name[:LONGEST_ID]))} is not known; {told}"
    if "prompt" not in found:
        yield "prompt is missing."
    elif not isinstance(found["prompt"], str):
        yield "prompt must be text."
    yield from _wrong_id(found.get("id"))


def _wrong_id(given: Json) -> Iterator[str]:
    if given is None:
        return
    if not isinstance(given, str):
        yield "id must be text."
    elif not (given.strip() and given.isprintable() and len(given) <= LONGEST_ID):
        yield f"id must have 1 to {LONGEST_ID} characters that can be printed, not blanks alone."


def _prompt(number: int, text: str, name: str | None) -> Iterator[Prompt | _Mistake]:
    if not text.strip():
        yield _Mistake(number, "the prompt is empty.")
    elif len(text.encode()) > MAX_TEXT_BYTES:
        yield _Mistake(number, f"the prompt has more than {MAX_TEXT_BYTES} bytes.")
    else:
        yield Prompt(text, number, name)


def _repeated(prompts: list[Prompt]) -> Iterator[_Mistake]:
    texts: dict[str, int] = {}
    names: dict[str, int] = {}
    for one in prompts:
        if (line := texts.setdefault(one.text, one.line)) != one.line:
            yield _Mistake(
                one.line,
                f"the prompt is that of line {line}: keep one; {{repeats}} plays each again.",
            )
        if one.id is not None and (line := names.setdefault(one.id, one.line)) != one.line:
            yield _Mistake(
                one.line, f"the id {_escaped(repr(one.id))} is that of line {line}: keep one."
            )


def _escaped(words: str) -> str:
    """As it stands in the text of a `Problem`, where braces name settings."""
    return words.replace("{", "{{").replace("}", "}}")
