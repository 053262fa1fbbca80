"""What of a verdict stands beside a label: a score, an event, or a score against a bound."""

import re
from collections.abc import Collection, Mapping

from msgspec import Struct

from socratic_bench.errors import Problem, UsageError, Words
from socratic_bench.turns import Rubric

TOTAL = "overall_score"
_BOUNDED = re.compile(r"([\w-]+)\s*(<|>=)\s*(-?\d+(?:\.\d+)?)")


class Quantity(Struct, frozen=True, kw_only=True):
    """What a verdict says yes or no by: an event, or a score with a bound. `sign` is -1 if yes
    means that the score is low.
    """

    name: str
    score: str | None = None
    sign: int = 1
    bound: float = 0.0

    def strength(self, scores: Mapping[str, float], events: Collection[str] | None) -> float | None:
        """The larger, the more it speaks for yes; `None` if the verdict does not say. `events` are
        those that were seen.
        """
        if self.score is None:
            return None if events is None else float(self.name in events)
        score = scores.get(self.score)
        return None if score is None else self.sign * score

    def is_yes(self, strength: float) -> bool:
        """Whether a verdict of that strength says yes."""
        if self.score is None:
            return bool(strength)
        least = self.sign * self.bound
        return strength > least if self.sign < 0 else strength >= least


def parsed(word: str, rubric: Rubric) -> Quantity:
    """`EVENT`, `DIMENSION<BOUND` or `DIMENSION>=BOUND`; overall_score is the sum of dimensions.

    Raises `UsageError` for what the rubric does not have.
    """
    if word in (event.name for event in rubric.events):
        return Quantity(name=word)
    found = _BOUNDED.fullmatch(word.strip())
    if found and found[1] in _scores(rubric):
        sign = -1 if found[2] == "<" else 1
        return Quantity(name=word.strip(), score=found[1], sign=sign, bound=float(found[3]))
    raise UsageError(
        [f"{word!r} is nothing that the rubric {rubric.id} says yes or no by."],
        hint=f"There is {_choices(rubric)}, and >=.",
    )


def _scores(rubric: Rubric) -> list[str]:
    return [*(dimension.name for dimension in rubric.dimensions), TOTAL]


def _choices(rubric: Rubric) -> str:
    events = (event.name for event in rubric.events)
    return ", ".join([*events, *(f"{one}<BOUND" for one in _scores(rubric))])


def _no_event(name: str, rubric: Rubric) -> Problem:
    return Problem.of(
        "The rubric {rubric_id} has no event {name!r}, which is labelled: say with {match} "
        "{name}=QUANTITY what the judge says yes by.",
        rubric_id=rubric.id,
        name=name,
    )


def matches(words: Mapping[str, str], labels: set[str], rubric: Rubric) -> dict[str, Quantity]:
    """By label of yes or no, what of the verdict stands beside it: what is asked for, else the
    event of the same name.

    Raises `UsageError` with every mistake.
    """
    problems: list[Words] = []
    found: dict[str, Quantity] = {}
    for name in sorted(labels):
        try:
            found[name] = parsed(words.get(name, name), rubric)
        except UsageError as error:
            problems += error.sentences if name in words else [_no_event(name, rubric)]
    problems += [
        Problem.of("{match} names {name!r}, which is not labelled.", name=name)
        for name in words
        if name not in labels
    ]
    if problems:
        raise UsageError(problems, hint=f"A QUANTITY is {_choices(rubric)}, or >=.")
    return found
