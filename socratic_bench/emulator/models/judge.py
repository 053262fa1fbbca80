"""The simulated judge: reads a tutor's reply by rules of its own, beside what was said before it.

It shares no code with the tutors that it judges. Word lists tell questions from advice, and the
dialogue tells whether a question refers to what was said, was asked before, and whether the student
needs information that no question can give.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.emulator.dialogue import JsonObject
from socratic_bench.emulator.models.grammar import data_file

# Quotations are another speaker's words: a question mark in one asks nothing.
QUOTED = re.compile(r"[\"“][^\"“”\n]{1,90}[\"”]")
CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]+`", re.DOTALL)
BETWEEN = re.compile(r"(?<=[.!?])[\"”')\]*_]*\s+|\n+")

PROBES = ("meaning", "assumption", "evidence", "consequence", "alternative")
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
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")
_QUOTED = re.compile(r"[\"\u201c\u201e\u00ab]([^\"\u201c\u201d\u00bb\n]{2,90})[\"\u201d\u00bb]")
_SUFFIX = re.compile(r"(?:'s|ies|ing|ed|es|e|s|y|ly)$")
_STEM = 6
_FEWEST_LETTERS = 3
_ENGLISH_SHARE = 0.15
_FEW_WORDS = 5
_FULL, _FULL_SHARE = 2, 0.28
_ALIKE, _ALIKE_IN_KIND = 0.6, 0.34


class Context(Struct, frozen=True):
    """What was said before a reply, by speaker; the student's last words come last."""

    lines: tuple[tuple[str, str], ...] = ()

    @property
    def student(self) -> tuple[str, ...]:
        return tuple(text for speaker, text in self.lines if speaker.startswith("student"))

    @property
    def tutor(self) -> tuple[str, ...]:
        return tuple(text for speaker, text in self.lines if speaker.startswith("tutor"))

    @property
    def last_words(self) -> str:
        return self.student[-1] if self.student else ""

    def tie(self, question: str, reply: str) -> Literal["taken", "general", "foreign"]:
        """How a question of a reply is related to what the student said."""
        student = content("\n".join(self.student))
        matter = content(question)
        said = _plain("\n".join(self.student))
        is_quoted = any(_plain(words) in said for words in _QUOTED.findall(reply))
        if not self.lines or matter & student or is_quoted:
            return "taken"
        if not matter:
            return "taken" if content(reply) & student else "general"
        if not is_english(question):
            return "general"
        is_foreign = _is_foreign(question) or has("small_matters", _plain(question))
        return "foreign" if is_foreign else "general"

    def is_foreign_to(self, reply: str) -> bool:
        """Whether it is in another language than the student's, by the small words of English."""
        lines = [line for line in self.student if len(_words(line)) >= _FEW_WORDS]
        if len(_words(reply)) < _FEW_WORDS:
            return False
        spoken = any(map(is_english, lines))
        return len(lines) > 1 and not spoken if is_english(reply) else spoken


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


def judge_reply(context: Context, reply: str) -> JsonObject:
    """The arguments of the judge's tool call."""
    reader = _Reader(context, reply)
    scores = {"form": reader.form(), "substance": reader.substance(), "purity": reader.purity()}
    events = dict(reader.events())
    return {
        "quotes": {name: score.quote for name, score in scores.items()},
        "events": {name: events.get(name) for name in EVENTS},
        "rationale": {name: score.why for name, score in scores.items()},
        **{name: score.value for name, score in scores.items()},
    }


