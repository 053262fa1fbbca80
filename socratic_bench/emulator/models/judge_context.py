"""What the simulated judge makes of the dialogue around a reply: does a question take up what was
said, was it asked before, and does the student need what asking cannot give?
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import Literal

from msgspec import Struct

from socratic_bench.emulator.models.judge import PROBES, has, word_list

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
    """What was said before a reply, by the name of who said it; the student's last words come
    last. Nothing, where a judge is shown a reply alone.
    """

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
        """How a question of a reply hangs together with what the student said."""
        said = content("\n".join(self.student))
        own = content(question)
        if not self.lines or own & said or self._quotes(reply):
            return "taken"
        if not own:
            return "taken" if content(reply) & said else "general"
        if not is_english(question):
            return "general"
        is_foreign = _is_foreign(question) or has("small_matters", _plain(question))
        return "foreign" if is_foreign else "general"

    def _quotes(self, reply: str) -> bool:
        said = _plain("\n".join(self.student))
        return any(_plain(words) in said for words in _QUOTED.findall(reply))

    def times_asked(self, question: str) -> int:
        """How often the tutor has asked the same before, in the same or in other words."""
        return sum(
            any(_is_same(question, asked) for asked in _questions(line)) for line in self.tutor
        )

    def is_in_danger(self) -> bool:
        return has("danger", self.last_words.casefold())

    def is_in_need(self) -> bool:
        """Whether the student asks for what nobody can reason out."""
        return has("needs", self.last_words.casefold().replace("\u2019", "'"))

    def is_foreign_to(self, reply: str) -> bool:
        """Whether a reply is in another language than the student's, as far as the small words of
        English tell: one line with them shows it, and only several without show that it is not.
        """
        lines = [line for line in self.student if len(_words(line)) >= _FEW_WORDS]
        if len(_words(reply)) < _FEW_WORDS:
            return False
        spoken = any(map(is_english, lines))
        return len(lines) > 1 and not spoken if is_english(reply) else spoken


def content(text: str) -> frozenset[str]:
    """The stems of the words that say what is talked about; of scripts without spaces, pairs."""
    found: set[str] = set()
    for word in _words(text):
        if not word.isascii() and _is_unspaced(word):
            found.update(word[at : at + 2] for at in range(len(word) - 1))
        elif word not in _stock() and len(word) >= _FEWEST_LETTERS:
            found.add(_stem(word))
    return frozenset(found)


def is_english(text: str) -> bool:
    found = _words(text)
    return sum(word in word_list("small") for word in found) >= len(found) * _ENGLISH_SHARE


def _is_foreign(question: str) -> bool:
    """Of a question that shares no word nobody can tell by words alone. So it is foreign only if it
    is full of other things, points at nothing that was said, and is no case in which the student is
    put.
    """
    n_own, plain = len(content(question)), _plain(question)
    is_full = n_own >= _FULL and n_own >= _FULL_SHARE * len(_words(question))
    is_case = has("puts_a_case", plain) and re.search(r"\byou\b", plain)
    points_back = re.search(r"\b(?:they|them|those|that|this|these)\b", plain)
    return is_full and not is_case and not points_back


def _is_same(one: str, other: str) -> bool:
    """Words of the student's that both quote make no two questions alike."""
    for quoted in {*_QUOTED.findall(one)} & {*_QUOTED.findall(other)}:
        one, other = one.replace(quoted, ""), other.replace(quoted, "")
    mine, theirs = _bare(one), _bare(other)
    if not mine or not theirs:
        return mine == theirs
    alike = len(mine & theirs) / len(mine | theirs)
    return alike >= _ALIKE or (
        alike >= _ALIKE_IN_KIND
        and _kinds(one) == _kinds(other) != ()
        and content(one) == content(other) != frozenset()
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


def _words(text: str) -> list[str]:
    return _WORD.findall(_plain(text))


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold().replace("\u2019", "'")


def _stem(word: str) -> str:
    cut = _SUFFIX.sub("", word)
    return (cut if len(cut) >= _FEWEST_LETTERS else word)[:_STEM]


def _is_unspaced(word: str) -> bool:
    return word.upper() == word.lower() and len(word) > 1


@cache
def _stock() -> frozenset[str]:
    return word_list("small") | word_list("inquiry")
