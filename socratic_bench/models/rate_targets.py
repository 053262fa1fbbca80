"""Targets of requests and tokens a minute: true limits for all that is sent to a model."""

import time
from collections.abc import Callable, Sequence

from socratic_bench.documents.throughput import ModelThroughput
from socratic_bench.errors import Problem
from socratic_bench.models.rate_window import (
    WIDTH,
    RateTarget,
    RateWindow,
    target_of,
)
from socratic_bench.models.shared_rows import Rows
from socratic_bench.models.stall_watch import STALL_S
from socratic_bench.models.target_limiter import TargetLimiter


class RateTargets:
    """The target limiters of all models, each with its target, or without one: it counts then.

    Of several targets for a model in a region the one that names more counts. A model that answered
    nothing for `stall_s` seconds in which it was called is stopped; `None`: none is.
    """

    def __init__(
        self,
        targets: Sequence[RateTarget] = (),
        *,
        stall_s: float | None = STALL_S,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._targets = tuple(targets)
        self._stall_s = stall_s
        self._monotonic_s = monotonic_s
        self._target_limiters: dict[tuple[str, str, str], TargetLimiter] = {}
        self._rows = Rows(WIDTH)

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
        """What the models came to that this process has asked `of`, in all that share this."""
        reports = (
            target_limiter.report() for target_limiter in tuple(self._target_limiters.values())
        )
        return tuple(sorted(reports, key=lambda one: (one.model, one.region or "")))

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
