"""Where the files of a run lie."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from socratic_bench.types import doc


class Place(Struct, frozen=True):
    """Where a store holds a run's artifacts."""

    raw: Annotated[str, doc("where turns and verdicts lie")]
    curated: Annotated[str | None, doc("the curated file; null as long as the run is not complete")]
