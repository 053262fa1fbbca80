"""A scenario: a student with an opening, a belief and sentences; and how its texts are compared."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Literal, get_args

from msgspec import Struct

Family = Literal["refutation", "guided-discovery", "puzzlement", "open-question"]
Weakness = Literal["contradictory", "shallow", "mistaken", "undecided"]
Resistance = Literal["low", "medium", "high"]
Age = Literal["child", "teenager", "student", "adult"]

CUSTOM = "custom"  # the id of the scenario for any prompt
FAMILIES: tuple[Family, ...] = get_args(Family)
WEAKNESSES: tuple[Weakness, ...] = get_args(Weakness)
AGES: tuple[Age, ...] = get_args(Age)

# What is weak about the belief is what makes the family: elenchus needs a contradiction, and so on.
WEAKNESS_OF: dict[Family, Weakness] = dict(zip(FAMILIES, WEAKNESSES, strict=True))


class Text(Struct, frozen=True):
    """Bounds of a field: characters of each text, number of texts; whether below `[student]`."""

    longest: int = 80
    count: tuple[int, int] = (1, 1)
    is_students: bool = False


_SAYS = Text(600, (1, 12))
_ASKED = Text(900, (1, 12))
_LINES = Text(300, (1, 30))
_Lines = Annotated[tuple[str, ...], _LINES]


# "'s" may be "has" or a genitive, too: written out alike on both sides, that does no harm.
_CONTRACTED = {
    "n't": " not",
    "'s": " is",
    "'re": " are",
    "'m": " am",
    "'ve": " have",
    "'ll": " will",
    "'d": " would",
}
QUESTION_MARKS = frozenset("?\uff1f\u061f\u037e\u055e")  # full-width, Arabic, Greek, Armenian
_WORD = re.compile(r"[\w']+")


class Insight(Struct, frozen=True):
    """What good questions let the student see, and the words by which it gets there.

    `says` are the steps to the insight, said in this order; the last of them states it. `asked`
    has a text for each of them: examples of questions to which it is the answer, one behind the
    other.
    """

    insight: Annotated[str, Text(300)]
    says: Annotated[tuple[str, ...], _SAYS] = ()
    asked: Annotated[tuple[str, ...], _ASKED] = ()


class Move(Struct, frozen=True):
    """Sentences with the questions they answer; those with `holds_belief` end at an insight."""

    says: Annotated[tuple[str, ...], _SAYS]
    asked: Annotated[tuple[str, ...], _ASKED] = ()
    holds_belief: Annotated[bool, Text()] = False


class Voice(Struct, frozen=True):
    """What it says without a fitting sentence; `moved`: after an insight, `lead`: to begin with."""

    unsure: _Lines
    polar: _Lines
    told: _Lines
    filler: _Lines
    moved: Annotated[tuple[str, ...], _LINES] = ()
    lead: Annotated[tuple[str, ...], Text(40, (1, 12))] = ()


class PressureWords(Struct, frozen=True):
    """Sentences for each kind of pressure, for a student who does not speak English."""

    demand: _Lines
    impatience: _Lines
    flattery: _Lines
    authority: _Lines
    distress: _Lines
    drop_questions: _Lines
    false_agreement: _Lines


class Scenario(Struct, frozen=True, kw_only=True):
    """One student with one thing to think about.

    `belief` fits after "I think", `because` after "because", `topic` and each of `details` after
    "about". `draws_out` is what a good tutor could bring to light by questions alone, `moves` what
    else the student has to say, and `replies` what one without moves says in order. `closes_after`
    counts the tutor's turns. `language` is a BCP 47 tag. `sha256` is of the file's bytes. Each
    field of the file has its bounds beside it.
    """

    id: Annotated[str, Text(60)]
    title: Annotated[str, Text()]
    family: Annotated[Family, Text()]
    subject: Annotated[str, Text(40)]
    age: Annotated[Age, Text()]
    language: Annotated[str, Text(35)] = "en"
    openings: Annotated[tuple[str, ...], Text(600, (1, 10))]
    draws_out: Annotated[tuple[Insight, ...], Text(count=(2, 4))]
    moves: Annotated[tuple[Move, ...], Text(count=(1, 40))] = ()
    replies: Annotated[tuple[str, ...], Text(600, (6, 10))] = ()
    knows: Annotated[str | None, Text(600)] = None
    does_not_know: Annotated[str | None, Text(600)] = None
    closes_after: Annotated[int | None, Text()] = None
    closing: Annotated[str | None, Text(600)] = None
    persona: Annotated[str, Text(800, is_students=True)]
    belief: Annotated[str, Text(240, is_students=True)]
    because: Annotated[str, Text(240, is_students=True)]
    topic: Annotated[str, Text(is_students=True)]
    details: Annotated[tuple[str, ...], Text(count=(3, 8), is_students=True)]
    weakness: Annotated[Weakness, Text(is_students=True)]
    resistance: Annotated[Resistance, Text(is_students=True)]
    voice: Annotated[Voice | None, Text()] = None
    pressure: Annotated[PressureWords | None, Text()] = None
    sha256: str

    def closes_at(self, turn: int) -> bool:
        """Whether a scripted student leaves after this many of the tutor's turns."""
        return self.closes_after is not None and turn >= self.closes_after


def flatten(table: Mapping[str, object]) -> dict[str, object]:
    """A file's table with the fields of [student] lifted up as "student.persona" and so on."""
    student = table.get("student", {})
    flat = {name: value for name, value in table.items() if name != "student"}
    if not isinstance(student, dict):
        return {**flat, "student": student}
    return {**flat, **{f"student.{name}": value for name, value in student.items()}}


def as_table(insight: object) -> object:
    """An insight may stand as a text alone, without words of the student's."""
    return {"insight": insight} if isinstance(insight, str) else insight


def own_sentences(scenario: Scenario) -> dict[str, str]:
    """All that the student has to say of itself, each by its place in the file, in order."""
    sentences = {f"replies, item {n}": text for n, text in enumerate(scenario.replies, 1)}
    for place, group in groups(scenario).items():
        sentences |= {f"{place}, says, item {n}": text for n, text in enumerate(group.says, 1)}
    return sentences


def groups(scenario: Scenario) -> dict[str, Insight | Move]:
    """The insights and the other moves, each by its place in the file."""
    insights = {f"draws_out, item {n}": group for n, group in enumerate(scenario.draws_out, 1)}
    return {**insights, **{f"moves, item {n}": group for n, group in enumerate(scenario.moves, 1)}}


def is_english(scenario: Scenario) -> bool:
    return scenario.language.partition("-")[0].casefold() == "en"


def normal(text: str) -> str:
    """The text with white space and case put aside, for comparing openings."""
    return " ".join(text.split()).casefold()


@cache
def _unspaced() -> re.Pattern[str]:
    """Han, kana, Thai, Lao, Khmer, Burmese; compiled when needed, since that takes a while."""
    return re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")


def is_unspaced(text: str) -> bool:
    """Whether it is in a script without blanks between words."""
    return not text.isascii() and bool(_unspaced().search(text))


def n_words(text: str) -> int:
    """Words of a text; two characters count as one where there are no blanks between words."""
    unspaced = len(_unspaced().findall(text))
    return len(_unspaced().sub(" ", text).split()) + (unspaced + 1) // 2


def plain(text: str) -> str:
    """Comparable words: contracted forms written out, no marks, no capitals."""
    words = " ".join(_WORD.findall(normal(text).replace("\u2019", "'")))
    for contracted, full in _CONTRACTED.items():
        words = words.replace(contracted, full)
    return words
