"""Plays a dialogue with the emulator's models without a server, a journal or a clock: what they say
follows from the requests alone. For facts about many dialogues.
"""

from collections.abc import Callable
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench import RunConfig
from socratic_bench.benchmarks import load_benchmark
from socratic_bench.catalogue.models import capabilities_of
from socratic_bench.emulator.simulation import answer
from socratic_bench.judging.judge import Judge
from socratic_bench.models.bedrock.converse import neutral_stop_reason, read_message
from socratic_bench.models.bedrock.request import converse_arguments
from socratic_bench.ports.benchmark import Metrics
from socratic_bench.turns import Turn
from socratic_bench.types import CallKey, Completion, Request
from tests.fakes import NOON, completion

JUDGE = "emulator.judge-v1:0"


class Simulated(Struct, frozen=True):
    """A model of the emulator, asked as on the wire."""

    model_id: str

    def complete(self, request: Request, key: CallKey) -> Completion:
        del key
        wire = converse_arguments(self.model_id, request, capabilities_of(self.model_id))
        response, _ = answer(self.model_id, wire)
        message, stop_reason = read_message(response)
        return completion(message.content, stop_reason=neutral_stop_reason(stop_reason))


class _Context(Struct):
    """What an episode is played with; see `socratic_bench.ports.benchmark.EpisodeContext`."""

    tested: Simulated
    student: Simulated | None
    turns: list[Turn]
    now: Callable[[], datetime] = lambda: NOON

    def model(self, name: str) -> Simulated | None:
        del name
        return self.student

    def publish(self, turn: Turn) -> None:
        self.turns.append(turn)


def simulated(config: RunConfig) -> tuple[list[Turn], Metrics]:
    """The judged turns of a dialogue and its metrics."""
    config = replace(config, judge_model=config.judge_model or JUDGE)
    benchmark = load_benchmark("socratic")
    episode = benchmark.prepare(config)
    student = Simulated(config.student_model) if config.student_model else None
    context = _Context(Simulated(config.model), student, [])
    episode.play(context)
    judge = Judge(
        model=Simulated(config.judge_model),
        rubric=episode.rubric,
        seed=config.seed or 0,
        now=context.now,
    )
    turns = [
        replace(turn, judged=judge.judge(episode.judge_input(context.turns, at), at))
        for at, turn in enumerate(context.turns)
    ]
    return turns, benchmark.summarise(config, turns)
