"""Rows that `socratic-runner report` writes as tables: one per run, per turn and per verdict.

Columns that only some benchmarks and rubrics have follow these: see `reporting.tables`.
"""

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from socratic_bench.documents.scalars import (
    Amount,
    BenchmarkName,
    Count,
    Model,
    RunId,
    Share,
    Turns,
)
from socratic_bench.types import doc

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
