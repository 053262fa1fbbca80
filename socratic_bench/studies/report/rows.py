"""What a report is made of: runs, their turns, the verdicts on these, and cells that failed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from socratic_bench.ports.benchmark import Benchmark
from socratic_bench.ports.parts import Exposure
from socratic_bench.studies.rows import StoredRun, value_at
from socratic_bench.turns import Measure
from socratic_bench.types import Json

Scores = Mapping[str, float | None]


class VerdictRow(Struct, frozen=True, kw_only=True):
    """What one judge said of one turn. `score` is the sum of `scores`, `None` if it is unjudged,
    for `unjudged_reason`; `rationale` holds its reasons by score, empty where they are not stored.
    """

    juror: str
    score: float | None
    scores: Scores
    rationale: Mapping[str, str | None] = {}
    events: Mapping[str, str] | None = None
    quotes: Mapping[str, str | None] | None = None
    unjudged_reason: str | None = None


class TurnRow(Struct, frozen=True, kw_only=True):
    """One turn. `said` is what the model under test was told, `reply` what it answered; `own` are
    the benchmark's own keys. Times are milliseconds of the attempt that answered.
    """

    turn: int
    said: str | None
    reply: str
    score: float | None
    scores: Scores
    events: Mapping[str, str] | None
    quotes: Mapping[str, str | None] | None
    heuristics: Mapping[str, Measure]
    own: Mapping[str, Json]
    unjudged_reason: str | None
    is_replayed: bool
    outcome: str
    stop_reason: str
    ttft_ms: float | None
    latency_ms: float | None
    output_tokens_per_s: float | None
    verdicts: tuple[VerdictRow, ...] = ()


class RunRow(Struct, frozen=True, kw_only=True):
    """One complete run. `sample` names what was played, `document` has all else of its document,
    turns and journal left out, `exposures` by event the turns in which it could come.
    """

    stored: StoredRun
    sample: str
    document: Mapping[str, Any]
    turns: tuple[TurnRow, ...]
    exposures: Mapping[str, Exposure]

    @property
    def run_id(self) -> str:
        return self.stored.keys.run_id

    @property
    def model(self) -> str:
        return self.stored.keys.model

    @property
    def metrics(self) -> Mapping[str, float | None]:
        return self.stored.metrics

    def at(self, path: str) -> Any:  # noqa: ANN401 -- any value of a document
        """What stands at a dotted path of the document; `None` where there is nothing."""
        return value_at(self.document, path)


class FailedRow(Struct, frozen=True, kw_only=True):
    """A cell of a sweep that could not be played to its end; `code` is that of its error."""

    run_id: str
    model: str
    axes: Mapping[str, Json]
    end_reason: str
    code: str | None
    message: str | None


class Rows(Struct, frozen=True, kw_only=True):
    """All that is reported: complete runs in the order of their ids, and what failed."""

    benchmark: Benchmark
    runs: Sequence[RunRow]
    failed: Sequence[FailedRow] = ()

    @property
    def models(self) -> list[str]:
        return [*dict.fromkeys(run.model for run in self.runs)]

    @property
    def samples(self) -> list[str]:
        """In the order of their names."""
        return sorted({run.sample for run in self.runs})

    def of(self, model: str) -> list[RunRow]:
        return [run for run in self.runs if run.model == model]

    def turns(self) -> Iterator[tuple[RunRow, TurnRow]]:
        """Every turn that was played."""
        for run in self.runs:
            for turn in run.turns:
                if not turn.is_replayed:
                    yield run, turn
