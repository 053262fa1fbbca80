"""Numbers and words of documents with their bounds, and marks for the schemas made of the types."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, overload

from msgspec import Meta

from socratic_bench.settings import MAX_SEED, MOST_TURNS
from socratic_bench.types import doc

Version = Annotated[
    Literal[1], doc("of the form of documents; a key that goes or changes raises it")
]
SCHEMA_VERSION: Version = 1
Count = Annotated[int, Meta(ge=0)]
Turns = Annotated[int, Meta(ge=0, le=MOST_TURNS)]
Seed = Annotated[int, Meta(ge=0, le=MAX_SEED)]
# At least 0: points, milliseconds, seconds, USD, tokens per second; the field's name has the unit.
Amount = Annotated[float, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]
Timestamp = Annotated[
    str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$", description="UTC, to the second")
]
RunId = Annotated[str, Meta(pattern="^run-[0-9A-HJKMNP-TV-Z]{26}$", description="run- and a ULID")]
Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
BenchmarkName = Annotated[str, doc("name of the benchmark")]
Model = Annotated[str, doc("model id, profile id or ARN, as asked for")]
SeedEntry = Annotated[Seed | None, doc("fixes everything left to chance")]
# What a benchmark reads off a reply, and what else it keeps with a turn.
Scalars = dict[str, bool | float | str | None]

# To how many decimal places documents tell scores of turns, figures of many runs, money, and times
# in seconds and milliseconds.
SCORE_PLACES, FIGURE_PLACES, USD_PLACES, TIME_PLACES = 4, 6, 8, 3

SCALAR = {"type": ["boolean", "number", "string", "null"]}


def part(name: str, *, is_known: bool = False, **schema: Any) -> Any:  # noqa: ANN401 -- a mark, for `Annotated`
    """Marks a field that the benchmark fills: `name` is that of its type in `Parts`. If `is_known`,
    none of its keys is null.
    """
    return Meta(extra_json_schema={"x-part": name, "x-known": is_known, **schema})


def keys(which: str | Sequence[str]) -> Any:  # noqa: ANN401 -- a mark, for `Annotated`
    """Marks a mapping that has certain keys: these, or those of actors by a name of
    `generation.KEYS`.
    """
    return Meta(extra_json_schema={"x-keys": which})


def optional_keys(**schemas: Mapping[str, Any]) -> Any:  # noqa: ANN401 -- a mark, for `Annotated`
    """Marks a union of types, any of which may also have these keys where it is stored."""
    return Meta(extra_json_schema={"x-optional": schemas})


@overload
def to_places(value: float, places: int) -> float: ...
@overload
def to_places(value: float | None, places: int) -> float | None: ...
def to_places(value: float | None, places: int) -> float | None:
    """Rounded; what is not known stays so."""
    return None if value is None else round(value, places)


def utc(moment: datetime) -> str:
    """ISO 8601 in UTC, whole seconds, with a Z."""
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='seconds')}Z"
