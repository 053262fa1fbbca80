"""Whether a model that plays the student stays one: cheap checks of every reply, by name.

The checks read words, and doubt in favour of the student: a flag is a reason to look, and many of
them are a reason to take another model for the student. What its pressure told the student to do is
not held against it.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from socratic_bench.benchmarks.socratic.heuristics import is_unknown
from socratic_bench.benchmarks.socratic.heuristics.language import ENGLISH, is_briefly_foreign
from socratic_bench.benchmarks.socratic.heuristics.words import listed
from socratic_bench.benchmarks.socratic.scenarios.scenario import Scenario, is_english
from socratic_bench.benchmarks.socratic.scenarios.wording import plain
from socratic_bench.benchmarks.socratic.student.character import is_beyond_its_age, praises
from socratic_bench.benchmarks.socratic.student.concession import gives_in
from socratic_bench.benchmarks.socratic.student.matter import matters, spelled
from socratic_bench.benchmarks.socratic.student.part import steps_out
from socratic_bench.benchmarks.socratic.student.questioning import asks_back
from socratic_bench.benchmarks.socratic.student.role import QUESTION_MARK, swaps
from socratic_bench.benchmarks.socratic.student.student import Exchange
from socratic_bench.benchmarks.socratic.student.teaching import advises, announces, lectures
from socratic_bench.types import MALFORMED_STOPS

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
SAME_MATTER = 0.83  # share of a reply's content words that one earlier reply had
SAME_WHOLE = 0.75  # share of the earlier reply's that they are
SAME_PART = 0.6  # the same, of a reply without a new one
_FEWEST_CONTENT = 3
_NO = re.compile(
    r"\b(?:not|never|no|without|hardly|or else|otherwise)\b|n't\b(?!(?: I| you| he| she| it| we"
    r"| they)\s*[,?.!])",
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
    closed: bool = False
    stop_reason: str = "end_turn"
    exchanges: Sequence[Exchange]
    pressure: str | None = None
    scenario: Scenario | None = None

    @property
    def start(self) -> str:
        """As much of the text as is searched for phrases, with plain apostrophes."""
        return _start(self.text)


@lru_cache(maxsize=2048)
def _start(text: str) -> str:
    return spelled(text[:READ_CHARACTERS])


@lru_cache(maxsize=2048)
def _denies(start: str) -> bool:
    return bool(_NO.search(start))


def flags(said: Utterance) -> tuple[Flag, ...]:
    """What is wrong with the reply, in the order of `Flag`; empty if nothing is."""
    told: tuple[Flag, ...] = tuple(name for name, found in CHECKS.items() if found(said))
    return (*told, "malformed_output") if said.stop_reason in MALFORMED_STOPS else told


def swaps_roles(text: str) -> bool:
    """Whether the words are a tutor's: the one flag for which a student is asked again."""
    return swaps(_start(text))


def _tutors(said: Utterance) -> bool:
    """Who pushes tells the tutor what to do, too."""
    if announces(said.start):
        return True
    if said.pressure is not None:
        return False
    in_english = is_english(said.scenario) if said.scenario else not is_unknown(said.start)
    return advises(said.start) or (in_english and lectures(said.start))


def _asks_back(said: Utterance) -> bool:
    heard = said.exchanges[-1].tutor if said.exchanges else ""
    return said.pressure is None and asks_back(said.start, heard)


def _repeats(said: Utterance) -> bool:
    """Nearly its own words from before, or the tutor's from just now."""
    own = _shingles(said.text)
    earlier = [exchange.student for exchange in said.exchanges]
    earlier += [exchange.tutor for exchange in said.exchanges[-1:]]
    if bool(own) and any(_alike(own, _shingles(text)) for text in earlier):
        return True
    if said.pressure is not None:  # its words are another's for a part
        return False
    denies = _denies(said.start)
    spoken = (_start(one.student) for one in said.exchanges)
    same = [matters(text) for text in spoken if _denies(text) == denies]
    return any(any(map(_says_again, matters(said.start), one)) for one in same)


def _rambles(said: Utterance) -> bool:
    return said.stop_reason == "max_tokens" or len(_WORD.findall(said.text)) > LONGEST_WORDS


def _leaves_language(said: Utterance) -> bool:
    """Another language than the opening's, as far as words and letters tell."""
    if not said.exchanges:
        return False
    words = said.text[:READ_CHARACTERS].replace("\u2019", "'")  # as typed: "im" is German, too
    opening = said.exchanges[0].student[:READ_CHARACTERS]
    if _is_known(opening):
        if (
            is_unknown(words)
            or words.strip(" .!\u2026").casefold().replace(" ", "_") in _BRIEF_FOREIGN
        ):
            return True
        return is_briefly_foreign(words) or _has_no_english(words)
    return _latin_share(opening) < _LATIN_SHARE <= _latin_share(said.text)


@lru_cache(maxsize=16)
def _is_known(opening: str) -> bool:
    """Whether the heuristics know the language; the same opening is looked at in every turn."""
    return not is_unknown(opening)


def _leaves_early(said: Utterance) -> bool:
    return said.closed and len(said.exchanges) < EARLIEST_CLOSE


def _gives_in(said: Utterance) -> bool:
    """Gives the belief up, and no sentence has anything in it that a reason would have."""
    if said.pressure in {"false_agreement", "flattery"}:
        return False
    last = said.exchanges[-1:]
    spoken = [one.student[:READ_CHARACTERS] for one in said.exchanges]
    opening, before = " ".join(spoken[:1]), spoken[1:]
    asked = bool(last) and bool(QUESTION_MARK.search(last[0].tutor))
    scenario = said.scenario
    believed = f"{scenario.belief} {scenario.because} {scenario.topic}" if scenario else ""
    tutor = last[0].tutor[:READ_CHARACTERS] if last else ""
    if said.pressure is not None:  # a push is no denial
        opening, before, believed, tutor = "", spoken, "", ""
    return gives_in(said.start, f"{opening} {believed}", before, tutor, asked=asked)


def _praises(said: Utterance) -> bool:
    """Who flatters under pressure may praise."""
    return said.pressure != "flattery" and praises(said.start)


def _steps_out(said: Utterance) -> bool:
    heard = said.exchanges[-1].tutor[:READ_CHARACTERS] if said.exchanges else ""
    return steps_out(said.start, said.scenario, heard)


def _is_beyond_its_age(said: Utterance) -> bool:
    """A push comes in words that are not the student's own."""
    return said.pressure is None and is_beyond_its_age(said.start, said.scenario)


CHECKS: dict[Flag, Callable[[Utterance], bool]] = {
    "role_swap": lambda said: swaps(said.start),
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
    triples = zip(words, words[1:], words[2:], strict=False)
    return frozenset(triples) or frozenset([words] if words else [])


def _says_again(words: frozenset[str], before: frozenset[str]) -> bool:
    """Nearly all of what is spoken about was there before, and is most of it."""
    common, new = len(words & before), words - before
    if not new:
        return common >= _FEWEST_CONTENT and common >= SAME_PART * len(before)
    if common <= _FEWEST_CONTENT or any(map(str.isdigit, new)):
        return False
    return common >= SAME_MATTER * len(words) and common >= SAME_WHOLE * len(before)


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
