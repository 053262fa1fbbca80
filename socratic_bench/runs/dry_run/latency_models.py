"""How long calls are expected to take: assumed for models, known of an emulator."""

import json
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any
from urllib.request import ProxyHandler, build_opener

from msgspec import Struct, field

from socratic_bench.emulator.settings import EMULATOR
from socratic_bench.ports import Length
from socratic_bench.types import Completion, Role

_ASKED_S = 2.0
_MOST_BYTES = 10_000


class LatencyModel(Struct, frozen=True):
    """How long a call is expected to take: until its first token, and for each token of output;
    `of_streams`: for tokens of streams only.
    """

    first_token_ms: float
    output_token_ms: float
    of_streams: bool = False

    def call_ms(self, call: Completion) -> float:
        output = call.usage.output_tokens if call.usage else 0
        paced = output if call.streamed or not self.of_streams else 0
        return self.first_token_ms + self.output_token_ms * paced


class LatencyModels(Struct, frozen=True):
    """Of all roles: `usual`, where a role has none of its own."""

    usual: LatencyModel
    by_role: Mapping[Role, LatencyModel] = field(default_factory=dict)

    def of(self, role: Role) -> LatencyModel:
        return self.by_role.get(role, self.usual)


# Bedrock's models differ by an order of magnitude, hence the wide range.
ASSUMED: Mapping[Length, LatencyModels] = {
    "short": LatencyModels(LatencyModel(300.0, 5.0)),
    "likely": LatencyModels(LatencyModel(800.0, 15.0)),
    "long": LatencyModels(LatencyModel(3000.0, 50.0)),
}
# What a call takes beyond the time that an emulator gives itself.
_OVERHEAD_MS = 7.0
AT_ONCE = LatencyModels(LatencyModel(_OVERHEAD_MS, 0.0))
# From a run's start to its first request; the embedded endpoint has to be started, too.
START_MS = 70.0
OFFLINE_START_MS = 150.0


class Emulation(Struct, frozen=True):
    """An emulator that a run would call: its paces, and what it takes.

    `any_model`: whether it answers to ids that nobody knows. `context_window_tokens` takes the
    place of every model's own window.
    """

    latency_models: LatencyModels
    any_model: bool
    context_window_tokens: int | None


# The one that `--offline` starts.
EMBEDDED = Emulation(AT_ONCE, any_model=True, context_window_tokens=None)


def emulation_at(url: str) -> Emulation | None:
    """What the emulator at `url` says of itself; `None` if there is none. It paces streams.

    Anything else that answers there (tunnel, gateway, mock) is not taken for the emulator.
    """
    try:
        # An endpoint of this machine is reached past any proxy.
        opener = build_opener(ProxyHandler({}))
        with opener.open(f"{url.rstrip('/')}/_emulator/pace", timeout=_ASKED_S) as answer:
            told: Any = json.loads(answer.read(_MOST_BYTES))
        if told["emulator"] != EMULATOR:
            return None
        first_ms, token_ms = told["latency_ms"], float(told["ms_per_output_token"])
        by_role = {
            str(role): LatencyModel(_OVERHEAD_MS + float(ms), token_ms, of_streams=True)
            for role, ms in first_ms.items()
        }
        slowest = max(by_role.values(), key=lambda one: one.first_token_ms)
        return Emulation(
            LatencyModels(slowest, by_role), told["any_model"], told["context_window_tokens"]
        )
    except (OSError, HTTPException, ValueError, TypeError, KeyError, AttributeError):
        return None
