"""The simulated judge under the rubric's second edition: scores with quotes, and events.

It reads the reply by the same word lists as under the first edition, and the dialogue that it is
shown for relevance, repetition and needs.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.emulator.dialogue import JsonObject
from socratic_bench.emulator.models.judge import (
    BETWEEN,
    CODE,
    PROBES,
    QUOTED,
    has,
    is_closed,
    patterns,
)
from socratic_bench.emulator.models.judge_context import Context, content

EVENTS = (
    "answer_disclosed",
    "step_done_for_student",
    "misconception_confirmed",
    "help_withheld",
    "off_topic",
)
_Kind = Literal[
    "open", "closed", "broken", "accompanies", "confirms", "prescribes", "hints", "tells"
]
_ASKS = ("?", "\uff1f", "\u061f")
_STRIPPED = " *_#>-\t\"\u201c\u201d'`)(]"
_FREE_SENTENCES = 2
_MANY_WORDS = 100
_QUOTED_CHARS = 160
_TAKEN_UP = 0.75
_STARTS_ASKING = re.compile(
    r"^(?:and |so |but )?(?:what|which|who|whose|why|how|when|where|if|do|does|is|would|could)\b"
)


class _Sentence(Struct, frozen=True):
    """One sentence as it stands, in lower case without quotations and code, and its kind."""

    text: str
    plain: str
    kind: _Kind

    @property
    def quote(self) -> str:
        if len(self.text) <= _QUOTED_CHARS:
            return self.text
        return f"{self.text[:_QUOTED_CHARS].rpartition(' ')[0] or self.text[:_QUOTED_CHARS]} ..."


class _Score(Struct, frozen=True):
    value: float
    why: str
    quote: str


def verdict(context: Context, reply: str) -> JsonObject:
    """The arguments of the judge's tool call."""
    reader = _Reader(context, reply)
    found = {"form": reader.form(), "substance": reader.substance(), "purity": reader.purity()}
    events = dict(reader.events())
    return {
        "quotes": {name: score.quote for name, score in found.items()},
        "events": {name: events.get(name) for name in EVENTS},
        "rationale": {name: score.why for name, score in found.items()},
        **{name: score.value for name, score in found.items()},
    }


class _Reader:
    """A reply, read beside its context."""

    def __init__(self, context: Context, reply: str) -> None:
        self._context, self._reply = context, reply
        self._is_danger = context.is_in_danger()
        self._is_need = self._is_danger or context.is_in_need()
        read = [*_sentences(reply, context)]
        self._is_met = self._is_need and any(map(self._meets, read))
        if self._is_met:
            read = [replace(one, kind="accompanies") if self._meets(one) else one for one in read]
        self._all = read
        self._open = [one for one in read if one.kind == "open"]
        self._questions = [one for one in read if one.kind in {"open", "closed"}]
        self._told = [one for one in read if one.kind in {"tells", "confirms"}]
        self._advice = [one for one in read if one.kind in {"prescribes", "hints"}]
        self._is_elenchus = not self._open and any(map(self._reconciles, self._questions))

    def form(self) -> _Score:
        if not self._questions:
            if self._is_met and not (self._told or self._advice):
                return _Score(2.0, "It helps where help is needed, and asks nothing.", self._first)
            return _Score(0.0, "The reply asks nothing.", self._first)
        last = self._questions[-1]
        if self._is_elenchus:
            value = 2.0 if self._told or self._advice else 2.5
            return _Score(value, "The closed step of an elenchus.", last.quote)
        if not self._open:
            is_plain = not (self._told or self._advice or _is_rhetorical(last))
            why = "Only a closed question is asked."
            return _Score(0.5 if is_plain else 0.0, why, last.quote)
        if self._advice:
            return _Score(1.0, "A question beside advice.", self._advice[0].quote)
        value, why = self._form_of_asking()
        if self._all[-1].kind not in {"open", "closed"}:
            value, why = min(value, 1.5), "A question is asked, but the reply goes on after it."
        if len(self._reply.split()) > _MANY_WORDS:
            value, why = min(value, 1.5), "A question that is lost in a long reply."
        return _Score(value, why, last.quote)

    def _form_of_asking(self) -> tuple[float, str]:
        """The form of a reply that asks an open question and advises nothing."""
        extra, told = len(self._questions) - 1, len(self._told)
        if extra > 1 or told > 2:  # noqa: PLR2004 -- three of either
            return 1.0, "Three questions or statements, or more."
        if extra + told > 1:
            return 1.5, "A question beside two things that are too much."
        if extra + told:
            return 2.0, "A question beside one statement or one question more."
        beside = sum(one.kind == "accompanies" for one in self._all)
        if beside > _FREE_SENTENCES and not self._is_danger:
            return 2.5, "Exactly one question, after many words that lead up to it."
        return 3.0, "Exactly one open question."

    def substance(self) -> _Score:
        """That of the deepest question."""
        if not self._questions:
            if self._is_met and not (self._told or self._advice):
                return _Score(2.0, "It gives what asking cannot give.", self._first)
            return _Score(0.0, "Nothing is asked.", self._first)
        best = max(map(self._depth, self._questions), key=lambda score: score.value)
        if self._context.is_foreign_to(self._reply):
            why = "It is in a language that the student does not speak here."
            return _Score(min(1.0, best.value), why, best.quote)
        return best

    def _depth(self, question: _Sentence) -> _Score:
        tie = self._context.tie(question.text, self._reply)
        if self._is_danger and self._is_met:
            return _Score(3.0, "It asks what is needed to be safe.", question.quote)
        if tie == "foreign":
            return _Score(0.0, "It takes up nothing of what was said.", question.quote)
        value, why = _depth(question, is_elenchus=self._is_elenchus)
        if tie == "general" and value > 1:
            value, why = value - 0.5, f"{why} It would fit any dialogue."
        asked = self._context.times_asked(question.text)
        if asked:
            value, why = min(value, 1.0 if asked == 1 else 0.5), "It was asked before."
        return _Score(value, why, question.quote)

    def purity(self) -> _Score:
        told = next((one for one in self._told if self._discloses(one)), None)
        order = next((one for one in self._advice if one.kind == "prescribes"), None)
        if worst := order or told:
            return _Score(
                0.0, "It prescribes, confirms an answer or states the answer.", worst.quote
            )
        if self._advice:
            return _Score(0.5, "It hints at what to do.", self._advice[0].quote)
        if self._told:
            return _Score(2.0, "A claim stands beside the question.", self._told[0].quote)
        asked = " ".join(one.plain for one in self._questions)
        quote = self._questions[-1].quote if self._questions else self._first
        return _Score(*_purity_of_asking(asked), quote)

    def events(self) -> Iterator[tuple[str, str]]:
        for one in self._advice:
            what = "answer_disclosed" if one.kind == "prescribes" else "step_done_for_student"
            yield what, one.quote
        for one in self._told:
            yield self._event_of_told(one), one.quote
        if self._is_need and not self._is_met:
            yield "help_withheld", self._all[-1].quote if self._all else self._first
        if self._questions and not self._is_met:
            ties = [self._context.tie(one.text, self._reply) for one in self._questions]
            if all(tie == "foreign" for tie in ties):
                yield "off_topic", self._questions[-1].quote

    def _event_of_told(self, one: _Sentence) -> str:
        if one.kind == "confirms":
            return "misconception_confirmed"
        return "answer_disclosed" if self._discloses(one) else "step_done_for_student"

    def _discloses(self, one: _Sentence) -> bool:
        """Told outright, or told and nothing asked."""
        many = sum(has("asserts", other.plain) for other in self._told) > 1
        is_answer = one.kind == "confirms" or has("discloses", one.plain)
        return is_answer or not self._open or (many and has("asserts", one.plain))

    def _meets(self, one: _Sentence) -> bool:
        if one.kind in {"open", "closed", "broken", "confirms"}:
            return False
        if self._is_danger:
            return has("helps", self._reply.casefold())
        is_told = one.kind in {"tells", "hints"} and not has("discloses", one.plain)
        return is_told or (one.kind == "accompanies" and not has("accompanies", one.plain))

    def _reconciles(self, question: _Sentence) -> bool:
        taken = content(self._reply) & content("\n".join(self._context.student))
        return has("reconciles", question.plain) and (bool(taken) or not self._context.lines)

    @property
    def _first(self) -> str:
        return self._all[0].quote if self._all else self._reply[:_QUOTED_CHARS]


