"""Questions with one right answer each: does the model under test say it, and nothing else?"""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Annotated, Any

from msgspec.structs import replace

from socratic_bench.documents.document import Share
from socratic_bench.errors import Problem, UsageError
from socratic_bench.ports.benchmark import (
    Benchmark,
    Episode,
    EpisodeContext,
    EpisodeResult,
    Length,
    MetricInfo,
    Metrics,
    Sample,
)
from socratic_bench.ports.parts import Part, Parts
from socratic_bench.settings import CoreConfig
from socratic_bench.turns import Turn
from socratic_bench.types import CallKey, Message, Request, Role, doc

ANSWERS = {"What is 2 + 2?": "4", "Which is the capital of France?": "Paris"}


class RecallMetrics(Part, frozen=True, kw_only=True):
    """Metrics over all items; null if there is none."""

    accuracy: Annotated[Share | None, doc("share of right answers")] = None

    @classmethod
    def of(cls, metrics: Mapping[str, Any]) -> "RecallMetrics":
        return cls(**metrics)


class RecallEpisode(Episode, frozen=True, kw_only=True):
    """Each question, asked once."""

    config: CoreConfig
    questions: Sequence[str]

    def play(self, context: EpisodeContext) -> EpisodeResult:
        context.play_items(self.ask)
        return EpisodeResult(end_reason="max_turns")

    def ask(self, context: EpisodeContext, index: int) -> Turn:
        question = self.questions[index]
        request = Request(messages=(Message.user(question),), config=self.config.generation)
        reply = context.tested.complete(request, CallKey(role="model", index=index))
        return Turn(index=index, prompt=question, reply=reply)

    def measure(self, turns: Sequence[Turn], index: int) -> Turn:
        turn = turns[index]
        is_right = turn.reply.message.text.strip() == ANSWERS[turn.prompt]
        summary = "right" if is_right else "wrong"
        return replace(turn, measures={"is_right": is_right}, summary=summary)

    def expected_reply(self, role: Role, length: Length) -> str:
        del role, length  # the same estimate for every role and length
        return max(ANSWERS.values(), key=len)


class RecallBenchmark(Benchmark):
    """Does a model answer to the letter?"""

    name = "recall"
    metrics = (
        MetricInfo(name="accuracy", title="Share of right answers", low=0, high=1, is_rate=True),
    )
    primary_metric = "accuracy"
    parts = Parts(metrics=RecallMetrics)

    def prepare(self, config: CoreConfig) -> RecallEpisode:
        """One question, the prompt; or all of them without one."""
        questions = [*ANSWERS] if config.prompt is None else [config.prompt]
        if not ANSWERS.keys() >= {*questions}:
            raise UsageError([Problem.of("{prompt} is none of the questions.")])
        digest = sha256(repr(ANSWERS).encode()).hexdigest()
        opening = Sample(
            id="all" if len(questions) > 1 else f"question-{[*ANSWERS].index(questions[0]) + 1}",
            prompt=questions[0],
            n_items=len(questions),
            hashes={"answers_sha256": digest},
        )
        return RecallEpisode(opening=opening, config=config, questions=questions)

    def summarise(self, config: CoreConfig, turns: Sequence[Turn]) -> Metrics:
        del config
        right = [turn.measures["is_right"] is True for turn in turns]
        return {"accuracy": sum(right) / len(right) if right else None}


BENCHMARK = RecallBenchmark()
