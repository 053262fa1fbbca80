"""What a benchmark reads off a turn, and what becomes of its defects."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from msgspec.structs import replace

from socratic_bench import CancelToken, RunConfig, run
from socratic_bench.benchmarks.socratic.benchmark import BENCHMARK
from socratic_bench.models.events import CallEvent
from socratic_bench.ports.benchmark import Benchmark, Sample
from socratic_bench.turns import Turn
from tests.fakes import (
    PATIENCE_S,
    Said,
    Sent,
    breaches,
    stored,
)
from tests.scripted_run import ASKS, CONFIG, GOOD, Ear, Ending, ending, texts


@dataclass(frozen=True)
class BrokenEpisode:
    """Publishes what the Socratic benchmark does, then trips."""

    inner: Any
    error: Exception
    rubric = None

    @property
    def opening(self) -> Sample:
        return self.inner.opening

    def play(self, context: Any) -> Any:
        self.inner.play(context)
        raise self.error

    def measure(self, turns: Sequence[Turn], index: int) -> Turn:
        return self.inner.measure(turns, index)

    def judge_input(self, turns: Sequence[Turn], index: int) -> Any:
        return self.inner.judge_input(turns, index)

    def expected_reply(self, role: Any, length: Any) -> str:
        return self.inner.expected_reply(role, length)


@dataclass(frozen=True)
class WrappedBenchmark(Benchmark):
    """The Socratic benchmark, with its episode in a wrapper."""

    wrap: Any
    name: str = "wrapped"
    metrics: Any = BENCHMARK.metrics
    primary_metric: str = BENCHMARK.primary_metric
    parts: Any = BENCHMARK.parts

    def prepare(self, config: RunConfig) -> Any:
        return self.wrap(BENCHMARK.prepare(config))

    def summarise(self, config: RunConfig, turns: Sequence[Turn]) -> Any:
        return BENCHMARK.summarise(config, turns)

    def closing_metrics(self, findings: Sequence[Any]) -> Any:
        return BENCHMARK.closing_metrics(findings)


def test_a_defect_is_reported_with_the_turns_before_it(service, tmp_path):
    service.scripts = {"tutor": [ASKS]}
    config = replace(CONFIG, output_dir=str(tmp_path / "out"))
    defect = KeyError("sk-secret-text")
    result = run(config, benchmark=WrappedBenchmark(lambda inner: BrokenEpisode(inner, defect)))

    found = ending(result, tmp_path / "out")
    assert found == Ending("internal", "partial", 1, 3, curated=False)
    assert result.document["error"]["code"] == "internal"
    assert "KeyError" in result.document["error"]["message"]
    assert "secret" not in result.document["error"]["message"]


@dataclass(frozen=True)
class MeasuringEpisode:
    """The Socratic episode, but for `before`, which is called before a turn is measured."""

    inner: Any
    before: Any

    def measure(self, turns: Sequence[Turn], index: int) -> Turn:
        self.before(index)
        return self.inner.measure(turns, index)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def measuring(measure: Any) -> WrappedBenchmark:
    return WrappedBenchmark(lambda inner: MeasuringEpisode(inner, measure))


class TestMeasuring:
    def test_a_turn_is_measured_while_the_next_answer_is_waited_for(self, service):
        """Neither could go on if one had to wait for the other."""
        is_asked, is_measured = threading.Event(), threading.Event()

        def tutor(sent: Sent) -> Said:
            if len(texts(sent)) > 1:
                is_asked.set()
                assert is_measured.wait(PATIENCE_S)
            return ASKS

        def measure(index: int) -> None:
            if index == 0:
                assert is_asked.wait(PATIENCE_S)
                is_measured.set()

        service.scripts = {"tutor": tutor, "judge": [GOOD]}
        result = run(replace(CONFIG, turns=2), benchmark=measuring(measure))

        assert (result.status, len(result.turns)) == ("completed", 2)
        assert all(turn.measures["has_question"] for turn in result.turns)

    def test_a_turn_that_was_just_played_when_the_run_is_ended_is_measured_and_kept(
        self, play, out
    ):
        cancel_token = CancelToken()

        class Hasty(Ear):
            def on_call(self, event: CallEvent) -> None:
                if (event.key.role, event.key.index) == ("tutor", 1):
                    cancel_token.interrupt(2)

        result = play(cancel_token=cancel_token, listener=Hasty())

        assert ending(result, out) == Ending("interrupted", "partial", 130, 1, curated=False)
        (entry,) = result.document["turns"]
        kept = stored(out)[f"raw/runs/{result.run_id}/turn_000.json"]
        assert entry["heuristics"]["has_question"] is True
        assert kept["heuristics"] == entry["heuristics"]

    @pytest.mark.parametrize("broken", [0, 1, 2])
    def test_a_defect_in_measuring_takes_no_turn_away(self, service, broken):
        """The third turn is the last one: its defect is met when the run is summed up."""
        is_broken = threading.Event()

        def tutor(sent: Sent) -> Said:
            # Three turns are played before the defect can end the run.
            if len(texts(sent)) > 5:
                assert is_broken.wait(PATIENCE_S)
            return ASKS

        def measure(index: int) -> None:
            if index == broken:
                is_broken.set()
                raise KeyError("defect")

        turns = 3 if broken == 2 else 40
        service.scripts = {"tutor": tutor, "judge": [GOOD]}
        result = run(replace(CONFIG, turns=turns), benchmark=measuring(measure))

        assert (result.end_reason, result.exit_code) == ("internal", 1)
        measured = [bool(entry["heuristics"]) for entry in result.document["turns"]]
        assert len(measured) >= broken + 1
        assert [index for index, is_measured in enumerate(measured) if not is_measured] == [broken]
        assert len(service.sent) < 40
        assert breaches("run", result.document) == []
