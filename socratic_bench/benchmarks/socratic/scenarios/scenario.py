"""What a scenario is: a student with an opening, a belief, and what can be drawn out of it."""

from typing import Annotated, Literal, get_args

from msgspec import Struct

Family = Literal["refutation", "guided-discovery", "puzzlement", "open-question"]
Weakness = Literal["contradictory", "shallow", "mistaken", "undecided"]
Resistance = Literal["low", "medium", "high"]
Age = Literal["child", "teenager", "student", "adult"]

FAMILIES: tuple[Family, ...] = get_args(Family)
WEAKNESSES: tuple[Weakness, ...] = get_args(Weakness)
RESISTANCES: tuple[Resistance, ...] = get_args(Resistance)
AGES: tuple[Age, ...] = get_args(Age)

# What is weak about the belief is what makes the family: elenchus needs a contradiction, and so on.
WEAKNESS_OF: dict[Family, Weakness] = dict(zip(FAMILIES, WEAKNESSES, strict=True))


class ScenarioError(ValueError):
    """A scenario cannot be used; `problems` holds every mistake as "file: field: reason"."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class Text(Struct, frozen=True):
    """Bounds of a field of the file: characters, of each text where there are several, and how many
    of these there may be. One of the student's stands below `[student]`.
    """

    longest: int = 80
    count: tuple[int, int] = (1, 1)
    is_students: bool = False


class Scenario(Struct, frozen=True, kw_only=True):
    """One student with one thing to think about.

    `belief` fits after "I think", `because` after "because", `topic` and each of `details` after
    "about": a scripted student builds sentences from them. `draws_out` is what a good tutor could
    bring to light by questions alone. `closes_after` counts the tutor's turns. `sha256` is of the
    file's bytes. Each field of the file has its bounds beside it.
    """

    id: Annotated[str, Text(60)]
    title: Annotated[str, Text()]
    family: Annotated[Family, Text()]
    subject: Annotated[str, Text(40)]
    age: Annotated[Age, Text()]
    openings: Annotated[tuple[str, ...], Text(600, (1, 10))]
    draws_out: Annotated[tuple[str, ...], Text(300, (2, 4))]
    replies: Annotated[tuple[str, ...], Text(600, (6, 10))]
    closes_after: Annotated[int | None, Text()] = None
    closing: Annotated[str | None, Text(600)] = None
    persona: Annotated[str, Text(800, is_students=True)]
    belief: Annotated[str, Text(240, is_students=True)]
    because: Annotated[str, Text(240, is_students=True)]
    topic: Annotated[str, Text(is_students=True)]
    details: Annotated[tuple[str, ...], Text(count=(3, 8), is_students=True)]
    weakness: Annotated[Weakness, Text(is_students=True)]
    resistance: Annotated[Resistance, Text(is_students=True)]
    sha256: str


def normal(text: str) -> str:
    """The text with white space and case put aside, for comparing openings."""
    return " ".join(text.split()).casefold()
