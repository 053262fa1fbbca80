"""The metrics of a run, of its turns or of the turns in its document."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import Any

from msgspec import Struct

from socratic_bench.benchmarks.golden.items import GoldenTurn, Item, Variant
from socratic_bench.benchmarks.golden.judging import PassMark, Result
from socratic_bench.benchmarks.golden.rows import DIMENSIONS, SCALE
from socratic_bench.ports.benchmark import MetricInfo, rate_metric
from socratic_bench.types import CUT_STOPS

PLACES = 6
PROCESSED: Sequence[Result] = ("passed", "failed", "refused")


_rate = partial(rate_metric, needs_turns=0)

METRICS = (
    _rate("success_rate", "Success rate"),
    _rate("success_rate_of_all", "Success rate of all that were asked"),
    _rate("weighted_success_rate", "Success rate by the items' weights"),
    _rate("refused", "Refused", higher_is_better=False),
    _rate("truncated", "Replies cut off", higher_is_better=False),
    _rate("checks_met", "Checks met"),
    MetricInfo(name="criteria_met", title="Weight of criteria met", low=None, high=1),
    *(
        MetricInfo(
            name=name, title=name.replace("_", " ").capitalize(), low=SCALE[0], high=SCALE[1]
        )
        for name in DIMENSIONS
    ),
)


class Case(Struct, frozen=True, kw_only=True):
    """What became of one item, whether it was just asked or is read from a document."""

    item_id: str
    variant: Variant
    result: Result
    weight: float
    is_cut: bool
    checks_met: float | None
    criteria_met: float | None
    scores: Mapping[str, float | None]

    @classmethod
    def of(cls, turn: GoldenTurn) -> "Case":
        return cls(
            item_id=turn.item.row.id,
            variant=turn.item.variant,
            result=turn.result,
            weight=turn.item.row.weight,
            is_cut=turn.answered == "truncated",
            checks_met=checks_share(turn),
            criteria_met=turn.criteria_met,
            scores=turn.verdict.scores if turn.verdict else {},
        )


def checks_share(turn: GoldenTurn) -> float | None:
    """The share of an item's checks that are met; `None` without checks."""
    return fmean(check.is_met for check in turn.checks) if turn.checks else None


def cases_in(document: Mapping[str, Any]) -> Iterable[Case]:
    """The items in the document of a complete run."""
    for turn in document["turns"]:
        yield Case(
            item_id=turn["item_id"],
            variant=turn["variant"],
            result=turn["result"],
            weight=turn["weight"],
            is_cut=turn["stop_reason"] in CUT_STOPS,
            checks_met=turn["checks_met"],
            criteria_met=turn["criteria_met"],
            scores=turn.get("scores") or {},
        )


def passes_of_all(
    items: Sequence[Item], mark: PassMark, turns: Sequence[GoldenTurn]
) -> Iterator[tuple[str, bool]]:
    """Of all that metrics are of and that was to pass or fail: the item, and whether it passed;
    what was lost did not. Nothing without a turn.
    """
    by_index = {turn.index: turn for turn in turns}
    for index, item in enumerate(items if turns else ()):
        turn = by_index.get(index)
        is_decided = turn.result != "unjudged" if turn else mark.decides(item.row)
        if is_decided and item.variant == items[0].variant:
            yield item.row.id, turn is not None and turn.result == "passed"


# By metric, the value of an item; `None` where it has none.
_VALUES: Mapping[str, Callable[[Case], float | None]] = {
    "success_rate": lambda case: (
        float(case.result == "passed") if case.result in PROCESSED else None
    ),
    "success_rate_of_all": lambda case: (
        None if case.result == "unjudged" else float(case.result == "passed")
    ),
    "refused": lambda case: float(case.result == "refused"),
    "truncated": lambda case: float(case.is_cut),
    "checks_met": lambda case: case.checks_met,
    "criteria_met": lambda case: case.criteria_met,
    **{name: lambda case, name=name: case.scores.get(name) for name in DIMENSIONS},  # type: ignore[misc]
}


def summarise(cases: Sequence[Case]) -> dict[str, float | None]:
    """Every metric; `None` where no item has it."""
    processed = [case for case in cases if case.result in PROCESSED]
    whole = sum(case.weight for case in processed)
    passed = sum(case.weight for case in processed if case.result == "passed")
    weighted = round(passed / whole, PLACES) if whole else None
    return {
        **{name: _mean(cases, value) for name, value in _VALUES.items()},
        "weighted_success_rate": weighted,
    }


def metrics_by_item(document: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Every metric by item, of the document of a complete run."""
    by_item: dict[str, list[Case]] = defaultdict(list)
    cases = [*cases_in(document)]
    # As in `VARIANTS`, the original prompts count if both were asked.
    originals = [case for case in cases if case.variant == "original"]
    for case in originals or cases:
        by_item[case.item_id].append(case)
    means = {
        name: {item: _mean(cases, value) for item, cases in by_item.items()}
        for name, value in _VALUES.items()
    }
    return {
        name: {item: mean for item, mean in of_items.items() if mean is not None}
        for name, of_items in means.items()
    }


def _mean(cases: Iterable[Case], value_of: Callable[[Case], float | None]) -> float | None:
    values = [value for case in cases if (value := value_of(case)) is not None]
    return round(fmean(values), PLACES) if values else None