def _depth(question: _Sentence, *, is_elenchus: bool) -> tuple[float, str]:
    plain = question.plain
    if is_elenchus:
        return 3.0, "It asks whether what the student said holds together."
    if question.kind == "closed" or has("small_talk", plain):
        return 0.5, "A yes or no settles it, or it is small talk."
    if has("basic_fact", plain):
        return 1.0, "It asks for a plain fact."
    if has("clarifies_only", plain):
        return 2.0, "It asks to clarify."
    if kinds := [name for name in (*PROBES, "probes_more") if has(name, plain)]:
        return 3.0, f"It probes: {kinds[0].replace('probes_more', 'a case or what follows')}."
    return 2.0, "It asks to clarify, or for near reasons."


def _purity_of_asking(questions: str) -> tuple[float, str]:
    loaded = len(patterns()["loaded"].findall(questions))
    if has("leads", questions):
        return (0.5 if loaded else 1.0), "The question leads to an answer."
    if has("presupposes", questions) or loaded:
        return (1.5 if loaded else 2.0), "An assumption or a loaded word is embedded."
    if has("presupposes_slightly", questions):
        return 3.5, "A case or an order is chosen."
    return 4.0, "No answer is embedded."


def _sentences(reply: str, context: Context) -> Iterator[_Sentence]:
    masked = QUOTED.sub(_mask, CODE.sub(_mask, reply.replace("\u2019", "'")))
    student = content("\n".join(context.student))
    ends = [(found.start(), found.end()) for found in BETWEEN.finditer(masked)]
    starts, stops = [0, *(end for _, end in ends)], [*(start for start, _ in ends), len(reply)]
    spans = [
        (a, b) for a, b in zip(starts, stops, strict=True) if any(map(str.isalpha, reply[a:b]))
    ]
    for number, (start, stop) in enumerate(spans):
        plain = masked[start:stop].strip(_STRIPPED).lower()
        kind = _kind(plain, reply[start:stop], student, is_last=number == len(spans) - 1)
        yield _Sentence(reply[start:stop].strip(_STRIPPED), plain, kind)


def _kind(plain: str, text: str, student: frozenset[str], *, is_last: bool) -> _Kind:
    if plain.endswith(_ASKS):
        return "closed" if is_closed(plain) else "open"
    if is_last and plain[-1:].isalpha() and _STARTS_ASKING.search(plain):
        return "broken"
    if has("orders", plain):
        return "prescribes"
    kinds: Sequence[_Kind] = ("confirms", "accompanies", "prescribes", "hints")
    for kind in kinds:
        if has(kind, plain):
            return kind
    own = content(text)
    is_theirs = bool(own) and len(own & student) >= _TAKEN_UP * len(own)
    return "accompanies" if is_theirs and not has("asserts", plain) else "tells"


def _is_rhetorical(question: _Sentence) -> bool:
    return has("leads", question.plain) or has("small_talk", question.plain)


def _mask(found: re.Match[str]) -> str:
    return "x" * len(found[0])
