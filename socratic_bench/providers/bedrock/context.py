"""What calls take from outside, handed in."""

from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from msgspec import Struct

from socratic_bench.ports import CostLimit
from socratic_bench.providers.bedrock.capabilities import Capabilities
from socratic_bench.providers.bedrock.in_flight import Await
from socratic_bench.settings import CoreConfig
from socratic_bench.types import Role


class Uniform(Protocol):
    """`random.Random.uniform`, or a fake."""

    def __call__(self, low: float, high: float, /) -> float: ...


class CallContext(Struct, frozen=True, kw_only=True):
    """Time, chance, waits that the run can end, an ear, and leave to spend.

    What ends a wait is a `Stopped` of this call alone.
    """

    now: Callable[[], datetime]
    monotonic_s: Callable[[], float]
    sleep: Callable[[float], None]
    result: Await
    uniform: Uniform
    notice: Callable[[str], None]
    cost_limit: CostLimit | None = None


class Options(Struct, frozen=True, kw_only=True):
    """How a run wants its models called: `metadata` goes with every request. `tested` is the role
    whose calls are asked for by settings of the user's.
    """

    stream: bool = True
    prompt_cache: bool = True
    metadata: tuple[tuple[str, str], ...] = ()
    tested: Role = ""

    @classmethod
    def of(cls, config: CoreConfig, tested: Role) -> "Options":
        return cls(
            stream=config.stream,
            prompt_cache=config.prompt_cache,
            metadata=config.request_metadata,
            tested=tested,
        )

    def limit(self, can: Capabilities) -> Capabilities:
        """What is left of a model's capabilities."""
        if not self.stream:
            can = can.without("streaming")
        return can if self.prompt_cache else can.without("prompt_cache")
