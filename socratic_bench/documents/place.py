"""Where the files of a run lie."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class Place(Struct, frozen=True):
    """Where a store holds a run's artifacts."""

    raw: Annotated[str, Meta(description="where turns and verdicts lie")]
    curated: Annotated[
        str | None,
        Meta(description="the curated file; null as long as the run is not complete"),
    ]