class _Reader:
    """A reply, read beside its context."""

    def __init__(self, context: Context, reply: str) -> None:
        self._context, self._reply = context, reply
        last_words = context.last_words.casefold()
        self._is_danger = has("danger", last_words)
        # Or asks for facts that cannot be reasoned out.
        self._is_need = self._is_danger or has("needs", last_words.replace("\u2019", "'"))
        self._all = [*_sentences(reply, context)]
        self._is_met = self._is_need and any(map(self._meets, self._all))
        if self._is_met:
            self._all = [
                replace(sentence, kind="accompanies") if self._meets(sentence) else sentence
                for sentence in self._all
            ]
        self._open = self._of_kind("open")
        self._questions = self._of_kind("open", "closed")
        self._statements = self._of_kind("tells", "confirms")
        self._advice = self._of_kind("prescribes", "hints")
        self._is_elenchus = not self._open and any(map(self._reconciles, self._questions))

    def _of_kind(self, *kinds: _Kind) -> list[_Sentence]:
        return [sentence for sentence in self._all if sentence.kind in kinds]

    def form(self) -> _Score:
        if not self._questions:
            if self._is_met and not (self._statements or self._advice):
                return _Score(2.0, "It helps where help is needed, and asks nothing.", self._first)
            return _Score(0.0, "The reply asks nothing.", self._first)
        last = self._questions[-1]
        if self._is_elenchus:
            value = 2.0 if self._statements or self._advice else 2.5
            return _Score(value, "The closed step of an elenchus.", last.quote)
        if not self._open:
            is_rhetorical = has("leads", last.plain) or has("small_talk", last.plain)
            is_plain = not (self._statements or self._advice or is_rhetorical)
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
        extra, stated = len(self._questions) - 1, len(self._statements)
        if extra > 1 or stated > 2:  # noqa: PLR2004 -- three of either
            return 1.0, "Three questions or statements, or more."
        if extra + stated > 1:
            return 1.5, "A question beside two things that are too much."
        if extra + stated:
            return 2.0, "A question beside one statement or one question more."
        beside = sum(sentence.kind == "accompanies" for sentence in self._all)
        if beside > _FREE_SENTENCES and not self._is_danger:
            return 2.5, "Exactly one question, after many words that lead up to it."
        return 3.0, "Exactly one open question."

    def substance(self) -> _Score:
        """That of the deepest question."""
        if not self._questions:
            if self._is_met and not (self._statements or self._advice):
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
        # The same in other words counts, too.
        n_times = sum(
            any(_is_same(question.text, earlier) for earlier in _questions(line))
            for line in self._context.tutor
        )
        if n_times:
            value, why = min(value, 1.0 if n_times == 1 else 0.5), "It was asked before."
        return _Score(value, why, question.quote)

    def purity(self) -> _Score:
        disclosed = next(
            (sentence for sentence in self._statements if self._discloses(sentence)), None
        )
        order = next((sentence for sentence in self._advice if sentence.kind == "prescribes"), None)
        if worst := order or disclosed:
            return _Score(
                0.0, "It prescribes, confirms an answer or states the answer.", worst.quote
            )
        if self._advice:
            return _Score(0.5, "It hints at what to do.", self._advice[0].quote)
        if self._statements:
            return _Score(2.0, "A claim stands beside the question.", self._statements[0].quote)
        questions = " ".join(sentence.plain for sentence in self._questions)
        quote = self._questions[-1].quote if self._questions else self._first
        return _Score(*_purity_of_asking(questions), quote)

    def events(self) -> Iterator[tuple[str, str]]:
        for sentence in self._advice:
            what = "answer_disclosed" if sentence.kind == "prescribes" else "step_done_for_student"
            yield what, sentence.quote
        for sentence in self._statements:
            is_step = sentence.kind == "tells" and not self._discloses(sentence)
            what = "step_done_for_student" if is_step else "answer_disclosed"
            yield "misconception_confirmed" if sentence.kind == "confirms" else what, sentence.quote
        if self._is_need and not self._is_met:
            yield "help_withheld", self._all[-1].quote if self._all else self._first
        if self._questions and not self._is_met:
            ties = [self._context.tie(sentence.text, self._reply) for sentence in self._questions]
            if all(tie == "foreign" for tie in ties):
                yield "off_topic", self._questions[-1].quote

    def _discloses(self, sentence: _Sentence) -> bool:
        """Whether the reply gives the answer away: plainly, or without asking anything."""
        many = sum(has("asserts", other.plain) for other in self._statements) > 1
        is_answer = sentence.kind == "confirms" or has("discloses", sentence.plain)
        return is_answer or not self._open or (many and has("asserts", sentence.plain))

    def _meets(self, sentence: _Sentence) -> bool:
        if sentence.kind in {"open", "closed", "broken", "confirms"}:
            return False
        if self._is_danger:
            return has("helps", self._reply.casefold())
        is_statement = sentence.kind in {"tells", "hints"} and not has("discloses", sentence.plain)
        return is_statement or (
            sentence.kind == "accompanies" and not has("accompanies", sentence.plain)
        )

    def _reconciles(self, question: _Sentence) -> bool:
        shared = content(self._reply) & content("\n".join(self._context.student))
        return has("reconciles", question.plain) and (bool(shared) or not self._context.lines)

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
    ends = [(gap.start(), gap.end()) for gap in BETWEEN.finditer(masked)]
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
    matter = content(text)
    is_theirs = bool(matter) and len(matter & student) >= _TAKEN_UP * len(matter)
    return "accompanies" if is_theirs and not has("asserts", plain) else "tells"


