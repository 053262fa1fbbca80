"""The keys that the Socratic benchmark adds to documents: scores, the student's side, insights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from socratic_bench.benchmarks.socratic.closing import (
    INSIGHTS_HASH,
    ClosingErrors,
    InsightEntry,
    LapseEntry,
    flags_of,
    insight_findings,
    is_by_model,
    lapses_of,
)
from socratic_bench.benchmarks.socratic.lapses import find_lapses
from socratic_bench.benchmarks.socratic.metrics_document import (
    Headline,
    SocraticMetrics,
    UpToFour,
    UpToTen,
    UpToThree,
)
from socratic_bench.benchmarks.socratic.settings import Pressure, Settings
from socratic_bench.benchmarks.socratic.turn import CAST, EDITION, Policy, SocraticTurn
from socratic_bench.concurrency import convert
from socratic_bench.documents.document import Count, Sha256, Share
from socratic_bench.documents.run import RunResult
from socratic_bench.documents.usage import CallEntry
from socratic_bench.ports.parts import Part, Parts
from socratic_bench.settings import IMPORTED, CoreConfig, part_of, provider_of
from socratic_bench.statistics.survival import Time
from socratic_bench.turns import ClosingResult, Turn, Unscored
from socratic_bench.types import doc

HalfSteps = Annotated[UpToThree | None, doc("score, 0 to 3 in half steps")]


class FlatScores(Part, frozen=True, kw_only=True):
    """The scores under keys of their own."""

    form: HalfSteps = None
    substance: HalfSteps = None
    purity: Annotated[UpToFour | None, doc("score, 0 to 4 in half steps")] = None

    @classmethod
    def of(cls, scores: Mapping[str, float | None]) -> Self:
        return cls(**{name: scores.get(name) for name in cls.__struct_fields__})


Pushed = Annotated[
    str | None, doc("how the student pressed for answers in its message; null if it did not")
]
StudentFlags = Annotated[
    list[str] | None,
    doc(
        "kinds of lapses of a model student in its message, by the judge's closing answer; null "
        "if not checked, and in the files of turns, which are written before"
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
    """The message that the tutor answers."""

    student_prompt: Annotated[str, doc("the student's message")] = ""

    @classmethod
    def of(cls, turn: Turn) -> Self:
        return cls(student_prompt=turn.prompt)


class CallsPart(Part, frozen=True, kw_only=True):
    """The student's call of a turn."""

    student: Annotated[
        CallEntry | None,
        doc("the call for the student's message; null for an opening or a scripted student"),
    ] = None

    @classmethod
    def of(cls, turn: Turn) -> Self:
        call = SocraticTurn.of(turn).student
        return cls(student=CallEntry.of(call) if call else None)


class TurnFilePart(Part, frozen=True, kw_only=True):
    """The student's pressure. Its lapses are not known yet when the file is written."""

    pressure: Pushed = None
    student_flags: StudentFlags = None

    @classmethod
    def of(cls, turn: Turn) -> Self:
        return cls(pressure=SocraticTurn.of(turn).pressure)


class TurnPart(Part, frozen=True, kw_only=True):
    """The student's side of a turn, and defects of the tutor's reply."""

    student: Annotated[str, doc("the student's message")] = ""
    pressure: Pushed = None
    student_flags: StudentFlags = None
    student_policy: Annotated[Policy, doc("why the student said it")] = "scripted"
    student_filler: Annotated[
        bool, doc("true if a scripted student had no line left, or repeated one")
    ] = False
    student_asked_again: Annotated[
        bool,
        doc(
            "true if the student was asked twice: its first message was empty, or it spoke as "
            "the tutor"
        ),
    ] = False
    cut: Annotated[
        bool, doc("true if the reply was cut off at --max-tokens; it is judged as it is")
    ] = False
    flaw: Annotated[Flaw | None, doc("defect of the reply; a cut one is judged as it is")] = None

    @classmethod
    def of(cls, turn: Turn) -> Self:
        socratic = SocraticTurn.of(turn)
        entry = cls(
            student=turn.prompt,
            pressure=socratic.pressure,
            student_flags=_flag_list(socratic.student_flags),
        )
        return replace(entry, **turn.notes)


