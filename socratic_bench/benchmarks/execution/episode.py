"""Plays the items: each is one call, which follows from no other."""

from collections.abc import Sequence

from socratic_bench.benchmarks.execution.items import Item
from socratic_bench.benchmarks.execution.prompts import prompt_of, system_prompt
from socratic_bench.benchmarks.execution.sampling import sampling_of
from socratic_bench.benchmarks.execution.settings import Settings
from socratic_bench.benchmarks.execution.turn import ExecutionTurn, read
from socratic_bench.ports.benchmark import Episode, EpisodeContext, EpisodeResult, Length
from socratic_bench.turns import Turn
from socratic_bench.types import CallKey, Message, Request, Role, clean

# What a model may write before its answer, in words: a guess for estimates.
STEPS: dict[Length, int] = {"short": 10, "likely": 40, "long": 150}
STEP = "Then the loop goes on with its next value. "


class ExecutionEpisode(Episode, frozen=True, kw_only=True):
    """`system` is the user's own system prompt; `None`: the built-in one of the item's level."""

    settings: Settings
    items: tuple[Item, ...]
    system: str | None = None

    def play(self, context: EpisodeContext) -> EpisodeResult:
        context.play_items(self.ask)
        return EpisodeResult(end_reason="max_turns")

    def ask(self, context: EpisodeContext, index: int) -> Turn:
        """One item."""
        item = self.items[index]
        prompt, sampling = clean(prompt_of(item)), sampling_of(self.settings, item)
        request = Request(
            messages=(Message.user(prompt),),
            system=self.system or system_prompt(item.level),
            config=sampling.config,
            temperature_if_taken=sampling.temperature_if_taken,
        )
        reply = context.tested.complete(request, CallKey(role="model", index=index))
        return ExecutionTurn(index=index, prompt=prompt, reply=reply, item=item)

    def measured(self, turns: Sequence[Turn], index: int) -> Turn:
        return read(ExecutionTurn.of(turns[index]))

    def expected_reply(self, role: Role, length: Length) -> str:
        del role
        return STEP * STEPS[length] + "[ANSWER]\nassert call == [1, 2, 3]\n[/ANSWER]"
