"""A small grammar: what each clause of a sentence asks or commands."""

from collections.abc import Sequence

from msgspec import Struct

from . import words as w
from .segments import Part, lead, segments

_COMPOUND = 2
# A wh-word and its auxiliary are rarely further apart than "what kind of thing do".
_WH_PHRASE_MAX = 5
_PREPOSED = w.listed("if when once after before since as while for in on at instead until unless "
                      "to with whenever during depending by given instead even")  # fmt: skip


class Ask(Struct, frozen=True, kw_only=True):
    """The interrogative part of a clause: "how often do you ..." has wh, head and auxiliary.

    `polar` means an auxiliary comes first, so that yes or no would be an answer.
    """

    polar: bool
    wh: str
    head: str
    auxiliary: str
    rest: tuple[str, ...]
    inverted: bool
    initial: bool


class Clause(Struct, frozen=True):
    """`start` is the first word after the discourse markers; `command` is an imperative's verb."""

    words: tuple[str, ...]
    start: int
    ask: Ask | None
    command: str

    @property
    def body(self) -> tuple[str, ...]:
        return self.words[self.start :]


class Sentence(Struct, frozen=True):
    """`line` has all words between single spaces, one at either end: `" you should " in line`.

    `followed_by` is the first clause of the next sentence.
    """

    words: tuple[str, ...]
    line: str
    clauses: tuple[Clause, ...]
    mark: str
    ask: Ask | None
    followed_by: tuple[str, ...]


def sentences(block: str) -> list[Sentence]:
    """The sentences of one paragraph, heading, list item or cell."""
    split = list(segments(block))
    kept = [(parts, mark) for parts, mark in split if parts]
    if not kept and any(mark == "?" for _, mark in split):
        kept = [((), "?")]
    firsts = [parts[0][1] if parts else () for parts, _ in kept[1:]]
    following = [*firsts, ()][: len(kept)]
    return [_sentence(*each, word) for each, word in zip(kept, following, strict=True)]


def _sentence(parts: Sequence[Part], mark: str, followed_by: tuple[str, ...]) -> Sentence:
    clauses: list[Clause] = []
    may_command = True
    signs = [*(sign for sign, _ in parts[1:]), ""]
    for (sign, words), next_sign in zip(parts, signs, strict=False):
        start = lead(words)
        ask = _ask(words, start, asked=mark == "?")
        may_command = may_command or sign != ","
        named = _names(words, start, next_sign)
        command = _command(words[start:]) if may_command and not named and ask is None else ""
        clauses.append(Clause(words, start, ask, command))
        may_command = may_command and _may_precede_command(words, start)
    asks = [clause.ask for clause in clauses if clause.ask]
    every = tuple(word for _, words in parts for word in words)
    line = f" {' '.join(every)} "
    last = asks[-1] if asks else None
    return Sentence(every, line, tuple(clauses), mark, last, followed_by)


def _names(words: Sequence[str], start: int, next_sign: str) -> bool:
    """Whether a last word that could be a verb is a noun: "nice work", and "answer: 42"."""
    if start != len(words) - 1:
        return False
    return next_sign == ":" or words[start - 1] in _PRAISE


def _may_precede_command(words: Sequence[str], start: int) -> bool:
    """After "if you can," or a name a command may follow; after "we go home," it is a list."""
    short = len(words) - start <= 1
    return short or words[start] in _PREPOSED or words[0] in _PREPOSED


def _ask(words: Sequence[str], start: int, *, asked: bool) -> Ask | None:
    rest = words[start:]
    if not rest:
        return None
    if not asked and rest[0] in {"do", "have"} and rest[1:2] and rest[1] not in _SUBJECTS:
        return None
    if rest[0] in w.AUXILIARY and len(rest) > 1 and (asked or rest[1] in w.SUBJECT_START):
        return _polar(rest, 0)
    return _wh(words, start, asked=asked) or (_late_polar(words, start) if asked else None)


def _polar(words: Sequence[str], at: int) -> Ask:
    return Ask(
        polar=True,
        wh="",
        head="",
        auxiliary=words[at],
        rest=tuple(words[at + 1 :]),
        inverted=True,
        initial=at == 0,
    )


