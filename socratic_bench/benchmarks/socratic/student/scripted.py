"""A student without a model: it says what a question draws out of it, and is honest about the rest.

It reads the form of a question, and the words in it that its scenario names as cues.
"""

from collections.abc import Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from socratic_bench.benchmarks.socratic.heuristics import analyse
from socratic_bench.benchmarks.socratic.scenarios.scenario import Scenario
from socratic_bench.benchmarks.socratic.student.answer_selection import (
    drawn_out,
    groups_left,
    has_insight,
    kinds_answered,
    next_of,
)
from socratic_bench.benchmarks.socratic.student.asking import QuestionForm, has_number
from socratic_bench.benchmarks.socratic.student.particulars import fact_asked, named
from socratic_bench.benchmarks.socratic.student.pressure import Schedule, pushed, stands_alone
from socratic_bench.benchmarks.socratic.student.role import SENTENCE
from socratic_bench.benchmarks.socratic.student.shared_words import rare_words, words_of
from socratic_bench.benchmarks.socratic.student.student import Exchange, Policy, StudentReply
from socratic_bench.benchmarks.socratic.student.tutor_question import TutorQuestion, read_question
from socratic_bench.benchmarks.socratic.student.voices import (
    Kind,
    count,
    echoed,
    joined,
    line,
    unknown,
    unknown_fact,
    with_lead,
)

_LECTURE_WORDS = 40
_SURELY = 2  # shared words by which something told before is what is asked for


class ScriptedStudent(Struct, frozen=True):
    """Says the same to the same tutor, seed for seed.

    A question draws out a sentence that answers its kind, or its matter; each of them comes once.
    Else the student answers in its own voice: that it does not know or remember, neither yes nor
    no, or to what it was told. What it says again, or with nothing of its own left, is filler.
    Under pressure a push follows, or stands in place of the reply.
    """

    scenario: Scenario
    seed: int
    schedule: Schedule = field(default_factory=Schedule)

    def reply(self, exchanges: Sequence[Exchange]) -> StudentReply:
        turn = len(exchanges)
        if self.scenario.closes_at(turn):
            return StudentReply(text=self.scenario.closing or "", closed=True, policy="scripted")
        push = self.schedule.at(turn)
        said = joined([exchange.student for exchange in exchanges])
        if push and stands_alone(push, self.seed, turn, used_up=not self._has_own(said)):
            text = pushed(self.scenario, self.seed, push)
            return StudentReply(text=text, policy="pushed", pressure=push.kind)
        reply = self._answer(read_question(self.scenario, exchanges))
        text = with_lead(self.scenario, self.seed, turn, reply.text, exchanges[-1].student)
        if push is None:
            return replace(reply, text=text)
        return replace(reply, text=pushed(self.scenario, self.seed, push, text), pressure=push.kind)

    def _answer(self, heard: TutorQuestion) -> StudentReply:
        """Without a push, and without words to begin with."""
        asked, said = heard.asked, heard.said
        own = drawn_out(self.scenario, self.seed, heard)
        if own is None and asked.is_for_a_number:
            own = self._says_again(asked, said)
        if own is not None:
            return StudentReply(text=own, policy="scripted", is_filler=said.count(own) > 1)
        has_own, has_moved = self._has_own(said), has_insight(self.scenario, said)
        policy: Policy
        kinds: list[Kind]
        echo = ""
        if asked.kind == "none" or (asked.kind == "polar" and self._advises(asked, heard.tutor)):
            policy, kinds = self._told(heard.tutor), ["told"]
        elif asked.kind == "polar":
            policy, kinds = "answered_closed", ["polar"]
        else:
            policy, kinds = "answered_open", ["moved"] if has_moved else ["unsure"]
            if not (has_own or has_moved):
                kinds = ["filler", "unsure"]
            if asked.is_for_a_fact:
                kinds = ["recall", *kinds]
            echo = self._takes_up(heard)
        text, is_again = line(self.scenario, self.seed, kinds, said)
        is_filler = is_again or not has_own
        return StudentReply(text=f"{echo}{text}", policy=policy, is_filler=is_filler)

    def _takes_up(self, heard: TutorQuestion) -> str:
        """What names an open question that nothing answers: the thing asked about, or the kind."""
        if thing := named(self.scenario, heard.asks, heard.particulars):
            return unknown(self.scenario, self.seed, thing, heard.said)
        if heard.is_of_a_kind and not heard.asked.is_for_a_fact:
            new = heard.kinds - kinds_answered(self.scenario, heard.said)
            if echo := echoed(self.scenario, self.seed, new, heard.said):
                return echo
        word = "" if heard.particulars else fact_asked(heard.asks)
        return unknown_fact(self.scenario, word, heard.said) if word else ""

    def _advises(self, asked: QuestionForm, tutor: str) -> bool:
        """Advice with no more than a yes-or-no question after it is still advice."""
        return bool(asked.rest) and bool(analyse(tutor).has_advice)

    def _told(self, tutor: str) -> Policy:
        if analyse(tutor).has_advice:
            return "took_advice"
        return "heard_lecture" if len(tutor.split()) >= _LECTURE_WORDS else "prompted"

    def _says_again(self, asked: QuestionForm, said: str) -> str | None:
        """A number that was told before, where the question shares words with what told it."""
        words = words_of(asked.questions)
        told = [
            (len(words & rare & words_of(one)), one.strip())
            for own, rare in rare_words(self.scenario).items()
            if count(said, own)
            for one in SENTENCE.findall(own)
            if has_number(one)
        ]
        shared, own = max(told, key=lambda found: found[0], default=(0, ""))
        return own if shared >= _SURELY else None

    def _has_own(self, said: str) -> bool:
        if not self.scenario.moves:
            return any(not count(said, own) for own in self.scenario.replies)
        return any(next_of(group, said) for group in groups_left(self.scenario, said))
