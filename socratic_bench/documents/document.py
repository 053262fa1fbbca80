"""What all documents share: their base class, types of their fields, and the entry of an error.

The marks `part`, `keys` and `optional_keys` tell documents/schema.py what a type alone cannot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, overload

from msgspec import Meta, Struct

from socratic_bench.documents.encoding import plain_keys
from socratic_bench.errors import BenchError
from socratic_bench.redaction import redact
from socratic_bench.settings import MAX_SEED, MOST_TURNS
from socratic_bench.types import EndReason, Json, doc

Version = Annotated[
    Literal[1], doc("version of the document format; it is raised when a key is removed or changed")
]
SCHEMA_VERSION: Version = 1
Count = Annotated[int, Meta(ge=0)]
Turns = Annotated[int, Meta(ge=0, le=MOST_TURNS)]
Seed = Annotated[int, Meta(ge=0, le=MAX_SEED)]
# At least 0: points, milliseconds, seconds, USD, tokens per second; the key's name has the unit.
Amount = Annotated[float, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]
Timestamp = Annotated[
    str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$", description="UTC, to the second")
]
RunId = Annotated[str, Meta(pattern="^run-[0-9A-HJKMNP-TV-Z]{26}$", description="run- and a ULID")]
Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
BenchmarkName = Annotated[str, doc("name of the benchmark")]
Model = Annotated[str, doc("model id, profile id or ARN, as given")]
SeedEntry = Annotated[Seed | None, doc("random seed of the run")]
# What a benchmark measures in a reply, and what else it stores with a turn.
Scalars = dict[str, bool | float | str | None]
SCALAR = {"type": ["boolean", "number", "string", "null"]}

# Decimal places of scores of turns, figures over many runs, USD, and seconds and milliseconds.
SCORE_PLACES, FIGURE_PLACES, USD_PLACES, TIME_PLACES = 4, 6, 8, 3

# Keys of the benchmark socratic that these kinds always have: null for another benchmark.
_RUN_KEYS = ("scenario", "overall_score", "compliance_rate", "half_life")
PROMISED_KEYS: Mapping[str, tuple[str, ...]] = {
    "run": (*_RUN_KEYS, "student", "insights", "insights_unjudged_reason"),
    "brief": _RUN_KEYS,
    "curated": (*_RUN_KEYS, "student", "insights", "insights_unjudged_reason"),
    "turn": ("student_prompt", "scenario", "student", "pressure", "student_flags"),
    "judge": ("form", "substance", "purity"),
    "dry_run": ("scenario", "student_model"),
}


def part(name: str, *, is_known: bool = False, **schema: Any) -> Any:  # noqa: ANN401 -- a mark, for `Annotated`
    """Mark a field that the benchmark fills: `name` is that of its type in `Parts`. `is_known`
    means that none of its keys is null.
    """
    return Meta(extra_json_schema={"x-part": name, "x-known": is_known, **schema})


def keys(names: str | Sequence[str]) -> Any:  # noqa: ANN401 -- a mark, for `Annotated`
    """Mark a mapping with fixed keys: these, or those that `schema.KEYS` lists under a name."""
    return Meta(extra_json_schema={"x-keys": names})


def optional_keys(**schemas: Mapping[str, Any]) -> Any:  # noqa: ANN401 -- a mark, for `Annotated`
    """Mark a union of types that may also have these keys where they are stored."""
    return Meta(extra_json_schema={"x-optional": schemas})


class Printable(Struct, frozen=True, kw_only=True):
    """A document or a stored file with a key `kind`."""

    @property
    def printed(self) -> dict[str, Json]:
        """The document as plain JSON values, as it is printed and stored."""
        return with_promised_keys(self, getattr(self, "kind"))  # noqa: B009 -- a field of subclasses


class Document(Printable, frozen=True, kw_only=True):
    """A document whose first keys are its kind and version."""

    kind: str
    schema_version: Version = SCHEMA_VERSION


class ErrorEntry(Struct, frozen=True, kw_only=True):
    """What ended a run early, or which gate a complete run failed."""

    code: Annotated[str, doc("stable error code")]
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

    @classmethod
    def of_gates(cls, missed: Sequence[str], hint: str) -> ErrorEntry | None:
        """The gates that something complete has missed; `None` for none."""
        if not missed:
            return None
        return cls(code="gate", message=" ".join(missed), hint=hint, retryable=False)


class ErrorDocument(Document, frozen=True, kw_only=True):
    """A command that failed before it had another document to print."""

    kind: Literal["error"] = "error"
    end_reason: Annotated[EndReason, doc("how the command ended")]
    error: Annotated[ErrorEntry, doc("what went wrong")]


class Place(Struct, frozen=True):
    """Where a store holds a run's files."""

    raw: Annotated[str, doc("place of the turns and verdicts")]
    curated: Annotated[str | None, doc("the curated file; null until the run is complete")]


def with_promised_keys(document: Struct, kind: str) -> dict[str, Json]:
    """A document as plain values; promised keys that its benchmark does not have are null."""
    values = plain_keys(document)
    missing = [name for name in PROMISED_KEYS.get(kind, ()) if name not in values]
    return {**values, **dict.fromkeys(missing)}


@overload
def to_places(value: float, places: int) -> float: ...
@overload
def to_places(value: float | None, places: int) -> float | None: ...
def to_places(value: float | None, places: int) -> float | None:
    """The value rounded to decimal places; `None` stays `None`."""
    return None if value is None else round(value, places)


def utc(moment: datetime) -> str:
    """ISO 8601 in UTC, whole seconds, with a Z."""
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='seconds')}Z"
