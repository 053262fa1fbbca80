"""What a run waits for, call by call, as its progress says it."""

from collections.abc import Callable
from math import ceil

from msgspec import Struct

from socratic_bench.models.events import (
    AttemptBegan,
    AttemptFailed,
    CallBegan,
    CallEvent,
    CallRetries,
    CallWaits,
    WaitCause,
)
from socratic_bench.types import JUDGE, CallKey

from .output import TOLD_AFTER_S

SEEN_AFTER_S = 0.5

# Of concurrent waits the one of the lowest rank is shown.
PAUSED, ANSWERING, JUDGING, HELD, STEP = range(5)
CAUSES: dict[WaitCause, str] = {
    "rate_limit": "waits for the rate limit",
    "rate_target": "waits for the rate target",
    "prompt_cache": "waits for the prompt cache",
    "budget": "waits for what the budget has left",
    "connection": "waits for a connection",
}


class Wait(Struct, kw_only=True):
    """Something that is waited for since, and until, moments in seconds.

    `what` says it, and `brief` where there is little room. `told_s` is when people were told.
    """

    what: str
    brief: str
    since_s: float
    rank: int
    turn: int | None = None
    until_s: float | None = None
    told_s: float | None = None

    def is_over_due(self, now_s: float, again_s: float) -> bool:
        """Whether people have to be told: for the first time, of one that takes longer than they
        were told, or `again_s` after the last time.
        """
        if self.told_s is None:
            return now_s - self.since_s >= TOLD_AFTER_S
        if self.until_s is not None and self.told_s < self.until_s:
            return now_s - self.until_s >= TOLD_AFTER_S
        return now_s - self.told_s >= again_s

    def forms(self, now_s: float) -> tuple[str, ...]:
        """What is said of it, from the long form to the shortest."""
        time = self._time(now_s)
        long, short = f"{self.what}{time}", f"{self.brief}{time}"
        if self.turn is None:
            return long, short
        shorter = short.replace(", next in", ", in"), short.replace(", next in", ",")
        return f"turn {self.turn}: {long}", long, short, *shorter, short.removesuffix(" so far")

    def _time(self, now_s: float) -> str:
        if self.until_s is not None and self.until_s > now_s:
            return f", next in {ceil(self.until_s - now_s)} s"
        waited_s = now_s - self.since_s
        return f", {waited_s:.0f} s so far" if waited_s >= TOLD_AFTER_S else ""


class Waits:
    """All that is waited for; not safe to use from several threads."""

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._calls: dict[CallKey, Wait] = {}
        self._step: Wait | None = None

    def on_call(self, event: CallEvent) -> Wait | None:
        """What the call waits for from now on; `None` once it has ended."""
        if isinstance(event, AttemptFailed):  # what becomes of it follows
            return self._calls.get(event.key)
        self._calls.pop(event.key, None)
        wait = _wait(event, self._monotonic_s())
        if wait:
            self._calls[event.key] = wait
        return wait

    def step(self, what: str) -> None:
        """What is waited for outside of calls; empty: nothing."""
        text = f"waiting for {what}"
        now_s = self._monotonic_s()
        self._step = Wait(what=text, brief=text, since_s=now_s, rank=STEP) if what else None

    def shown(self) -> Wait | None:
        """The wait that a live line shows; a step that has just begun is left out."""
        soon_s = self._monotonic_s() - SEEN_AFTER_S
        seen = (wait for wait in self._all() if wait.rank != STEP or wait.since_s <= soon_s)
        return min(seen, key=lambda wait: (wait.rank, -wait.since_s), default=None)

    def overdue(self, again_s: float) -> Wait | None:
        """A wait that has not been printed for too long."""
        now_s = self._monotonic_s()
        late = (wait for wait in self._all() if wait.is_over_due(now_s, again_s))
        return min(late, key=lambda wait: (wait.rank, wait.since_s), default=None)

    def _all(self) -> list[Wait]:
        return [*self._calls.values(), *([self._step] if self._step else [])]


def _wait(event: CallEvent, now_s: float) -> Wait | None:
    who, turn = event.key.role, None if event.key.part else event.key.index
    until_s = None
    match event:
        case CallRetries(kind=kind, n_tried=n_tried, n_most=n_most):
            of = f" of {n_most}" if n_most else ""
            what, brief = f"{kind.words}, attempt {n_tried}{of}", f"{kind.words}, {n_tried}{of}"
            until_s, rank = now_s + event.wait_s, PAUSED
        case CallWaits(cause=cause):
            what, brief, rank = CAUSES[cause], f"waits: {cause.replace('_', ' ')}", HELD
            if event.wait_s is not None:
                until_s, rank = now_s + event.wait_s, PAUSED
        case CallBegan():
            what, brief, rank = "waits for a connection", "waits: connection", HELD
        case AttemptBegan():
            return _answer(event.key, now_s)
        case _:
            return None
    return Wait(
        what=f"{who} {what}",
        brief=f"{who} {brief}",
        since_s=now_s,
        rank=rank,
        turn=turn,
        until_s=until_s,
    )


def _answer(key: CallKey, now_s: float) -> Wait:
    rank = JUDGING if key.role == JUDGE else ANSWERING
    text = f"waiting for the {key.role}"
    return Wait(
        what=text, brief=text, since_s=now_s, rank=rank, turn=None if key.part else key.index
    )
