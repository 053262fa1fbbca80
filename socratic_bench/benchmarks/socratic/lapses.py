"""Lasting lapses of a dialogue and the recoveries from them, by the scores of judged turns."""

from collections.abc import Sequence

from msgspec import Struct

from socratic_bench.statistics.survival import Time

# How far the mark is under the threshold of a lapse. docs/dev/validity.md has the simulation behind
# it, and behind the point for each turn.
MARGIN = 0.5
ROUNDING = 1e-9


class Lapses(Struct, frozen=True):
    """Turns, by their places among the judged ones, at which lasting lapses and recoveries begin.

    `starts` has a lapse, the recovery from it, the next lapse, and so on; `ends` has the last of
    the turns that show each. `pending` is where the next may have begun, too late to be seen.
    """

    starts: list[int]
    ends: list[int]
    pending: int | None

    def time_until(self, n: int, indexes: Sequence[int], end: int) -> Time:
        """When the change number `n` happened; otherwise how long it was seen not to happen."""
        if n < len(self.starts):
            return Time(indexes[self.starts[n]], is_event=True)
        return Time(end if self.pending is None else indexes[self.pending], is_event=False)


def find_lapses(points: Sequence[float], least: int) -> Lapses:
    """The lasting lapses of judged turns, each given as its points under the threshold.

    A lasting lapse is a series of `least` or more turns that fall short of the mark by as many
    points together, where a turn over the mark counts against them: a cumulative sum that never
    falls under zero (Page, Biometrika 41, 1954). It begins with the first turn of that sum. A
    recovery is the same with the sign reversed. Turns without a verdict do not count.
    """
    starts: list[int] = []
    ends: list[int] = []
    total, start = 0.0, 0
    for place, under in enumerate(points):
        short = under - MARGIN
        if total <= 0:
            start = place
        total = max(0.0, total + (-short if len(starts) % 2 else short))
        if total >= least - ROUNDING and place - start + 1 >= least:
            starts.append(start)
            ends.append(place)
            total = 0.0
    return Lapses(starts, ends, start if total > 0 else None)
