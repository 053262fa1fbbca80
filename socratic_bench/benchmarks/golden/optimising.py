"""Has prompts optimised for the model under test, each once a run, and compares both kinds."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Annotated, Self

from msgspec import Struct

from socratic_bench.benchmarks.golden.items import GoldenTurn, Item, Optimised
from socratic_bench.benchmarks.golden.metrics import PROCESSED
from socratic_bench.concurrency import SharedResults
from socratic_bench.documents.document import FIGURE_PLACES, Count
from socratic_bench.errors import ModelError
from socratic_bench.generation import GenerateConfig
from socratic_bench.ports.benchmark import EpisodeContext
from socratic_bench.statistics.intervals import clustered, t_interval
from socratic_bench.types import OPTIMIZER, CallKey, Message, Request, Role, clean, doc

ROLE: Role = "optimizer"
MAX_TOKENS = 4096
# What concerns the prompt, the target or the permission; an outage is the item's own failure.
_REFUSALS = ("refused_request", "unknown_model", "access", "context_window")


class Optimiser:
    """Asks for the optimised prompt of a row once, whichever of its items comes first; safe to use
    from several threads.
    """

    def __init__(self, items: Sequence[Item], target: str) -> None:
        self._target = target
        self._results = SharedResults[str, Optimised]()
        self.first: dict[str, int] = {}
        for index, item in enumerate(items):
            if item.variant == "optimized":
                self.first.setdefault(item.row.id, index)

    def optimised(self, context: EpisodeContext, item: Item) -> Optimised:
        """Raises `ModelError` for an outage, and `Stopped` at the end of the run."""
        return self._results.get(item.row.id, lambda: self._ask(context, item))[0]

    def _ask(self, context: EpisodeContext, item: Item) -> Optimised:
        model = context.model(ROLE, OPTIMIZER)
        assert model is not None  # noqa: S101 -- it has an id
        request = Request(
            messages=(Message.user(clean(item.row.prompt)),),
            system=self._target,
            config=GenerateConfig(max_tokens=MAX_TOKENS),
        )
        try:
            call = model.complete(request, CallKey(role=ROLE, index=self.first[item.row.id]))
        except ModelError as error:
            if error.end_reason not in _REFUSALS:
                raise
            return Optimised(refusal=error.message)
        return Optimised(prompt=call.message.text, call=call)


class OptimizationEntry(Struct, frozen=True, kw_only=True):
    """Optimised prompts beside the original ones, of items that were asked in both ways."""

    optimized: Annotated[Count, doc("prompts that were optimised")]
    refused: Annotated[
        dict[str, Count],
        doc("by what the service said, the prompts that were not; sent as they are"),
    ]
    pairs: Annotated[Count, doc("items that were asked with both prompts, and processed")]
    better: Annotated[Count, doc("of these, passed more often with the optimised prompt")]
    worse: Annotated[Count, doc("of these, passed less often with it")]
    difference: Annotated[
        float | None,
        doc("success rate with the optimised prompts minus without; null without a pair"),
    ]
    low: Annotated[float | None, doc("lower limit at 95 %; null without an interval")]
    high: Annotated[float | None, doc("upper limit at 95 %; null without an interval")]

    @classmethod
    def of(cls, turns: Sequence[GoldenTurn]) -> Self | None:
        """`None` where no prompt was to be optimised."""
        results = {t.item.row.id: t.optimised for t in turns if t.item.variant == "optimized"}
        if not results:
            return None
        differences = [*_differences(turns)]
        mean = clustered([[value] for value in differences]) if differences else None
        interval = t_interval(mean) if mean else None
        return cls(
            optimized=sum(result.prompt is not None for result in results.values() if result),
            refused=dict(Counter(r.refusal for r in results.values() if r and r.refusal)),
            pairs=len(differences),
            better=sum(value > 0 for value in differences),
            worse=sum(value < 0 for value in differences),
            difference=round(mean.mean, FIGURE_PLACES) if mean else None,
            low=round(max(-1.0, interval.low), FIGURE_PLACES) if interval else None,
            high=round(min(1.0, interval.high), FIGURE_PLACES) if interval else None,
        )


def _differences(turns: Sequence[GoldenTurn]) -> list[float]:
    """By item, how much more often it passed with its optimised prompt."""
    passes: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for turn in turns:
        if turn.result in PROCESSED and not (turn.optimised and turn.optimised.refusal):
            passes[turn.item.row.id][turn.item.variant].append(turn.result == "passed")
    return [
        sum(of["optimized"]) / len(of["optimized"]) - sum(of["original"]) / len(of["original"])
        for of in passes.values()
        if of.keys() == {"original", "optimized"}
    ]
