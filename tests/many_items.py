"""A benchmark of sums with known answers, all of them asked at once, as others would write it.

python -m tests.many_items CONFIG     plays what a JSON object of settings asks for
"""

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as made
from typing import Annotated, Any

from msgspec import Meta, field
from msgspec.structs import replace

from socratic_bench import RunConfig, UsageError, run
from socratic_bench.documents.document import Share
from socratic_bench.generation import GenerateConfig
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
from socratic_bench.turns import Rubric, Turn
from socratic_bench.types import CallKey, Message, Request, Role
from tests.fakes import Said, Sent, answer

MOST = 10_000
SUBJECTS = ("even", "odd")
CONFIG = RunConfig(
    model="tutor", turns=60, seed=1, region="us-east-1", max_attempts=1, judge_model=None
)


class SumMetrics(Part, frozen=True, kw_only=True):
    accuracy: Annotated[Share | None, Meta(description="share of right answers")] = None
    by_subject: dict[str, float | None] = field(default_factory=dict)

    @classmethod
    def of(cls, metrics: Metrics) -> "SumMetrics":
        return cls(**metrics)


PARTS = Parts(metrics=SumMetrics, max_turns=MOST, has_item_metrics=True)


def question_of(index: int) -> str:
    return f"What is {index} + {index}?"


class SumEpisode(Episode, frozen=True, kw_only=True):
    def play(self, context: EpisodeContext) -> EpisodeResult:
        context.play_items(self.ask)
        return EpisodeResult(end_reason="max_turns")

    def ask(self, context: EpisodeContext, index: int) -> Turn:
        request = Request(
            messages=(Message.user(question_of(index)),), config=GenerateConfig(max_tokens=20)
        )
        reply = context.tested.complete(request, CallKey(role="model", index=index))
        return Turn(index=index, prompt=question_of(index), reply=reply)

    def measure(self, turns: Sequence[Turn], index: int) -> Turn:
        said = turns[index].reply.message.text.strip()
        right = said == str(2 * index)
        return replace(turns[index], measures={"is_right": right}, is_parsed=said.isdigit())

    def expected_reply(self, role: Role, length: Length) -> str:
        return "So." if role == "judge" else str(MOST)


@dataclass(frozen=True)
class Sums(Benchmark):
    rubric: Rubric | None = None
    rubrics: Mapping[int, Rubric] = made(default_factory=dict)
    episode: type[SumEpisode] = SumEpisode
    name: str = "sums"
    parts: Parts = PARTS
    primary_metric: str = "accuracy"
    metrics: tuple[MetricInfo, ...] = (
        MetricInfo(name="accuracy", title="Share of right answers", low=0, high=1),
    )

    def prepare(self, config: RunConfig) -> SumEpisode:
        if config.prompt:
            raise UsageError(["There is no prompt here."])
        by_subject = [
            MetricInfo(name=f"by_subject.{name}", title=f"Of {name} ones", low=0, high=1)
            for name in SUBJECTS[: config.turns]
        ]
        opening = Sample(
            id="sums",
            prompt=question_of(0),
            n_items=config.turns,
            metrics=by_subject,
            rubrics=self.rubrics,
        )
        return self.episode(opening=opening, rubric=self.rubric)

    def summarise(self, config: RunConfig, turns: Sequence[Turn]) -> Metrics:
        by_subject = {
            name: _share([turn for turn in turns if turn.index % 2 == odd])
            for odd, name in enumerate(SUBJECTS)
        }
        return {"accuracy": _share(turns), "by_subject": by_subject}


def _share(turns: Sequence[Turn]) -> float | None:
    right = [turn.measures["is_right"] is True for turn in turns]
    return sum(right) / len(right) if right else None


def asked(sent: Sent) -> int:
    """The item of a request."""
    found = re.search(r"What is (\d+) ", sent.raw.decode())
    assert found
    return int(found[1])


def sums(instead: Mapping[int, Said] | None = None) -> Callable[[Sent], Said]:
    """The script of a model that can add, but for what it says instead."""
    return lambda sent: (instead or {}).get(asked(sent)) or answer(str(2 * asked(sent)))


def main() -> None:
    given: dict[str, Any] = json.loads(sys.argv[1])
    sys.exit(run(replace(CONFIG, **given), benchmark=Sums()).exit_code)


if __name__ == "__main__":
    main()
