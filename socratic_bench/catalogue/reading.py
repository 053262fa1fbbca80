"""Everything that can be wrong with a price file, each mistake in a sentence."""

import re
from collections.abc import Iterator

from msgspec import NODEFAULT

from socratic_bench.catalogue.file import (
    DATE,
    MAX_USD,
    ModelRow,
    PriceFile,
    RatesRow,
    SourceRow,
    StepRow,
)
from socratic_bench.catalogue.rates import PRICED, PRICES
from socratic_bench.types import Json, is_text


def price_problems(found: Json) -> Iterator[str]:
    """The mistakes in the parsed file; none if it can be used. Its schema is `prices`."""
    if not isinstance(found, dict):
        yield "it must be a JSON object."
        return
    yield from _unknown("", found, PriceFile.__struct_fields__)
    if found.get("kind", "prices") != "prices":
        yield f"kind is {found['kind']!r}, but must be 'prices'."
    version = found.get("schema_version", 1)
    if version != 1 or isinstance(version, bool):
        yield f"schema_version is {version!r}, but must be 1."
    yield from _source(found.get("source", {}))
    models = found.get("models")
    if not isinstance(models, dict) or not models:
        yield "models must be an object with an entry for each model id."
        return
    for name, row in models.items():
        if not is_text(name):
            yield f"models has a name that is no UTF-8 text: {name!r}."
        yield from row_problems(f"models[{name!r}]", row)


def _source(source: Json) -> Iterator[str]:
    if not isinstance(source, dict):
        yield "source must be an object."
        return
    yield from _unknown("source.", source, SourceRow.__struct_fields__)
    for name in SourceRow.__struct_fields__:
        said = source.get(name)
        if not isinstance(said, str | None):
            yield f"source.{name} must be a text."
        elif said is not None and not is_text(said):
            yield f"source.{name} is no UTF-8 text: {said!r}."
    date = source.get("date")
    if isinstance(date, str) and not re.fullmatch(DATE, date):
        yield f"source.date is {date!r}, but must be of the form 2026-01-31."


def row_problems(where: str, row: Json) -> Iterator[str]:
    """The mistakes in the prices of one model, which stand at `where`."""
    if not isinstance(row, dict):
        yield f"{where} must be an object of service tiers."
        return
    yield from _unknown(f"{where}.", row, ModelRow.__struct_fields__)
    if not isinstance(row.get("stand_in", False), bool):
        yield f"{where}.stand_in must be true or false."
    if not any(tier in row for tier in PRICED):
        yield f"{where} has no tier: give {', '.join(PRICED)}."
    for tier in PRICED:
        if tier in row:
            yield from _rates(f"{where}.{tier}", row[tier], RatesRow)


def _rates(where: str, rates: Json, row: type[RatesRow | StepRow]) -> Iterator[str]:
    if not isinstance(rates, dict):
        yield f"{where} must be an object."
        return
    yield from _unknown(f"{where}.", rates, row.__struct_fields__)
    yield from _prices(where, rates, row)
    if row is StepRow:
        tokens = rates.get("input_tokens")
        if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 1:
            yield f"{where}.input_tokens must be a whole number from 1."
    elif "over" in rates:
        yield from _rates(f"{where}.over", rates["over"], StepRow)


def _prices(where: str, rates: dict[str, Json], row: type[RatesRow | StepRow]) -> Iterator[str]:
    defaults = dict(zip(row.__struct_fields__, row.__struct_defaults__, strict=True))
    for kind in PRICES:
        if kind in rates and not _is_price(rates[kind]):
            yield f"{where}.{kind} must be a number from 0 to {MAX_USD}, in USD per million tokens."
        elif kind not in rates and defaults[kind] is NODEFAULT:
            yield f"{where}.{kind} is missing."


def _is_price(value: Json) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    # A whole number may have more digits than fit into a float; NaN is within no bounds.
    return 0 <= value <= MAX_USD


def _unknown(where: str, found: dict[str, Json], known: tuple[str, ...]) -> Iterator[str]:
    for name in found:
        if name not in known:
            yield f"{where}{name} is not known: there is {', '.join(known)}."
