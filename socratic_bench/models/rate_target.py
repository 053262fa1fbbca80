"""Targets of requests and tokens a minute: limits that the user gives."""

from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from math import inf
from typing import Annotated

from msgspec import Meta, Struct

MINUTE_S = 60.5  # a request may arrive half a second later than it is sent
# Requests are this much further apart than a target says, and this share of a minute's may be sent
# at once, so that a service which allows few at once refuses none.
SPACING, BURST_SHARE = 1.01, 1 / 40

PerMinute = Annotated[int, Meta(ge=1)]


class RateTarget(Struct, frozen=True, kw_only=True):
    """The most that is sent in any minute: requests of all actors, and tokens, input and output.

    It holds for `model` in `region`, each region by itself; `None`: for all that no other target
    names.
    """

    model: str | None = None
    region: str | None = None
    requests_per_minute: PerMinute | None = None
    tokens_per_minute: PerMinute | None = None

    @property
    def spacing_s(self) -> float:
        """Seconds between two requests."""
        per_minute = self.requests_per_minute
        return SPACING * 60 / per_minute if per_minute else 0.0

    @property
    def burst_s(self) -> float:
        """How much earlier than spaced out a request may be sent."""
        return (max(1, int((self.requests_per_minute or 0) * BURST_SHARE)) - 1) * self.spacing_s


def target_of(targets: Iterable[RateTarget], model: str, region: str) -> RateTarget:
    """The target of a model in a region: of several the one that names more, a model before all."""
    fitting = [
        target
        for target in targets
        if target.model in (None, model) and target.region in (None, region)
    ]
    return max(
        fitting,
        key=lambda target: (target.model is not None, target.region is not None),
        default=RateTarget(),
    )


class CountedRequest(Struct, eq=False, kw_only=True):
    """A request and the tokens that count for it: reserved ones, and once it has ended, used ones.
    Until it `is_sent`, it may be sent at any moment.
    """

    n_tokens: int = 0
    sent_at_s: float = 0.0
    is_sent: bool = False


class MinuteWindow:
    """The requests of the last minute, which a target bounds; for one thread at a time.

    Requests are also spaced, as by the generic cell rate algorithm (ITU-T I.371), so that a service
    which allows few at once refuses none.
    """

    def __init__(self, target: RateTarget) -> None:
        self._target = target
        self._requests: deque[CountedRequest] = deque()
        self._spaced_until_s = -inf

    def wait_s(self, now_s: float, n_tokens: int) -> float:
        """Seconds until the request fits into the last minute; one that is larger than the target
        fits once there are no others.
        """
        target, minute = self._target, self._requests
        while minute and minute[0].is_sent and minute[0].sent_at_s <= now_s - MINUTE_S:
            minute.popleft()
        wait_s = self._spaced_until_s - target.burst_s - now_s
        n_used = sum(request.n_tokens for request in minute) if target.tokens_per_minute else 0
        n_over = len(minute) + 1 - (target.requests_per_minute or inf)
        tokens_over = min(n_used + n_tokens - (target.tokens_per_minute or inf), n_used)
        for request in minute:
            if n_over <= 0 and tokens_over <= 0:
                break
            n_over -= 1
            tokens_over -= request.n_tokens
            wait_s = max(wait_s, MINUTE_S + (request.sent_at_s - now_s if request.is_sent else 0.0))
        return wait_s

    def add(self, request: CountedRequest, now_s: float) -> None:
        """Count a request that is about to be sent."""
        if self._target.requests_per_minute or self._target.tokens_per_minute:
            self._spaced_until_s = max(self._spaced_until_s, now_s) + self._target.spacing_s
            self._requests.append(request)

    def remove(self, request: CountedRequest) -> None:
        """Count a request no longer, as it is not sent."""
        with suppress(ValueError):
            self._requests.remove(request)
