"""What `socratic-runner report` prints: what it wrote of which runs."""

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, Struct

from socratic_bench.documents.document import (
    Amount,
    BenchmarkName,
    Count,
    Document,
    Model,
    RunId,
    Share,
    Turns,
)
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


# Rows that `socratic-runner report` writes as tables: one per run, per turn and per verdict.
#
# Columns that only some benchmarks and rubrics have follow these: see `reporting.tables`.

Sample = Annotated[str, doc("what was played, by the benchmark's name of it")]
Turn = Annotated[Turns, doc("number of the turn or item, from 0")]
Score = Annotated[float | None, doc("sum of the scores; null: without a judge or a verdict")]
Unjudged = Annotated[str | None, doc("why there is no verdict; null: there is one, or no judge")]


class RunRecord(Struct, frozen=True, kw_only=True):
    """One complete run."""

    run_id: RunId
    benchmark: BenchmarkName
    model: Model
    sample: Sample
    repeat: Annotated[int | None, Meta(ge=0, description="that of the sweep; null: of none")]
    seed: Annotated[int | None, Meta(ge=0, description="fixes everything left to chance")]
    n_turns: Annotated[Count, doc("turns or items that were played")]
    end_reason: Annotated[str, doc("why the run ended")]
    started_at: Annotated[datetime | None, doc("UTC")]
    completed_at: Annotated[datetime | None, doc("UTC")]
    duration_s: Annotated[Amount | None, doc("of the run, in seconds")]
    region: Annotated[str | None, doc("of the model's calls")]
    service_tier: Annotated[str | None, doc("that was asked for; null: the default")]
    temperature: Annotated[Amount | None, doc("null: the model's own default")]
    judges: Annotated[str | None, doc("models that judged, joined by a comma; null: nobody did")]
    rubric: Annotated[str | None, doc("edition of the rubric")]
    judge_coverage: Annotated[Share | None, doc("share of turns with a verdict")]
    calibration: Annotated[str | None, doc("whether the judge was held to people's labels")]
    input_tokens: Annotated[Count | None, doc("of all calls")]
    output_tokens: Annotated[Count | None, doc("of all calls")]
    cost_usd: Annotated[Amount | None, doc("of all calls; null: a price is not known")]
    is_stand_in_cost: Annotated[
        bool | None, doc("whether the run was simulated, and costs nothing")
    ]


class TurnRecord(Struct, frozen=True, kw_only=True):
    """One turn, or one item."""

    run_id: RunId
    model: Model
    sample: Sample
    turn: Turn
    said: Annotated[str | None, doc("what the model was told; null: not stored")]
    reply: Annotated[str, doc("what it answered")]
    score: Score
    unjudged_reason: Unjudged
    n_verdicts: Annotated[Count, doc("rows of the turn among the verdicts")]
    is_replayed: Annotated[
        bool, doc("whether it was given beforehand, and not played by the model")
    ]
    outcome: Annotated[str, doc("what became of the call")]
    stop_reason: Annotated[str, doc("why the reply ended")]
    ttft_ms: Annotated[Amount | None, doc("milliseconds to the first token")]
    latency_ms: Annotated[Amount | None, doc("milliseconds to the last byte")]
    output_tokens_per_s: Annotated[Amount | None, doc("tokens per second")]


class VerdictRecord(Struct, frozen=True, kw_only=True):
    """What one judge said of one turn, once."""

    run_id: RunId
    model: Model
    sample: Sample
    turn: Turn
    verdict: Annotated[Count, doc("number among the verdicts on the turn, from 0")]
    juror: Annotated[str, doc("model that judged")]
    score: Score
    unjudged_reason: Unjudged


# What `socratic-runner show` prints: the figures of its picture of one run.


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
