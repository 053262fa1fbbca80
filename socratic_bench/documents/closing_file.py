"""The file of what a judge said of an episode as a whole."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import field

from socratic_bench.documents.files import JudgeCall
from socratic_bench.documents.jury import ClosingJuror, InWords, RawReply, findings_of, unscored_of
from socratic_bench.documents.scalars import SCHEMA_VERSION, RunId, Scalars, Timestamp, Version, utc
from socratic_bench.documents.schemas import Printable
from socratic_bench.documents.turn import tokens_of
from socratic_bench.documents.usage import Tokens
from socratic_bench.turns import ClosingResult
from socratic_bench.types import doc


class ClosingFile(Printable, frozen=True, kw_only=True):
    """What the judge said of the episode as a whole (closing_verdict.json)."""

    run_id: RunId
    kind: Literal["closing_verdict"] = "closing_verdict"
    schema_version: Version = SCHEMA_VERSION
    findings: Annotated[
        list[Scalars] | None,
        doc("what it found, by names of the benchmark's own; null: nothing is known"),
    ]
    unjudged_reason: Annotated[str | None, doc("why nothing is known, in a word")]
    unjudged_message: InWords
    raw_reply: RawReply
    judge_model: Annotated[str, doc("the judge model, as asked for")]
    jurors: Annotated[list[ClosingJuror], doc("what each juror found; empty with one judge")] = (
        field(default_factory=list)
    )
    timestamp: Annotated[Timestamp, doc("when the verdict was there, UTC")]
    usage: Annotated[Tokens | None, doc("tokens of the judge's calls; null if there were none")]
    calls: Annotated[list[JudgeCall], doc("the judge's calls for it")]

    @classmethod
    def of(cls, concluded: ClosingResult, *, run_id: str, judge_model: str) -> ClosingFile:
        """The verdict, or the reason why there is none, with the raw reply."""
        return cls(
            run_id=run_id,
            findings=findings_of(concluded.outcome),
            **unscored_of(concluded.outcome),
            judge_model=judge_model,
            jurors=[ClosingJuror.of(vote) for vote in concluded.votes],
            timestamp=utc(concluded.finished_at),
            usage=tokens_of(concluded.calls),
            calls=[JudgeCall.of(call) for call in concluded.calls],
        )
