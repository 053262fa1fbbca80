"""Reads a judge's answer: a whole, valid verdict, or the reason why there is none.

Also whether words that it quotes stand in the reply, and which JSON object of a text is its answer,
apart from what it drafts in thoughts such as `<thinking>`.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Literal

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
# Why an answer holds no verdict.
UNREAD = {*STOPS.values(), "empty_verdict", "unreadable_verdict", "invalid_verdict"} - {
    "context_window"
}
MAX_REPLY_CHARS = 200_000
MAX_REASON_CHARS = 4_000
MAX_DEPTH = 32
_NOT_SEEN = ("null", "none", "no", "false", "n/a", "not seen")
# Signs that copies spell otherwise, and the marks of emphasis that they leave out.
_SAME = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4\u02bc`", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        "*": "",
    }
)
_LEFT_OUT = re.compile(r"\s*(?:[\[(]\s*)?(?:\.{2,}|(?:\. ){2,}\.?)(?:\s*[\])])?\s*")
_AROUND = " '\".,;:!?-()[]"
# A JSON object, or why it is none.
_Object = dict[str, Json] | Exception
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


class Unreadable(Struct, frozen=True):
    """Why an answer holds no verdict; `reason` is a word for machines."""

    reason: str
    problem: str


def read_verdict(
    answer: Completion, rubric: Rubric, *, judge_model: str, reply: str = ""
) -> Verdict | Unreadable:
    """The verdict of an answer on `reply`.

    Every score must be there and valid. Events or quotes that are missing are null, or flagged.
    """
    arguments = read_arguments(answer, {dimension.name for dimension in rubric.dimensions})
    if isinstance(arguments, Unreadable):
        return arguments
    problems = list(_score_problems(arguments, rubric))
    events = _seen_events(arguments, rubric)
    if events is None and rubric.requires_events:
        problems.append("events are missing.")
    if problems:
        return Unreadable("invalid_verdict", " ".join(problems))
    scores = {d.name: _number(arguments[d.name]) for d in rubric.dimensions}
    quotes = _by_dimension(arguments, "quotes", rubric) if rubric.has_quotes else None
    return Verdict(
        scores={name: value for name, value in scores.items() if value is not None},
        rationale=_by_dimension(arguments, "rationale", rubric),
        judge_model=judge_model,
        events=events,
        quotes=quotes,
        unquoted=tuple(
            name
            for name, words in {**quotes, **(events or {})}.items()
            if not is_quoted(words or "", reply)
        )
        if quotes is not None
        else None,
    )


def read_arguments(answer: Completion, names: Iterable[str]) -> dict[str, Json] | Unreadable:
    """The one object that the judge gave, by a tool or in its text; others may stand beside it that
    have none of the `names`. The stop reason is looked at before the text.
    """
    if answer.stop_reason in STOPS:
        return Unreadable(STOPS[answer.stop_reason], f"it ended with {answer.stop_reason}.")
    uses = [block.arguments for block in answer.message.content if isinstance(block, ToolUse)]
    whole = [use for use in uses if isinstance(use, dict) and is_shallow(use)]
    objects = whole if uses else _objects_in_text(answer.message.text)
    if isinstance(objects, Unreadable):
        return objects
    if not objects:
        return Unreadable("unreadable_verdict", "it holds no JSON object.")
    objects = [value for value in objects if value.keys() & {*names}] or objects
    if any(other != objects[0] for other in objects[1:]):
        return Unreadable("unreadable_verdict", "it holds more than one JSON object.")
    return objects[0]


def raw_text(answer: Completion) -> str:
    """The judge's words, tool arguments as JSON, bounded in length."""
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


def is_quoted(words: str, reply: str) -> bool:
    """Whether words stand in a reply: whole words, in their order, with parts left out at `...`.

    Case, white space, typographic quotation marks and dashes, marks of emphasis and what stands
    around the words make no difference. Nothing, or ellipses alone, are no words.
    """
    text, at = _folded(reply), 0
    parts = [part.strip(_AROUND) for part in _LEFT_OUT.split(_folded(words))]
    parts = [part for part in parts if part]
    for part in parts:
        at = _end_of(part, text, at)
        if at < 0:
            return False
    return bool(parts)


def _inner(value: Json) -> Iterable[Json]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _objects_in_text(text: str) -> list[dict[str, Json]] | Unreadable:
    if not text.strip():
        return Unreadable("empty_verdict", "it is empty.")
    if len(text) > MAX_REPLY_CHARS:
        return Unreadable("unreadable_verdict", f"it has {len(text)} characters.")
    try:
        return _answer_objects(text)
    except (ValueError, RecursionError) as error:
        return Unreadable("unreadable_verdict", f"its JSON is broken ({error}).")


def _score_problems(arguments: Mapping[str, Json], rubric: Rubric) -> Iterator[str]:
    for dimension in rubric.dimensions:
        if dimension.name not in arguments:
            yield f"{dimension.name} is missing."
            continue
        value = _number(arguments[dimension.name])
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