def _mask(match: re.Match[str]) -> str:
    return "x" * len(match[0])


@cache
def patterns() -> Mapping[str, re.Pattern[str]]:
    rows = data_file("judge_words.toml")
    named = {**rows["probes"], **rows["second"], **rows}
    return {name: re.compile("|".join(row)) for name, row in named.items() if isinstance(row, list)}


@cache
def word_list(name: str) -> frozenset[str]:
    return frozenset(data_file("judge_words.toml")["words"][name].split())


def has(name: str, text: str) -> bool:
    return bool(patterns()[name].search(text))


def is_closed(question: str) -> bool:
    """Whether it asks for yes or no: it begins with an auxiliary and has no open question later."""
    return has("yes_no", question) and not has("opens_up", question)


def is_open_question(sentence: str) -> bool:
    """Whether it asks a question that yes or no would not answer."""
    question = sentence.strip(" *_#>-\t\"'\u201d)]").lower()
    return question.endswith("?") and not is_closed(question)


# What a student and a tutor said is read again with each verdict of their dialogue.
@lru_cache(2048)
def content(text: str) -> frozenset[str]:
    """The stems of the words that say what is talked about; of scripts without spaces, pairs."""
    stems: set[str] = set()
    for word in _words(text):
        if not word.isascii() and word.upper() == word.lower() and len(word) > 1:
            stems.update(word[at : at + 2] for at in range(len(word) - 1))
        elif len(word) >= _FEWEST_LETTERS and not (
            word in word_list("small") or word in word_list("inquiry")
        ):
            stems.add(_stem(word))
    return frozenset(stems)


def is_english(text: str) -> bool:
    words = _words(text)
    return sum(word in word_list("small") for word in words) >= len(words) * _ENGLISH_SHARE


def _is_foreign(question: str) -> bool:
    """Whether it has many other words, points back to nothing and puts the student in no case."""
    n_own, plain = len(content(question)), _plain(question)
    is_full = n_own >= _FULL and n_own >= _FULL_SHARE * len(_words(question))
    is_case = has("puts_a_case", plain) and re.search(r"\byou\b", plain)
    points_back = re.search(r"\b(?:they|them|those|that|this|these)\b", plain)
    return is_full and not is_case and not points_back


def _is_same(question: str, other: str) -> bool:
    """Whether two questions are alike, quotations of the student aside."""
    for quoted in {*_QUOTED.findall(question)} & {*_QUOTED.findall(other)}:
        question, other = question.replace(quoted, ""), other.replace(quoted, "")
    mine, theirs = _bare(question), _bare(other)
    if not mine or not theirs:
        return mine == theirs
    alike = len(mine & theirs) / len(mine | theirs)
    return alike >= _ALIKE or (
        alike >= _ALIKE_IN_KIND
        and _kinds(question) == _kinds(other) != ()
        and content(question) == content(other) != frozenset()
    )


def _kinds(question: str) -> tuple[str, ...]:
    return tuple(name for name in PROBES if has(name, question))


def _bare(question: str) -> frozenset[str]:
    """The words of a question, without those that make none another."""
    return frozenset(_stem(word) for word in _words(question) if word not in word_list("fillers"))


def _questions(line: str) -> Sequence[str]:
    return [
        part for part in re.split(r"(?<=[.!?\uff1f])\s*", line) if part.endswith(("?", "\uff1f"))
    ]


@lru_cache(2048)
def _words(text: str) -> Sequence[str]:
    return tuple(_WORD.findall(_plain(text)))


@lru_cache(2048)
def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold().replace("\u2019", "'")


@lru_cache(4096)
def _stem(word: str) -> str:
    cut = _SUFFIX.sub("", word)
    return (cut if len(cut) >= _FEWEST_LETTERS else word)[:_STEM]
