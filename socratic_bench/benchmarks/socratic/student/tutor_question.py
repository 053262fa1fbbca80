"""What a student hears: a tutor's question, and what was said before it."""

from collections.abc import Sequence

from msgspec import Struct

from socratic_bench.benchmarks.socratic.scenarios.scenario import Scenario
from socratic_bench.benchmarks.socratic.student.asking import (
    QuestionForm,
    asked_by,
    asks_for_the_end,
    refers_to,
)
from socratic_bench.benchmarks.socratic.student.kinds import kinds_asked, unquoted
from socratic_bench.benchmarks.socratic.student.particulars import others, particulars
from socratic_bench.benchmarks.socratic.student.shared_words import words_of
from socratic_bench.benchmarks.socratic.student.student import Exchange
from socratic_bench.benchmarks.socratic.student.voices import joined


class TutorQuestion(Struct, frozen=True):
    """A tutor's question, what was said before it, and what it asks for: the kinds, if it does so
    openly, whether only an answer of these answers it, and the things and people, and whether it
    names nothing but what the talk began with.
    """

    tutor: str
    asked: QuestionForm
    turn: int
    said: str
    opening: str
    last: str
    kinds: frozenset[str] = frozenset()
    is_of_a_kind: bool = False
    particulars: frozenset[str] = frozenset()
    is_about_the_opening: bool = True
    others: frozenset[str] = frozenset()

    @property
    def known(self) -> str:
        """What the tutor may merely quote: the last reply, and what the talk began with."""
        return f"{self.opening} {self.last}".casefold()

    @property
    def asks(self) -> str:
        """The questions without what they quote."""
        return unquoted(self.asked.questions)

    @property
    def is_on_topic(self) -> bool:
        """Whether it is asked about words of the last reply or of how the talk began."""
        return bool(words_of(self.asked.questions) & words_of(self.known))

    @property
    def asks_for_the_end(self) -> bool:
        """Whether it is asked where all this leads, or what could change the student's mind.

        Then the way to an insight may end.
        """
        asks = asks_for_the_end(self.asked) or "doubt" in self.kinds
        return asks and (self.is_on_topic or self.refers_back)

    @property
    def refers_back(self) -> bool:
        """Whether it is asked openly about what was just said."""
        if self.asked.kind != "open" or self.asked.is_for_a_fact:
            return False
        shared = words_of(self.asked.questions) & words_of(self.last)
        return bool(shared) or refers_to(self.last, self.tutor, self.asked)


def read_question(scenario: Scenario, exchanges: Sequence[Exchange]) -> TutorQuestion:
    last = exchanges[-1]
    asked = asked_by(last.tutor, scenario.language)
    opening, asks = exchanges[0].student, unquoted(asked.questions)
    kinds = kinds_asked(asked.questions) if asked.kind == "open" else ()
    names = frozenset(one.name for one in kinds)
    return TutorQuestion(
        tutor=last.tutor,
        asked=asked,
        turn=len(exchanges),
        said=joined([exchange.student for exchange in exchanges]),
        opening=opening,
        last=last.student,
        kinds=names,
        is_of_a_kind=any(one.is_sure for one in kinds) and names != {"more"},
        particulars=particulars(scenario, asks, f"{opening} {last.student}"),
        is_about_the_opening=not particulars(scenario, asks, opening),
        others=others(scenario, asks),
    )
