"""What the commands report and show print, and the rows of the report's tables.

The tables have further columns that depend on benchmark and rubric: see studies/report/tables.py.
"""

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
from socratic_bench.documents.sweep import PairedDifference
from socratic_bench.types import doc

Scenario = Annotated[str, doc("name of the scenario; of the data set in other benchmarks")]
Turn = Annotated[Turns, doc("index of the turn or item, from 0")]
Score = Annotated[float | None, doc("sum of the scores; null: no judge or no verdict")]
Unjudged = Annotated[str | None, doc("why there is no verdict; null: there is one, or no judge")]


class ReportFile(Struct, frozen=True, kw_only=True):
    """One file of a report."""

    form: Annotated[
        Literal["html", "markdown", "csv", "parquet", "png", "svg"], doc("format of the file")
    ]
    path: Annotated[str, doc("path of the file, as given")]
    bytes: Annotated[Count, doc("size in bytes")]


class ReportDocument(Document, frozen=True, kw_only=True):
    """The runs and files of a report."""

    kind: Literal["report"] = "report"
    benchmark: BenchmarkName
    models: Annotated[list[Model], doc("models, best first")]
    winner: Annotated[
        str | None, doc("model that is better than every other; null: undecided, or one model")
    ]
    undecided_because: Annotated[str | None, doc("why there is no winner; null: there is one")]
    differences: Annotated[
        list[PairedDifference], doc("primary figure of each two models that were run alike")
    ]
    n_runs: Annotated[Count, doc("completed runs")]
    n_failed: Annotated[Count, doc("failed runs of sweeps")]
    sentences: Annotated[
        list[str], doc("first sentences of the report; empty if only tables were written")
    ]
    sections: Annotated[list[str], doc("names of its sections, in order; empty if sentences is")]
    left_out: Annotated[list[str], doc("ids of runs without a transcript, because of --max-size")]
    files: Annotated[list[ReportFile], doc("files that were written")]


ExportForm = Literal["inspect", "mlflow", "jsonl", "csv", "parquet"]


class ExportDocument(Document, frozen=True, kw_only=True):
    """Stored runs that were written in another tool's format."""

    kind: Literal["export"] = "export"
    form: Annotated[ExportForm, doc("the format")]
    benchmark: BenchmarkName
    n_runs: Annotated[Count, doc("completed runs")]
    written: Annotated[list[str], doc("files; with mlflow the ids of its new runs")]


class ShownTurn(Struct, frozen=True, kw_only=True):
    """One turn of the run."""

    turn: Annotated[Count, doc("index of the turn, from 0")]
    score: Annotated[Amount | None, doc("score in points; null: not judged")]
    result: Annotated[str | None, doc("result of a turn that no judge scores; null: see score")]
    falls_short: Annotated[
        bool | None, doc("whether it is under threshold, or its result is wrong; null: unknown")
    ]
    unjudged_reason: Annotated[
        str | None, doc("why there is no verdict; null: there is one, or no judge")
    ]
    events: Annotated[list[str], doc("names of the events that the judge saw in the reply")]


class ShownDocument(Document, frozen=True, kw_only=True):
    """The figures of one run, as the command show prints them."""

    kind: Literal["shown"] = "shown"
    run_id: Annotated[str, doc("id of the run")]
    benchmark: BenchmarkName
    model: Model
    place: Annotated[str, doc("the file that has it")]
    judging: Annotated[str | None, doc("name of the verdicts (--judging); null: the first ones")]
    metric: Annotated[str, doc("name of the benchmark's primary metric")]
    value: Annotated[float | None, doc("value of that metric; null: unknown")]
    threshold: Annotated[
        Amount | None, doc("score in points under which a turn falls short; null: none")
    ]
    n_turns: Annotated[Count, doc("turns of the model under test")]
    turns: Annotated[list[ShownTurn], doc("all turns, whatever --turns says")]


