"""What commands other than `run` print of themselves."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from socratic_bench.documents.scalars import SCHEMA_VERSION, Version


class EmulatorDocument(Struct, frozen=True, kw_only=True):
    """Where the embedded endpoint listens."""

    kind: Literal["emulator"] = "emulator"
    schema_version: Version = SCHEMA_VERSION
    endpoint_url: Annotated[str, Meta(description="base URL")]
    model_ids: Annotated[list[str], Meta(description="the models that it simulates")]
