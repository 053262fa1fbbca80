"""What went wrong, in any document."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct

from socratic_bench.documents.schemas import Document
from socratic_bench.errors import BenchError
from socratic_bench.redaction import redact
from socratic_bench.types import EndReason, doc


class ErrorEntry(Struct, frozen=True, kw_only=True):
    """What ended a run early, or which gate a complete run missed."""

    code: Annotated[str, doc("stable word for programs")]
    message: Annotated[str, doc("what happened and why")]
    hint: Annotated[str | None, doc("what to do next")]
    retryable: Annotated[bool, doc("whether the same command may succeed later")]

    @classmethod
    def of(cls, error: BenchError) -> ErrorEntry:
        return cls(
            code=error.code,
            message=error.message,
            hint=redact(error.hint) if error.hint else None,  # it may have been set later
            retryable=error.retryable,
        )


class ErrorDocument(Document, frozen=True, kw_only=True):
    """A command other than run that came to nothing."""

    kind: Literal["error"] = "error"
    end_reason: Annotated[EndReason, doc("how the command ended")]
    error: Annotated[ErrorEntry, doc("what went wrong")]
