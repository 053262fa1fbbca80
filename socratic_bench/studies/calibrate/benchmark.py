"""Labelled replies as a benchmark of their own: nothing is asked but the judge."""

from collections.abc import Sequence
from hashlib import sha256

import msgspec

from socratic_bench.ports.benchmark import (
    Benchmark,
    Episode,
    EpisodeContext,
    EpisodeResult,
    JudgeInput,
    Length,
    MetricInfo,
    Metrics,
    Sample,
)
from socratic_bench.ports.parts import Parts
from socratic_bench.settings import MOST_TURNS, CoreConfig
from socratic_bench.studies.labels.turns import LabelledTurn
from socratic_bench.turns import Rubric, Turn, recorded_reply
from socratic_bench.types import Role

NAME = "labels"
# How a judge is shown the first words, if others before the reply are left out.
FIRST_WORDS = ", first words"


class LabelledEpisode(Episode, frozen=True, kw_only=True):
    """Every labelled reply, published as if it had just been given."""

    turns: Sequence[LabelledTurn]
    context_exchanges: int

    def play(self, context: EpisodeContext) -> EpisodeResult:
        for index, one in enumerate(self.turns):
            context.publish(_turn(index, one))
        return EpisodeResult(end_reason="max_turns")

    def judge_input(self, turns: Sequence[Turn], index: int) -> JudgeInput:
        """As in a run: the first words, the last few exchanges, and what is answered."""
        one, rubric = self.turns[index].first, self.rubric
        assert rubric is not None  # noqa: S101 -- `prepare` gives one
        asking, tested = rubric.speakers
        said = [(asking if line.role == "user" else tested, line.text) for line in one.history]
        recent = said[max(0, len(said) - 2 * self.context_exchanges) :]
        if len(recent) < len(said):
            recent = [(f"{asking}{FIRST_WORDS}", said[0][1]), *recent]
        return JudgeInput((*recent, (asking, one.prompt or "")), turns[index].reply.message.text)

    def expected_reply(self, role: Role, length: Length) -> str:  # noqa: ARG002
        return "The reply is just what the rubric asks for, in full."


class LabelledReplies(Benchmark):
    """The labelled replies, to be judged by a rubric."""

    name = NAME
    primary_metric = "n_labelled"
    parts = Parts(max_turns=MOST_TURNS)

    def __init__(self, turns: Sequence[LabelledTurn], rubric: Rubric) -> None:
        self._turns = turns
        self._rubric = rubric

    @property
    def metrics(self) -> Sequence[MetricInfo]:
        return (MetricInfo(name="n_labelled", title="Labelled replies", low=0, high=None),)

    def prepare(self, config: CoreConfig) -> LabelledEpisode:
        return LabelledEpisode(
            turns=self._turns,
            context_exchanges=config.judge_context,
            rubric=self._rubric,
            opening=self._opening(),
        )

    def _opening(self) -> Sample:
        return Sample(
            id=NAME,
            label=f"{len(self._turns)} labelled replies",
            prompt="".join(one.first.prompt or "" for one in self._turns[:1]),
            n_items=len(self._turns),
            hashes={
                "replies_sha256": _fingerprint(self._turns),
                "rubric_sha256": self._rubric.sha256,
            },
        )

    def summarise(self, config: CoreConfig, turns: Sequence[Turn]) -> Metrics:
        del config
        return {"n_labelled": len(turns)}


def _fingerprint(turns: Sequence[LabelledTurn]) -> str:
    """Of what is judged, in its order, whatever the labels say of it."""
    shown = [(one.first.history, one.first.prompt, one.first.reply) for one in turns]
    return sha256(msgspec.json.encode(shown)).hexdigest()


def _turn(index: int, one: LabelledTurn) -> Turn:
    reply = recorded_reply(one.first.reply or "", "end_turn")
    return Turn(index=index, prompt=one.first.prompt or "", reply=reply)
