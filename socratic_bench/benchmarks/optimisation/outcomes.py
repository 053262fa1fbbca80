"""What became of an item: its three statuses, who is to answer for a failure, and the metrics."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from statistics import fmean, harmonic_mean
from typing import Any, Literal

from msgspec import Struct

from socratic_bench.benchmarks.optimisation.agent import StopReason
from socratic_bench.benchmarks.optimisation.measuring import Performance
from socratic_bench.ports.benchmark import MetricInfo, rate_metric

PatchStatus = Literal["patched", "empty", "target_violation", "does_not_apply"]
Correctness = Literal["pass", "fail", "build_fail", "tampered"]
Whose = Literal["agent", "task", "infrastructure"]

# An item's time can be faked to almost nothing; its ratio counts for no more than this.
MOST_RATIO = 5.0
PLACES = 6
# An agent overclaims if it says that its patch is more than so many times as fast as it is.
OVERCLAIM = 1.25
FUNNEL = ("ran", "patched", "applies", "correct", "improved", "similar", "success")


class ItemResult(Struct, frozen=True, kw_only=True):
    """The statuses of one item, which are never merged, and its speed.

    `speedup` is base time by agent time, `ratio` human time by agent time. Of a lost item the
    set-up, base or human failed, which says nothing of the agent.
    """

    item_id: str
    stop: StopReason
    patch: PatchStatus
    correctness: Correctness | None = None
    performance: Performance | None = None
    improved: bool | None = None
    at_least_similar: bool | None = None
    speedup: float | None = None
    ratio: float | None = None
    human_speedup: float | None = None
    expected_speedup: float | None = None
    is_evaluated: bool = True
    is_measurable: bool = True
    is_lost: bool = False

    @property
    def has_passed(self) -> Mapping[str, bool]:
        """Which steps of the funnel the item has passed; each step needs those before it."""
        steps = (
            True,
            self.patch != "empty",
            self.patch == "patched",
            self.correctness == "pass",
            self.improved is True,
            self.at_least_similar is True,
            True,
        )
        passed = True
        return {name: (passed := passed and step) for name, step in zip(FUNNEL, steps, strict=True)}

    @property
    def is_success(self) -> bool:
        """At least as fast as the human's, and faster than the base by more than the least effect,
        both by interval, with all tests passing.
        """
        return self.has_passed["success"]

    @property
    def failure(self) -> str | None:
        """The first thing that the item fails by; `None` if it succeeds or was not evaluated."""
        if self.is_success or not self.is_evaluated:
            return None
        if self.patch != "patched":
            return self.patch if self.stop == "finished" else f"{self.patch} ({self.stop})"
        if self.correctness != "pass":
            return self.correctness or "not tested"
        if self.improved is not True:
            return "not faster" if self.improved is False else "undecided"
        return "slower than the human" if self.at_least_similar is False else "undecided"

    @property
    def score(self) -> float | None:
        """Human time by agent time; of a patch that counts for nothing, as if it were not there."""
        if self.has_passed["correct"] and self.ratio is not None:
            return min(self.ratio, MOST_RATIO)
        return 1 / self.human_speedup if self.human_speedup else None

    @property
    def is_overclaimed(self) -> bool | None:
        """Whether the agent promised more than it kept; `None` if it promised nothing."""
        if self.expected_speedup is None or not self.is_evaluated:
            return None
        has_effect = self.has_passed["correct"] and self.speedup is not None
        return self.expected_speedup > OVERCLAIM * (self.speedup if has_effect else 1.0)  # type: ignore[operator]


_rate = partial(rate_metric, needs_turns=0)

METRICS = (
    _rate("success_rate", "True success"),
    _rate("success_rate_of_all", "True success of all planned items"),
    MetricInfo(name="speed_ratio", title="Speed against the human's", low=0, high=MOST_RATIO),
    _rate("patched", "Patched"),
    _rate("applies", "Patch applies"),
    _rate("correct", "Tests pass"),
    _rate("improved", "Faster than the base"),
    _rate("similar", "At least as fast as the human"),
    _rate("overclaimed", "Overclaimed", higher_is_better=False),
)
_VALUES: Mapping[str, Callable[[ItemResult], float | None]] = {
    "success_rate": lambda item: float(item.is_success),
    "speed_ratio": lambda item: item.score,
    **{
        name: lambda item, name=name: float(item.has_passed[name])  # type: ignore[misc]
        for name in ("patched", "applies", "correct", "improved", "similar")
    },
    "overclaimed": lambda item: None if item.is_overclaimed is None else float(item.is_overclaimed),
}
_OF_PATCHES = ("patched", "applies")  # what is known before anything is measured


def metrics_of(items: Sequence[ItemResult]) -> dict[str, float | None]:
    """Every metric over items that have ended; `None` where no item has it."""
    return {name: _mean(name, of_items.values()) for name, of_items in by_item(items).items()}


def by_item(items: Iterable[ItemResult]) -> dict[str, dict[str, float]]:
    """Every metric by item. What cannot be measured counts for no agent."""
    measurable = [item for item in items if item.is_measurable and not item.is_lost]
    return {
        name: {
            item.item_id: value
            for item in measurable
            if (item.is_evaluated or name in _OF_PATCHES) and (value := value_of(item)) is not None
        }
        for name, value_of in _VALUES.items()
    }


def parts_of(document: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """By metric, the values of the items in a run's document. The harmonic mean has none, since
    comparisons would take plain means of its values.
    """
    names = ItemResult.__struct_fields__
    items = (
        ItemResult(**{name: turn[name] for name in names if name in turn})
        for turn in document["turns"]
    )
    return {name: values for name, values in by_item(items).items() if name != "speed_ratio"}


def _mean(name: str, values: Iterable[float]) -> float | None:
    numbers = [*values]
    if not numbers:
        return None
    mean = harmonic_mean(numbers) if name == "speed_ratio" else fmean(numbers)
    return round(mean, PLACES)


def whose_failure(item: ItemResult) -> Whose | None:
    """Who is to answer for the item's failure; `None` if there is none."""
    if not item.is_measurable or item.is_lost:
        return "task"
    return "agent" if item.failure else None