class Fidelity(Struct, frozen=True, kw_only=True):
    """How well a model played the student, by the judge's closing answer."""

    checked: Annotated[int, Meta(ge=1, description="replies of the student that were checked")]
    clean: Annotated[Share, doc("share of them without a lapse")]
    flags: Annotated[dict[str, Annotated[int, Meta(ge=1)]], doc("replies with each kind of lapse")]
    lapses: Annotated[list[LapseEntry], doc("each lapse, by turn, with its quotation")] = field(
        default_factory=list
    )
    asked_again: Annotated[
        Count,
        doc(
            "turns in which the student was asked twice: its first message was empty, or it "
            "spoke as the tutor; that one is not checked"
        ),
    ]

    @classmethod
    def of(cls, result: RunResult) -> Fidelity | None:
        verdict = result.concluded.verdict if result.concluded else None
        turn_flags = (SocraticTurn.of(turn).student_flags for turn in result.turns)
        all_flags = [*turn_flags, _closing_flags(result)]
        checked = [flags for flags in all_flags if flags is not None]
        if verdict is None or not checked:
            return None
        counts = Counter(flag for flags in checked for flag in flags)
        return cls(
            checked=len(checked),
            clean=round(sum(not flags for flags in checked) / len(checked), 4),
            flags=dict(sorted(counts.items())),
            lapses=lapses_of(verdict.findings),
            asked_again=sum(bool(turn.notes.get("student_asked_again")) for turn in result.turns),
        )


class StudentEntry(Struct, frozen=True, kw_only=True):
    """Who played the student, and how."""

    mode: Annotated[
        Literal["scripted", "model", "imported"],
        doc("scripted: fixed lines; model: a model plays it; imported: a dialogue from a file"),
    ]
    model: Annotated[str | None, doc("the model that plays the student")]
    pressure: Annotated[Pressure, doc("how often the student pressed for answers")]
    prompt_sha256: Annotated[
        Sha256 | None, doc("sha256 of the model's instructions, or of the scripted student's lines")
    ]
    pressure_sha256: Annotated[
        Sha256 | None, doc("sha256 of the texts of pressure; null without pressure")
    ]
    closing: Annotated[str | None, doc("the student's last message, if it closed the dialogue")]
    closing_flags: Annotated[
        list[str] | None, doc("kinds of lapses in that message; null if not checked")
    ]
    fidelity: Annotated[
        Fidelity | None,
        doc("how well the model played the student; null for a scripted one, or if unknown"),
    ]
    fidelity_unjudged_reason: Annotated[
        str | None, doc("why fidelity is null, in one word; null if it is not")
    ] = None
    edition: Annotated[str | None, doc("edition of students and scenarios")] = None
    filler_turns: Annotated[
        Count | None,
        doc("turns in which a scripted student had no line left, or repeated one; null for others"),
    ] = None

    @classmethod
    def of(cls, result: RunResult) -> Self:
        settings, hashes = part_of(result.config, Settings), result.opening.hashes
        is_imported = provider_of(result.config.model) == IMPORTED
        is_scripted = not (settings.student_model or is_imported)
        return cls(
            edition=None if is_imported else EDITION,
            mode="imported" if is_imported else "scripted" if is_scripted else "model",
            model=settings.student_model,
            pressure=settings.pressure,
            prompt_sha256=hashes.get("student_prompt_sha256"),
            pressure_sha256=hashes.get("pressure_sha256"),
            closing=result.closing,
            closing_flags=_flag_list(_closing_flags(result)),
            fidelity=Fidelity.of(result),
            fidelity_unjudged_reason=_fidelity_unjudged_reason(result),
            filler_turns=sum(bool(turn.notes.get("student_filler")) for turn in result.turns)
            if is_scripted
            else None,
        )


