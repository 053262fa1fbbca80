"""What `socratic-runner mrbench` prints once annotations have become labels."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from socratic_bench.documents.scalars import SCHEMA_VERSION, Count, Version


class Converted(Struct, frozen=True, kw_only=True):
    """What was converted."""

    kind: Literal["converted_labels"] = "converted_labels"
    schema_version: Version = SCHEMA_VERSION
    file: Annotated[str, Meta(description="where the labels are")]
    n: Annotated[Count, Meta(description="labels, each of one reply")]
    n_dialogues: Annotated[Count, Meta(description="conversations that they are of")]
    authors: Annotated[list[str], Meta(description="who gave the replies")]
    scores: Annotated[dict[str, Count], Meta(description="labels with a score, by dimension")]