class RunRecord(Struct, frozen=True, kw_only=True):
    """One completed run."""

    run_id: RunId
    benchmark: BenchmarkName
    model: Model
    scenario: Scenario
    repeat: Annotated[int | None, Meta(ge=0, description="repeat in its sweep; null: no sweep")]
    seed: Annotated[int | None, Meta(ge=0, description="random seed of the run")]
    n_turns: Annotated[Count, doc("number of turns or items")]
    end_reason: Annotated[str, doc("why the run ended")]
    started_at: Annotated[datetime | None, doc("UTC")]
    completed_at: Annotated[datetime | None, doc("UTC")]
    duration_s: Annotated[Amount | None, doc("duration in seconds")]
    region: Annotated[str | None, doc("region of the model's calls")]
    service_tier: Annotated[str | None, doc("requested tier; null: the default")]
    temperature: Annotated[Amount | None, doc("temperature; null: the model's default")]
    judges: Annotated[str | None, doc("judge models, joined by a comma; null: none")]
    rubric: Annotated[str | None, doc("name of the rubric")]
    judge_coverage: Annotated[Share | None, doc("share of turns with a verdict")]
    calibration: Annotated[str | None, doc("whether the judge was calibrated against human labels")]
    input_tokens: Annotated[Count | None, doc("of all calls")]
    output_tokens: Annotated[Count | None, doc("of all calls")]
    cost_usd: Annotated[Amount | None, doc("of all calls; null: a price is unknown")]
    is_stand_in_cost: Annotated[bool | None, doc("whether the run was simulated and costs nothing")]


class TurnRecord(Struct, frozen=True, kw_only=True):
    """One turn, or one item."""

    run_id: RunId
    model: Model
    scenario: Scenario
    turn: Turn
    said: Annotated[str | None, doc("the message to the model; null: not stored")]
    reply: Annotated[str, doc("the model's reply")]
    score: Score
    unjudged_reason: Unjudged
    n_verdicts: Annotated[Count, doc("rows of the turn in the table of verdicts")]
    is_replayed: Annotated[bool, doc("whether it is from a transcript, not from the model")]
    outcome: Annotated[str, doc("outcome of the call")]
    stop_reason: Annotated[str, doc("why the reply ended")]
    ttft_ms: Annotated[Amount | None, doc("milliseconds to the first token")]
    latency_ms: Annotated[Amount | None, doc("milliseconds to the last byte")]
    output_tokens_per_s: Annotated[Amount | None, doc("tokens per second")]


class VerdictRecord(Struct, frozen=True, kw_only=True):
    """One verdict of one judge on one turn."""

    run_id: RunId
    model: Model
    scenario: Scenario
    turn: Turn
    verdict: Annotated[Count, doc("index among the verdicts on the turn, from 0")]
    juror: Annotated[str, doc("judge model")]
    score: Score
    unjudged_reason: Unjudged


class ListedRun(Struct, frozen=True, kw_only=True):
    """A stored run that belongs to no sweep."""

    run_id: RunId
    status: Annotated[Literal["completed", "incomplete"], doc("incomplete: resume continues it")]
    model: Annotated[str | None, doc("model under test; null: no turn is stored yet")]
    scenario: Annotated[str | None, doc("name of the scenario; null in other benchmarks")] = None
    score: Annotated[float | None, doc("primary metric of the benchmark; null: unknown")] = None
    cost_usd: Annotated[Amount | None, doc("USD in total; null: unknown")] = None


class ListedSweep(Struct, frozen=True, kw_only=True):
    """A stored sweep."""

    sweep_id: Annotated[str, doc("id of the sweep")]
    status: Annotated[Literal["completed", "incomplete"], doc("incomplete: runs are missing")]
    benchmark: BenchmarkName
    models: Annotated[list[str], doc("models under test")]
    n_runs: Annotated[Count, doc("planned runs")]
    n_completed: Annotated[Count, doc("completed runs")]
    n_failed: Annotated[Count, doc("failed runs")]
    score: Annotated[float | None, doc("mean of the primary metric; null: unknown")]
    cost_usd: Annotated[Amount | None, doc("USD in total; null: unknown")]
    started_at: Annotated[str, doc("when it began, ISO 8601")]


class ListDocument(Document, frozen=True, kw_only=True):
    """The runs and sweeps in a folder or bucket."""

    kind: Literal["list"] = "list"
    place: Annotated[str, doc("the folder, or s3://BUCKET/PREFIX")]
    sweeps: Annotated[list[ListedSweep], doc("sweeps, the newest first")]
    runs: Annotated[list[ListedRun], doc("other runs, the newest first")]


class ConfigDocument(Document, frozen=True, kw_only=True):
    """A config file that was written."""

    kind: Literal["config"] = "config"
    file: Annotated[str, doc("path of the file")]
    command: Annotated[str, doc("the command that runs it")]
