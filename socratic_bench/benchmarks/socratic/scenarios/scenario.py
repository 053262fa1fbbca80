"""What a scenario is: a student with an opening, a belief, and what can be drawn out of it."""

from typing import Literal, get_args

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


class Scenario(Struct, frozen=True, kw_only=True):
    """One student with one thing to think about.

    `belief` fits after "I think", `because` after "because", `topic` and each of `details` after
    "about": a scripted student builds sentences from them. `draws_out` is what a good tutor could
    bring to light by questions alone. `closes_after` counts the tutor's turns. `sha256` is of the
    file's bytes.
    """

    id: str
    title: str
    family: Family
    subject: str
    age: Age
    openings: tuple[str, ...]
    persona: str
    belief: str
    because: str
    topic: str
    details: tuple[str, ...]
    weakness: Weakness
    resistance: Resistance
    draws_out: tuple[str, ...]
    replies: tuple[str, ...]
    closes_after: int | None = None
    closing: str | None = None
    sha256: str


def normal(text: str) -> str:
    """The text with white space and case put aside, for comparing openings."""
    return " ".join(text.split()).casefold()
