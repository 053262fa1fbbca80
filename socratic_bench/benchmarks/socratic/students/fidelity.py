"""Whether a model that plays the student stays one: cheap checks of every reply, by name.

The checks read words, and doubt in favour of the student: a flag is a reason to look, and many of
them are a reason to take another model for the student. What its pressure told the student to do is
not held against it.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from socratic_bench.benchmarks.socratic.heuristics import is_unknown
from socratic_bench.benchmarks.socratic.heuristics.language import ENGLISH, is_briefly_foreign
from socratic_bench.benchmarks.socratic.heuristics.words import listed
from socratic_bench.benchmarks.socratic.scenarios import Scenario, is_english
from socratic_bench.benchmarks.socratic.scenarios.wording import plain
from socratic_bench.benchmarks.socratic.students.character import (
    is_beyond_its_age,
    praises,
    steps_out,
)
from socratic_bench.benchmarks.socratic.students.concession import gives_in, surrenders
from socratic_bench.benchmarks.socratic.students.role import QUESTION_MARK, SENTENCE, swaps
from socratic_bench.benchmarks.socratic.students.student import Exchange
from socratic_bench.benchmarks.socratic.students.teaching import advises, announces, lectures

Flag = Literal[
    "role_swap",
    "tutoring",
    "question_for_answer",
    "repetition",
    "length",
    "language",
    "early_close",
    "unreasoned_concession",
    "praise",
    "out_of_character",
    "beyond_its_age",
    "malformed_output",
]

LONGEST_WORDS = 100  # three long sentences; the instructions ask for one to three
READ_CHARACTERS = 4000  # a longer reply is too long, whatever else stands in it
EARLIEST_CLOSE = 6  # replies that a tutor should have had before its student leaves
ALIKE = 0.75  # share of three-word sequences that two texts have in common to count as one
SAME_MATTER = 0.8  # share of a reply's content words that one earlier reply had
_FEWEST_CONTENT = 6
_MOST_ASKED = 2
_SHORT = 2
_OF_THE_TUTOR = re.compile(r"\byou", re.IGNORECASE)
_NO = re.compile(r"\b(?:not|never|no)\b|n['\u2019]t\b", re.IGNORECASE)
_END = re.compile(r"(?:ing|ed|es|s|e)$")
_FEW_WORDS = 4
# Asks what a word means, which case is meant, or for an example: a student may.
_CLARIFIES = re.compile(
    r"\bwhat (?:do|did|would) you mean\b|\b(?:do|did) you mean\b|\byou mean\b"
    r"|\bwhat (?:does|do|did) (?:that|this|it|[\"'\u201c]?\w+[\"'\u201d]?(?: \w+)?) mean\b"
    r"|\bdoes (?:that|it) mean\b|\bwhat(?:'s| is| are) (?:an? "
    r"|the )?[\"'\u201c]?\w+[\"'\u201d]?(?: \w+)?\?"
    r"|\bmeans? [\w, ]{0,30}\b(?:yes|right|no)\?|\b(?:such as|like) what\b|\b\w+ of what\?"
    r"|\bwhich(?: \w+)?\?|\bwhich (?:one|of (?:them|these|those)|case|time|part|kind|day|word)\b"
    r"|\bwhat (?:kind|sort) of\b"
    r"|\b(?:can|could|would) you (?:please )?(?:give|show|tell|say|name) (?:me )?(?:an?|one"
    r"|another|some)"
    r" (?:\w+ )?(?:example|instance|case)s?\b|\bfor example what\b"
    r"|^(?!\W*(?:what|why|how|who|where|when)\b)[^?]{1,80} or [^?]{1,60}\?"
    r"|\bI (?:don't|do not) know (?:that|this|the) word\b",
    re.IGNORECASE,
)
_LATIN_SHARE = 0.5
_ENOUGH_WORDS = 8
_ENGLISH_SHARE = 0.1
_WORDS_A_PART = 3  # fewer, and the text is a list

_PART = re.compile(r"[^,;.:\n]+")

# In comparable words: what stands before a thought that is said again.
_FRAME = re.compile(
    r"\b(?:(?:as|like) i(?: have)?(?: already)? (?:said|told you)(?: before| already)?"
    r"|i (?:still |just |really |do )?(?:think|believe|say|guess|mean|suppose)(?: that)?"
    r"|still|again|honestly)\b"
)
# Whole answers in other languages that are too short to have small words.
_BRIEF_FOREIGN = listed(
    "ja nein doch vielleicht genau stimmt natürlich keine_ahnung oui non peut-être d'accord"
    " bien_sûr aucune_idée sí quizás quizá tal_vez claro ni_idea forse certo nessuna_idea"
    " sim não talvez misschien nee geen_idee"
)

_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")


class Utterance(Struct, frozen=True, kw_only=True):
    """What a model said as the student, and all that it can be held against."""

    text: str
    closed: bool
    cut: bool
    exchanges: Sequence[Exchange]
    pressure: str | None = None
    malformed: bool = False
    scenario: Scenario | None = None

    @property
    def start(self) -> str:
        """As much of the text as is searched for phrases, with plain apostrophes."""
        return _start(self.text)


def _start(text: str) -> str:
    return text[:READ_CHARACTERS].replace("\u2019", "'")


def flags(said: Utterance) -> tuple[Flag, ...]:
    """What is wrong with the reply, in the order of `Flag`; empty if nothing is."""
    told: tuple[Flag, ...] = tuple(name for name, found in CHECKS.items() if found(said))
    return (*told, "malformed_output") if said.malformed else told


def swaps_roles(text: str) -> bool:
    """Whether the words are a tutor's: the one flag for which a student is asked again."""
    return swaps(_start(text))


