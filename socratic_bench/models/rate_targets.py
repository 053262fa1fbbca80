"""Targets of requests and tokens a minute: true limits for all that is sent to a model."""

import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Self

from msgspec import Struct

from socratic_bench.documents.throughput import ModelThroughput
from socratic_bench.errors import Problem
from socratic_bench.models.rate_window import (
    ACTIVE,
    ASKED_US,
    BUCKET_US,
    COUNTED,
    TOUCHED_US,
    US,
    WIDTH,
    RateTarget,
    RateWindow,
    target_of,
)
from socratic_bench.models.shared_rows import KEY, Rows, SharedRows
from socratic_bench.models.stall_watch import STALL_S
from socratic_bench.models.target_limiter import TargetLimiter

# Older requests count in no minute that is yet to end.
REMEMBERED_S = COUNTED * BUCKET_US / US


class SentRequest(Struct, frozen=True, kw_only=True):
    """A request that an earlier process sent, and how many tokens it took at most."""

    provider: str
    region: str
    model_id: str
    at: datetime
    n_tokens: int


class RateTargets:
    """The target limiters of all models, each with its target, or without one: it counts then.

    Of several targets for a model in a region the one that names more counts. With `shared`, the
    path of a file on this machine, all processes that name the same one keep to each target
    together; the clock has to be one that they share, as `time.monotonic` is. A model that answered
    nothing for `stall_s` seconds in which it was called is stopped; `None`: none is. To be closed,
    or used as a context manager.
    """

    def __init__(
        self,
        targets: Sequence[RateTarget] = (),
        *,
        shared: Path | None = None,
        stall_s: float | None = STALL_S,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._targets = tuple(targets)
        self._stall_s = stall_s
        self._monotonic_s = monotonic_s
        self._target_limiters: dict[tuple[str, str, str], TargetLimiter] = {}
        self._rows: Rows = SharedRows(shared, WIDTH) if shared else Rows(WIDTH)
        self._tidy()

    def of(self, provider: str, region: str, model_id: str) -> TargetLimiter:
        """The limiter that all share who call the model there."""
        key = (provider, region, model_id)
        found = self._target_limiters.get(key)
        if found is None:
            # Another thread may have been quicker.
            found = self._target_limiters.setdefault(key, self._new(*key))
        return found

    def problem(self, model_id: str, region: str | None, n_tokens: int) -> Problem | None:
        """What is wrong with a request of at least so many tokens, before anything is sent."""
        per_minute = self._target(model_id, region or "").tokens_per_minute
        if per_minute is None or n_tokens <= per_minute:
            return None
        return Problem.of(
            "{max_tokens} of {n_tokens} is more than the {per_minute} tokens a minute that are the "
            "target of {model_id}.",
            model_id=model_id,
            n_tokens=n_tokens,
            per_minute=per_minute,
        )

    def report(self) -> tuple[ModelThroughput, ...]:
        """What the models came to that this process has asked `of`, in all processes together."""
        reports = (
            target_limiter.report() for target_limiter in tuple(self._target_limiters.values())
        )
        return tuple(sorted(reports, key=lambda one: (one.model, one.region or "")))

    def remember(self, sent: Iterable[SentRequest], now: datetime) -> None:
        """Begin with what earlier processes have sent in the last minute, by the time of day: no
        minute is over a target by it. What was sent later than now counts as sent now.
        """
        for one in sent:
            age_s = max(0.0, (now - one.at).total_seconds())
            if age_s < REMEMBERED_S and self._target(one.model_id, one.region).is_limit:
                target_limiter = self.of(one.provider, one.region, one.model_id)
                target_limiter.remember(age_s, one.n_tokens)

    def close(self) -> None:
        """Let go of what is shared."""
        self._rows.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def _new(self, provider: str, region: str, model_id: str) -> TargetLimiter:
        row = self._rows.row(f"{provider}\n{region}\n{model_id}")
        return TargetLimiter(
            (model_id, region),
            RateWindow(row, self._target(model_id, region)),
            self._rows,
            stall_s=self._stall_s,
            monotonic_s=self._monotonic_s,
        )

    def _target(self, model_id: str, region: str) -> RateTarget:
        return target_of(self._targets, model_id, region)

    def _tidy(self) -> None:
        """A process that had this one's place may have been killed, or the machine begun anew."""
        with self._rows.locked():
            now_us = round(self._monotonic_s() * US)
            for row in self._rows.all_rows():
                for place in range(KEY + 1, len(row)) if row[TOUCHED_US] > now_us else ():
                    row[place] = 0
                row[ACTIVE + self._rows.place] = row[ASKED_US + self._rows.place] = 0
