"""A file of prices for `--prices`, as a type; `reading.py` tells every mistake in one."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, defstruct, field

from socratic_bench.catalogue.rates import OPTIMIZED, PRICED
from socratic_bench.types import doc

MAX_USD = 1_000_000
DATE = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
Price = Annotated[float, Meta(ge=0, le=MAX_USD)]


class _Kinds(Struct, frozen=True, kw_only=True):
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


class StepRow(_Kinds, frozen=True, kw_only=True):
    """Other rates for calls of more than so many input tokens."""

    input_tokens: Annotated[
        int, Meta(ge=1, description="input tokens of a call over which these rates hold")
    ]
    input: Input | UnsetType = UNSET
    output: Output | UnsetType = UNSET


class RatesRow(_Kinds, frozen=True, kw_only=True):
    """USD per million tokens."""

    input: Input
    output: Output
    over: Annotated[StepRow | UnsetType, doc("other rates for calls with long input")] = UNSET


_OF_TIER = dict.fromkeys(PRICED, "of the tier {}") | {
    OPTIMIZED: "of calls with optimized latency, whatever their tier"
}
ModelRow = defstruct(
    "ModelRow",
    [
        *(
            (name, Annotated[RatesRow | UnsetType, Meta(description=text.format(name))], UNSET)
            for name, text in _OF_TIER.items()
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