def _by_dimension(arguments: Mapping[str, Json], key: str, rubric: Rubric) -> dict[str, str | None]:
    """The verdict's words for each dimension, its reasons or its quotes."""
    value = arguments.get(key)
    texts = value if isinstance(value, dict) else {}
    return {d.name: _text(texts.get(d.name)) for d in rubric.dimensions}


def _seen_events(arguments: Mapping[str, Json], rubric: Rubric) -> dict[str, str] | None:
    """The quotation for each event that the verdict says was seen, empty for one without; `None` if
    the verdict does not say what was seen.
    """
    value = arguments.get("events")
    if not rubric.events or not isinstance(value, dict):
        return None
    events = {event.name: value.get(event.name) for event in rubric.events}
    if not all(words is None or isinstance(words, str | bool) for words in events.values()):
        return None
    return {name: _text(words) or "" for name, words in events.items() if _is_seen(words)}


def _is_seen(value: Json) -> bool:
    """False for null, false, and words for either."""
    words = value.strip(" .\"'()-").casefold() if isinstance(value, str) else value
    return bool(words) and words not in _NOT_SEEN


def _text(value: Json) -> str | None:
    return clean(value)[:MAX_REASON_CHARS] if isinstance(value, str) and value.strip() else None


def _end_of(part: str, text: str, start: int) -> int:
    """Where the words end that stand in the text from `start` on; -1 if they do not."""
    at = text.find(part, start)
    while at >= 0:
        end = at + len(part)
        if _parts_words(text, at) and _parts_words(text, end):
            return end
        at = text.find(part, at + 1)
    return -1


def _parts_words(text: str, at: int) -> bool:
    """Whether no word goes on at a place; in scripts without capitals, words may stand unparted."""
    return not (0 < at < len(text) and _is_of_word(text[at - 1]) and _is_of_word(text[at]))


def _is_of_word(sign: str) -> bool:
    return sign.isdigit() or sign.upper() != sign


@lru_cache(maxsize=16)  # a verdict quotes one reply many times
def _folded(text: str) -> str:
    # In the compatible forms the sign for an ellipsis is three full stops.
    folded = unicodedata.normalize("NFKC", text).translate(_SAME).casefold()
    if not folded.isascii():
        folded = "".join(sign for sign in folded if unicodedata.category(sign) != "Cf")
    return " ".join(folded.split())


def _answer_objects(text: str) -> list[dict[str, Json]]:
    """The outermost JSON objects that count: all, or those that stand outside of thoughts.

    A thought that is never closed reaches to the end, but the last object in it is what was meant.
    Where different objects are left, those in elements of other names count no longer, unless they
    are called like an answer, or the last object is in one. Prose and code fences are passed over.
    Raises `ValueError` or `RecursionError` for an object that is broken: what lies within it is no
    verdict of its own.
    """
    scan = _Scan(text)
    objects = scan.objects
    places = scan.outside or [*range(len(objects))]
    loose = set(scan.loose)
    if places and places[-1] in loose and any(objects[at] != objects[places[0]] for at in places):
        places = [at for at in places if at in loose]
    values = [objects[at] for at in places]
    for value in values:
        if isinstance(value, Exception):
            raise value
    return [value for value in values if isinstance(value, dict)]


class _Scan:
    """All JSON objects of a text, in order.

    `outside` are the positions, among them, of those outside of thoughts, `loose` of those outside
    of elements that are neither thoughts nor answers.
    """

    def __init__(self, text: str) -> None:
        self.objects: list[_Object] = []
        self.outside: list[int] = []
        self.loose: list[int] = []
        self._thought_at: int | None = None  # how many objects stood before the one that is open
        self._before_stray: list[int] = []  # `outside`, up to an end of a thought without a begin
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
        if self._thought_at is not None and len(self.objects) > self._thought_at:
            self.outside.append(len(self.objects) - 1)
        self.outside = self.outside or self._before_stray

    def _add(self, text: str, start: int) -> int:
        """The object at `start` is found; returns where it ends."""
        decoder = json.JSONDecoder(
            parse_constant=_refuse_constant, object_pairs_hook=_no_name_twice
        )
        value: _Object
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            value, end = error, self._end_of_broken(text, start)
        if self._thought_at is None:
            self.outside.append(len(self.objects))
        self.loose.append(len(self.objects))
        self.objects.append(value)
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
            self._thought_at = len(self.objects) if self._thought_at is None else self._thought_at
        elif self._thought_at is not None:
            self._thought_at = None
        else:
            # The mark that opens stood in the prompt, or was left out; so does one too many.
            self._before_stray = self.outside or self._before_stray
            self.outside = []

    def _see_element(self, name: str, *, is_end: bool) -> None:
        if not is_end:
            self._elements.append((name, len(self.objects)))
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


def _no_name_twice(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("a name stands twice in one object")
    return value


def _refuse_constant(word: str) -> Json:
    raise ValueError(f"{word} is no JSON number")
