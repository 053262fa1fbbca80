"""What `socratic-runner report` prints: what it wrote of which runs."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from socratic_bench.documents.scalars import SCHEMA_VERSION, BenchmarkName, Count, Model, Version


class ReportFile(Struct, frozen=True, kw_only=True):
    """One file of a report."""

    form: Annotated[
        Literal["html", "markdown", "csv", "parquet", "png", "svg"],
        Meta(description="what it is, by the flag that asked for it"),
    ]
    path: Annotated[str, Meta(description="where it was written, as it was asked for")]
    bytes: Annotated[Count, Meta(description="its size")]


class ReportDocument(Struct, frozen=True, kw_only=True):
    """Which runs were reported, and in which files."""

    kind: Literal["report"] = "report"
    schema_version: Version = SCHEMA_VERSION
    benchmark: BenchmarkName
    models: Annotated[list[Model], Meta(description="the best first, as in the report")]
    n_runs: Annotated[Count, Meta(description="complete runs")]
    n_failed: Annotated[
        Count, Meta(description="cells of sweeps that could not be played to their end")
    ]
    sentences: Annotated[
        list[str],
        Meta(
            description="what the report says first, made of its figures alone; empty where only "
            "rows were written"
        ),
    ]
    sections: Annotated[
        list[str], Meta(description="names of its sections, in their order; empty like sentences")
    ]
    left_out: Annotated[
        list[str],
        Meta(description="ids of runs whose transcripts were left out to keep to --max-size"),
    ]
    files: Annotated[list[ReportFile], Meta(description="what was written")]