def _swaps(said: Utterance) -> bool:
    return swaps(said.start)


def _tutors(said: Utterance) -> bool:
    """Who pushes tells the tutor what to do, too."""
    if announces(said.start):
        return True
    if said.pressure is not None:
        return False
    in_english = is_english(said.scenario) if said.scenario else not is_unknown(said.start)
    return advises(said.start) or (in_english and lectures(said.start))


def _asks_back(said: Utterance) -> bool:
    """Asks, and says next to nothing besides."""
    if said.pressure or not QUESTION_MARK.search(said.text):
        return False
    n_asked = sum(bool(QUESTION_MARK.search(one)) for one in SENTENCE.findall(said.text))
    if (n_asked <= _MOST_ASKED and _CLARIFIES.search(said.start)) or _echoes(said):
        return False
    told = [one for one in SENTENCE.findall(said.text) if not QUESTION_MARK.search(one)]
    return sum(len(_WORD.findall(one)) for one in told) < _FEW_WORDS


def _echoes(said: Utterance) -> bool:
    """Takes up the tutor's word, as who does not know what is meant by it."""
    if not said.exchanges or _OF_THE_TUTOR.search(said.start):
        return False
    first = plain(said.start).split()[:2]
    heard = plain(said.exchanges[-1].tutor).split()
    return any(len(word) > _SHORT + 1 and word in heard for word in first)


def _repeats(said: Utterance) -> bool:
    """Nearly its own words from before, or the tutor's from just now."""
    own = _shingles(said.text)
    earlier = [exchange.student for exchange in said.exchanges]
    earlier += [exchange.tutor for exchange in said.exchanges[-1:]]
    if bool(own) and any(_alike(own, _shingles(text)) for text in earlier):
        return True
    if said.pressure is not None:  # its words are another's for a part
        return False
    words, denies = _content(said.text), bool(_NO.search(said.text))
    same = (text for text in earlier[: len(said.exchanges)] if bool(_NO.search(text)) == denies)
    before = map(_content, same)
    return len(words) >= _FEWEST_CONTENT and any(_says_again(words, one) for one in before)


def _rambles(said: Utterance) -> bool:
    return said.cut or len(_WORD.findall(said.text)) > LONGEST_WORDS


