"""What a look at something beforehand has found: a place, a right, a model."""

from collections.abc import Mapping, Sequence
from typing import Literal, Self

from msgspec import Struct

from socratic_bench.errors import BenchError, Words, in_words
from socratic_bench.redaction import redact

# `warning`: a run works, and not quite as somebody may expect. `unknown`: it could not be told, or
# what is lacking is not needed. `failed`: a run would fail by it.
Status = Literal["ok", "warning", "unknown", "failed"]
CheckName = Literal[
    "credentials",
    "role",
    "region",
    "folder",
    "bucket_write",
    "bucket_read",
    "bucket_delete",
    "answer",
    "streaming",
    "tools",
    "cache_points",
    "service_tier",
    "system_prompt",
    "temperature",
    "price",
    "quota",
]


class Finding(Struct, frozen=True, kw_only=True):
    """What came of a look at `subject`; `code` and `hint` are those of an error."""

    check: CheckName
    status: Status
    subject: str
    message: str
    code: str | None = None
    hint: Words | None = None

    @classmethod
    def of(cls, check: CheckName, status: Status, subject: str, error: BenchError) -> Self:
        """What an error says of it."""
        return cls(
            check=check,
            status=status,
            subject=subject,
            message=said_of(subject, error),
            code=error.code,
            hint=error.hints[0] if error.hints else None,
        )


def said_of(subject: str, error: BenchError) -> str:
    """What an error says of a subject, which it may name first, as words of their own."""
    first, *rest = error.said or ("",)
    if not rest or first not in (subject, f"{subject}:"):
        return error.message
    return redact(" ".join(map(in_words, rest)))


class Quota(Struct, frozen=True, kw_only=True):
    """What an account may have of a model in a minute; `None`: not known."""

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None


class FileReport(Struct, frozen=True):
    """What is wrong with files of a benchmark's own: by file, and with several of them together."""

    problems: Mapping[str, Sequence[Words]]
    together: Sequence[str] = ()
