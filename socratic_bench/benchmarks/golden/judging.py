"""What a judge is asked about an answer, and whether its verdicts let an item pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.benchmarks.golden.checks import CheckResult
from socratic_bench.benchmarks.golden.rows import SCALE, Criterion, Row
from socratic_bench.benchmarks.golden.settings import PassRule
from socratic_bench.judging.rubric import find_rubric
from socratic_bench.turns import Dimension, Event, Judged, Rubric, Verdict

FOLDER = Path(__file__).parent / "rubrics"
NAME = "golden"
SPEAKERS = ("prompt", "model")
DECLINED = "declined"
CRITERION = "criterion_"

# What became of an item. A refusal fails, too; what is unprocessed neither passes nor fails.
Result = Literal["passed", "failed", "refused", "unprocessed", "unjudged"]


@cache
def base_rubric(name: str = NAME) -> Rubric:
    """The rubric that those of all items extend. Raises `UsageError` for another name or file."""
    return find_rubric(name, FOLDER, speakers=SPEAKERS)


def dimensions_of(row: Row) -> tuple[Dimension, ...]:
    """Those of every item, and the row's own."""
    return (*base_rubric().dimensions, *row.dimensions)


def rubric_of(row: Row) -> Rubric:
    """The rubric of a row: with its task, and its own dimensions and criteria. It is of the same
    edition, so that a calibration of the judge holds for it.
    """
    base = base_rubric()
    parts = [base.instructions, f"The task is of this type: {row.task_type}."]
    if row.task_criteria:
        parts.append(f"What counts in this task: {row.task_criteria}")
    if row.criteria:
        parts.append(
            f"The events {CRITERION}1 and further are statements about the answer, each true or "
            "false by itself. Quote words of the answer that make one true; if it is true by what "
            "the answer leaves out, quote the words nearest to that. Null means false."
        )
    events = tuple(
        Event(name=f"{CRITERION}{number}", meaning=criterion.text)
        for number, criterion in enumerate(row.criteria, start=1)
    )
    return replace(
        base,
        instructions="\n\n".join(parts),
        dimensions=dimensions_of(row),
        events=(*base.events, *events),
        requires_events=True,
    )


class PassMark(Struct, frozen=True, kw_only=True):
    """What passes: each dimension at `threshold` of 1 to 5, and the same share of other ranges and
    of the weight of criteria. `is_judged`: judges are asked; `is_checked`: checks are made.
    """

    threshold: float
    rule: PassRule
    is_judged: bool
    is_checked: bool

    @property
    def share(self) -> float:
        """The threshold's place between the ends of its range, 0 to 1."""
        return (self.threshold - SCALE[0]) / (SCALE[1] - SCALE[0])

    def result(
        self,
        row: Row,
        checks: Sequence[CheckResult],
        judged: Judged | None,
        *,
        is_refused: bool,
    ) -> Result:
        """What became of an item; "unjudged" if nobody was to judge it, and it has no checks."""
        verdict = judged.outcome if judged and isinstance(judged.outcome, Verdict) else None
        if is_refused or (verdict and DECLINED in (verdict.events or {})):
            return "refused"
        if not self.is_judged:
            return _passed(is_so=all_met(checks)) if checks else "unjudged"
        if verdict is None or judged is None:
            return "unprocessed"
        votes = [vote.outcome for vote in judged.votes if isinstance(vote.outcome, Verdict)]
        if self.rule == "majority" and votes:
            n_passed = sum(not self.faults(row, vote) for vote in votes)
            is_good = 2 * n_passed > len(votes)
        else:
            is_good = not self.faults(row, verdict)
        return _passed(is_so=is_good and all_met(checks))

    def decides(self, row: Row) -> bool:
        """Whether an answer to this row can pass or fail."""
        return self.is_judged or (self.is_checked and bool(row.checks))

    def faults(self, row: Row, verdict: Verdict) -> list[str]:
        """The dimensions under the threshold, and "criteria" if too few are met."""
        low = [
            dimension.name
            for dimension in dimensions_of(row)
            if verdict.scores[dimension.name]
            < dimension.low + self.share * (dimension.high - dimension.low) - 1e-9
        ]
        share = criteria_share(row.criteria, verdict.events)
        return [*low, *(["criteria"] if share is not None and share < self.share else [])]


def criteria_share(criteria: Sequence[Criterion], events: Mapping[str, str] | None) -> float | None:
    """The weight of criteria that are met, of the positive weights; `None` without criteria.

    Negative ones that are met are subtracted.
    """
    if not criteria:
        return None
    met = sum(
        criterion.weight
        for number, criterion in enumerate(criteria, start=1)
        if f"{CRITERION}{number}" in (events or {})
    )
    return met / sum(max(0.0, criterion.weight) for criterion in criteria)


def all_met(checks: Sequence[CheckResult]) -> bool:
    return all(check.is_met for check in checks)


def _passed(*, is_so: bool) -> Result:
    return "passed" if is_so else "failed"
