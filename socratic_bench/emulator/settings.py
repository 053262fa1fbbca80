"""How an emulator is set up."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import get_args

from socratic_bench.emulator.dialogue import Role
from socratic_bench.emulator.faults import Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What an emulator does beyond answering at once and without a fault.

    The seed decides on faults with a probability; replies depend on the request alone.
    `cache_minimum_tokens` takes the place of every model's own minimum of a cached prefix.
    """

    seed: int = 0
    latency_ms: float = 0
    role_latency_ms: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    ms_per_output_token: float = 0
    faults: tuple[Fault, ...] = ()
    requests_per_minute: float | None = None
    cache_minimum_tokens: int | None = None
    keep_bodies: bool = False
    keep_requests: int = 100_000

    def pace(self) -> dict[str, object]:
        """How long answers take, by role, for who wants to foretell it."""
        return {
            "latency_ms": {role: self.latency_of(role) for role in get_args(Role)},
            "ms_per_output_token": self.ms_per_output_token,
        }

    def latency_of(self, role: str) -> float:
        return self.role_latency_ms.get(role, self.latency_ms)
