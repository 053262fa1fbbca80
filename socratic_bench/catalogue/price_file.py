"""A user's file of prices (`--prices`): its type, and reading it with every mistake reported."""

import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal, get_args, get_origin

from msgspec import UNSET, Meta, Struct, UnsetType, ValidationError, defstruct, field
from msgspec.structs import fields

from socratic_bench.catalogue.prices import (
    OPTIMIZED,
    PRICED,
    PriceSource,
    PriceTable,
    builtin_prices,
)
from socratic_bench.concurrency import convert
from socratic_bench.errors import Problem, UsageError
from socratic_bench.types import Json, doc

MAX_USD = 1_000_000
DATE = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
Price = Annotated[float, Meta(ge=0, le=MAX_USD)]


class _CacheRates(Struct, frozen=True, kw_only=True):
    cache_read: Annotated[
        Price | UnsetType,
        doc("USD per million tokens read from a cache; without it, reading has no known price"),
    ] = UNSET
    cache_write: Annotated[
        Price | UnsetType,
        doc("USD per million tokens written to a cache; without it, the price of input"),
    ] = UNSET


Input = Annotated[Price, doc("USD per million input tokens that are not cached")]
Output = Annotated[Price, doc("USD per million output tokens")]


class StepRow(_CacheRates, frozen=True, kw_only=True):
    """Other rates for calls of more than so many input tokens."""

    input_tokens: Annotated[
        int, Meta(ge=1, description="input tokens of a call over which these rates hold")
    ]
    input: Input | UnsetType = UNSET
    output: Output | UnsetType = UNSET


class RatesRow(_CacheRates, frozen=True, kw_only=True):
    """USD per million tokens."""

    input: Input
    output: Output
    over: Annotated[StepRow | UnsetType, doc("other rates for calls with long input")] = UNSET


_RATES_MEANINGS = dict.fromkeys(PRICED, "of the tier {}") | {
    OPTIMIZED: "of calls with optimized latency, whatever their tier"
}
ModelRow = defstruct(
    "ModelRow",
    [
        *(
            (name, Annotated[RatesRow | UnsetType, Meta(description=text.format(name))], UNSET)
            for name, text in _RATES_MEANINGS.items()
        ),
        ("stand_in", Annotated[bool, doc("made up, for models that nobody bills")], False),
    ],
    namespace={"__doc__": "Rates by the service tier that served a call."},
    module=__name__,
    frozen=True,
    kw_only=True,
)


# Rates of one tier at least.
PricesOfModel = Annotated[
    ModelRow,  # type: ignore[valid-type]
    Meta(extra_json_schema={"anyOf": [{"required": [tier]} for tier in PRICED]}),
]


class SourceRow(Struct, frozen=True, kw_only=True):
    """Where the prices come from."""

    name: Annotated[str | None, doc("who says them; null: the file's name")] = None
    version: Annotated[str | None, doc("its version; null: not said")] = None
    date: Annotated[Annotated[str, Meta(pattern=DATE)] | None, doc("the day they were taken")] = (
        None
    )


class PriceFile(Struct, frozen=True, kw_only=True):
    """Prices of models, for --prices."""

    kind: Literal["prices"] = "prices"
    schema_version: Annotated[Literal[1], doc("of the form of price files")] = 1
    source: Annotated[SourceRow, doc("where the prices come from")] = field(
        default_factory=SourceRow
    )
    models: Annotated[
        dict[str, PricesOfModel],
        Meta(
            min_length=1,
            description="by model id, profile id or ARN, perhaps with a region and a slash before "
            "it or * at its end",
        ),
    ]


def load_prices(content: bytes, name: str) -> PriceTable:
    """A user's price file over the built-in table. Raises `UsageError` with all its mistakes."""
    try:
        prices = json.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise UsageError([_problem(name, "not JSON, since it is not UTF-8 text.")]) from error
    except (ValueError, RecursionError) as error:
        raise UsageError([_problem(name, f"not JSON ({error}).")]) from error
    if problems := [*price_problems(prices)]:
        raise UsageError([_problem(name, problem) for problem in problems])
    source = prices.get("source", {})
    return PriceTable(
        models=prices["models"],
        source=PriceSource(source.get("name") or name, source.get("version"), source.get("date")),
        below=builtin_prices(),
    )


def _problem(name: str, problem: str) -> Problem:
    return Problem("{problem}", (("name", name), ("problem", problem)), "{prices_file} {name}")


def price_problems(prices: Json) -> Iterator[str]:
    """The mistakes in the parsed file; none if it can be used. Its schema is `prices`."""
    if not isinstance(prices, dict):
        yield "it must be a JSON object."
        return
    models = prices.get("models")
    rows = models if isinstance(models, dict) else {}
    yield from _mistakes("", {**prices, "models": _ANY_ROW if rows else models}, PriceFile)
    for name, row in rows.items():
        yield from row_problems(f"models[{name!r}]", row)


def row_problems(where: str, row: Json) -> Iterator[str]:
    """The mistakes in the prices of one model, which stand at `where`."""
    yield from _mistakes(where, row, ModelRow)
    if isinstance(row, dict) and not any(tier in row for tier in PRICED):
        yield f"{where} has no tier: give {', '.join(PRICED)}."


_ANY_ROW: Json = {"any": {"default": {"input": 0, "output": 0}}}


def _mistakes(where: str, value: Json, kind: type[Struct]) -> Iterator[str]:
    """Every mistake in an object, field by field: msgspec stops at the first one."""
    if not isinstance(value, dict):
        yield f"{where} must be an object."
        return
    lead = f"{where}." if where else ""
    for name in [name for name in value if name not in kind.__struct_fields__]:
        yield f"{lead}{name} is not known; available: {', '.join(kind.__struct_fields__)}."
    for info in fields(kind):
        if info.name not in value:
            if info.required:
                yield f"{lead}{info.name} is missing."
        elif inner := _struct_in(info.type):
            yield from _mistakes(f"{lead}{info.name}", value[info.name], inner)
        else:
            try:
                convert(value[info.name], info.type)
            except (ValidationError, OverflowError) as error:  # a number that no float can be
                yield f"{lead}{info.name}: {str(error).partition(' - at')[0]}."


def _struct_in(kind: Any) -> type[Struct] | None:  # noqa: ANN401 -- any type of a field
    """The struct that a field is, or may be."""
    if isinstance(kind, type):
        return kind if issubclass(kind, Struct) else None
    if get_origin(kind) is dict:
        return None
    return next(filter(None, map(_struct_in, get_args(kind))), None)
