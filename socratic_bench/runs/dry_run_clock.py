"""The simulated clock of a dry run, and how long calls are expected to take."""

import heapq
import itertools
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from http.client import HTTPException
from typing import Any
from urllib.request import ProxyHandler, build_opener

from msgspec import Struct, field

from socratic_bench.emulator.settings import EMULATOR
from socratic_bench.errors import ModelError, Stopped
from socratic_bench.ports.benchmark import Length
from socratic_bench.types import Completion, Role

Then = Callable[[], None]


class EventQueue:
    """A dialogue that waits for each of its calls, and the calls that run concurrently with it.

    Times are milliseconds since the run's start; the first call begins at `now_ms`. `beside` is
    called whenever a concurrent call could begin: just after a call of the dialogue has begun, and
    whenever another call ends during it. `n_ended` calls of the dialogue have ended. Whatever
    passes `deadline_ms` raises `Stopped`. One thread at a time holds `lock`: those of an episode
    that has its own wait for each other, as a dialogue's calls do.
    """

    def __init__(self, now_ms: float, deadline_ms: float | None) -> None:
        self.now_ms = now_ms
        self.n_ended = 0
        self.lock = threading.RLock()
        self.beside: Then = lambda: None
        self._deadline_ms = deadline_ms
        self._aside_ms: float | None = None
        self._under_way: list[tuple[float, int, Then]] = []
        self._begun = itertools.count()
        self._delayed: set[int] = set()

    def call(self, takes_ms: float, ended: Then) -> None:
        """Make a call that takes so long; `ended` is called at its end. In the dialogue it returns
        at its end, and within `aside` at once.
        """
        if self._aside_ms is not None:
            self._aside_ms = max(self._aside_ms, self.now_ms) + takes_ms
            self._plan(self._aside_ms, ended)
            return
        ends_ms = self.now_ms + takes_ms

        def end() -> None:
            self.n_ended += 1
            ended()

        self._plan(ends_ms, end)
        self.beside()
        while self._under_way and self._under_way[0][0] <= ends_ms:
            self.end_next()
            self.beside()

    @contextmanager
    def aside(self, ended: Then) -> Iterator[None]:
        """Calls made in this block run in sequence, beside the dialogue; `ended` is called after
        the last of them. A call that fails for good ends the run at its simulated
        time.
        """
        self._aside_ms = self.now_ms
        try:
            yield
        except ModelError as error:
            ended = partial(_stop, error)
        finally:
            ends_ms, self._aside_ms = max(self._aside_ms, self.now_ms), None
        self._plan(ends_ms, ended)

    def at_once(self, works: Sequence[Callable[[], Any]]) -> list[Any]:
        """Begin several works at once within `aside`; the block goes on after the last of them."""
        begin_ms = ends_ms = self._aside_ms
        results = []
        for work in works:
            self._aside_ms = begin_ms
            results.append(work())
            ends_ms = max(ends_ms or 0.0, self._aside_ms or 0.0)
        self._aside_ms = ends_ms
        return results

    def later(self, delay_ms: float, then: Then) -> None:
        """Call `then` after a delay, or at once when delays are cut short."""
        self._delayed.add(self._plan(self.now_ms + delay_ms, then))

    def cut_delays(self) -> None:
        """End all delays: the dialogue is over, and nothing has to give way to its next request."""
        self._under_way = [
            (min(ends_ms, self.now_ms) if begun in self._delayed else ends_ms, begun, ended)
            for ends_ms, begun, ended in self._under_way
        ]
        heapq.heapify(self._under_way)

    def end_next(self, _moved: "Future[None] | None" = None) -> None:
        """Advance to the end of the next call; a request that exceeds the budget waits so."""
        ends_ms, _, ended = heapq.heappop(self._under_way)
        if self._deadline_ms is not None and ends_ms > self._deadline_ms:
            self.now_ms = self._deadline_ms
            raise Stopped("The deadline passed.", end_reason="deadline")
        self.now_ms = max(self.now_ms, ends_ms)
        ended()

    def finish(self) -> None:
        """After the dialogue: wait for all other calls."""
        self.beside()
        while self._under_way:
            self.end_next()
            self.beside()

    def _plan(self, ends_ms: float, ended: Then) -> int:
        begun = next(self._begun)
        heapq.heappush(self._under_way, (ends_ms, begun, ended))
        return begun


def _stop(error: ModelError) -> None:
    raise Stopped.of(error) from error


_ASKED_S = 2.0
_MOST_BYTES = 10_000


class LatencyModel(Struct, frozen=True):
    """How long a call is expected to take: until its first token, and for each token of output.
    `of_streams`: tokens take time in streams only.
    """

    first_token_ms: float
    output_token_ms: float
    of_streams: bool = False

    def call_ms(self, call: Completion) -> float:
        output = call.usage.output_tokens if call.usage else 0
        paced = output if call.streamed or not self.of_streams else 0
        return self.first_token_ms + self.output_token_ms * paced


class LatencyModels(Struct, frozen=True):
    """The latency model of each role; `usual` for roles without one of their own."""

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
    """An emulator that a run would call: its latencies, and what it accepts.

    `any_model`: whether it answers to ids that nobody knows. `context_window_tokens` takes the
    place of every model's own window.
    """

    latency_models: LatencyModels
    any_model: bool
    context_window_tokens: int | None


# The one that `--offline` starts.
EMBEDDED = Emulation(AT_ONCE, any_model=True, context_window_tokens=None)


def emulation_at(url: str) -> Emulation | None:
    """Ask the emulator at `url` for its paces, which are of streams; `None` if it is none. Anything
    else that answers there (tunnel, gateway, mock) is not taken for the emulator.
    """
    try:
        # An endpoint of this machine is reached past any proxy.
        opener = build_opener(ProxyHandler({}))
        with opener.open(f"{url.rstrip('/')}/_emulator/pace", timeout=_ASKED_S) as answer:
            description: Any = json.loads(answer.read(_MOST_BYTES))
        if description["emulator"] != EMULATOR:
            return None
        first_ms, token_ms = description["latency_ms"], float(description["ms_per_output_token"])
        by_role = {
            str(role): LatencyModel(_OVERHEAD_MS + float(ms), token_ms, of_streams=True)
            for role, ms in first_ms.items()
        }
        slowest = max(by_role.values(), key=lambda model: model.first_token_ms)
        return Emulation(
            LatencyModels(slowest, by_role),
            description["any_model"],
            description["context_window_tokens"],
        )
    except (OSError, HTTPException, ValueError, TypeError, KeyError, AttributeError):
        return None
