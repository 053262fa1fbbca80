"""The labelled replies: each once, with what every labeller says of it."""

from collections.abc import Iterable, Iterator, Sequence
from math import fsum

from msgspec import Struct

from socratic_bench.documents.calibration import Label
from socratic_bench.studies.labels.reading import key_of
from socratic_bench.turns import Rubric


class LabelledTurn(Struct, frozen=True, kw_only=True):
    """A reply with its labels, one a labeller. `probability` is that with which it was drawn, if
    all of its labels know it and agree.
    """

    labels: tuple[Label, ...]

    @property
    def first(self) -> Label:
        return self.labels[0]

    @property
    def cluster(self) -> str:
        return self.first.cluster

    @property
    def author(self) -> str | None:
        return self.first.author

    @property
    def probability(self) -> float | None:
        known = {label.probability for label in self.labels}
        return known.pop() if len(known) == 1 else None

    def score(self, name: str) -> float | None:
        """The mean over labellers."""
        given = [label.scores[name] for label in self.labels if name in label.scores]
        return fsum(given) / len(given) if given else None

    def total(self, names: Sequence[str]) -> float | None:
        """The sum of these dimensions, the mean over those who scored each."""
        whole = [one for one in self.labels if all(name in one.scores for name in names)]
        given = [fsum(one.scores[name] for name in names) for one in whole]
        return fsum(given) / len(given) if given else None

    def answer(self, name: str) -> bool | None:
        """Yes or no by most labellers; `None` where they are divided evenly."""
        given = [label.events[name] for label in self.labels if name in label.events]
        n_yes = sum(given)
        return None if 2 * n_yes == len(given) else 2 * n_yes > len(given)


def labelled_turns(labels: Iterable[Label]) -> list[LabelledTurn]:
    """In the order in which they were first labelled."""
    found: dict[tuple[object, ...], list[Label]] = {}
    for label in labels:
        found.setdefault(key_of(label), []).append(label)
    return [LabelledTurn(labels=tuple(some)) for some in found.values()]


def mistaken_scores(labels: Sequence[Label], rubric: Rubric) -> Iterator[str]:
    """Scores that no judge could have given: of no dimension of the rubric, or out of its range."""
    dimensions = {one.name: one for one in rubric.dimensions}
    for name in sorted({name for one in labels for name in one.scores}):
        one = dimensions.get(name)
        if one is None:
            yield (
                f"Labels score {name!r}, which is no dimension of the rubric {rubric.id}: it has "
                f"{', '.join(dimensions)}."
            )
            continue
        given = [label.scores[name] for label in labels if name in label.scores]
        if outside := [value for value in given if not one.low <= value <= one.high]:
            yield f"A label gives {name} {outside[0]:g}, out of {one.low:g} to {one.high:g}."
