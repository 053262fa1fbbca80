"""A student without a model: it says what a question draws out of it, and is honest about the rest.

It reads the form of a question, and the words in it that its scenario names as cues.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from socratic_bench.benchmarks.socratic.scenarios import Insight, Move, Scenario
from socratic_bench.benchmarks.socratic.scenarios.cues import kinds_asked, ready
from socratic_bench.benchmarks.socratic.students.asking import (
    Asked,
    asked_by,
    has_number,
    refers_to,
)
from socratic_bench.benchmarks.socratic.students.pressure import (
    Push,
    Schedule,
    pushed,
    replaces,
)
from socratic_bench.benchmarks.socratic.students.reading import Analyse, heuristics
from socratic_bench.benchmarks.socratic.students.role import SENTENCE
from socratic_bench.benchmarks.socratic.students.seeded import draw
from socratic_bench.benchmarks.socratic.students.shared_words import rare_words, words_of
from socratic_bench.benchmarks.socratic.students.student import Exchange, Policy, StudentReply
from socratic_bench.benchmarks.socratic.students.voices import (
    Kind,
    count,
    joined,
    line,
    with_lead,
)

_LECTURE_WORDS = 40
_ASIDE_WORDS = 30  # what is said before a question, if it is short, says what the question is about
# A cue of the matter in the question counts for more than one beside it or one that fits any talk;
# what was just spoken about goes on if nothing else is asked about.
_OF_THE_MATTER, _BESIDE, _ANY, _GOES_ON = 3, 1, 1, 2
_MOST_SHARED = 3  # words of the question that stand in the sentence itself
_SURELY = 2  # shared words by which something told before is what is asked for


class _Words(Struct, frozen=True):
    """What the student says, what moved it, and whether it is only filler."""

    text: str
    policy: Policy
    is_filler: bool


class ScriptedStudent(Struct, frozen=True):
    """Says the same to the same tutor, seed for seed.

    A question draws out a sentence of a group that has one of its cues or shares words with it;
    each of them comes once. Else the student answers in its own voice: that it does not know or
    remember, neither yes nor no, or to what it was told. What it says again, or with nothing of its
    own left, is filler. Under pressure a push follows, or stands in place of the reply.
    """

    scenario: Scenario
    seed: int
    analyse: Analyse = heuristics
    schedule: Schedule = field(default_factory=Schedule)

    def reply(self, exchanges: Sequence[Exchange]) -> StudentReply:
        turn = len(exchanges)
        if self._closes(turn):
            return StudentReply(text=self.scenario.closing or "", closed=True, policy="scripted")
        push = self.schedule.at(turn)
        said = joined([exchange.student for exchange in exchanges])
        if push and self._pushes_alone(turn, push, said):
            text = pushed(self.scenario, self.seed, push)
            return StudentReply(text=text, closed=False, policy="pushed", pressure=push.kind)
        last = exchanges[-1].student
        words = self._answer(exchanges[-1].tutor, turn, said, last)
        text = with_lead(self.scenario, self.seed, turn, words.text, last)
        reply = StudentReply(
            text=text, closed=False, policy=words.policy, is_filler=words.is_filler
        )
        if push is None:
            return reply
        return replace(reply, text=pushed(self.scenario, self.seed, push, text), pressure=push.kind)

    def _closes(self, turn: int) -> bool:
        after = self.scenario.closes_after
        return after is not None and turn >= after

    def _pushes_alone(self, turn: int, push: Push, said: str) -> bool:
        """Always with false agreement; else now and then, once its own words are used up."""
        if replaces(push.kind):
            return True
        return draw(self.seed, "push alone", turn) % 3 == 0 and not self._has_own(said)

    def _answer(self, tutor: str, turn: int, said: str, last: str) -> _Words:
        asked = asked_by(tutor, self.scenario.language)
        own = self._drawn_out(asked, turn, said, last)
        is_wide = asked.kind == "open" and not asked.is_for_a_fact
        if own is None and is_wide and refers_to(last, tutor, asked):
            own = self._goes_on(said, last)
        if own is None and asked.is_for_a_number:
            own = self._says_again(asked, said)
        if own is not None:
            return _Words(own, "scripted", is_filler=said.count(own) > 1)
        has_own, has_moved = self._has_own(said), has_insight(self.scenario, said)
        policy: Policy
        kinds: list[Kind]
        if asked.kind == "none" or (asked.kind == "polar" and self._advises(asked, tutor)):
            policy, kinds = self._told(tutor), ["told"]
        elif asked.kind == "polar":
            policy, kinds = "answered_closed", ["polar"]
        else:
            policy, kinds = "answered_open", ["moved"] if has_moved else ["unsure"]
            if not (has_own or has_moved):
                kinds = ["filler", "unsure"]
            if asked.is_for_a_fact:
                kinds = ["recall", *kinds]
        text, is_again = line(self.scenario, self.seed, kinds, said)
        return _Words(text, policy, is_filler=is_again or not has_own)

    def _advises(self, asked: Asked, tutor: str) -> bool:
        """Advice with no more than a yes-or-no question after it is still advice."""
        return bool(asked.rest) and bool(self.analyse(tutor).has_advice)

    def _told(self, tutor: str) -> Policy:
        if self.analyse(tutor).has_advice:
            return "took_advice"
        return "heard_lecture" if len(tutor.split()) >= _LECTURE_WORDS else "prompted"

    def _drawn_out(self, asked: Asked, turn: int, said: str, last: str) -> str | None:
        """What the question draws out, if anything; of groups that fit alike, one by the seed."""
        if asked.kind == "none":
            return None
        if not self.scenario.moves:
            return next((one for one in self.scenario.replies if not count(said, one)), None)
        shared = self._shared(asked.questions)
        found = [
            (score, own)
            for group in self._groups(said)
            if (own := _next(group, said, asked, shared))
            and (score := _fit(group, own, asked, shared[own], goes_on=_goes_on(group, last)))
        ]
        best = max((score for score, _ in found), default=0)
        near = [own for score, own in found if score == best]
        return near[draw(self.seed, self.scenario.id, "group", turn) % len(near)] if near else None

    def _shared(self, questions: str) -> Mapping[str, int]:
        """How many telling words each own sentence has in common with the questions."""
        words = words_of(questions)
        return {own: len(words & rare) for own, rare in rare_words(self.scenario).items()}

    def _goes_on(self, said: str, last: str) -> str | None:
        """The next of what was just spoken about, but no insight: nothing has led to that."""
        going_on = (group for group in self._groups(said) if _goes_on(group, last))
        found = ((group, _next(group, said)) for group in going_on)
        return next((own for group, own in found if own and not _states(group, own)), None)

    def _says_again(self, asked: Asked, said: str) -> str | None:
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
        return any(_next(group, said) for group in self._groups(said))

    def _groups(self, said: str) -> Sequence[Insight | Move]:
        """All groups; what speaks for the belief is not said any more once an insight was."""
        moves = self.scenario.moves
        if has_insight(self.scenario, said):
            moves = tuple(move for move in moves if not move.holds_belief)
        return (*self.scenario.draws_out, *moves)


def has_insight(scenario: Scenario, said: str) -> bool:
    """Whether one of the insights was stated in these words, as `joined` makes them."""
    return any(one.says and count(said, one.says[-1]) for one in scenario.draws_out)


def _next(
    group: Insight | Move,
    said: str,
    asked: Asked | None = None,
    shared: Mapping[str, int] | None = None,
) -> str | None:
    """The next of a group: in order on the way to an insight, else the one that fits best."""
    left = [own for own in group.says if not count(said, own)]
    if asked is None or shared is None or isinstance(group, Insight):
        return next(iter(left), None)
    number = asked.is_for_a_number
    return max(left, key=lambda own: (number and has_number(own), shared[own]), default=None)


def _states(group: Insight | Move, own: str) -> bool:
    return isinstance(group, Insight) and own == group.says[-1]


def _goes_on(group: Insight | Move, last: str) -> bool:
    return any(count(joined([last]), own) for own in group.says)


def _fit(group: Insight | Move, own: str, asked: Asked, n_shared: int, *, goes_on: bool) -> int:
    """How well a question fits a group, and the sentence in it; 0 if it draws nothing out of it.

    An insight is stated only when its matter is asked about openly: neither a mere "why" gets there
    nor a question whose yes would be the tutor's thought.
    """
    cues = ready(group.cues)
    of_the_matter = cues.n_matching(asked.questions)
    is_open = asked.kind == "open"  # "does that make sense" asks for nothing in particular
    general = len(cues.kinds & kinds_asked(asked.questions)) if is_open else 0
    is_short = is_open and len(asked.rest.split()) <= _ASIDE_WORDS
    beside = is_short and cues.n_matching(asked.rest) > 0
    if asked.is_for_a_number and not has_number(own):
        return 0
    if _states(group, own) and not (is_open and (of_the_matter or beside)):
        return 0
    if n_shared == 1 and not of_the_matter and (asked.is_for_a_fact or not is_open):
        n_shared = 0  # one word in common is no answer to a question for one thing
    fit = _OF_THE_MATTER * min(2, of_the_matter) + _ANY * min(2, general) + _BESIDE * beside
    fit += min(_MOST_SHARED, n_shared)
    is_asked_for = of_the_matter or n_shared
    return fit + (_GOES_ON if is_asked_for else _ANY) * goes_on if fit else 0
