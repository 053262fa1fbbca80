"""What a scripted student makes of a tutor's words: the readings that heuristics give of them."""

from collections.abc import Callable
from typing import Protocol


class Reading(Protocol):
    """What the heuristics saw in a tutor's words; `None` where they cannot read the language."""

    @property
    def has_question(self) -> bool | None: ...
    @property
    def open_ended(self) -> bool | None: ...
    @property
    def has_advice(self) -> bool | None: ...


Analyse = Callable[[str], Reading]


def heuristics(text: str) -> Reading:
    """The readings of `socratic_bench.benchmarks.socratic.heuristics`."""
    from socratic_bench.benchmarks.socratic.heuristics import analyse

    return analyse(text)
