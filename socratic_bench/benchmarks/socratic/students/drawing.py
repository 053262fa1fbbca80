"""What a question draws out of a student: a sentence that answers what is asked.

A question that fits any talk ("how do you know", "what would follow") is answered by a sentence
that its scenario marks as an answer to this kind; any other by a sentence of its matter.
"""

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from socratic_bench.benchmarks.socratic.scenarios import Insight, Move, Scenario
from socratic_bench.benchmarks.socratic.scenarios.cues import Cues, ready
from socratic_bench.benchmarks.socratic.students.asking import Asked, has_number
from socratic_bench.benchmarks.socratic.students.aspects import NO_ANSWER, suits
from socratic_bench.benchmarks.socratic.students.hearing import Heard
from socratic_bench.benchmarks.socratic.students.kinds import OF_ANOTHER, word_defined
from socratic_bench.benchmarks.socratic.students.particulars import speaks_of
from socratic_bench.benchmarks.socratic.students.seeded import draw
from socratic_bench.benchmarks.socratic.students.shared_words import (
    all_words_of,
    rare_words,
    words_of,
)
from socratic_bench.benchmarks.socratic.students.voices import count, joined

Group = Insight | Move

_ASIDE_WORDS = 30  # what is said before a question, if it is short, says what the question is about
# What counts for a sentence: that it answers the kind of the question, a cue of the matter in the
# question, one that only takes up what was said, one beside the question, what goes on.
_ANSWERS, _OF_THE_MATTER, _TAKEN_UP, _BESIDE, _GOES_ON = 6, 3, 1, 1, 2
_TO_AN_INSIGHT = 2  # more for a step to an insight than for another answer to the same
_SUITS = 3  # more or less for what answers just this side of the kind, or another side
_MOST_CUES = 2
_MOST_SHARED = 3  # words of the question that stand in the sentence itself
_SURELY = 2  # words of the matter by which a sentence is asked for, whatever the kind
# What the next step to an insight answers, if it is asked of the step before it.
_LEADS_ON = frozenset(("reason", "evidence", "consequence", "more"))
_IN_A_ROW = 5  # seeds whose first answer is the same; the words that lead up to it differ


class _Hits(Struct, frozen=True):
    """What of a group stands in the tutor's words: cues of its own, ones that only take up what was
    said, words of the sentence; a cue beside the question; whether the group was just spoken from.
    """

    n_own: int
    n_taken_up: int
    n_shared: int
    is_beside: bool
    goes_on: bool

    @property
    def weight(self) -> int:
        cues = _OF_THE_MATTER * min(_MOST_CUES, self.n_own) + _TAKEN_UP * min(1, self.n_taken_up)
        words = min(_MOST_SHARED, self.n_shared)
        return cues + words + _BESIDE * self.is_beside + _GOES_ON * self.goes_on


def drawn_out(scenario: Scenario, seed: int, heard: Heard) -> str | None:
    """What the question draws out, if anything.

    Of groups that fit alike, the way to an insight that is furthest gone, or one by the seed.
    """
    if heard.asked.kind == "none":
        return None
    if not scenario.moves:
        return next((one for one in scenario.replies if not count(heard.said, one)), None)
    if own := _definition(scenario, heard):
        return own
    shared = _shared(scenario, heard)
    closed = _closed(scenario, heard)
    found = [
        ((score, _begun(group, heard.said)), n, own)
        for group in groups_left(scenario, heard.said)
        for n, own in enumerate(_nexts(group, heard, shared))
        if (score := _fit(group, own, heard, shared[own], closed))
    ]
    best = max((score for score, _, _ in found), default=(0, 0))
    near = sorted(((n, own) for score, n, own in found if score == best), key=lambda one: one[0])
    if not near:
        return None
    at = draw(seed, scenario.id, "group", heard.turn)
    if heard.turn == 1:
        n_groups = max(1, sum(n == 0 for n, _ in near))
        at = draw(scenario.id, "group") % n_groups + seed // _IN_A_ROW
    return near[at % len(near)][1]


def kinds_answered(scenario: Scenario, said: str) -> frozenset[str]:
    """The kinds of which something was said."""
    groups: Sequence[Group] = (*scenario.draws_out, *scenario.moves)
    spoken = [ready(group.cues).kinds for group in groups if _is_begun(group, said)]
    return frozenset().union(*spoken)


def _is_begun(group: Group, said: str) -> bool:
    return any(count(said, own) for own in group.says)


def _closed(scenario: Scenario, heard: Heard) -> frozenset[str]:
    """The kinds that draw nothing out by themselves any more.

    One has a thing from one place: a second answer would contradict the first. Of a word that is
    defined already, another word's definition says nothing.
    """
    closed = {
        "source"
        for group in scenario.moves
        if {"source"} == ready(group.cues).kinds and _is_begun(group, heard.said)
    }
    if heard.kinds == {"meaning"} and _definitions(scenario, heard):
        closed.add("meaning")
    return frozenset(closed)


def _definitions(scenario: Scenario, heard: Heard) -> Sequence[str]:
    """What says something of the very word whose meaning is asked for, the most of it first."""
    words = all_words_of(word_defined(heard.asked.questions))
    found = {
        own: len(words & all_words_of(own))
        for group in scenario.moves
        if "meaning" in ready(group.cues).kinds
        for own in group.says
    }
    return sorted((own for own in found if found[own]), key=lambda own: -found[own])


