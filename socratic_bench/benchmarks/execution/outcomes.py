"""Outcomes of calls, and rates of them with intervals that are clustered by problem."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, get_args

from msgspec import Meta, Struct

from socratic_bench.benchmarks.execution.items import Kind, Letter, Program, other_program
from socratic_bench.benchmarks.execution.settings import Level
from socratic_bench.documents.document import FIGURE_PLACES, Count, Share
from socratic_bench.statistics.intervals import Interval, clustered, t_interval, wilson_interval
from socratic_bench.types import doc

# The result of a call: an answer that is right, the other program's, or neither; or no answer.
Outcome = Literal["correct", "reversion", "other_wrong", "unparsed", "truncated", "refused"]
READABLE: tuple[Outcome, ...] = ("correct", "reversion", "other_wrong")
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

Signed = Annotated[float, Meta(ge=-1, le=1)]
Low = Annotated[float | None, doc("lower limit at 95 %; null for a single problem")]
High = Annotated[float | None, doc("upper limit at 95 %; null for a single problem")]
# By problem, whether something is so, once for each call, generation or pair.
Cases = Mapping[str, Sequence[bool]]


class ItemOutcome(Struct, frozen=True, kw_only=True):
    """The outcome of one item, whether its turn was just played or is read from a document.

    `problem` is the problem's id, `n_cases` the number of its calls; `chosen` is `None` where
    nothing was chosen. See `Item` for the rest.
    """

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
    def target_program(self) -> Program:
        """The program whose output was asked for: the one that was shown, or chosen."""
        is_b = self.kind == "choice" and self.chosen == "B"
        return other_program(self.program) if is_b else self.program

    @property
    def is_readable(self) -> bool:
        """Whether there is an answer, be it right or wrong."""
        return self.outcome in READABLE

    @property
    def is_right(self) -> bool:
        return self.outcome == "correct"

    @property
    def is_reversion(self) -> bool:
        return self.outcome == "reversion"


Outcomes = Sequence[ItemOutcome]
# What an outcome, and a turn's document, has of its item under the same names.
OF_ITEM = ("case", "round", "program", "level", "can_revert")


class Figure(Struct, frozen=True, kw_only=True):
    """A rate with Wilson's interval, clustered by problem."""

    value: Annotated[Share | None, doc("share; null without any")]
    low: Low
    high: High
    successes: Annotated[Count, doc("number that it holds for")]
    n: Annotated[Count, doc("number in total")]
    n_problems: Annotated[Count, doc("number of problems that they come from")]


class Gap(Struct, frozen=True, kw_only=True):
    """A mean difference of rates within problems, with Student's interval over problems."""

    mean: Annotated[Signed | None, doc("mean difference; null without any")]
    low: Low
    high: High
    n_problems: Annotated[Count, doc("problems that have both")]


def with_program(outcomes: Outcomes, program: Program) -> Outcomes:
    """The calls that show one program; of choices those in which it is A."""
    return [outcome for outcome in outcomes if outcome.program == program]


def outcomes_in(document: Mapping[str, Any]) -> Iterator[ItemOutcome]:
    """The outcomes in the document of a complete run, in which no case is missing."""
    turns = document["turns"]
    n_cases: dict[str, int] = {}
    for turn in turns:
        problem = turn["problem_id"]
        n_cases[problem] = max(n_cases.get(problem, 0), turn["case"] + 1)
    for turn in turns:
        yield ItemOutcome(
            kind=turn["task"],
            problem=turn["problem_id"],
            n_cases=n_cases[turn["problem_id"]],
            outcome=turn["heuristics"]["outcome"],
            chosen=turn["chosen"],
            **{name: turn[name] for name in OF_ITEM},
        )


def cases_by_problem(
    outcomes: Iterable[ItemOutcome], is_so: Callable[[ItemOutcome], bool]
) -> dict[str, list[bool]]:
    """By problem, the value of `is_so` for each outcome."""
    cases: dict[str, list[bool]] = defaultdict(list)
    for outcome in outcomes:
        cases[outcome.problem].append(is_so(outcome))
    return cases


def right_cases(readable: Outcomes) -> Cases:
    """By problem, whether the answer is right."""
    return cases_by_problem(readable, lambda outcome: outcome.is_right)


def reverted_cases(readable: Outcomes) -> Cases:
    """By problem, whether an answer that can revert is the other program's output."""
    revertible = [outcome for outcome in readable if outcome.can_revert]
    return cases_by_problem(revertible, lambda outcome: outcome.is_reversion)


def count_outcomes(outcomes: Outcomes) -> dict[str, int]:
    counter = Counter(outcome.outcome for outcome in outcomes)
    return {name: counter[name] for name in OUTCOMES}


def rate(cases: Cases) -> Figure:
    """The rate over all cases, clustered by problem."""
    clusters = [[*map(float, values)] for values in cases.values() if values]
    if not clusters:
        return Figure(value=None, low=None, high=None, successes=0, n=0, n_problems=0)
    mean = clustered(clusters)
    return Figure(
        value=round(mean.mean, FIGURE_PLACES),
        **_limits(wilson_interval(mean), 0.0, 1.0),
        successes=sum(map(sum, cases.values())),
        n=mean.n,
        n_problems=mean.n_clusters,
    )


def gap(first: Cases, second: Cases) -> Gap:
    """First minus second over problems that have both: the rate within each, then their mean."""
    problems = [problem for problem in first if first[problem] and second.get(problem)]
    differences = [[_mean(first[problem]) - _mean(second[problem])] for problem in problems]
    if not differences:
        return Gap(mean=None, low=None, high=None, n_problems=0)
    mean = clustered(differences)
    return Gap(
        mean=round(mean.mean, FIGURE_PLACES),
        **_limits(t_interval(mean), -1.0, 1.0),
        n_problems=mean.n_clusters,
    )


def _mean(values: Sequence[bool]) -> float:
    return sum(values) / len(values)


def _limits(interval: Interval | None, least: float, most: float) -> dict[str, float | None]:
    if interval is None:
        return {"low": None, "high": None}
    low, high = max(least, interval.low), min(most, interval.high)
    return {"low": round(low, FIGURE_PLACES), "high": round(high, FIGURE_PLACES)}
