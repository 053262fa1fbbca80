"""How an emulator is set up."""

from collections.abc import Callable, Mapping
from typing import get_args

from msgspec import Struct

from socratic_bench.emulator.dialogue import JsonObject
from socratic_bench.emulator.faults import Fault
from socratic_bench.emulator.models import Role

# This word in its answer is how an emulator is recognised.
EMULATOR = "socratic-runner"
# What a model says to the body of a request: text, or the input of the tool that it is to call.
Speaker = Callable[[JsonObject], str | JsonObject]


class Settings(Struct, frozen=True, kw_only=True):
    """What an emulator does beyond answering at once and without a fault.

    The seed decides on faults with a probability; replies depend on the request alone.
    `cache_minimum_tokens` takes the place of every model's own minimum of a cached prefix,
    `context_window_tokens` of every model's own context window. With `any_model`, ids that nobody
    knows are answered, too. `allowed_hosts` are names, each perhaps with its port, by which clients
    may call the endpoint beside its address and those of the loopback device. `read_timeout_s` is
    the time for a request to arrive, and for an answer to be taken. `requests_per_minute` is each
    model's own quota; who exceeds it is refused at once. `speakers` are models of the caller's own
    by id, such as a judge whose verdicts a test knows; several requests may be answered at a time.
    """

    seed: int = 0
    latency_ms: float = 0
    role_latency_ms: Mapping[str, float] = {}
    ms_per_output_token: float = 0
    faults: tuple[Fault, ...] = ()
    requests_per_minute: float | None = None
    cache_minimum_tokens: int | None = None
    context_window_tokens: int | None = None
    any_model: bool = False
    allowed_hosts: tuple[str, ...] = ()
    read_timeout_s: float = 30
    max_connections: int = 2000
    keep_bodies: bool = False
    keep_requests: int = 100_000
    speakers: Mapping[str, Speaker] = {}

    def pace(self) -> dict[str, object]:
        """How long answers take, by role, and what is refused: for dry runs."""
        return {
            "emulator": EMULATOR,
            "latency_ms": {role: self.latency_of(role) for role in get_args(Role)},
            "ms_per_output_token": self.ms_per_output_token,
            "any_model": self.any_model,
            "context_window_tokens": self.context_window_tokens,
        }

    def latency_of(self, role: str) -> float:
        return self.role_latency_ms.get(role, self.latency_ms)
