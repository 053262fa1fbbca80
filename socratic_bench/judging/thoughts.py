"""Finds the JSON that a text says, apart from what it drafts in thoughts such as `<thinking>`."""

import json
import re
from typing import Literal

from socratic_bench.types import Json

# A JSON object, or why it is none.
_Found = dict[str, Json] | Exception
_Kind = Literal["thought", "answer", "other"]

# The marks that models put around parts of plain text, such as <thinking>, <|end_of_thought|> and
# [THINK]; other brackets are Markdown.
_TAG = re.compile(
    r"(?:[<\u25c1]|&lt;)\s{0,3}\|?(?P<close>/|end_of_)?\s{0,3}(?:begin_of_)?"
    r"(?P<name>[^\W\d][\w:.-]{0,60}(?:[ ]\w{1,30}(?=\s{0,3}(?:[|>\u25b7]|&gt;)))?)"
    r"(?:\s[^<>]{0,200}?)?(?<!/)\|?(?:[>\u25b7]|&gt;)|\[(?P<close_think>/)?THINK\]",
    re.IGNORECASE,
)
# Other braces belong to prose.
_NEXT = re.compile(rf'(?P<object>\{{\s*["}}])|{_TAG.pattern}', re.IGNORECASE)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_THOUGHT = re.compile(
    r"think|thought|reason|reflect|analy[sz]|scratch|monolog|deliberat|draft|ponder|brainstorm"
    r"|contemplat|^cot$"
)
_ANSWER = re.compile(
    r"answer|verdict|output|result|json|respon|repl(?:y|ies)|scor|grade|rating|eval|judg|assess"
    r"|decision|conclu|solution|submi|record|report|message|tool|function|invoke|param|arg|final"
)
# How text is shown says nothing of what it is.
_LAYOUT = re.compile(
    r"b|blockquote|body|br|code|div|em|h[1-6]|html|i|li|ol|p|pre|section|span|strong|table|tbody"
    r"|t[drt]|u|ul"
)
# Elements that are never closed are passed over, as far as this.
_MAX_OPEN = 50


def said_objects(text: str) -> list[dict[str, Json]]:
    """The outermost JSON objects that count: all, or those that stand outside of thoughts.

    A thought that is never closed reaches to the end, but the last object in it is what was meant.
    Where different objects are left, those in elements of other names count no longer, unless they
    are called like an answer, or the last object is in one. Prose and code fences are passed over.
    Raises `ValueError` or `RecursionError` for an object that is broken: what lies within it is no
    verdict of its own.
    """
    scan = _Scan(text)
    said = scan.said or [*range(len(scan.found))]
    loose = set(scan.loose)
    if said and said[-1] in loose and any(scan.found[at] != scan.found[said[0]] for at in said):
        said = [at for at in said if at in loose]
    return [_whole(scan.found[at]) for at in said]


class _Scan:
    """All objects of a text; `said` and `loose` are the places, among them, of those outside of
    thoughts, and of those outside of elements that are neither thoughts nor answers.
    """

    def __init__(self, text: str) -> None:
        self.found: list[_Found] = []
        self.said: list[int] = []
        self.loose: list[int] = []
        self._thought_at: int | None = None  # how many objects stood before the one that is open
        self._before_stray: list[int] = []  # `said`, up to an end of a thought without a begin
        self._elements: list[tuple[str, int]] = []  # those that are open, with the same
        self._read(text)

    def _read(self, text: str) -> None:
        end = 0
        while mark := _NEXT.search(text, end):
            end = mark.end()
            if mark["object"]:
                end = self._add(text, mark.start())
            elif _kind(mark) == "thought":
                self._see_thought(is_end=_is_end(mark))
            elif _kind(mark) == "other":
                self._see_element(mark["name"].casefold(), is_end=_is_end(mark))
        if self._thought_at is not None and len(self.found) > self._thought_at:
            self.said.append(len(self.found) - 1)
        self.said = self.said or self._before_stray

    def _add(self, text: str, start: int) -> int:
        """The object at `start` is found; returns where it ends."""
        decoder = json.JSONDecoder(
            parse_constant=_refuse_constant, object_pairs_hook=_no_name_twice
        )
        value: _Found
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            value, end = error, self._end_of_broken(text, start)
        if self._thought_at is None:
            self.said.append(len(self.found))
        self.loose.append(len(self.found))
        self.found.append(value)
        return end

    def _end_of_broken(self, text: str, start: int) -> int:
        """The next mark of a thought, or the end of an element that it stands in."""
        names = {name for name, _ in self._elements[-_MAX_OPEN:]}
        for mark in _TAG.finditer(text, start):
            is_own = mark["name"] and _is_end(mark) and mark["name"].casefold() in names
            if is_own or _kind(mark) == "thought":
                return mark.start()
        return len(text)

    def _see_thought(self, *, is_end: bool) -> None:
        if not is_end:
            self._thought_at = len(self.found) if self._thought_at is None else self._thought_at
        elif self._thought_at is not None:
            self._thought_at = None
        else:
            # The mark that opens stood in the prompt, or was left out; so does one too many.
            self._before_stray = self.said or self._before_stray
            self.said = []

    def _see_element(self, name: str, *, is_end: bool) -> None:
        if not is_end:
            self._elements.append((name, len(self.found)))
            return
        for depth in range(1, min(len(self._elements), _MAX_OPEN) + 1):
            if self._elements[-depth][0] == name:
                start = self._elements[-depth][1]
                del self._elements[-depth:]
                while self.loose and self.loose[-1] >= start:
                    self.loose.pop()
                return


def _is_end(mark: re.Match[str]) -> bool:
    return bool(mark["close"] or mark["close_think"])


def _kind(mark: re.Match[str]) -> _Kind:
    """What the element is by its name, whose last word of a kind counts: a draft of a verdict is a
    draft.
    """
    if not mark["name"]:
        return "thought"
    words = re.split(r"[\W_]+", _CAMEL.sub("_", mark["name"]).casefold())
    for word in reversed(words):
        if _THOUGHT.search(word) and "final" not in words:
            return "thought"
        if _ANSWER.match(word):
            return "answer"
    return "answer" if _LAYOUT.fullmatch(words[0]) else "other"


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