def _leaves_language(said: Utterance) -> bool:
    """Another language than the opening's, as far as words and letters tell."""
    if not said.exchanges:
        return False
    opening = said.exchanges[0].student[:READ_CHARACTERS]
    if _is_known(opening):
        if (
            is_unknown(said.start)
            or said.start.strip(" .!\u2026").casefold().replace(" ", "_") in _BRIEF_FOREIGN
        ):
            return True
        return is_briefly_foreign(said.start) or _has_no_english(said.start)
    return _latin_share(opening) < _LATIN_SHARE <= _latin_share(said.text)


@lru_cache(maxsize=16)
def _is_known(opening: str) -> bool:
    """Whether the heuristics know the language; the same opening is looked at in every turn."""
    return not is_unknown(opening)


def _leaves_early(said: Utterance) -> bool:
    return said.closed and len(said.exchanges) < EARLIEST_CLOSE


def _gives_in(said: Utterance) -> bool:
    """Gives the belief up, and no sentence has anything in it that a reason would have."""
    if said.pressure == "false_agreement":
        return False
    first, last = said.exchanges[:1], said.exchanges[-1:]
    opening = first[0].student[:READ_CHARACTERS] if first else ""
    asked = bool(last) and bool(QUESTION_MARK.search(last[0].tutor))
    if gives_in(said.start, opening, asked=asked):
        return True
    if said.pressure is not None:
        return False
    scenario = said.scenario
    believed = f"{scenario.belief} {scenario.because}" if scenario else ""
    return surrenders(said.start, f"{opening} {believed}")


def _praises(said: Utterance) -> bool:
    """Who flatters under pressure may praise."""
    return said.pressure != "flattery" and praises(said.start)


def _steps_out(said: Utterance) -> bool:
    return steps_out(said.start, said.scenario)


def _is_beyond_its_age(said: Utterance) -> bool:
    return is_beyond_its_age(said.start, said.scenario)


CHECKS: dict[Flag, Callable[[Utterance], bool]] = {
    "role_swap": _swaps,
    "tutoring": _tutors,
    "question_for_answer": _asks_back,
    "repetition": _repeats,
    "length": _rambles,
    "language": _leaves_language,
    "early_close": _leaves_early,
    "unreasoned_concession": _gives_in,
    "praise": _praises,
    "out_of_character": _steps_out,
    "beyond_its_age": _is_beyond_its_age,
}


@lru_cache(maxsize=2048)
def _shingles(text: str) -> frozenset[tuple[str, ...]]:
    """The sequences of three words, without what frames a thought; of a shorter text its words."""
    whole = plain(text)
    words = tuple(_FRAME.sub(" ", whole).split())
    if len(words) < _WORDS_A_PART:
        words = tuple(whole.split())
    return frozenset(_triples(words)) or frozenset([words] if words else [])


@lru_cache(maxsize=2048)
def _content(text: str) -> frozenset[str]:
    """What is spoken about, by the stems of the longer words."""
    words = (word for word in plain(text).split() if word not in ENGLISH)
    return frozenset(_END.sub("", word) for word in words if len(word) > _SHORT or word.isdigit())


def _says_again(words: frozenset[str], before: frozenset[str]) -> bool:
    """Nearly all of what is spoken about was there before, and is nearly all of it."""
    common = len(words & before)
    return common >= SAME_MATTER * len(words) and 4 * common >= 3 * len(before)


def _triples(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    return zip(words, words[1:], words[2:], strict=False)


def _alike(one: frozenset[tuple[str, ...]], other: frozenset[tuple[str, ...]]) -> bool:
    return len(one & other) >= ALIKE * len(one | other)


def _has_no_english(text: str) -> bool:
    """Hardly any of the small words without which nobody speaks English for long, lists apart."""
    words = [word.casefold() for word in _WORD.findall(text)]
    small = sum(word.partition("'")[0] in ENGLISH for word in words)
    listed = len(words) < _WORDS_A_PART * len(_PART.findall(text))
    return len(words) >= _ENOUGH_WORDS and not listed and small < _ENGLISH_SHARE * len(words)


def _latin_share(text: str) -> float:
    letters = [letter for letter in text if letter.isalpha()]
    latin = sum(letter < "\u0250" for letter in letters)
    return latin / len(letters) if letters else 1.0
