"""What commands other than `run` print of themselves."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from socratic_bench.documents.scalars import SCHEMA_VERSION, Version
from socratic_bench.pricing.rates import Rates
from socratic_bench.pricing.table import PriceSource
from socratic_bench.providers.bedrock.capabilities import Capabilities


class EmulatorDocument(Struct, frozen=True, kw_only=True):
    """Where the embedded endpoint listens."""

    kind: Literal["emulator"] = "emulator"
    schema_version: Version = SCHEMA_VERSION
    endpoint_url: Annotated[str, Meta(description="base URL")]
    model_ids: Annotated[list[str], Meta(description="the models that it simulates")]


class ModelEntry(Struct, frozen=True, kw_only=True):
    """What is known of a model without a call."""

    model_id: Annotated[str, Meta(description="Bedrock model id, profile id or ARN")]
    allowed: Annotated[bool, Meta(description="whether it may be tested as things are set")]
    embedded: Annotated[bool, Meta(description="whether --offline plays it, with no account")]
    family: Annotated[
        str | None, Meta(description="null if it is not known, and taken for a modern one")
    ]
    capabilities: Annotated[Capabilities, Meta(description="what it takes")]
    prices: Annotated[
        dict[str, Rates] | None,
        Meta(description="USD per million tokens, by service tier; null if they are not known"),
    ]


class ModelList(Struct, frozen=True, kw_only=True):
    """The models that may be tested."""

    kind: Literal["models"] = "models"
    schema_version: Version = SCHEMA_VERSION
    region: Annotated[str | None, Meta(description="the region that prices are for")]
    price_source: Annotated[PriceSource, Meta(description="where the prices come from")]
    models: Annotated[list[ModelEntry], Meta(description="each with what is known of it")]
