"""What a benchmark adds to documents: types whose keys stand beside those of the core."""

from collections.abc import Mapping
from typing import Any, Self

from msgspec import Struct

from socratic_bench.types import ROLES, Json


class Part(Struct, frozen=True, kw_only=True):
    """Keys of a benchmark's own. Each has a default, which stands where there is nothing to say."""

    @classmethod
    def of(cls, source: Any) -> Self:  # noqa: ANN401 -- `Parts` says of each part what it is made of
        """The part filled from its source."""
        del source
        return cls()


class Parts(Struct, frozen=True, kw_only=True):
    """A benchmark's part of the documents: a type for each place where it adds keys.

    Attributes:
        actors: names under which calls are counted, the model under test first.
        metrics: `metrics` of a run, from what the benchmark has summed up.
        headline: beside the core's keys of a run and in its short form, from the same.
        run: beside the core's keys of a run, from its `RunResult`.
        thresholds: beside the core's thresholds, from the `RunConfig`.
        scores: beside a turn's `scores`, from the same mapping, empty without a verdict.
        turn: beside the core's keys of a turn in the run's document, from the `Turn`.
        turn_file: beside the core's keys of a turn's file, from the `Turn`.
    """

    actors: tuple[str, ...] = ROLES
    metrics: type[Part] = Part
    headline: type[Part] = Part
    run: type[Part] = Part
    thresholds: type[Part] = Part
    scores: type[Part] = Part
    turn: type[Part] = Part
    turn_file: type[Part] = Part


def plain(value: object) -> Json:
    """A document, or a value in one, as plain JSON values.

    A field whose name in documents begins with "*" is no key: its own keys stand in its place.
    """
    if isinstance(value, Struct):
        return plain_keys(value)
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    known: Json = value  # type: ignore[assignment]
    return known


def plain_keys(document: Struct) -> dict[str, Json]:
    """The keys of a document, each with its plain value; see `plain`."""
    found: dict[str, Json] = {}
    names = zip(document.__struct_fields__, document.__struct_encode_fields__, strict=True)
    for name, key in names:
        value = plain(getattr(document, name))
        if key.startswith("*") and isinstance(value, dict):
            found.update(value)
        else:
            found[key] = value
    return found
