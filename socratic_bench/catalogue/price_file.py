"""A user's file of prices (`--prices`): its type, and reading it with every mistake reported."""

import json
import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from msgspec import NODEFAULT, UNSET, Meta, Struct, UnsetType, defstruct, field

from socratic_bench.catalogue.prices import (
    OPTIMIZED,
    PRICED,
    PRICES,
    PriceSource,
    PriceTable,
    builtin_prices,
)
from socratic_bench.errors import Problem, UsageError
from socratic_bench.types import Json, doc, is_text

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
    prices = _parse_json(content, name)
    if problems := [*price_problems(prices)]:
        raise UsageError([_problem(name, problem) for problem in problems])
    source = prices.get("source", {})
    return PriceTable(
        models=prices["models"],
        source=PriceSource(source.get("name") or name, source.get("version"), source.get("date")),
        below=builtin_prices(),
    )


def _parse_json(content: bytes, name: str) -> Any:  # noqa: ANN401 -- whatever a user has written
    try:
        return json.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise UsageError([_problem(name, "no JSON, since it is no UTF-8 text.")]) from error
    except (ValueError, RecursionError) as error:
        raise UsageError([_problem(name, f"no JSON ({error}).")]) from error


def _problem(name: str, problem: str) -> Problem:
    return Problem("{problem}", (("name", name), ("problem", problem)), "{prices_file} {name}")


def price_problems(prices: Json) -> Iterator[str]:
    """The mistakes in the parsed file; none if it can be used. Its schema is `prices`."""
    if not isinstance(prices, dict):
        yield "it must be a JSON object."
        return
    yield from _unknown_keys("", prices, PriceFile.__struct_fields__)
    if prices.get("kind", "prices") != "prices":
        yield f"kind is {prices['kind']!r}, but must be 'prices'."
    version = prices.get("schema_version", 1)
    if version != 1 or isinstance(version, bool):
        yield f"schema_version is {version!r}, but must be 1."
    yield from _source_problems(prices.get("source", {}))
    models = prices.get("models")
    if not isinstance(models, dict) or not models:
        yield "models must be an object with an entry for each model id."
        return
    for name, row in models.items():
        if not is_text(name):
            yield f"models has a name that is no UTF-8 text: {name!r}."
        yield from row_problems(f"models[{name!r}]", row)


def _source_problems(source: Json) -> Iterator[str]:
    if not isinstance(source, dict):
        yield "source must be an object."
        return
    yield from _unknown_keys("source.", source, SourceRow.__struct_fields__)
    for name in SourceRow.__struct_fields__:
        value = source.get(name)
        if not isinstance(value, str | None):
            yield f"source.{name} must be a text."
        elif value is not None and not is_text(value):
            yield f"source.{name} is no UTF-8 text: {value!r}."
    date = source.get("date")
    if isinstance(date, str) and not re.fullmatch(DATE, date):
        yield f"source.date is {date!r}, but must be of the form 2026-01-31."


def row_problems(where: str, row: Json) -> Iterator[str]:
    """The mistakes in the prices of one model, which stand at `where`."""
    if not isinstance(row, dict):
        yield f"{where} must be an object of service tiers."
        return
    yield from _unknown_keys(f"{where}.", row, ModelRow.__struct_fields__)
    if not isinstance(row.get("stand_in", False), bool):
        yield f"{where}.stand_in must be true or false."
    if not any(tier in row for tier in PRICED):
        yield f"{where} has no tier: give {', '.join(PRICED)}."
    for tier in PRICED:
        if tier in row:
            yield from _rates_problems(f"{where}.{tier}", row[tier], RatesRow)


def _rates_problems(where: str, rates: Json, row: type[RatesRow | StepRow]) -> Iterator[str]:
    if not isinstance(rates, dict):
        yield f"{where} must be an object."
        return
    yield from _unknown_keys(f"{where}.", rates, row.__struct_fields__)
    yield from _price_problems(where, rates, row)
    if row is StepRow:
        tokens = rates.get("input_tokens")
        if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 1:
            yield f"{where}.input_tokens must be a whole number from 1."
    elif "over" in rates:
        yield from _rates_problems(f"{where}.over", rates["over"], StepRow)


def _price_problems(
    where: str, rates: dict[str, Json], row: type[RatesRow | StepRow]
) -> Iterator[str]:
    defaults = dict(zip(row.__struct_fields__, row.__struct_defaults__, strict=True))
    for kind in PRICES:
        if kind in rates and not _is_valid_price(rates[kind]):
            yield f"{where}.{kind} must be a number from 0 to {MAX_USD}, in USD per million tokens."
        elif kind not in rates and defaults[kind] is NODEFAULT:
            yield f"{where}.{kind} is missing."


def _is_valid_price(value: Json) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    # A whole number may have more digits than fit into a float; NaN is within no bounds.
    return 0 <= value <= MAX_USD


def _unknown_keys(where: str, row: dict[str, Json], names: tuple[str, ...]) -> Iterator[str]:
    for name in row:
        if name not in names:
            yield f"{where}{name} is not known: there is {', '.join(names)}."
