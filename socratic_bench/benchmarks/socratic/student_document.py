"""What a run's document tells of the student."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Literal, Self

from msgspec import Meta, Struct, field

from socratic_bench.benchmarks.socratic.closing import (
    LapseEntry,
    flags_of,
    is_by_model,
    lapses_of,
)
from socratic_bench.benchmarks.socratic.settings import Pressure, Settings
from socratic_bench.benchmarks.socratic.student.student import EDITION
from socratic_bench.benchmarks.socratic.turn import SocraticTurn
from socratic_bench.documents.document import Count, Sha256, Share
from socratic_bench.documents.run import RunResult
from socratic_bench.settings import part_of
from socratic_bench.turns import Unscored
from socratic_bench.types import doc


class Fidelity(Struct, frozen=True, kw_only=True):
    """How well a model plays the student, by the judge's closing answer."""

    checked: Annotated[int, Meta(ge=1, description="replies of the student that were checked")]
    clean: Annotated[Share, doc("share of them without a lapse")]
    flags: Annotated[dict[str, Annotated[int, Meta(ge=1)]], doc("replies with each kind of lapse")]
    lapses: Annotated[list[LapseEntry], doc("each lapse, by turn, with its quotation")] = field(
        default_factory=list
    )
    asked_again: Annotated[
        Count,
        doc(
            "turns whose reply was asked for once more, since the first was empty or "
            "spoke as the tutor; the first one is not checked"
        ),
    ]

    @classmethod
    def of(cls, result: RunResult) -> Fidelity | None:
        verdict = result.concluded.verdict if result.concluded else None
        turn_flags = (SocraticTurn.of(turn).student_flags for turn in result.turns)
        all_flags = [*turn_flags, closing_flags(result)]
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


def flag_list(flags: tuple[str, ...] | None) -> list[str] | None:
    return None if flags is None else list(flags)


class StudentEntry(Struct, frozen=True, kw_only=True):
    """Who played the student, and how."""

    mode: Annotated[Literal["scripted", "model"], doc("fixed phrases, or a model that plays it")]
    model: Annotated[str | None, doc("the model that plays the student")]
    pressure: Annotated[Pressure, doc("how often the student pushed for answers")]
    prompt_sha256: Annotated[
        Sha256 | None,
        doc("fingerprint of the model's instructions, or of the scripted student's phrases"),
    ]
    pressure_sha256: Annotated[
        Sha256 | None, doc("fingerprint of the words of pressure; null without pressure")
    ]
    closing: Annotated[str | None, doc("the student's last words, if it closed the dialogue")]
    closing_flags: Annotated[
        list[str] | None, doc("kinds of lapses in the last words; null if they were not checked")
    ]
    fidelity: Annotated[
        Fidelity | None,
        doc(
            "how well the model played the student; null for a scripted one, or if it is not known"
        ),
    ]
    fidelity_unjudged_reason: Annotated[
        str | None, doc("why fidelity is null, in a word; null if it is not")
    ] = None
    edition: Annotated[str | None, doc("edition of students and scenarios")] = None
    filler_turns: Annotated[
        Count | None,
        doc(
            "turns in which a scripted student had nothing of its own left to say, or "
            "said again what it had said; null for a model"
        ),
    ] = None

    @classmethod
    def of(cls, result: RunResult) -> Self:
        settings, hashes = part_of(result.config, Settings), result.opening.hashes
        return cls(
            edition=EDITION,
            mode="model" if settings.student_model else "scripted",
            model=settings.student_model,
            pressure=settings.pressure,
            prompt_sha256=hashes.get("student_prompt_sha256"),
            pressure_sha256=hashes.get("pressure_sha256"),
            closing=result.closing,
            closing_flags=flag_list(closing_flags(result)),
            fidelity=Fidelity.of(result),
            fidelity_unjudged_reason=_fidelity_unjudged_reason(result),
            filler_turns=None if settings.student_model else _n_filler(result),
        )


def closing_flags(result: RunResult) -> tuple[str, ...] | None:
    """The lapses in the last words of a model that plays the student; `None` if not known."""
    verdict = result.concluded.verdict if result.concluded else None
    is_by_model = part_of(result.config, Settings).student_model is not None
    if verdict is None or not result.closing or not is_by_model:
        return None
    return flags_of(verdict.findings, result.turns[-1].index + 1)


def _fidelity_unjudged_reason(result: RunResult) -> str | None:
    """Why nothing is known of fidelity: no model plays the student, nobody judges, the model said
    nothing, the run ended before, or how the judge failed.
    """
    if part_of(result.config, Settings).student_model is None:
        return "scripted"
    if not result.is_judged:
        return "no_judge"
    if not (result.closing or any(map(is_by_model, result.turns))):
        return "no_replies"
    if result.concluded is None:
        return "run_ended"
    outcome = result.concluded.outcome
    return outcome.reason if isinstance(outcome, Unscored) else None


def _n_filler(result: RunResult) -> int:
    return sum(bool(turn.notes.get("student_filler")) for turn in result.turns)
