"""Finds a model's prices by its id: a user's own file first, then the table in the package."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache, cached_property
from typing import Annotated, Any

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.catalogue.models import price_rows, price_source
from socratic_bench.catalogue.rates import PRICES, ModelPrices, Rates, Step
from socratic_bench.errors import Problem, UsageError
from socratic_bench.types import doc

_ARN = re.compile(
    r"arn:[\w-]+:bedrock:(?P<region>[a-z0-9-]*):\d*:(?P<kind>[\w-]+)/(?P<id>.+)", re.DOTALL
)
# ARNs of other kinds, such as application profiles, do not contain the model's id.
_NAMED_KINDS = ("foundation-model", "inference-profile")


class PriceSource(Struct, frozen=True):
    """Where prices come from: a name, its version, and the day they were taken."""

    name: Annotated[str, doc("who says them: a table, a page, a file")]
    version: Annotated[str | None, doc("its version; null: not said")]
    date: Annotated[str | None, doc("the day they were taken")]


class PriceTable(Struct, frozen=True, dict=True):
    """Rows of a price file by model id. A key may have a region and a slash before it, or end with
    `*`.
    """

    models: Mapping[str, Mapping[str, Any]]
    source: PriceSource
    below: PriceTable | None = None

    def of(self, model_id: str, region: str | None = None) -> ModelPrices | None:
        """The prices of a model id, profile id or ARN; `None` if they are not known.

        A price for the region counts before one for all regions, and a whole name before one that
        ends with `*`. No price is taken over from the same model in another region's profile.
        """
        names = _names(model_id, region)
        found = next((self.models[name] for name in names if name in self.models), None)
        found = found or self._by_pattern(model_id)
        if found is None:
            return self.below.of(model_id, region) if self.below else None
        return _model(found)

    @cached_property
    def _patterns(self) -> tuple[str, ...]:
        return tuple(key for key in self.models if key.endswith("*"))

    def _by_pattern(self, model_id: str) -> Mapping[str, Any] | None:
        keys = [key for key in self._patterns if model_id.startswith(key[:-1])]
        return self.models[max(keys, key=len)] if keys else None


def _names(model_id: str, region: str | None) -> tuple[str, ...]:
    """The keys that may have a model's prices, the most specific first."""
    arn = _ARN.fullmatch(model_id)
    if arn is None:
        return (f"{region}/{model_id}", model_id)
    if arn["kind"] not in _NAMED_KINDS:
        return (model_id,)
    return (model_id, f"{arn['region'] or region}/{arn['id']}", arn["id"])


@cache
def builtin_prices() -> PriceTable:
    """The prices in the package's table of models."""
    return PriceTable(models=price_rows(), source=PriceSource(**price_source()))


def load_prices(content: bytes, name: str) -> PriceTable:
    """A user's price file over the built-in table. Raises `UsageError` with all its mistakes."""
    from socratic_bench.catalogue.reading import price_problems

    found = _parsed(content, name)
    if problems := [*price_problems(found)]:
        raise UsageError([_mistake(name, problem) for problem in problems])
    source = found.get("source", {})
    return PriceTable(
        models=found["models"],
        source=PriceSource(source.get("name") or name, source.get("version"), source.get("date")),
        below=builtin_prices(),
    )


def _parsed(content: bytes, name: str) -> Any:  # noqa: ANN401 -- whatever a user has written
    try:
        return json.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise UsageError([_mistake(name, "no JSON, since it is no UTF-8 text.")]) from error
    except (ValueError, RecursionError) as error:
        raise UsageError([_mistake(name, f"no JSON ({error}).")]) from error


def _mistake(name: str, problem: str) -> Problem:
    return Problem("{problem}", (("name", name), ("problem", problem)), "{prices_file} {name}")


def _model(row: Mapping[str, Any]) -> ModelPrices:
    tiers = {tier: _rates(rates) for tier, rates in row.items() if isinstance(rates, dict)}
    return ModelPrices(tiers, stand_in=row.get("stand_in", False))


def _rates(row: Mapping[str, Any]) -> Rates:
    rates = Rates(**{kind: row[kind] for kind in PRICES if kind in row})
    step = row.get("over")
    if not step:
        return rates
    # Its prices of the cache are not taken over.
    long = _rates({"input": rates.input, "output": rates.output, **step})
    return replace(rates, over=Step(input_tokens=step["input_tokens"], rates=long))
