"""What `socratic-runner label` prints once a person has stopped labelling."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from socratic_bench.documents.scalars import SCHEMA_VERSION, Count, Version


class LabellingDocument(Struct, frozen=True, kw_only=True):
    """How far labelling has come."""

    kind: Literal["labelling"] = "labelling"
    schema_version: Version = SCHEMA_VERSION
    file: Annotated[str, Meta(description="where the labels are")]
    labeller: Annotated[str, Meta(description="who labelled")]
    rubric: Annotated[str, Meta(description="by which edition")]
    n_runs: Annotated[Count, Meta(description="runs that turns were drawn from")]
    n_turns: Annotated[Count, Meta(description="turns that could be drawn")]
    n_drawn: Annotated[Count, Meta(description="turns that were drawn")]
    n_labelled: Annotated[Count, Meta(description="turns of which every question is answered")]
