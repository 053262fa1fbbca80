"""What calls are made with: what those to one provider share, and what a run gives to each."""

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import Struct

from socratic_bench.concurrency import ConnectionLimit
from socratic_bench.journal import ReplayLog
from socratic_bench.models.cancel_token import CancelToken
from socratic_bench.models.events import CallListener
from socratic_bench.models.prompt_cache_gate import PromptCacheGate
from socratic_bench.models.rate_limiter import RateLimiter
from socratic_bench.ports.provider import Provider
from socratic_bench.retrying import RetryPolicy
from socratic_bench.types import Role

if TYPE_CHECKING:
    from socratic_bench.models.budget import Budget
    from socratic_bench.models.spending import SpendingLimit
    from socratic_bench.models.target_limiter import TargetLimiter


class CallServices(Struct, frozen=True, kw_only=True):
    """What calls to one provider share. `provider` connects to it where that is yet to be done,
    `rate_limiter` is that of a model, and so is `target_limiter`, where there are rate targets.
    `spending` is the limit of all runs together, if there is one, and
    `connections` bounds how many requests are under way.
    """

    provider: Callable[[], Provider]
    rate_limiter: Callable[[str], RateLimiter]
    cache_gate: PromptCacheGate
    spending: "SpendingLimit | None" = None
    connections: ConnectionLimit | None = None
    target_limiter: "Callable[[str], TargetLimiter] | None" = None


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
    cost_limit: "Budget | None" = None
    tested: Role = ""
    has_metadata: bool = False