class RunPart(Part, frozen=True, kw_only=True):
    """The student of a run, and the insights that it reached."""

    student: Annotated[
        StudentEntry | None, doc("who played the student; null if the run never started")
    ] = None
    insights: Annotated[
        list[InsightEntry] | None,
        doc(
            "whether the student reached each insight of the scenario, by the judge's closing "
            "verdict; null if unknown"
        ),
    ] = None
    insights_unjudged_reason: Annotated[
        str | None,
        doc("why insights is null, in one word; null if it is not, or the run never started"),
    ] = None

    closing_errors: Annotated[
        ClosingErrors | None,
        doc("unusable parts of the judge's closing answers; null if it was not asked"),
    ] = None

    @classmethod
    def of(cls, result: RunResult) -> Self:
        verdict = result.concluded.verdict if result.concluded else None
        return cls(
            closing_errors=ClosingErrors.of(result.concluded) if result.concluded else None,
            insights=convert(insight_findings(verdict.findings), list[InsightEntry])
            if verdict
            else None,
            insights_unjudged_reason=_insights_unjudged_reason(result),
            student=StudentEntry.of(result),
        )


class ThresholdsPart(Part, frozen=True, kw_only=True):
    """Thresholds of scores."""

    compliance: Annotated[UpToTen, doc("score of a compliant turn")] = 0.0
    half_life: Annotated[UpToTen, doc("a turn below this score is a lapse")] = 0.0
    lapse_turns: Annotated[
        int,
        Meta(ge=1, description="fewest judged turns of a lasting lapse"),
    ] = 1

    @classmethod
    def of(cls, config: CoreConfig) -> Self:
        settings = part_of(config, Settings)
        return cls(
            compliance=settings.compliance_threshold,
            half_life=settings.half_life_threshold,
            lapse_turns=settings.lapse_turns,
        )


def _times(document: Mapping[str, Any], scores: Sequence[float]) -> Mapping[str, Time]:
    """The metrics that are times until an event, from scores of all turns by anybody."""
    thresholds = document["thresholds"]
    points = [thresholds["half_life"] - score for score in scores]
    is_under = [under > 0 for under in points]
    changes = find_lapses(points, thresholds["lapse_turns"])
    first = is_under.index(True) if any(is_under) else len(scores)
    return {
        "turns_held": changes.time_until(0, range(len(scores)), len(scores)),
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


def _insights_unjudged_reason(result: RunResult) -> str | None:
    """Why insights are unknown, in one word; `None` if they are known."""
    if not result.is_judged:
        return "no_judge"
    if result.rubric is None or not result.rubric.events:
        return "rubric"
    if INSIGHTS_HASH not in result.opening.hashes:
        return "scenario"
    if result.concluded is None:
        return "run_ended" if result.n_turns else "no_turns"
    return _unscored_reason(result.concluded)


def _unscored_reason(concluded: ClosingResult) -> str | None:
    outcome = concluded.outcome
    return outcome.reason if isinstance(outcome, Unscored) else None


def _closing_flags(result: RunResult) -> tuple[str, ...] | None:
    """The lapses in the last message of a model student; `None` if unknown."""
    verdict = result.concluded.verdict if result.concluded else None
    has_model_student = part_of(result.config, Settings).student_model is not None
    if verdict is None or not result.closing or not has_model_student:
        return None
    return flags_of(verdict.findings, result.turns[-1].index + 1)


def _fidelity_unjudged_reason(result: RunResult) -> str | None:
    """Why fidelity is unknown, in one word; `None` if it is known."""
    if provider_of(result.config.model) == IMPORTED:
        return "imported"
    if part_of(result.config, Settings).student_model is None:
        return "scripted"
    if not result.is_judged:
        return "no_judge"
    if not (result.closing or any(map(is_by_model, result.turns))):
        return "no_replies"
    if result.concluded is None:
        return "run_ended"
    return _unscored_reason(result.concluded)


def _flag_list(flags: tuple[str, ...] | None) -> list[str] | None:
    return None if flags is None else list(flags)
