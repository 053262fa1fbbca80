"""Parses text into sentences and clauses, and finds what each clause asks or commands."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from threading import Lock

from msgspec import Struct

from . import words as w

_END = re.compile(r"[.?!\u2026]+(?=[\s\"')\]\u201d\u2019]|[^\x00-\x7f]|$)")
_TOKEN = re.compile(r"[^\W_]+(?:'[^\W_]+)*(?:-(?=\s|$))?|[,;:()\u2013\u2014]|--|(?<=\s)-(?=\s)")
_BREAKS = frozenset({",", ";", ":", "(", ")", "\u2013", "\u2014", "--", "-"})
_SUFFIXES = w.listed("s re ve d ll m")
_ABBREVIATIONS = w.listed("e.g i.e eg ie etc dr mr mrs ms prof st vs cf no approx p pp")
# "What, then, is it" and "you could, for example, go": what is put in changes nothing.
_INSERTED = re.compile(
    r"\b(what|why|how|who|could|should|might) ?[,\u2013\u2014][^,\u2013\u2014]{1,30}[,\u2013\u2014]"
    r" (?!\w+ (?:i|you|it|he|she|we|they)$)"
)
# A wh-word and its auxiliary are rarely further apart than "what kind of thing do".
_WH_PHRASE_MAX = 5
_PREPOSED = w.listed(
    "if when once after before since as while for in on at instead until unless to with whenever"
    " during depending by given even"
)
_SUBJECTS = w.listed("you i we they he she people")
_PRAISE = w.listed("great good nice cool fine perfect excellent interesting")
_OBJECTS = w.listed("your yourself them him it me")
_NO_VERB = w.AUXILIARY | w.SUBJECT_START | w.PREPOSITION | w.WH | w.CONJUNCTION | {"here", "there"}

# Verbs that attribute a view: "you think", "the judge held". What follows is not the speaker's.
_HELD = w.listed(
    "think believe hold claim argue say said thinks thought believes believed argues argued"
    " claims claimed held holds says maintains insists"
)
_NO_HOLDER = w.DETERMINER | w.AUXILIARY | w.listed("who to not being that second")
_EARLY = 5

_COMPILING = Lock()


class Ask(Struct, frozen=True):
    """The interrogative part of a clause: "how often do you ..." has wh, head and auxiliary.

    Without a wh-word the auxiliary comes first, so that yes or no would be an answer. `initial`
    means that only discourse markers stand before it.
    """

    wh: str
    head: str
    auxiliary: str
    remainder: tuple[str, ...]
    initial: bool

    @property
    def polar(self) -> bool:
        return not self.wh


class Clause(Struct, frozen=True):
    """`body` begins after the discourse markers; `command` is an imperative's verb."""

    words: tuple[str, ...]
    body: tuple[str, ...]
    ask: Ask | None
    command: str


class Sentence(Struct, frozen=True):
    """`line` has all words between single spaces, one at either end: `" you should " in line`.

    `stated` has such a line for each clause in the speaker's own name: those that are not asked,
    nor supposed, nor another's view.
    """

    words: tuple[str, ...]
    line: str
    stated: tuple[str, ...]
    clauses: tuple[Clause, ...]
    mark: str
    ask: Ask | None


# Conditions by name, any of which is enough. docs/dev/heuristics.md explains each, with an example
# and a counterexample.
Rules = Mapping[str, Callable[[Sentence], bool]]


def any_holds(rules: Rules, sentence: Sentence) -> bool:
    return any(holds(sentence) for holds in rules.values())


def says(pattern: str) -> Callable[[Sentence], bool]:
    """Whether a sentence's `line` holds the pattern, which is compiled at its first use."""
    return lambda sentence: _compiled(pattern).search(sentence.line) is not None


def states(pattern: str) -> Callable[[Sentence], bool]:
    """Whether a clause holds the pattern that the speaker states as their own view."""
    return lambda sentence: any(_compiled(pattern).search(line) for line in sentence.stated)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    with _COMPILING:  # dialogues that begin together would each compile it
        return re.compile(pattern)


def sentences(block: str) -> list[Sentence]:
    """The sentences of one paragraph, heading, list item or cell."""
    split = [(tuple(_clauses(_tokens(text))), mark) for text, mark in _split(block)]
    clauses_and_marks = [(parts, mark) for parts, mark in split if parts]
    if not clauses_and_marks and any(mark == "?" for _, mark in split):
        clauses_and_marks = [((), "?")]
    return [_sentence(parts, mark) for parts, mark in clauses_and_marks]


def _split(block: str) -> Iterator[tuple[str, str]]:
    start = 0
    for end in _END.finditer(block):
        marks = end.group()
        if "?" in marks or "!" in marks or _full_stop(block, start, end):
            yield block[start : end.start()], "?" if "?" in marks else marks[0]
            start = end.end()
    if start < len(block):
        yield block[start:], ""


def _full_stop(block: str, start: int, end: re.Match[str]) -> bool:
    """Whether dots end a sentence: not after "e.g" or an initial, nor before "... and"."""
    if len(end.group()) > 1:
        return not block[end.end() : end.end() + 2].strip().islower()
    before = block[max(start, end.start() - 8) : end.start()].rpartition(" ")[2].strip("(")
    initial = len(before) == 1 and before.isupper() and before != "I"
    return before.lower() not in _ABBREVIATIONS and not initial


