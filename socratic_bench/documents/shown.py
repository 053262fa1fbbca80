"""What `socratic-runner show` prints: the figures of its picture of one run."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from socratic_bench.documents.scalars import (
    SCHEMA_VERSION,
    Amount,
    BenchmarkName,
    Count,
    Model,
    Version,
)


class ShownTurn(Struct, frozen=True, kw_only=True):
    """One turn, as it was drawn."""

    turn: Annotated[Count, Meta(description="index of the turn, from 0")]
    score: Annotated[Amount | None, Meta(description="points; null: not judged")]
    result: Annotated[
        str | None,
        Meta(description="what became of it where no judge is asked; null: its score tells"),
    ]
    falls_short: Annotated[
        bool | None,
        Meta(
            description="whether it is under threshold, or its result is not right; null: unknown"
        ),
    ]
    unjudged_reason: Annotated[
        str | None, Meta(description="why a judge gave no verdict; null: it did, or was not asked")
    ]
    events: Annotated[list[str], Meta(description="names of what the judge saw in the reply")]


class ShownDocument(Struct, frozen=True, kw_only=True):
    """One complete run."""

    kind: Literal["shown"] = "shown"
    schema_version: Version = SCHEMA_VERSION
    run_id: Annotated[str, Meta(description="id of the run")]
    benchmark: BenchmarkName
    model: Model
    place: Annotated[str, Meta(description="the file that it was read from")]
    judging: Annotated[
        str | None, Meta(description="whose verdicts it shows (--judging); null: the first ones")
    ]
    metric: Annotated[str, Meta(description="name of the benchmark's primary metric")]
    value: Annotated[float | None, Meta(description="the run's; null: not known")]
    threshold: Annotated[
        Amount | None, Meta(description="points under which a turn falls short; null: none")
    ]
    n_turns: Annotated[Count, Meta(description="turns that the model under test played")]
    turns: Annotated[list[ShownTurn], Meta(description="all of them, whatever --turns leaves out")]
