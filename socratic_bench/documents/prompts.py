"""A line of a file of prompts, as a type; `sweeps/prompts.py` tells every mistake in one."""

from typing import Annotated

from msgspec import Meta, Struct

from socratic_bench.settings import MAX_TEXT_BYTES
from socratic_bench.types import doc

LONGEST_ID = 100


class PromptLine(Struct, frozen=True, kw_only=True):
    """A line of a file of prompts in JSONL: the opening words of a run."""

    prompt: Annotated[
        str, Meta(min_length=1, max_length=MAX_TEXT_BYTES, description="the opening words")
    ]
    id: Annotated[
        Annotated[str, Meta(min_length=1, max_length=LONGEST_ID)] | None,
        doc("a name of its own; no two lines have the same"),
    ] = None