def _definition(scenario: Scenario, heard: Heard) -> str | None:
    """The definition of the word that is asked for, if the scenario has one that is left."""
    if heard.kinds != {"meaning"}:
        return None
    left = [own for group in groups_left(scenario, heard.said) for own in group.says]
    found = _definitions(scenario, heard)
    return next((own for own in found if own in left and not count(heard.said, own)), None)


def groups_left(scenario: Scenario, said: str) -> Sequence[Group]:
    """All groups; what speaks for the belief is not said any more once an insight was."""
    moves = scenario.moves
    if has_insight(scenario, said):
        moves = tuple(move for move in moves if not move.holds_belief)
    return (*scenario.draws_out, *moves)


def has_insight(scenario: Scenario, said: str) -> bool:
    """Whether one of the insights was stated in these words, as `joined` makes them."""
    return any(one.says and count(said, one.says[-1]) for one in scenario.draws_out)


def next_of(group: Group, said: str) -> str | None:
    """The next of a group in order."""
    return next((own for own in group.says if not count(said, own)), None)


def _nexts(group: Group, heard: Heard, shared: Mapping[str, int]) -> Sequence[str]:
    """The next of a group: in order on the way to an insight, else the one that fits best.

    First of all, any of those that fit alike.
    """
    left = [own for own in group.says if not count(heard.said, own)]
    if isinstance(group, Insight):
        return left[:1]
    number, kinds = heard.asked.is_for_a_number, heard.kinds & ready(group.cues).kinds
    fits = [
        (number and has_number(own), shared[own] + _SUITS * suits(heard.asks, kinds, own))
        for own in left
    ]
    best = [own for own, fit in zip(left, fits, strict=True) if fit == max(fits)]
    return best if heard.turn == 1 else best[:1]


def _shared(scenario: Scenario, heard: Heard) -> Mapping[str, int]:
    """How many telling words each own sentence has in common with the questions.

    In an open question they are more than what the tutor quotes.
    """
    words = words_of(heard.asked.questions)
    if heard.asked.kind == "open" and not heard.asked.is_for_a_fact:
        words -= words_of(heard.known)
    return {own: len(words & rare) for own, rare in rare_words(scenario).items()}


def _begun(group: Group, said: str) -> int:
    """How far the student is on the way to an insight: of what fits alike, it goes on with that."""
    return isinstance(group, Insight) and sum(bool(count(said, own)) for own in group.says)


def _goes_on(group: Group, last: str) -> bool:
    return any(count(joined([last]), own) for own in group.says)


def _fit(group: Group, own: str, heard: Heard, n_shared: int, closed: Collection[str]) -> int:
    """How well a question fits a group, and the sentence in it; 0 if it draws nothing out of it."""
    asked, cues = heard.asked, ready(group.cues)
    if asked.is_for_a_number and not has_number(own):
        return 0
    found = cues.matching(asked.questions)
    has_own_cue = any(one not in heard.known for one in found)
    is_free = has_own_cue or heard.kinds == {"meaning"} or (asked.kind == "polar" and bool(found))
    things = heard.others if is_free else heard.particulars
    if not speaks_of(
        own, heard.asks, () if isinstance(group, Move) and found and is_free else things
    ):
        return 0
    if n_shared == 1 and not found and (asked.is_for_a_fact or asked.kind != "open"):
        n_shared = 0  # one word in common is no answer to a question for one thing
    hits = _Hits(
        n_own=len([one for one in found if one not in heard.known]),
        n_taken_up=len([one for one in found if one in heard.known]),
        n_shared=n_shared,
        is_beside=asked.kind == "open" and _is_beside(cues, asked),
        goes_on=heard.refers_back and _goes_on(group, heard.last),
    )
    kinds = cues.kinds & heard.kinds - {*closed}
    suit = suits(heard.asks, kinds, own)
    answers = _answers(group, own, heard, hits, is_marked=bool(kinds) and suit != NO_ANSWER)
    if answers is None or not (answers or _is_asked_for(heard, hits)):
        return 0
    to_an_insight = _TO_AN_INSIGHT * (isinstance(group, Insight) and heard.turn > 1)
    return hits.weight + answers * (_ANSWERS + to_an_insight + _SUITS * max(0, suit))


def _answers(group: Group, own: str, heard: Heard, hits: _Hits, *, is_marked: bool) -> bool | None:
    """Whether the sentence answers the kind of the question; `None` if it may not come at all.

    An insight is stated only when its matter is asked about openly, where it leads, or what changed
    with it: neither a mere "why" gets there nor a question whose yes would be the tutor's thought.
    """
    if isinstance(group, Move):
        return is_marked
    if own != group.says[-1]:
        return is_marked or (hits.goes_on and bool(heard.kinds & _LEADS_ON))
    is_marked &= heard.is_on_topic and "reason" not in heard.kinds
    is_due = is_marked or heard.asks_for_the_end
    may_come = is_due or hits.n_own or hits.n_taken_up or hits.is_beside
    return is_due if heard.asked.kind == "open" and may_come else None


def _is_asked_for(heard: Heard, hits: _Hits) -> bool:
    """Whether words of the matter ask for a sentence, more surely where a kind is asked for."""
    if OF_ANOTHER in heard.kinds:
        return bool(hits.n_own or hits.n_taken_up or hits.n_shared >= _SURELY)
    if heard.is_of_a_kind and not heard.asked.is_for_a_fact:
        n_cues = min(hits.n_own, _MOST_CUES)
        return bool(hits.n_own or hits.n_taken_up) and n_cues + hits.n_shared > _SURELY
    return bool(hits.weight)


def _is_beside(cues: Cues, asked: Asked) -> bool:
    return len(asked.rest.split()) <= _ASIDE_WORDS and bool(cues.matching(asked.rest))
