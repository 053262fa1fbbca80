"""What `socratic-runner show` prints: the figures of its picture of one run."""

from typing import Annotated, Literal

from msgspec import Struct

from socratic_bench.documents.scalars import Amount, BenchmarkName, Count, Model
from socratic_bench.documents.schemas import Document
from socratic_bench.types import doc


class ShownTurn(Struct, frozen=True, kw_only=True):
    """One turn, as it was drawn."""

    turn: Annotated[Count, doc("index of the turn, from 0")]
    score: Annotated[Amount | None, doc("points; null: not judged")]
    result: Annotated[
        str | None, doc("what became of it where no judge is asked; null: its score tells")
    ]
    falls_short: Annotated[
        bool | None, doc("whether it is under threshold, or its result is not right; null: unknown")
    ]
    unjudged_reason: Annotated[
        str | None, doc("why a judge gave no verdict; null: it did, or was not asked")
    ]
    events: Annotated[list[str], doc("names of what the judge saw in the reply")]


class ShownDocument(Document, frozen=True, kw_only=True):
    """One complete run."""

    kind: Literal["shown"] = "shown"
    run_id: Annotated[str, doc("id of the run")]
    benchmark: BenchmarkName
    model: Model
    place: Annotated[str, doc("the file that it was read from")]
    judging: Annotated[str | None, doc("whose verdicts it shows (--judging); null: the first ones")]
    metric: Annotated[str, doc("name of the benchmark's primary metric")]
    value: Annotated[float | None, doc("the run's; null: not known")]
    threshold: Annotated[Amount | None, doc("points under which a turn falls short; null: none")]
    n_turns: Annotated[Count, doc("turns that the model under test played")]
    turns: Annotated[list[ShownTurn], doc("all of them, whatever --turns leaves out")]
