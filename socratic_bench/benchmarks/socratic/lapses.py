"""Lapses: judged turns in a row under the half-life's threshold, more than a noisy judge makes up.

A single verdict under it says little: with a judge whose scores deviate by a point, a tutor that
always deserves 8.5 gets one after four turns. `least` in a row are a lapse. docs/benchmark.md has
the simulation that the default comes from.
"""

from collections.abc import Sequence
from itertools import groupby, pairwise

from msgspec import Struct


class Streak(Struct, frozen=True):
    """Judged turns in a row that are all under the threshold, or all at or over it.

    `start` is the index of its first turn in the dialogue, `n` how many judged turns it has.
    """

    is_under: bool
    start: int
    n: int


def stretches(turns: Sequence[tuple[int, bool]]) -> list[Streak]:
    """The judged turns, as (index, is under the threshold), in stretches. Turns without a verdict
    neither lengthen nor end one.
    """
    found = [[*members] for _, members in groupby(turns, key=lambda turn: turn[1])]
    return [Streak(members[0][1], members[0][0], len(members)) for members in found]


def lapses(found: Sequence[Streak], least: int) -> list[Streak]:
    """Stretches of at least `least` turns under the threshold."""
    return [one for one in found if one.is_under and one.n >= least]


def n_recovered(found: Sequence[Streak], least: int) -> int:
    """How many lapses were followed at once by as many turns at or over the threshold."""
    return sum(
        one.is_under and one.n >= least and after.n >= least for one, after in pairwise(found)
    )