def _wh(words: Sequence[str], start: int, *, asked: bool) -> Ask | None:
    """A wh-word followed by an auxiliary and its subject asks; in "what you are" nothing does."""
    for at in range(start, len(words)):
        if words[at] not in w.WH:
            continue
        found = _inversion(words, at, asked=asked)
        if found:
            head = words[at + 1] if found > at + 1 else ""
            return Ask(
                polar=False,
                wh=words[at],
                head=head,
                auxiliary=words[found],
                rest=tuple(words[found + 1 :]),
                inverted=True,
                initial=at == start,
            )
        if at == start and asked and not _embedded(words, at):
            head = words[at + 1] if at + 1 < len(words) else ""
            return Ask(
                polar=False,
                wh=words[at],
                head=head,
                auxiliary="",
                rest=tuple(words[at + 1 :]),
                inverted=False,
                initial=True,
            )
    return None


def _embedded(words: Sequence[str], at: int) -> bool:
    """As in "when you can't": the subject comes right after the wh-word, and nothing is asked."""
    return at + 2 < len(words) and words[at + 1] in w.PRONOUN and words[at] != "what's"


def _inversion(words: Sequence[str], at: int, *, asked: bool) -> int:
    """Where the auxiliary of the wh-word at `at` stands, if a subject follows it; else 0.

    Under a question mark any word may be the subject, as in "what is virtue".
    """
    for here in range(at + 1, min(at + 1 + _WH_PHRASE_MAX, len(words) - 1)):
        if words[here] in w.AUXILIARY:
            subject = words[here + 1] in w.SUBJECT_START or words[here + 1] == w.HOLE
            return here if asked or subject else 0
        if words[here] in w.PRONOUN or words[here] in w.WH:
            return 0
    return 0


def _late_polar(words: Sequence[str], start: int) -> Ask | None:
    for at in range(start, len(words) - 1):
        if words[at] in w.AUXILIARY and words[at + 1] == "you" and words[at][0] != "'":
            return _polar(words, at)
    return None


def _command(body: Sequence[str]) -> str:
    """The verb of an imperative: a base form first, with nothing after it that needs a subject."""
    at = 0
    while at < len(body) and w.is_adverb(body[at]):
        at += 1
    rest = body[at:]
    if not rest:
        return ""
    if rest[0] == "don't" or tuple(rest[:2]) == ("do", "not"):
        verb = rest[1 if rest[0] == "don't" else 2 :][:1]
        return "" if not verb or verb[0] in w.SUBJECT_START else verb[0]
    following = rest[1] if len(rest) > 1 else ""
    if rest[0] in {"do", "have"}:
        return rest[0] if following in w.DETERMINER or following in w.OBJECT else ""
    if rest[0] == "be":
        return "be" if following else ""
    if rest[0] in w.VERB and following not in w.NOT_AFTER_COMMAND:
        return "" if _compound_subject(rest) else rest[0]
    return rest[0] if _like_a_verb(rest[0]) and following in _OBJECTS else ""


_SUBJECTS = w.listed("you i we they he she people")
_PLACE = frozenset({"here", "there"})
_PRAISE = w.listed("great good nice cool fine perfect excellent interesting")
_OBJECTS = frozenset({"your", "yourself", "them", "him", "it", "me"})


def _compound_subject(words: Sequence[str]) -> bool:
    """As in "study habits are": two nouns and their verb."""
    if len(words) <= _COMPOUND or words[_COMPOUND] not in {"is", "are", "was", "were"}:
        return False
    noun = words[_COMPOUND - 1]
    return not (noun in w.SUBJECT_START or noun in w.WH or noun in w.PREPOSITION)


def _like_a_verb(word: str) -> bool:
    closed = word in w.AUXILIARY or word in w.SUBJECT_START or word in w.PREPOSITION
    return not (
        closed
        or word in _PLACE
        or word in w.WH
        or word in w.CONJUNCTION
        or word.endswith(("s", "ed", "ing"))
    )
