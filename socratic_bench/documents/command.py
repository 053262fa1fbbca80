"""What commands other than `run` print of themselves."""

from typing import Annotated, Literal

from msgspec import Struct

from socratic_bench.catalogue.models import Capabilities
from socratic_bench.catalogue.prices import PriceSource, Rates
from socratic_bench.documents.schemas import Document
from socratic_bench.types import doc


class EmulatorDocument(Document, frozen=True, kw_only=True):
    """Where the embedded endpoint listens."""

    kind: Literal["emulator"] = "emulator"
    endpoint_url: Annotated[str, doc("base URL")]
    model_ids: Annotated[list[str], doc("the models that it simulates")]


class ModelEntry(Struct, frozen=True, kw_only=True):
    """What is known of a model without a call."""

    model_id: Annotated[str, doc("Bedrock model id, profile id or ARN")]
    allowed: Annotated[bool, doc("whether it may be tested as things are set")]
    embedded: Annotated[bool, doc("whether --offline plays it, with no account")]
    family: Annotated[str | None, doc("null if it is not known, and taken for a modern one")]
    capabilities: Annotated[Capabilities, doc("what it takes")]
    prices: Annotated[
        dict[str, Rates] | None,
        doc("USD per million tokens, by service tier; null if they are not known"),
    ]


class ModelList(Document, frozen=True, kw_only=True):
    """The models that may be tested."""

    kind: Literal["models"] = "models"
    region: Annotated[str | None, doc("the region that prices are for")]
    price_source: Annotated[PriceSource, doc("where the prices come from")]
    models: Annotated[list[ModelEntry], doc("each with what is known of it")]
