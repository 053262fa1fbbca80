"""What `socratic-runner label` prints once a person has stopped labelling."""

from typing import Annotated, Literal

from msgspec import Struct

from socratic_bench.documents.scalars import SCHEMA_VERSION, Count, Version
from socratic_bench.types import doc


class LabellingDocument(Struct, frozen=True, kw_only=True):
    """How far labelling has come."""

    kind: Literal["labelling"] = "labelling"
    schema_version: Version = SCHEMA_VERSION
    file: Annotated[str, doc("where the labels are")]
    labeller: Annotated[str, doc("who labelled")]
    rubric: Annotated[str, doc("by which edition")]
    n_runs: Annotated[Count, doc("runs that turns were drawn from")]
    n_turns: Annotated[Count, doc("turns that could be drawn")]
    n_drawn: Annotated[Count, doc("turns that were drawn")]
    n_labelled: Annotated[Count, doc("turns of which every question is answered")]
