"""What a run's document tells of the insights that the student came to."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from socratic_bench.benchmarks.socratic.insights import HASH, Outcome
from socratic_bench.converting import convert
from socratic_bench.documents.result import RunResult
from socratic_bench.documents.scalars import Count
from socratic_bench.turns import Concluded, Unscored
from socratic_bench.types import doc


class InsightEntry(Struct, frozen=True, kw_only=True):
    """One of the scenario's insights, and what became of it."""

    insight: Annotated[str, doc("what good questions let the student see")]
    outcome: Annotated[
        Outcome,
        doc("reached: the student said it first; told: the tutor did; missed: nobody said it"),
    ]
    turn: Annotated[
        Count | None,
        doc(
            "where it was said, n_turns and replayed turns together if in the "
            "student's last words; null if missed"
        ),
    ]
    quote: Annotated[str | None, doc("the words that show it, by the judge; null if missed")]
    quote_found: Annotated[
        bool | None,
        doc(
            "whether these are words of that turn, by the student if it was reached, "
            "by the tutor if it was told; null if missed"
        ),
    ]
    replayed: Annotated[
        bool, doc("true if that was in a replayed turn, so that no metric counts it")
    ]


def entries_of(concluded: Concluded | None) -> list[InsightEntry] | None:
    verdict = concluded.verdict if concluded else None
    return None if verdict is None else convert(verdict.findings, list[InsightEntry])


def unjudged_reason(result: RunResult) -> str | None:
    """Why nothing is known of insights: nobody judged, the rubric does not ask for them, the
    scenario has none, no turn was played, the run ended before, or how the judge failed.
    """
    if not result.is_judged:
        return "no_judge"
    if result.rubric is None or not result.rubric.events:
        return "rubric"
    if HASH not in result.opening.hashes:
        return "scenario"
    if result.concluded is None:
        return "run_ended" if result.n_turns else "no_turns"
    outcome = result.concluded.outcome
    return outcome.reason if isinstance(outcome, Unscored) else None
