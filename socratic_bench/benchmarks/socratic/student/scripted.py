"""A student without a model: it says the sentence that a question is closest to."""

from collections.abc import Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from socratic_bench.benchmarks.socratic.heuristics import analyse
from socratic_bench.benchmarks.socratic.scenarios.scenario import Insight, Scenario
from socratic_bench.benchmarks.socratic.student.pressure import Schedule, pushed, stands_alone
from socratic_bench.benchmarks.socratic.student.similarity import questions_in, similarities
from socratic_bench.benchmarks.socratic.student.student import Exchange, Policy, StudentReply
from socratic_bench.benchmarks.socratic.student.voices import (
    VoiceKind,
    count,
    joined,
    voice_line,
    with_lead,
)

# Measured: docs/scenarios.md, "How the scripted student was measured".
THRESHOLD = 0.25  # a sentence that is less similar to the question is no answer
_FOLLOW_UP = 0.35  # a question so similar to what was said already is about that
_LEADS_ON = 3.0  # what a step to an insight counts then
_LECTURE_WORDS = 40


class ScriptedStudent(Struct, frozen=True):
    """Says the same to the same tutor, seed for seed.

    The tutor's question gets the sentence of the scenario that is closest to it, each sentence
    once. Whoever asks for any step to an insight gets the next one, and a question that follows up
    what the student has said leads to such a step more readily. A question that is close to none,
    a statement, and advice get a line of the scenario's voice. A line that comes again, or any
    line once no sentence is left, is filler. Under pressure a push follows the reply, or stands
    in its place.
    """

    scenario: Scenario
    seed: int
    schedule: Schedule = field(default_factory=Schedule)

    def reply(self, exchanges: Sequence[Exchange]) -> StudentReply:
        turn = len(exchanges)
        if self.scenario.closes_at(turn):
            return StudentReply(text=self.scenario.closing or "", closed=True, policy="scripted")
        history = joined([exchange.student for exchange in exchanges])
        push = self.schedule.at(turn)
        if push and stands_alone(push, self.seed, turn, used_up=not self._has_more(history)):
            text = pushed(self.scenario, self.seed, push)
            return StudentReply(text=text, policy="pushed", pressure=push.kind)
        reply = self._answer(exchanges[-1].tutor, history)
        text = with_lead(self.scenario, self.seed, turn, reply.text, exchanges[-1].student)
        if push is None:
            return replace(reply, text=text)
        return replace(reply, text=pushed(self.scenario, self.seed, push, text), pressure=push.kind)

    def _answer(self, tutor: str, history: str) -> StudentReply:
        """The reply without a push and without words to begin with."""
        sentence = self._closest(tutor, history) if questions_in(tutor) else None
        if sentence is not None:
            return StudentReply(text=sentence, policy="scripted")
        has_more = self._has_more(history)
        policy = _policy(tutor)
        kinds: list[VoiceKind]
        if policy == "answered_open":
            kinds = ["unsure"] if has_more else ["filler", "unsure"]
            if self._has_insight(history):
                kinds = ["moved"]
        else:
            kinds = ["polar"] if policy == "answered_closed" else ["told"]
        text, is_repeated = voice_line(self.scenario, self.seed, kinds, history)
        return StudentReply(text=text, policy=policy, is_filler=is_repeated or not has_more)

    def _closest(self, tutor: str, history: str) -> str | None:
        """The sentence that the question is closest to, of those that may come now."""
        if not self.scenario.moves:
            return next((text for text in self.scenario.replies if not count(history, text)), None)
        similar = similarities(self.scenario, tutor)
        weight = _LEADS_ON if self._is_follow_up(similar, history) else 1.0
        scores = {
            step: weight * max(similar[text] for text in insight.says)
            for insight in self.scenario.draws_out
            if (step := _next_step(insight, history)) is not None
        }
        scores |= {text: similar[text] for text in self._remaining_sentences(history)}
        best = max(scores, key=scores.__getitem__, default=None)
        return best if best is not None and scores[best] >= THRESHOLD else None

    def _is_follow_up(self, similar: Mapping[str, float], history: str) -> bool:
        """Whether the question is closest to something that the student has said already."""
        closest = max(similar, key=similar.__getitem__)
        return similar[closest] >= _FOLLOW_UP and count(history, closest) > 0

    def _remaining_sentences(self, history: str) -> list[str]:
        """Sentences beside the insights that may still come: after an insight, none that speaks
        for the belief.
        """
        has_insight = self._has_insight(history)
        moves = [move for move in self.scenario.moves if not (move.holds_belief and has_insight)]
        return [text for move in moves for text in move.says if not count(history, text)]

    def _has_insight(self, history: str) -> bool:
        insights = self.scenario.draws_out
        return any(insight.says and count(history, insight.says[-1]) for insight in insights)

    def _has_more(self, history: str) -> bool:
        """Whether there is a sentence that was not said yet."""
        if not self.scenario.moves:
            return any(not count(history, text) for text in self.scenario.replies)
        steps = [_next_step(insight, history) for insight in self.scenario.draws_out]
        return any(steps) or bool(self._remaining_sentences(history))


def _next_step(insight: Insight, history: str) -> str | None:
    return next((text for text in insight.says if not count(history, text)), None)


def _policy(tutor: str) -> Policy:
    """What the student takes the tutor's words for. Advice with a mere yes-or-no question behind
    it is still advice.
    """
    reading = analyse(tutor)
    asks = bool(questions_in(tutor)) if reading.has_question is None else reading.has_question
    if asks and reading.open_ended is not False:
        return "answered_open"
    if reading.has_advice:
        return "took_advice"
    if asks:
        return "answered_closed"
    return "heard_lecture" if len(tutor.split()) >= _LECTURE_WORDS else "prompted"
