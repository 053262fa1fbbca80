"""The calls of a run: each row of the data set, as often as it is asked, in its own sampling."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import datetime
from itertools import product
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.benchmarks.golden.checks import CheckResult
from socratic_bench.benchmarks.golden.judging import PassMark, Result, criteria_share
from socratic_bench.benchmarks.golden.rows import Row
from socratic_bench.benchmarks.golden.settings import Optimization, Settings
from socratic_bench.generation import GenerateConfig
from socratic_bench.ports.benchmark import EpisodeContext
from socratic_bench.turns import Turn
from socratic_bench.types import Completion, Image, Message, Request, Text, clean

Variant = Literal["original", "optimized"]
# Metrics are of the first one, so that they say the same of a model in either mode.
VARIANTS: Mapping[Optimization, Sequence[Variant]] = {
    "none": ("original",),
    "optimize_only": ("optimized",),
    "evaluate_both": ("original", "optimized"),
}
TEMPERATURE_PLACES = 3


class Item(Struct, frozen=True, kw_only=True):
    """One call; `round` counts the askings of a row from 0. `response` is a given one, `image`
    what is shown beside the prompt.
    """

    row: Row
    round: int
    variant: Variant
    config: GenerateConfig
    response: str | None = None
    image: Image | None = None


class Optimised(Struct, frozen=True, kw_only=True):
    """An optimised prompt and the call that gave it, or why there is none."""

    prompt: str | None = None
    call: Completion | None = None
    refusal: str | None = None


class GoldenTurn(Turn, frozen=True, kw_only=True):
    """A turn of this benchmark; `checks` are made when it is measured. `optimised` is what came of
    optimising its prompt, `None` for an original one.
    """

    item: Item
    mark: PassMark
    checks: tuple[CheckResult, ...] = ()
    optimised: Optimised | None = None

    @classmethod
    def of(cls, turn: Turn) -> "GoldenTurn":
        """A turn of this benchmark's episode, by its own type."""
        assert isinstance(turn, cls)  # noqa: S101 -- there are no other episodes
        return turn

    @property
    def result(self) -> Result:
        is_refused = self.answered == "refused"
        return self.mark.result(self.item.row, self.checks, self.judged, is_refused=is_refused)

    @property
    def criteria_met(self) -> float | None:
        """The share of the weight of criteria; `None` without criteria or verdict."""
        verdict = self.verdict
        return criteria_share(self.item.row.criteria, verdict.events) if verdict else None

    @property
    def faults(self) -> list[str]:
        """What was not reached: dimensions, "criteria", and the kinds of checks; of a refusal,
        nothing.
        """
        if self.result == "refused":
            return []
        low = self.mark.faults(self.item.row, self.verdict) if self.verdict else []
        return [*low, *dict.fromkeys(check.type for check in self.checks if not check.is_met)]


def make_items(
    settings: Settings, rows: Sequence[Row], images: Mapping[str, Image]
) -> tuple[Item, ...]:
    """All calls of a run, round by round; `images` are those of rows, by id."""
    variants = VARIANTS[settings.prompt_optimization]
    return tuple(
        Item(
            row=row,
            round=number,
            variant=variant,
            config=_config(settings, row),
            response=given_response(row, settings.model),
            image=images.get(row.id),
        )
        for number, row, variant in product(range(settings.invocations), rows, variants)
    )


class Repeats:
    """Has each asking of an item wait for the one before it, and then for some seconds."""

    def __init__(self, wait_s: float) -> None:
        self._wait_s = wait_s
        self._lock = threading.Lock()
        self._ended: dict[tuple[str, str, int], Future[datetime | None]] = {}

    @contextmanager
    def asking(self, context: EpisodeContext, item: Item) -> Iterator[list[Completion]]:
        """In the block the item is asked; its reply is added to the list that is given."""
        replies: list[Completion] = []
        if not self._wait_s:
            yield replies
            return
        try:
            ended = self._of(item, item.round - 1).result() if item.round else None
            if ended:
                context.wait_since(ended, self._wait_s)
            yield replies
        finally:
            self._of(item, item.round).set_result(replies[0].finished_at if replies else None)

    def _of(self, item: Item, number: int) -> "Future[datetime | None]":
        with self._lock:
            return self._ended.setdefault((item.row.id, item.variant, number), Future())


def given_response(row: Row, model: str) -> str | None:
    """The response that the data set has of a model; a single one without a name is anybody's."""
    named = [given.response for given in row.responses if given.model_identifier == model]
    if not named and len(row.responses) == 1 and row.responses[0].model_identifier is None:
        return row.responses[0].response
    return named[0] if named else None


def request_of(item: Item, prompt: str, system: str | None) -> Request:
    images = (item.image,) if item.image else ()
    message = Message("user", (*images, Text(clean(prompt))))
    return Request(messages=(message,), system=system, config=item.config)


def temperature_of(settings: Settings, row: Row) -> float | None:
    """The row's temperature or else the run's, shifted, and within 0 to 1. A model that thinks
    gets none of a row, since many take none then.
    """
    item_temperature = row.temperature if settings.thinking_budget_tokens is None else None
    base = settings.temperature if item_temperature is None else item_temperature
    if base is None:
        return None
    shifted = base * (1 + settings.temperature_shift)
    return round(min(1.0, max(0.0, shifted)), TEMPERATURE_PLACES)


def _config(settings: Settings, row: Row) -> GenerateConfig:
    changes: dict[str, Any] = {"temperature": temperature_of(settings, row)}
    if row.expected_output_tokens is not None:
        # Thinking counts against the bound, and is no part of the output that was expected.
        thinking = settings.thinking_budget_tokens or 0
        changes["max_tokens"] = row.expected_output_tokens + thinking
    return replace(settings.generation, **changes)
