"""What one call came to, as figures are made of it: of a turn, or of a stored document."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, get_args

from msgspec import Meta, Struct

from socratic_bench.benchmarks.execution.items import Kind, Letter, Program, other
from socratic_bench.benchmarks.execution.settings import Level
from socratic_bench.documents.scalars import FIGURE_PLACES, Count, Share
from socratic_bench.statistics.clusters import clustered
from socratic_bench.statistics.intervals import Interval, t_interval, wilson_interval
from socratic_bench.types import doc

# What became of a call: an answer that is right, the other program's, or neither; or none at all.
Outcome = Literal["correct", "reversion", "other_wrong", "unparsed", "truncated", "refused"]
WHOLE: tuple[Outcome, ...] = ("correct", "reversion", "other_wrong")
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


class ItemOutcome(Struct, frozen=True, kw_only=True):
    """See `Item`. `problem` is its id, and has `n_cases`; `chosen` is `None` where nothing was."""

    kind: Kind
    problem: str
    n_cases: int
    case: int
    round: int
    program: Program
    level: Level
    can_revert: bool
    outcome: Outcome
    chosen: Letter | None

    @property
    def about(self) -> Program:
        """The program whose output was asked for: the one that was shown, or chosen."""
        is_b = self.kind == "choice" and self.chosen == "B"
        return other(self.program) if is_b else self.program

    @property
    def is_whole(self) -> bool:
        """Whether there is an answer, be it right or wrong."""
        return self.outcome in WHOLE

    @property
    def is_right(self) -> bool:
        return self.outcome == "correct"

    @property
    def is_reversion(self) -> bool:
        return self.outcome == "reversion"


Readings = Sequence[ItemOutcome]


def with_program(some: Readings, program: Program) -> Readings:
    """The calls that show one program; those choices in which it is A."""
    return [one for one in some if one.program == program]


def readings_in(document: Mapping[str, Any]) -> Iterator[ItemOutcome]:
    """Of the document of a complete run, in which no case is missing."""
    turns = document["turns"]
    n_cases: dict[str, int] = {}
    for turn in turns:
        name = turn["problem_id"]
        n_cases[name] = max(n_cases.get(name, 0), turn["case"] + 1)
    for turn in turns:
        yield ItemOutcome(
            kind=turn["task"],
            problem=turn["problem_id"],
            n_cases=n_cases[turn["problem_id"]],
            outcome=turn["heuristics"]["outcome"],
            **{name: turn[name] for name in _ALIKE},
        )


_ALIKE = ("case", "round", "program", "level", "can_revert", "chosen")


# From answers to figures: shares with intervals that are clustered by problem.

Signed = Annotated[float, Meta(ge=-1, le=1)]
Low = Annotated[float | None, doc("lower limit at 95 %; null for a single problem")]
High = Annotated[float | None, doc("upper limit at 95 %; null for a single problem")]


class Figure(Struct, frozen=True, kw_only=True):
    """A share, and how far it can be trusted: Wilson's interval, clustered by problem."""

    value: Annotated[Share | None, doc("the share; null of none")]
    low: Low
    high: High
    successes: Annotated[Count, doc("how many it holds for")]
    n: Annotated[Count, doc("how many there are")]
    n_problems: Annotated[Count, doc("of how many problems they are")]


class Gap(Struct, frozen=True, kw_only=True):
    """A mean difference of shares within problems: Student's interval over problems."""

    mean: Annotated[Signed | None, doc("mean of the differences; null of none")]
    low: Low
    high: High
    n_problems: Annotated[Count, doc("problems that have both")]


# By problem, what is so or not.
Cases = Mapping[str, Sequence[bool]]


def share(cases: Cases) -> Figure:
    """Over all that there is, clustered by problem."""
    clusters = [[float(one) for one in some] for some in cases.values() if some]
    if not clusters:
        return Figure(value=None, low=None, high=None, successes=0, n=0, n_problems=0)
    found = clustered(clusters)
    interval = wilson_interval(found)
    return Figure(
        value=round(found.mean, FIGURE_PLACES),
        **_limits(interval, 0.0, 1.0),
        successes=sum(map(sum, cases.values())),
        n=found.n,
        n_problems=found.n_clusters,
    )


def gap(first: Cases, second: Cases) -> Gap:
    """The first less the second, of problems that have both: the mean of each, then of all."""
    names = [name for name in first if first[name] and second.get(name)]
    both = [[_mean(first[name]) - _mean(second[name])] for name in names]
    if not both:
        return Gap(mean=None, low=None, high=None, n_problems=0)
    found = clustered(both)
    interval = t_interval(found)
    return Gap(
        mean=round(found.mean, FIGURE_PLACES),
        **_limits(interval, -1.0, 1.0),
        n_problems=found.n_clusters,
    )


def _mean(values: Sequence[bool]) -> float:
    return sum(values) / len(values)


def _limits(interval: Interval | None, least: float, most: float) -> dict[str, float | None]:
    if interval is None:
        return {"low": None, "high": None}
    low, high = max(least, interval.low), min(most, interval.high)
    return {"low": round(low, FIGURE_PLACES), "high": round(high, FIGURE_PLACES)}


def by_problem(
    some: Iterable[ItemOutcome], is_so: Callable[[ItemOutcome], bool]
) -> dict[str, list[bool]]:
    """Whether it is so, of each."""
    found: dict[str, list[bool]] = defaultdict(list)
    for one in some:
        found[one.problem].append(is_so(one))
    return found


def counts(some: Readings) -> dict[str, int]:
    """How many there are of each outcome."""
    found = Counter(one.outcome for one in some)
    return {outcome: found[outcome] for outcome in OUTCOMES}
