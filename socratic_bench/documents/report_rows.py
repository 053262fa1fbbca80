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

Sample = Annotated[str, Meta(description="what was played, by the benchmark's name of it")]
Turn = Annotated[Turns, Meta(description="number of the turn or item, from 0")]
Score = Annotated[
    float | None, Meta(description="sum of the scores; null: without a judge or a verdict")
]
Unjudged = Annotated[
    str | None, Meta(description="why there is no verdict; null: there is one, or no judge")
]


class RunRecord(Struct, frozen=True, kw_only=True):
    """One complete run."""

    run_id: RunId
    benchmark: BenchmarkName
    model: Model
    sample: Sample
    repeat: Annotated[int | None, Meta(ge=0, description="that of the sweep; null: of none")]
    seed: Annotated[int | None, Meta(ge=0, description="fixes everything left to chance")]
    n_turns: Annotated[Count, Meta(description="turns or items that were played")]
    end_reason: Annotated[str, Meta(description="why the run ended")]
    started_at: Annotated[datetime | None, Meta(description="UTC")]
    completed_at: Annotated[datetime | None, Meta(description="UTC")]
    duration_s: Annotated[Amount | None, Meta(description="of the run, in seconds")]
    region: Annotated[str | None, Meta(description="of the model's calls")]
    service_tier: Annotated[str | None, Meta(description="that was asked for; null: the default")]
    temperature: Annotated[Amount | None, Meta(description="null: the model's own default")]
    judges: Annotated[
        str | None, Meta(description="models that judged, joined by a comma; null: nobody did")
    ]
    rubric: Annotated[str | None, Meta(description="edition of the rubric")]
    judge_coverage: Annotated[Share | None, Meta(description="share of turns with a verdict")]
    calibration: Annotated[
        str | None, Meta(description="whether the judge was held to people's labels")
    ]
    input_tokens: Annotated[Count | None, Meta(description="of all calls")]
    output_tokens: Annotated[Count | None, Meta(description="of all calls")]
    cost_usd: Annotated[Amount | None, Meta(description="of all calls; null: a price is not known")]
    is_stand_in_cost: Annotated[
        bool | None, Meta(description="whether the run was simulated, and costs nothing")
    ]


class TurnRecord(Struct, frozen=True, kw_only=True):
    """One turn, or one item."""

    run_id: RunId
    model: Model
    sample: Sample
    turn: Turn
    said: Annotated[str | None, Meta(description="what the model was told; null: not stored")]
    reply: Annotated[str, Meta(description="what it answered")]
    score: Score
    unjudged_reason: Unjudged
    n_verdicts: Annotated[Count, Meta(description="rows of the turn among the verdicts")]
    is_replayed: Annotated[
        bool, Meta(description="whether it was given beforehand, and not played by the model")
    ]
    outcome: Annotated[str, Meta(description="what became of the call")]
    stop_reason: Annotated[str, Meta(description="why the reply ended")]
    ttft_ms: Annotated[Amount | None, Meta(description="milliseconds to the first token")]
    latency_ms: Annotated[Amount | None, Meta(description="milliseconds to the last byte")]
    output_tokens_per_s: Annotated[Amount | None, Meta(description="tokens per second")]


class VerdictRecord(Struct, frozen=True, kw_only=True):
    """What one judge said of one turn, once."""

    run_id: RunId
    model: Model
    sample: Sample
    turn: Turn
    verdict: Annotated[Count, Meta(description="number among the verdicts on the turn, from 0")]
    juror: Annotated[str, Meta(description="model that judged")]
    score: Score
    unjudged_reason: Unjudged
