"""What calls are made with: what those to one provider share, and what a run gives to each."""

from collections.abc import Callable
from datetime import datetime

from msgspec import Struct

from socratic_bench.concurrency import ConnectionLimit
from socratic_bench.journal import ReplayLog
from socratic_bench.models.adaptive_rate import RateNarrowed
from socratic_bench.models.budget import Budget, SpendingLimit
from socratic_bench.models.cancel import CancelToken
from socratic_bench.models.events import CallListener
from socratic_bench.models.prompt_cache import PromptCacheGate
from socratic_bench.models.rate_limiter import RateLimiter
from socratic_bench.ports.provider import Provider
from socratic_bench.retrying import RetryPolicy
from socratic_bench.types import Role


class CallServices(Struct, frozen=True, kw_only=True):
    """What calls to one provider share.

    Attributes:
        provider: connects to the provider where that is yet to be done.
        rate_limiter: the limiter of a model.
        cache_gate: lets one request write a shared prefix before others read it.
        spending: the limit of all runs together, if there is one.
        connections: bounds how many requests are under way.
        on_narrowed: hears of throttling that slows a model down.
    """

    provider: Callable[[], Provider]
    rate_limiter: Callable[[str], RateLimiter]
    cache_gate: PromptCacheGate
    spending: SpendingLimit | None = None
    connections: ConnectionLimit | None = None
    on_narrowed: Callable[[RateNarrowed], None] | None = None


class CallContext(Struct, frozen=True, kw_only=True):
    """What a call needs from its run.

    `listeners` hear of it in their order. `tested` is the role whom the settings of a call are for;
    `has_metadata` tells whether requests carry some of the user's.
    """

    now: Callable[[], datetime]
    cancel_token: CancelToken
    retry_policy: RetryPolicy
    timeout_s: float
    notice: Callable[[str], None]
    listeners: tuple[CallListener, ...] = ()
    replay_log: ReplayLog | None = None
    cost_limit: Budget | None = None
    tested: Role = ""
    has_metadata: bool = False
