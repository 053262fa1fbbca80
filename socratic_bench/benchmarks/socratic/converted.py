"""What `socratic-runner mrbench` prints once annotations have become labels."""

from typing import Annotated, Literal

from msgspec import Struct

from socratic_bench.documents.scalars import SCHEMA_VERSION, Count, Version
from socratic_bench.types import doc


class Converted(Struct, frozen=True, kw_only=True):
    """What was converted."""

    kind: Literal["converted_labels"] = "converted_labels"
    schema_version: Version = SCHEMA_VERSION
    file: Annotated[str, doc("where the labels are")]
    n: Annotated[Count, doc("labels, each of one reply")]
    n_dialogues: Annotated[Count, doc("conversations that they are of")]
    authors: Annotated[list[str], doc("who gave the replies")]
    scores: Annotated[dict[str, Count], doc("labels with a score, by dimension")]
