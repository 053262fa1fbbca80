"""What of a verdict stands beside a label: a score, an event, or a score against a bound."""

import re
from collections.abc import Mapping

from msgspec import Struct

from socratic_bench.errors import UsageError
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

    def strength(self, scores: Mapping[str, float], events: Mapping[str, float]) -> float | None:
        """The larger, the more it speaks for yes; `None` if the verdict does not say."""
        if self.score is None:
            return events.get(self.name)
        score = scores.get(self.score)
        return None if score is None else self.sign * score

    def is_yes(self, strength: float) -> bool:
        """Whether a verdict of that strength says yes; an event counts if most have seen it."""
        if self.score is None:
            return strength > 0.5  # noqa: PLR2004 -- most of those who were asked
        least = self.sign * self.bound
        return strength > least if self.sign < 0 else strength >= least


def parsed(word: str, rubric: Rubric) -> Quantity:
    """`EVENT`, `DIMENSION<BOUND` or `DIMENSION>=BOUND`; overall_score is the sum of dimensions.

    Raises `UsageError` for what the rubric does not have.
    """
    events = [event.name for event in rubric.events]
    scores = [*(dimension.name for dimension in rubric.dimensions), TOTAL]
    if word in events:
        return Quantity(name=word)
    found = _BOUNDED.fullmatch(word.strip())
    if found and found[1] in scores:
        sign = -1 if found[2] == "<" else 1
        return Quantity(name=word.strip(), score=found[1], sign=sign, bound=float(found[3]))
    raise UsageError(
        [f"{word!r} is nothing that the rubric {rubric.id} says yes or no by."],
        hint=f"There is {', '.join([*events, *(f'{one}<BOUND' for one in scores)])}, and >=.",
    )


def matches(words: Mapping[str, str], labels: set[str], rubric: Rubric) -> dict[str, Quantity]:
    """By label of yes or no, what of the verdict stands beside it: what is asked for, else the
    event of the same name.

    Raises `UsageError` with every mistake.
    """
    problems, found = [], {}
    for name in sorted(labels):
        try:
            found[name] = parsed(words.get(name, name), rubric)
        except UsageError as error:
            problems.append(
                error.problems[0]
                if name in words
                else f"The rubric {rubric.id} has no event {name!r}, which is labelled: say with "
                f"--match {name}=QUANTITY what the judge says yes by."
            )
    problems += [
        f"--match names {name!r}, which is not labelled." for name in words if name not in labels
    ]
    if problems:
        events = [event.name for event in rubric.events]
        scores = [*(dimension.name for dimension in rubric.dimensions), TOTAL]
        hint = f"A QUANTITY is {', '.join([*events, *(f'{one}<BOUND' for one in scores)])}, or >=."
        raise UsageError(problems, hint=hint)
    return found
