"""What this benchmark adds to the keys that every document has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from msgspec import Meta
from msgspec.structs import replace

from socratic_bench.benchmarks.socratic.cast import CAST
from socratic_bench.benchmarks.socratic.closing import (
    INSIGHTS_HASH,
    ClosingErrors,
    InsightEntry,
    insight_findings,
)
from socratic_bench.benchmarks.socratic.metrics_document import (
    Headline,
    SocraticMetrics,
    UpToFour,
    UpToTen,
    UpToThree,
)
from socratic_bench.benchmarks.socratic.settings import Settings
from socratic_bench.benchmarks.socratic.student.student import Policy
from socratic_bench.benchmarks.socratic.student_document import StudentEntry, flag_list
from socratic_bench.benchmarks.socratic.turn import SocraticTurn
from socratic_bench.concurrency import convert
from socratic_bench.documents.run import RunResult
from socratic_bench.documents.usage import CallEntry
from socratic_bench.ports.parts import Part, Parts
from socratic_bench.settings import CoreConfig, part_of
from socratic_bench.turns import ClosingResult, Turn, Unscored
from socratic_bench.types import doc

if TYPE_CHECKING:
    from socratic_bench.statistics.survival import Time

HalfSteps = Annotated[UpToThree | None, doc("score, 0 to 3 in half steps")]


class FlatScores(Part, frozen=True, kw_only=True):
    """The scores once more, by the names that the contract gives them."""

    form: HalfSteps = None
    substance: HalfSteps = None
    purity: Annotated[UpToFour | None, doc("score, 0 to 4 in half steps")] = None

    @classmethod
    def of(cls, scores: Mapping[str, float | None]) -> Self:
        return cls(**{name: scores.get(name) for name in cls.__struct_fields__})


Pushed = Annotated[
    str | None, doc("how the student pushed for answers in its words; null if it did not")
]
StudentFlags = Annotated[
    list[str] | None,
    doc(
        "kinds of lapses in the words of a model that plays the student, by the judge's closing "
        "answer; null if they were not checked, and in the files of turns, which come before"
    ),
]
Flaw = Literal[
    "cut",
    "empty",
    "reasoning_only",
    "content_filtered",
    "guardrail",
    "context_window",
    "malformed_output",
]


class PromptPart(Part, frozen=True, kw_only=True):
    """What the tutor answers."""

    student_prompt: Annotated[str, doc("what the student said")] = ""

    @classmethod
    def of(cls, turn: Turn) -> Self:
        return cls(student_prompt=turn.prompt)


class CallsPart(Part, frozen=True, kw_only=True):
    """The student's side of a turn's calls."""

    student: Annotated[
        CallEntry | None,
        doc("the call that made the student's words; null for an opening or a scripted student"),
    ] = None

    @classmethod
    def of(cls, turn: Turn) -> Self:
        call = SocraticTurn.of(turn).student
        return cls(student=CallEntry.of(call) if call else None)


class TurnFilePart(Part, frozen=True, kw_only=True):
    """How the student pushed. Its lapses are not known yet when the file is written."""

    pressure: Pushed = None
    student_flags: StudentFlags = None

    @classmethod
    def of(cls, turn: Turn) -> Self:
        return cls(pressure=SocraticTurn.of(turn).pressure)


class TurnPart(Part, frozen=True, kw_only=True):
    """The student's side of a turn, and what is wrong with the tutor's."""

    student: Annotated[str, doc("what the student said before")] = ""
    pressure: Pushed = None
    student_flags: StudentFlags = None
    student_policy: Annotated[Policy, doc("what moved the student to say it")] = "scripted"
    student_filler: Annotated[
        bool,
        doc(
            "true if a scripted student had nothing of its own left to say, or said "
            "again what it had said"
        ),
    ] = False
    student_asked_again: Annotated[
        bool,
        doc(
            "true if the student's first reply was empty or swapped the roles, and "
            "this is the second"
        ),
    ] = False
    cut: Annotated[
        bool, doc("true if the reply was cut at --max-tokens; it is judged as it stands")
    ] = False
    flaw: Annotated[
        Flaw | None, doc("what is wrong with the reply as such; a cut one is judged as it stands")
    ] = None

    @classmethod
    def of(cls, turn: Turn) -> Self:
        own = SocraticTurn.of(turn)
        said = cls(
            student=turn.prompt, pressure=own.pressure, student_flags=flag_list(own.student_flags)
        )
        return replace(said, **turn.notes)


class RunPart(Part, frozen=True, kw_only=True):
    """The student of a run, and what it came to see."""

    student: Annotated[
        StudentEntry | None, doc("who played the student; null if no run came to be")
    ] = None
    insights: Annotated[
        list[InsightEntry] | None,
        doc(
            "what became of each insight of the scenario, by the judge's closing verdict; "
            "null if not known"
        ),
    ] = None
    insights_unjudged_reason: Annotated[
        str | None,
        doc("why insights is null, in a word; null if it is not, or if no run came to be"),
    ] = None

    closing_errors: Annotated[
        ClosingErrors | None,
        doc("what could not be used of the judge's closing answers; null if it was not asked"),
    ] = None

    @classmethod
    def of(cls, result: RunResult) -> Self:
        return cls(
            closing_errors=ClosingErrors.of(result.concluded) if result.concluded else None,
            insights=_insights(result.concluded),
            insights_unjudged_reason=_unjudged_reason(result),
            student=StudentEntry.of(result),
        )


class ThresholdsPart(Part, frozen=True, kw_only=True):
    """Scores that turns are held to."""

    compliance: Annotated[UpToTen, doc("score of a compliant turn")] = 0.0
    half_life: Annotated[UpToTen, doc("score under which a turn lapses")] = 0.0
    lapse_turns: Annotated[
        int, Meta(ge=1, description="judged turns in a row under it that make a lapse")
    ] = 1

    @classmethod
    def of(cls, config: CoreConfig) -> Self:
        own = part_of(config, Settings)
        return cls(
            compliance=own.compliance_threshold,
            half_life=own.half_life_threshold,
            lapse_turns=own.lapse_turns,
        )


def _times(document: Mapping[str, Any], scores: Sequence[float]) -> Mapping[str, Time]:
    """To an event, as the metrics have them, by scores of all turns, whoever gave them."""
    # Only labels need these.
    from socratic_bench.benchmarks.socratic.lapses import lapses, stretches
    from socratic_bench.statistics.survival import Time

    thresholds = document["thresholds"]
    is_under = [score < thresholds["half_life"] for score in scores]
    rows = lapses(stretches([*enumerate(is_under)]), thresholds["lapse_turns"])
    first = is_under.index(True) if any(is_under) else len(scores)
    return {
        "sustained_half_life": Time(rows[0].start if rows else len(scores), is_event=bool(rows)),
        "half_life": Time(first, is_event=any(is_under)),
    }


PARTS = Parts(
    actors=CAST.actors,
    sample=CAST.sample,
    metrics=SocraticMetrics,
    headline=Headline,
    run=RunPart,
    thresholds=ThresholdsPart,
    scores=FlatScores,
    turn=TurnPart,
    prompt_key="student",
    times=_times,
    turn_prompt=PromptPart,
    turn_calls=CallsPart,
    turn_file=TurnFilePart,
)


def _insights(concluded: ClosingResult | None) -> list[InsightEntry] | None:
    verdict = concluded.verdict if concluded else None
    return (
        None if verdict is None else convert(insight_findings(verdict.findings), list[InsightEntry])
    )


def _unjudged_reason(result: RunResult) -> str | None:
    """Why nothing is known of insights: nobody judged, the rubric does not ask for them, the
    scenario has none, no turn was played, the run ended before, or how the judge failed.
    """
    if not result.is_judged:
        return "no_judge"
    if result.rubric is None or not result.rubric.events:
        return "rubric"
    if INSIGHTS_HASH not in result.opening.hashes:
        return "scenario"
    if result.concluded is None:
        return "run_ended" if result.n_turns else "no_turns"
    outcome = result.concluded.outcome
    return outcome.reason if isinstance(outcome, Unscored) else None
