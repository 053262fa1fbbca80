"""Items that do not wait for each other, as a benchmark of its own; for `many.py`."""

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from msgspec.structs import replace

from socratic_bench import RunConfig, RunResult
from socratic_bench.parts import Parts
from socratic_bench.ports import Benchmark, Episode, EpisodeContext, EpisodeResult, Metrics, Sample
from socratic_bench.settings import CoreConfig
from socratic_bench.turns import Turn
from socratic_bench.types import CallKey, Message, Request

TUTOR = "bench.tutor-v1:0"
# An older tree has none, and lets an episode call from threads of its own instead.
HAS_ITEMS = "n_items" in Sample.__struct_fields__


def play_items(play: Callable[..., RunResult], n_items: int, at_once: int) -> dict[str, float]:
    config = RunConfig(model=TUTOR, prompt="sums", region="us-east-1", turns=n_items, seed=1)
    if HAS_ITEMS:
        config = replace(config, max_concurrency=at_once)
    result = play(config, benchmark=_ItemsBenchmark(n_items, at_once))
    ended_at_s = max(turn.reply.finished_at for turn in result.turns).timestamp()
    if len(result.turns) != n_items:
        sys.exit(f"{len(result.turns)} of {n_items} items were answered: {result.error}")
    return {"ended_at_s": ended_at_s}


class _ItemsEpisode(Episode, frozen=True, kw_only=True):
    """Questions that do not wait for each other."""

    config: CoreConfig
    n_items: int
    at_once: int

    def play(self, context: EpisodeContext) -> EpisodeResult:
        if HAS_ITEMS:
            context.play_items(self._ask)
            return EpisodeResult(end_reason="max_turns")
        with ThreadPoolExecutor(self.at_once) as pool:
            asked = [pool.submit(self._ask, context, index) for index in range(self.n_items)]
            for one in asked:
                context.publish(one.result())
        return EpisodeResult(end_reason="max_turns")

    def expected_reply(self, role: str, length: str) -> str:
        del role, length
        return "2"

    def _ask(self, context: EpisodeContext, index: int) -> Turn:
        question = f"What is {index} + 1?"
        request = Request(messages=(Message.user(question),), config=self.config.generation)
        reply = context.tested.complete(request, CallKey(role="model", index=index))
        return Turn(index=index, prompt=question, reply=reply)


class _ItemsBenchmark(Benchmark):
    name = "items"
    metrics = ()
    primary_metric = ""
    parts = Parts()

    def __init__(self, n_items: int, at_once: int) -> None:
        self._n_items, self._at_once = n_items, at_once

    def prepare(self, config: CoreConfig) -> _ItemsEpisode:
        n = self._n_items
        return _ItemsEpisode(
            opening=Sample(id="sums", prompt="sums", **({"n_items": n} if HAS_ITEMS else {})),
            config=config,
            n_items=self._n_items,
            at_once=self._at_once,
        )

    def summarise(self, config: CoreConfig, turns: Sequence[Turn]) -> Metrics:
        del config, turns
        return {}
