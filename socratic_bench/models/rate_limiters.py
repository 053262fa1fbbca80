"""The rate limiters of a process, by model, and what is told of them."""

from collections.abc import Callable

from msgspec import Struct

from socratic_bench.models.rate_limiter import RateLimiter


class RateNarrowed(Struct, frozen=True, kw_only=True):
    """Throttling has narrowed the rate of requests to a model, here in requests a second."""

    model_id: str
    region: str
    before_per_s: float
    after_per_s: float

    def __str__(self) -> str:
        where = f" in {self.region}" if self.region else ""
        before, after = _in_digits(self.before_per_s), _in_digits(self.after_per_s)
        return f"{self.model_id}{where} throttled: {before} -> {after} requests a second"


def _in_digits(per_s: float) -> str:
    return f"{per_s:.1f}" if per_s >= 1 else f"{per_s:.3f}"


class RateLimiters:
    """One limiter for each provider, model and region; safe to use from several threads.

    `on_narrowed` is told of throttling that slows a model down, in the thread of its call.
    """

    def __init__(
        self,
        *,
        monotonic_s: Callable[[], float],
        on_narrowed: Callable[[RateNarrowed], None] | None = None,
    ) -> None:
        self._monotonic_s = monotonic_s
        self._on_narrowed = on_narrowed
        self._limiters: dict[tuple[str, str, str], RateLimiter] = {}

    def of(self, provider: str, region: str, model_id: str) -> RateLimiter:
        """The limiter that all share who send there."""
        key = (provider, region, model_id)
        found = self._limiters.get(key)
        if found is None:
            # Another thread may have been quicker.
            found = self._limiters.setdefault(key, self._new(region, model_id))
        return found

    def _new(self, region: str, model_id: str) -> RateLimiter:
        def tell(before_per_s: float, after_per_s: float) -> None:
            if self._on_narrowed:
                self._on_narrowed(
                    RateNarrowed(
                        model_id=model_id,
                        region=region,
                        before_per_s=before_per_s,
                        after_per_s=after_per_s,
                    )
                )

        return RateLimiter(monotonic_s=self._monotonic_s, on_narrowed=tell)
