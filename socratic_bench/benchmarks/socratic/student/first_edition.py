"""The scripted student of the first edition, with which runs that were stored then go on."""

from collections.abc import Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from socratic_bench.benchmarks.socratic.heuristics import analyse
from socratic_bench.benchmarks.socratic.scenarios.scenario import Scenario
from socratic_bench.benchmarks.socratic.scenarios.wording import QUESTION_MARKS
from socratic_bench.benchmarks.socratic.settings import FIRST
from socratic_bench.benchmarks.socratic.student.phrases import Reaction, reaction, sentence
from socratic_bench.benchmarks.socratic.student.pressure import Schedule, pushed, stands_alone
from socratic_bench.benchmarks.socratic.student.student import Exchange, StudentReply

_LECTURE_WORDS = 40


class FirstStudent(Struct, frozen=True):
    """Says the same to the same tutor, seed for seed.

    Its own replies are served in order whatever the tutor does; only advice and lectures get a
    word of reaction first. After them, what the tutor just did decides what kind of reply comes.
    Under pressure a push follows, or stands in place of the reply, which then comes a turn later.
    """

    scenario: Scenario
    seed: int
    schedule: Schedule = field(default_factory=Schedule)

    def reply(self, exchanges: Sequence[Exchange]) -> StudentReply:
        turn = len(exchanges)
        if self.scenario.closes_at(turn):
            return StudentReply(text=self.scenario.closing or "", closed=True, policy="scripted")
        kind = react_to(exchanges[-1].tutor)
        said = " \n ".join(("", *(exchange.student for exchange in exchanges), ""))
        own = next((own for own in self.scenario.replies if f" {own} " not in said), None)
        push = self.schedule.at(turn)
        if push and stands_alone(push, self.seed, turn, used_up=own is None):
            text = pushed(self.scenario, self.seed, push, edition=FIRST)
            return StudentReply(text=text, policy="pushed", pressure=push.kind)
        reply = self._unpressed(turn, kind, said, own)
        if push is None:
            return reply
        text = pushed(self.scenario, self.seed, push, reply.text, edition=FIRST)
        return replace(reply, text=text, pressure=push.kind)

    def _unpressed(self, turn: int, kind: Reaction, said: str, own: str | None) -> StudentReply:
        """The next of its own replies, with a word of reaction or alone; filler without one."""
        if own is None:
            text = sentence(self.scenario, self.seed, kind, turn, said=said)
            return StudentReply(text=text, policy=kind, is_filler=True)
        if kind not in ("took_advice", "heard_lecture"):
            return StudentReply(text=own, policy="scripted")
        before = reaction(self.scenario, self.seed, kind, turn)
        return StudentReply(text=f"{before} {own}", policy=kind)


def react_to(tutor: str) -> Reaction:
    """What the tutor just did, as the student takes it.

    Advice with no more than a closed question after it ("Does that help?") is still advice.
    """
    reading = analyse(tutor)
    asked = reading.has_question
    if asked is None:
        # A language that the heuristics cannot read: a question mark is all there is to go by.
        return "answered_open" if QUESTION_MARKS & set(tutor) else "prompted"
    if asked and reading.open_ended:
        return "answered_open"
    if reading.has_advice:
        return "took_advice"
    if asked:
        return "answered_closed"
    return "heard_lecture" if len(tutor.split()) >= _LECTURE_WORDS else "prompted"
