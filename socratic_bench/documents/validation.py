"""What `socratic-runner validate` prints: what is wrong with files, each by itself and together."""

from typing import Annotated, Literal

from msgspec import Struct

from socratic_bench.documents.scalars import Count
from socratic_bench.documents.schemas import Document
from socratic_bench.types import doc


class FileEntry(Struct, frozen=True, kw_only=True):
    """What was found in one file."""

    file: Annotated[str, doc("path of the file, as it was given")]
    file_kind: Annotated[
        str,
        doc(
            "what it was read as: plan, prompts, prices, or what the benchmark calls "
            "a file of its own"
        ),
    ]
    ok: Annotated[bool, doc("whether there is nothing to mend in it")]
    problems: Annotated[list[str], doc("each with its place in the file and reason")]


class ValidationDocument(Document, frozen=True, kw_only=True):
    """What is wrong with files, found without a call."""

    kind: Literal["validation"] = "validation"
    ok: Annotated[bool, doc("whether there is nothing to mend")]
    n_problems: Annotated[Count, doc("problems in all")]
    files: Annotated[list[FileEntry], doc("what was found in each")]
    problems: Annotated[list[str], doc("what no single file is to blame for")]
