"""The pace of one model: its target, and the line of those who wait for it."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from math import ceil

from msgspec import Struct, field

from socratic_bench.catalogue.token_bounds import most_input_tokens
from socratic_bench.documents.throughput import ModelThroughput
from socratic_bench.models.cancel_token import CancelToken
from socratic_bench.models.rate_window import (
    ASKED_US,
    BUCKET_US,
    REQUESTS,
    SEEN_US,
    THROTTLED,
    TOKENS,
    US,
    WAITED_US,
    RateWindow,
)
from socratic_bench.models.shared_rows import MOST_PROCESSES, Rows
from socratic_bench.models.stall_watch import StallWatch
from socratic_bench.ports.provider import THROTTLED as THROTTLED_CODE
from socratic_bench.ports.provider import Provider
from socratic_bench.types import Request, Usage

# Input tokens that the provider estimates may be so many times those that it would have estimated
# by what the service has counted so far.
SAFETY = 1.25
# Another process cannot wake whoever is first here, so that it looks by itself; so often where only
# the other's turn is waited for, which is over at once.
LOOK_US, TURN_US = US // 4, US // 100
# A process that was seen no later than this has stopped: the others no longer wait for its turn.
GONE_US = 2 * US

Tell = Callable[[float | None], None]  # a wait begins, of about so many seconds


class _Size(Struct, frozen=True):
    """What is known of a request's tokens: an upper bound of its input, an estimate, its output."""

    most_input: int = 0
    estimate: int = 0
    max_tokens: int = 0


class _Place(Struct, eq=False):
    """A place in the line; its future is done once there is something to look at."""

    asked_us: int
    size: _Size
    called: "Future[None]" = field(default_factory=Future)


class Permit(Struct, eq=False):
    """Leave to send a request, and what is counted for it."""

    target_limiter: "TargetLimiter"
    cancel_token: CancelToken
    asked_us: int
    size: _Size
    bucket: int
    n_tokens: int
    waited_ms: float
    is_open: bool = True

    def sent(self) -> None:
        """The request is sent now, and counts from now on."""
        while not self.target_limiter.count(self):
            # What else it waited for took more than a minute.
            again = self.target_limiter.wait(self.asked_us, self.size, self.cancel_token)
            self.bucket, self.n_tokens = again

    def answered(self, usage: Usage | None) -> None:
        """What was not used is given back; all counts where the service has counted nothing."""
        self.is_open = False
        self.target_limiter.succeeded(self, usage)

    def failed(self, code: str, *, maybe_billed: bool) -> None:
        """The request failed, which may end all runs that call the model."""
        self.is_open = False
        self.target_limiter.failed(self, code, self.n_tokens if maybe_billed else 0)

    def close(self) -> None:
        """It was not sent, if nothing else is known."""
        if self.is_open:
            self.is_open = False
            self.target_limiter.give_back(self)


