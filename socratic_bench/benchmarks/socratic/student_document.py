"""What a run's document tells of the student."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Literal, Self

from msgspec import Meta, Struct

from socratic_bench.benchmarks.socratic.settings import Pressure, Settings
from socratic_bench.benchmarks.socratic.student.student import EDITION
from socratic_bench.benchmarks.socratic.turn import SocraticTurn
from socratic_bench.documents.result import RunResult
from socratic_bench.documents.scalars import Count, Sha256, Share
from socratic_bench.settings import part_of
from socratic_bench.types import doc


class Fidelity(Struct, frozen=True, kw_only=True):
    """How often the student was what it should be, over all of its words that were checked."""

    checked: Annotated[int, Meta(ge=1, description="replies of the student that were checked")]
    clean: Annotated[Share, doc("share of them without any flag")]
    flags: Annotated[dict[str, Annotated[int, Meta(ge=1)]], doc("replies with each flag")]
    asked_again: Annotated[
        Count,
        doc(
            "turns whose reply was asked for once more, since the first was empty or "
            "swapped the roles; the first one is not checked among the others"
        ),
    ]

    @classmethod
    def of(cls, result: RunResult) -> Fidelity | None:
        every = [SocraticTurn.of(turn).student_flags for turn in result.turns]
        every.append(result.closing_flags)
        checked = [flags for flags in every if flags is not None]
        if not checked:
            return None
        counts = Counter(flag for flags in checked for flag in flags)
        return cls(
            checked=len(checked),
            clean=round(sum(not flags for flags in checked) / len(checked), 4),
            flags=dict(sorted(counts.items())),
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
        list[str] | None, doc("what was wrong with the last words; null if they were not checked")
    ]
    fidelity: Annotated[
        Fidelity | None,
        doc(
            "how well the model played the student; null for a scripted one, or if "
            "nothing was checked"
        ),
    ]
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
            closing_flags=flag_list(result.closing_flags),
            fidelity=Fidelity.of(result),
            filler_turns=None if settings.student_model else _n_filler(result),
        )


def _n_filler(result: RunResult) -> int:
    return sum(bool(turn.notes.get("student_filler")) for turn in result.turns)
