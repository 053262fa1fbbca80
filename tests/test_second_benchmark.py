"""Another kind of benchmark on the same engine: one question each, a golden answer, no judge."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Any

import pytest
from msgspec import Meta, field
from msgspec.structs import replace

from socratic_bench import Gate, RunConfig, RunResult, UsageError, run
from socratic_bench.benchmarks import BENCHMARKS, load_benchmark
from socratic_bench.documents.scalars import Share
from socratic_bench.forecast import dry_run
from socratic_bench.generation import GenerateConfig
from socratic_bench.parts import Part, Parts
from socratic_bench.ports import (
    EpisodeContext,
    EpisodeResult,
    JudgeInput,
    Length,
    MetricInfo,
    Metrics,
    Sample,
)
from socratic_bench.runner import prepare
from socratic_bench.types import CallKey, Message, Request, Role, Rubric, Turn
from tests.fakes import RUBRIC, answer, breaches, refusal, scored, stored

GOLDEN = {"What is 2 + 2?": "4", "Which is the capital of France?": "Paris"}
CONFIG = RunConfig(
    model="tutor", prompt="What is 2 + 2?", seed=1, region="us-east-1", max_attempts=1
)


class GoldenMetrics(Part, frozen=True, kw_only=True):
    accuracy: Annotated[Share | None, Meta(description="share of right answers")] = None
    by_length: dict[str, float | None] = field(default_factory=dict)

    @classmethod
    def of(cls, metrics: Metrics) -> "GoldenMetrics":
        return cls(**metrics)


class GoldenTurn(Part, frozen=True, kw_only=True):
    golden: Annotated[str, Meta(description="the right answer")] = ""

    @classmethod
    def of(cls, turn: Turn) -> "GoldenTurn":
        return cls(**turn.notes)


PARTS = Parts(metrics=GoldenMetrics, turn=GoldenTurn)


@dataclass(frozen=True)
class GoldenEpisode:
    config: RunConfig
    opening: Sample
    rubric: Rubric | None

    def play(self, context: EpisodeContext) -> EpisodeResult:
        question = self.opening.prompt
        request = Request(
            messages=(Message.user(question),), config=GenerateConfig(max_tokens=20, temperature=0)
        )
        reply = context.tutor.complete(request, CallKey(role="tutor", index=0))
        context.publish(
            Turn(
                index=0,
                prompt=question,
                reply=reply,
                student=None,
                notes={"golden": GOLDEN[question]},
            )
        )
        return EpisodeResult(end_reason="max_turns")

    def expected_reply(self, role: Role, length: Length) -> str:
        return "Paris"

    def measured(self, turns: Sequence[Turn], index: int) -> Turn:
        said = turns[index].reply.message.text.strip()
        right = said == GOLDEN[turns[index].prompt]
        return replace(turns[index], measures={"is_correct": right, "n_words": len(said.split())})

    def judge_input(self, turns: Sequence[Turn], index: int) -> JudgeInput:
        return JudgeInput((("question", turns[index].prompt),), turns[index].reply.message.text)


@dataclass(frozen=True)
class GoldenBenchmark:
    rubric: Rubric | None = None
    name: str = "golden"
    parts: Parts = PARTS
    metrics: tuple[MetricInfo, ...] = (
        MetricInfo(name="accuracy", title="Share of right answers", low=0, high=1),
        MetricInfo(name="by_length.short", title="Of short ones", low=0, high=1),
    )

    def prepare(self, config: RunConfig) -> GoldenEpisode:
        if config.prompt not in GOLDEN:
            raise UsageError([f"There is no golden answer to {config.prompt!r}."])
        key = sha256(GOLDEN[config.prompt].encode()).hexdigest()
        opening = Sample(scenario="arithmetic", prompt=config.prompt, hashes={"golden_sha256": key})
        return GoldenEpisode(config, opening, self.rubric)

    def summarise(self, config: RunConfig, turns: Sequence[Turn]) -> Metrics:
        right = [turn.measures["is_correct"] is True for turn in turns]
        accuracy = sum(right) / len(right) if right else None
        return {"accuracy": accuracy, "by_length": {"short": accuracy}}


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def play(service, out, said: Any, *, benchmark: Any = None, **config: Any) -> RunResult:
    service.scripts["tutor"] = [said]
    whole = replace(CONFIG, output_dir=str(out), **config)
    result = run(whole, benchmark=benchmark or GoldenBenchmark())
    assert breaches("run", result.document, PARTS) == []
    assert breaches("brief", result.brief, PARTS) == []
    return result


def test_a_right_answer_goes_through_to_the_document_and_the_files(service, out):
    result = play(service, out, answer("4"))
    document = result.document
    raw, curated = f"raw/runs/{result.run_id}", f"curated/runs/{result.run_id}.json"

    assert (result.status, result.exit_code, document["benchmark"]) == ("completed", 0, "golden")
    assert document["metrics"] == {"accuracy": 1.0, "by_length": {"short": 1.0}}
    assert (document["overall_score"], document["half_life"], document["judge"]) == (
        None,
        None,
        None,
    )
    assert document["inputs"]["golden_sha256"] == sha256(b"4").hexdigest()
    (entry,) = document["turns"]
    assert (entry["heuristics"], entry["golden"], entry["score"], entry["unjudged_reason"]) == (
        {"is_correct": True, "n_words": 1},
        "4",
        None,
        None,
    )
    kept = stored(out, PARTS)
    assert set(kept) == {f"{raw}/turn_000.json", curated}


def test_only_the_model_under_test_is_called(service, out):
    play(service, out, answer("4"))

    assert [sent.model_id for sent in service.sent] == ["tutor"]


def test_a_wrong_answer_is_a_result_like_any_other(service, out):
    result = play(service, out, answer("Paris"), prompt="What is 2 + 2?")

    assert (result.exit_code, result.metrics["accuracy"]) == (0, 0.0)


def test_gates_hold_for_its_own_metrics(service, out):
    gates = (Gate("accuracy", 1.0), Gate("by_length.short", 0.5))

    assert play(service, out, answer("4"), gates=gates).exit_code == 0
    failed = play(service, out, answer("5"), gates=gates)
    assert (failed.exit_code, failed.shortfalls) == (
        5,
        ("accuracy is 0, 1 under 1.", "by_length.short is 0, 0.5 under 0.5."),
    )


def test_a_gate_on_a_metric_of_another_benchmark_is_refused(service, out):
    with pytest.raises(UsageError) as refused:
        play(service, out, answer("4"), gates=(Gate("overall_score", 7.0),))

    assert refused.value.problems == (
        "gates names no metric: 'overall_score'. There is accuracy, by_length.short.",
    )


def test_its_own_mistakes_are_said_with_all_others(service, out):
    with pytest.raises(UsageError) as refused:
        play(service, out, answer("4"), prompt="Why?", turns=0)

    assert refused.value.problems == (
        "turns is 0, but must lie in 1..500.",
        "There is no golden answer to 'Why?'.",
    )


def test_a_failed_call_ends_it_as_it_ends_any_run(service, out):
    result = play(service, out, refusal(403, "AccessDeniedException"))

    assert (result.status, result.exit_code, result.metrics) == (
        "failed",
        3,
        {"accuracy": None, "by_length": {"short": None}},
    )
    assert stored(out, PARTS) == {}


def test_it_may_have_a_judge_with_a_rubric_of_its_own(service, out):
    service.scripts["judge"] = [scored(3, 0, 4)]
    result = play(
        service, out, answer("4"), benchmark=GoldenBenchmark(rubric=RUBRIC), judge_model="judge"
    )

    (entry,) = result.document["turns"]
    assert (entry["score"], entry["scores"]) == (
        7.0,
        {"form": 3.0, "substance": 0.0, "purity": 4.0},
    )
    judged = stored(out, PARTS)[f"raw/runs/{result.run_id}/judge_000.json"]
    assert judged["heuristics"] == {"is_correct": True, "n_words": 1}


def test_a_dry_run_goes_by_what_it_expects_of_replies():
    plan = prepare(CONFIG, benchmark=GoldenBenchmark())
    document = dry_run(plan, {})

    assert breaches("dry_run", document, PARTS) == []
    usage = document["usage"]["total"]
    assert (document["benchmark"], document["n_turns"], usage["calls"]) == ("golden", 1, 1)
    # "What is 2 + 2?" with its frame, and "Paris".
    assert (usage["input_tokens"], usage["output_tokens"]) == (7, 2)
    assert document["cost"] is None


def test_benchmarks_are_found_by_name():
    assert [load_benchmark(name).name for name in BENCHMARKS] == ["socratic"]
    with pytest.raises(UsageError) as refused:
        load_benchmark("golden")
    assert refused.value.problems == ("No benchmark 'golden': there is socratic.",)