def _tokens(text: str) -> Iterator[str]:
    """Lower-case words, contractions in two; no fillers, cut-off words or stammered repeats."""
    last = ""
    for token in _TOKEN.findall(_INSERTED.sub(r"\1 ", text.lower())):
        cut_off = token.endswith("-") and token not in _BREAKS
        if token in w.FILLER or cut_off or token == last:
            continue
        last = token
        stem, _, suffix = token.rpartition("'")
        if stem and suffix in _SUFFIXES:
            yield stem
            yield "'" + suffix
        else:
            yield token


def _clauses(tokens: Iterable[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each clause with the sign that stands before it."""
    clause: list[str] = []
    sign = ""
    for token in tokens:
        if token not in _BREAKS:
            clause.append(token)
            continue
        if clause:
            yield sign, tuple(clause)
            clause = []
        sign = token
    if clause:
        yield sign, tuple(clause)


def _sentence(parts: Sequence[tuple[str, tuple[str, ...]]], mark: str) -> Sentence:
    clauses: list[Clause] = []
    may_command = True
    for sign, words in parts:
        start = lead(words)
        body = words[start:]
        ask = _ask(body, has_mark=mark == "?") if body else None
        # After "if you can," or a name a command may follow; after "we go home," it is a list.
        may_command = may_command or sign != ","
        praised = len(body) == 1 and words[start - 1] in _PRAISE
        command = _command(body) if may_command and ask is None and not praised else ""
        clauses.append(Clause(words, body, ask, command))
        preposed = body[:1] and (body[0] in _PREPOSED or words[0] in _PREPOSED)
        may_command = may_command and (len(body) <= 1 or bool(preposed))
    every = tuple(word for _, words in parts for word in words)
    last = next((clause.ask for clause in reversed(clauses) if clause.ask), None)
    stated = tuple(_line(clause, first=not at) for at, clause in enumerate(clauses) if _own(clause))
    return Sentence(every, f" {' '.join(every)} ", stated, tuple(clauses), mark, last)


def _own(clause: Clause) -> bool:
    """Not asked, nor supposed, nor another's view: "you think", "the judge held"."""
    body = clause.body[:_EARLY]
    attributed = not clause.command and any(
        word in _HELD and body[at - 1] not in _NO_HOLDER and w.SPEAKERS.isdisjoint(body[:at])
        for at, word in enumerate(body)
        if at
    )
    return clause.ask is None and clause.command not in w.SUPPOSING and not attributed


def _line(clause: Clause, *, first: bool) -> str:
    """The clause as a line, without a "so" that begins a sentence and subordinates nothing."""
    opening = len(clause.words) - len(clause.body) if first else 0
    goes_on = (word for word in clause.words[:opening] if word != "so")
    return f" {' '.join((*goes_on, *clause.words[opening:]))} "


def lead(words: Sequence[str]) -> int:
    """How many discourse markers stand first; "like" or "right" alone leave nothing."""
    at = 0
    while at < len(words):
        if words[at] in w.LEAD:
            at += 1
        elif tuple(words[at : at + 2]) in w.LEAD_PAIRS:
            at += 2
        else:
            break
    return at


def _ask(body: tuple[str, ...], *, has_mark: bool) -> Ask | None:
    """What the clause asks; `None` for none. Without a mark, "do that" is a command."""
    if not has_mark and body[0] in {"do", "have"} and body[1:] and body[1] not in _SUBJECTS:
        return None
    if body[0] in w.AUXILIARY and len(body) > 1 and (has_mark or body[1] in w.SUBJECT_START):
        return Ask("", "", body[0], body[1:], initial=True)
    return _wh(body, has_mark=has_mark)


def _wh(body: tuple[str, ...], *, has_mark: bool) -> Ask | None:
    """What a wh-word with an auxiliary and its subject asks; "what you are" asks nothing."""
    for at, word in enumerate(body):
        if word not in w.WH:
            continue
        if auxiliary_at := _inversion(body, at, has_mark=has_mark):
            head = body[at + 1] if auxiliary_at > at + 1 else ""
            return Ask(word, head, body[auxiliary_at], body[auxiliary_at + 1 :], initial=at == 0)
        if at == 0 and has_mark and w.PRONOUN.isdisjoint(body[1:2]):
            return Ask(word, "".join(body[1:2]), "", body[1:], initial=True)
    return None


def _inversion(words: Sequence[str], at: int, *, has_mark: bool) -> int:
    """Where the auxiliary of the wh-word at `at` stands, if a subject follows it; else 0."""
    for here in range(at + 1, min(at + 1 + _WH_PHRASE_MAX, len(words) - 1)):
        if words[here] in w.AUXILIARY:
            subject = words[here + 1] in w.SUBJECT_START or words[here + 1] == w.HOLE
            return here if has_mark or subject else 0
        if words[here] in w.PRONOUN or words[here] in w.WH:
            return 0
    return 0


def _command(body: Sequence[str]) -> str:
    """The verb of an imperative: a base form first, with nothing after it that needs a subject."""
    at = next((at for at, word in enumerate(body) if not w.is_adverb(word)), len(body))
    first, following, third = [*body[at : at + 3], "", "", ""][:3]
    if first == "don't" or (first, following) == ("do", "not"):
        verb = following if first == "don't" else third
        return "" if verb in w.SUBJECT_START else verb
    if first in {"do", "have"}:
        return first if following in w.DETERMINER or following in w.OBJECT else ""
    if first == "be":
        return first if following else ""
    if first in w.VERB and following not in w.NOT_AFTER_COMMAND:
        # Not "study habits are": two nouns and their verb.
        return "" if third in {"is", "are"} and following not in _NO_VERB else first
    verbal = first not in _NO_VERB and not first.endswith(("s", "ed", "ing"))
    return first if verbal and following in _OBJECTS else ""
