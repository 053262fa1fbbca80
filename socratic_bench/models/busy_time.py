"""The time in which a model is called, without the pauses in between."""

from math import inf

# For as long as so many calls take, and at least for this, callers may be at other models, before
# their next turn.
TURN_CALLS = 2
TURN_S = 2.0
# How long a call takes is told by about as many of the latest ones.
CALLS_KEPT = 1 - 1 / 32
# The longest wait before a retry, and how much longer than told it may be.
RETRY_S, RETRY_LATER = 20.0, 1.25


class BusyTime:
    """A clock that goes while somebody waits for a slot or has a request under way, and then for no
    longer than two calls take, 2 s or a retry's wait: a pause tells nothing of a quota. For one
    thread at once.
    """

    def __init__(self) -> None:
        self._n_waiting = self._n_under_way = 0
        self._left_s: float | None = None
        self._again_s = -inf
        self._pauses_s = 0.0
        # Of the latest calls: how long they took together, as of a moment, and how many they are.
        self._took_s, self._at_s, self._n_calls = 0.0, 0.0, 0.0

    def at(self, now_s: float) -> float:
        """The time by this clock; for use while somebody waits or calls."""
        return now_s - self._pauses_s

    def asked(self, now_s: float) -> None:
        """Somebody wants to send a request."""
        if self._left_s is not None:
            turn_s = max(TURN_S, TURN_CALLS * self._took_s / max(1.0, self._n_calls))
            self._pauses_s += max(0.0, now_s - max(self._left_s + turn_s, self._again_s))
            self._left_s = None
        self._n_waiting += 1

    def sent(self, now_s: float) -> None:
        """One of those who waited sent it."""
        self._pass(now_s)
        self._took_s *= CALLS_KEPT
        self._n_calls = self._n_calls * CALLS_KEPT + 1
        self._n_waiting -= 1
        self._n_under_way += 1

    def refused(self, now_s: float, told_s: float = 0.0) -> None:
        """Somebody is to ask again, after the wait that the service told, if it did."""
        self._again_s = max(self._again_s, now_s + max(RETRY_S, RETRY_LATER * told_s))

    def gave_up(self, now_s: float) -> None:
        """One of those who waited sends nothing."""
        self._n_waiting -= 1
        self._leave(now_s)

    def ended(self, now_s: float) -> None:
        """A request is no longer under way."""
        self._pass(now_s)
        self._n_under_way -= 1
        self._leave(now_s)

    def _pass(self, now_s: float) -> None:
        self._took_s += (now_s - self._at_s) * self._n_under_way
        self._at_s = now_s

    def _leave(self, now_s: float) -> None:
        if not self._n_waiting + self._n_under_way:
            self._left_s = now_s