class TargetLimiter:
    """Admits requests to one model in one region; safe to use from several threads, and several
    processes that share its row.

    Requests are admitted in the order in which they ask. Only the first in the line waits for a
    time or a place in the minute; those behind it wait for their turn.
    """

    def __init__(
        self,
        name: tuple[str, str],
        window: RateWindow,
        rows: Rows,
        *,
        stall_s: float | None,
        monotonic_s: Callable[[], float],
    ) -> None:
        self._model, self._region = name
        self._window, self._row, self._target = window, window.row, window.target
        self._rows, self._place = rows, rows.place
        self._monotonic_s = monotonic_s
        self._line: deque[_Place] = deque()
        self._densest = 0.0
        where = f" in {self._region}" if self._region else ""
        self._watch = StallWatch(
            f"{self._model}{where}", window.row, rows, stall_s=stall_s, monotonic_s=monotonic_s
        )
        self.calling = self._watch.calling

    @contextmanager
    def admitted(
        self,
        provider: Provider,
        request: Request,
        cancel_token: CancelToken,
        tell: Tell,
        notice: Callable[[str], None],
    ) -> Iterator[Permit]:
        """Wait for leave to send the request, or raise what ends the run meanwhile."""
        size, per_minute = _Size(), self._target.tokens_per_minute
        if per_minute:
            size = _Size(
                most_input_tokens(request),
                sum(part.tokens for part in provider.sizes(self._model, request)),
                request.config.max_tokens,
            )
            if self._most_tokens(size) > per_minute:
                notice(
                    f"Requests to {self._model} that may have more tokens than its target of "
                    f"{per_minute} a minute are sent alone, in a minute that has no others."
                )
        asked_us = self._now_us()
        bucket, n_tokens = self.wait(asked_us, size, cancel_token, tell)
        waited_ms = (self._now_us() - asked_us) / 1000
        permit = Permit(self, cancel_token, asked_us, size, bucket, n_tokens, waited_ms)
        try:
            yield permit
        finally:
            permit.close()

    def wait(
        self, asked_us: int, size: _Size, cancel_token: CancelToken, tell: Tell | None = None
    ) -> tuple[int, int]:
        """Wait until a request fits; the bucket in which it counts, and with how many tokens."""
        place = _Place(asked_us, size)
        with self._rows.locked():
            if not self._target.is_limit:
                return self._window.take(asked_us, 0), 0
            self._line.append(place)
        try:
            while True:
                with self._rows.locked():
                    leave, wait_us = self._look(place)
                    about_us = wait_us or len(self._line) * self._target.slot_us
                if leave is not None:
                    return leave
                if tell:
                    tell(about_us / US or None)
                    tell = None
                with suppress(TimeoutError):
                    cancel_token.result(place.called, self._look_in_s(wait_us))
        finally:
            with self._rows.locked():
                self._leave(place)

    def count(self, permit: Permit) -> bool:
        """Count a request as sent now, and no longer as sent when it was admitted; false if that
        was too long ago.

        No minute gets over its target by it: until it ended, it held the request in either place.
        """
        with self._rows.locked():
            now_us = self._now_us()
            if self._window.is_over(permit.bucket, now_us):
                return False
            self._window.add(permit.bucket, -1, -permit.n_tokens)
            permit.bucket = now_us // BUCKET_US
            self._window.add(permit.bucket, 1, permit.n_tokens)
            self._row[REQUESTS] += 1
            self._row[WAITED_US] += max(0, now_us - permit.asked_us)
            return True

    def give_back(self, permit: Permit) -> None:
        """Nothing was sent."""
        with self._rows.locked():
            self._window.add(permit.bucket, -1, -permit.n_tokens)
            self._wake()

    def succeeded(self, permit: Permit, usage: Usage | None) -> None:
        """A request was answered, with so many tokens, if the service has counted them."""
        estimate, n_tokens = permit.size.estimate, permit.n_tokens
        if usage:
            n_tokens = usage.input_tokens + usage.output_tokens
        with self._rows.locked():
            self._settle(permit, n_tokens)
            self._watch.succeeded()
            if usage and estimate:
                self._densest = max(self._densest, usage.input_tokens / estimate)

    def failed(self, permit: Permit, code: str, n_tokens: int) -> None:
        """A request failed, which took so many tokens."""
        with self._rows.locked():
            self._settle(permit, n_tokens)
            self._row[THROTTLED] += code == THROTTLED_CODE
            self._watch.failed()
        self._watch.end_if_stalled()

    def remember(self, age_s: float, n_tokens: int) -> None:
        """Count a request that was sent so long ago; one of before the clock began, as of then."""
        with self._rows.locked():
            self._window.remember(max(0, self._now_us() - round(age_s * US)), n_tokens)

    def report(self) -> ModelThroughput:
        """What it came to so far, in all processes."""
        with self._rows.locked():
            self._watch.touch()
            return self._window.report(self._model, self._region)

    def _settle(self, permit: Permit, n_tokens: int) -> None:
        self._window.add(permit.bucket, 0, n_tokens - permit.n_tokens)
        self._row[TOKENS] += n_tokens
        self._wake()

    def _look(self, place: _Place) -> tuple[tuple[int, int] | None, int | None]:
        """Bucket and tokens of the first in the line, if it fits; else the wait, if it is known."""
        if self._line[0] is not place:
            return None, None
        now_us = self._now_us()
        if place.called.done():
            place.called = Future()
        if self._rows.is_shared:
            self._row[ASKED_US + self._place] = max(1, place.asked_us)  # 0: nobody
            self._row[SEEN_US + self._place] = now_us
        # How much that is at most is better known by now, perhaps.
        n_tokens = self._most_tokens(place.size)
        if wait_us := self._window.wait_us(now_us, n_tokens):
            return None, wait_us
        if self._rows.is_shared and self._is_others_turn(place.asked_us, now_us):
            return None, TURN_US
        return (self._window.take(now_us, n_tokens), n_tokens), 0

    def _look_in_s(self, wait_us: int | None) -> float | None:
        if wait_us is None:
            return None
        return (min(wait_us, LOOK_US) if self._rows.is_shared else wait_us) / US

    def _is_others_turn(self, asked_us: int, now_us: int) -> bool:
        """Whether another process waits for longer."""
        asked = self._row[ASKED_US : ASKED_US + MOST_PROCESSES].tolist()
        mine = (asked_us, self._place)
        return any(
            (one_us, place) < mine and now_us - self._row[SEEN_US + place] < GONE_US
            for place, one_us in enumerate(asked)
            if one_us
        )

    def _leave(self, place: _Place) -> None:
        is_first = self._line[0] is place
        self._line.remove(place)
        if is_first:
            self._row[ASKED_US + self._place] = 0
            self._wake()

    def _wake(self) -> None:
        """Have the first in the line look again."""
        if self._line and not self._line[0].called.done():
            self._line[0].called.set_result(None)

    def _most_tokens(self, size: _Size) -> int:
        """Tokens that a request may take: no tokenizer makes more of it, or it would be far denser
        than all that were counted.
        """
        most = size.most_input
        if self._densest:
            most = min(most, ceil(SAFETY * self._densest * size.estimate))
        return most + size.max_tokens

    def _now_us(self) -> int:
        return round(self._monotonic_s() * US)
