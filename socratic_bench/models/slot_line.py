"""Who may send when: numbered places in a line, and what becomes of those that are given back."""

from math import inf

from msgspec import Struct


class Slot(Struct, eq=False):
    """A place in the line, which is due once the limiter has counted so far."""

    number: float


class SlotLine:
    """The slots of those who wait, one after another; for one thread at once. `count` is how far
    the limiter has counted: a slot that is given back after that is nobody's.
    """

    def __init__(self) -> None:
        self._last = -inf
        self._waiting: set[Slot] = set()
        self._given_back: set[Slot] = set()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def first(self) -> float:
        """The number of whoever goes next."""
        return min((slot.number for slot in self._waiting), default=self.next)

    @property
    def next(self) -> float:
        """The number after all that are reserved."""
        return self._last + 1

    def reserve(self, count: float, earliest: float) -> Slot:
        """The first that was given back, or else a new one, which is not before the earliest."""
        self._tidy(count)
        slot = min(self._given_back, key=_number, default=None)
        if slot is None:
            slot = Slot(max(self.next, earliest))
            self._last = slot.number
        self._given_back.discard(slot)
        self._waiting.add(slot)
        return slot

    def move_up(self, slot: Slot, count: float) -> None:
        """To the first that was given back, if it is before the waiting one's own."""
        self._tidy(count)
        first = min(self._given_back, key=_number, default=slot)
        if first.number < slot.number:
            first.number, slot.number = slot.number, first.number
            self._tidy(count)

    def use(self, slot: Slot, count: float) -> None:
        """It is due, and whoever waited for it sends."""
        self._waiting.remove(slot)
        self._tidy(count)

    def give_back(self, slot: Slot, count: float) -> None:
        self._waiting.remove(slot)
        self._given_back.add(slot)
        self._tidy(count)

    def _tidy(self, count: float) -> None:
        """What is given back behind all who wait is as if it had never been reserved."""
        if not self._given_back:
            return
        last = max(map(_number, self._waiting), default=-inf)
        ahead = {slot for slot in self._given_back if slot.number >= count}
        self._given_back = {slot for slot in ahead if slot.number < last}
        self._last = min(map(_number, ahead - self._given_back), default=self.next) - 1


def _number(slot: Slot) -> float:
    return slot.number
