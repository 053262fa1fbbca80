"""A stored run as a benchmark: its turns are published as they are, and nothing is played."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from socratic_bench.ports.benchmark import (
    Benchmark,
    ClosingQuestion,
    Episode,
    EpisodeContext,
    EpisodeResult,
    JudgeInput,
    Length,
    MetricInfo,
    Metrics,
    Recorded,
)
from socratic_bench.settings import CoreConfig
from socratic_bench.turns import ClosingAnswer, Measure, Turn
from socratic_bench.types import Role


class RecordedEpisode(Episode, frozen=True, kw_only=True):
    """The episode that `inner` would be, with the turns that were `recorded`."""

    inner: Episode
    recorded: Recorded

    def play(self, context: EpisodeContext) -> EpisodeResult:
        for turn in self.recorded.turns:
            context.publish(turn)
        return self.recorded.ended

    def judge_input(self, turns: Sequence[Turn], index: int) -> JudgeInput:
        return self.inner.judge_input(turns, index)

    def closing_question(
        self, turns: Sequence[Turn], closing: str | None
    ) -> ClosingQuestion | None:
        return self.inner.closing_question(turns, closing)

    def with_findings(self, turns: Sequence[Turn], findings: ClosingAnswer) -> Sequence[Turn]:
        return self.inner.with_findings(turns, findings)

    def expected_reply(self, role: Role, length: Length) -> str:
        return self.inner.expected_reply(role, length)


class RecordedBenchmark(Benchmark):
    """The benchmark `inner` for the run of one document."""

    def __init__(self, inner: Benchmark, document: Mapping[str, Any]) -> None:
        self._inner = inner
        self.recorded_run = inner.recorded(document)
        self.compared_metrics = inner.compared_metrics

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def metrics(self) -> Sequence[MetricInfo]:
        return self._inner.metrics

    @property
    def primary_metric(self) -> str:
        return self._inner.primary_metric

    @property
    def parts(self) -> Any:  # noqa: ANN401 -- `Parts`
        return self._inner.parts

    def prepare(self, config: CoreConfig) -> RecordedEpisode:
        inner = self._inner.prepare(replace(config, **self.recorded_run.settings))
        return RecordedEpisode(
            opening=replace(inner.opening, notices=()),
            rubric=inner.rubric,
            inner=inner,
            recorded=self.recorded_run,
        )

    def summarise(self, config: CoreConfig, turns: Sequence[Turn]) -> Metrics:
        return self._inner.summarise(config, turns)

    def closing_metrics(self, findings: Sequence[Mapping[str, Measure]]) -> Metrics:
        return self._inner.closing_metrics(findings)

    def falls_short(self, config: CoreConfig, turn: Turn) -> bool:
        return self._inner.falls_short(config, turn)

    def headline(self, metrics: Metrics) -> Sequence[str]:
        return self._inner.headline(metrics)
