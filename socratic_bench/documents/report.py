"""What `socratic-runner report` prints: what it wrote of which runs."""

from typing import Annotated, Literal

from msgspec import Struct

from socratic_bench.documents.scalars import BenchmarkName, Count, Model
from socratic_bench.documents.schemas import Document
from socratic_bench.types import doc


class ReportFile(Struct, frozen=True, kw_only=True):
    """One file of a report."""

    form: Annotated[
        Literal["html", "markdown", "csv", "parquet", "png", "svg"],
        doc("what it is, by the flag that asked for it"),
    ]
    path: Annotated[str, doc("where it was written, as it was asked for")]
    bytes: Annotated[Count, doc("its size")]


class ReportDocument(Document, frozen=True, kw_only=True):
    """Which runs were reported, and in which files."""

    kind: Literal["report"] = "report"
    benchmark: BenchmarkName
    models: Annotated[list[Model], doc("the best first, as in the report")]
    n_runs: Annotated[Count, doc("complete runs")]
    n_failed: Annotated[Count, doc("cells of sweeps that could not be played to their end")]
    sentences: Annotated[
        list[str],
        doc(
            "what the report says first, made of its figures alone; empty where only "
            "rows were written"
        ),
    ]
    sections: Annotated[
        list[str], doc("names of its sections, in their order; empty like sentences")
    ]
    left_out: Annotated[
        list[str], doc("ids of runs whose transcripts were left out to keep to --max-size")
    ]
    files: Annotated[list[ReportFile], doc("what was written")]
