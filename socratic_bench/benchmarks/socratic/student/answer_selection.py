"""What a question draws out of a student: the sentence that it asks for most surely, if any."""

from collections.abc import Iterator, Mapping, Sequence

from socratic_bench.benchmarks.socratic.scenarios.cues import ready
from socratic_bench.benchmarks.socratic.scenarios.scenario import Move, Scenario
from socratic_bench.benchmarks.socratic.student.examples import similarity
from socratic_bench.benchmarks.socratic.student.kinds import word_defined
from socratic_bench.benchmarks.socratic.student.scoring import (
    OF_THE_KIND,
    Candidate,
    Group,
    GroupMatch,
    match_group,
    score,
)
from socratic_bench.benchmarks.socratic.student.seeded import draw
from socratic_bench.benchmarks.socratic.student.shared_words import all_words_of, words_of
from socratic_bench.benchmarks.socratic.student.tutor_question import TutorQuestion
from socratic_bench.benchmarks.socratic.student.voices import count

_LATER_STEP = 0.7  # of the similarity of a later step: who asks for it is led there step by step
_NEAR, _NEAR_AT_FIRST = 0.97, 0.95  # of the best: the seed chooses among these
_IN_A_ROW = 5  # seeds whose first answer is the same; the words that lead up to it differ


def drawn_out(scenario: Scenario, seed: int, heard: TutorQuestion) -> str | None:
    """What the question draws out, if anything; of what fits alike, one by the seed."""
    if heard.asked.kind == "none":
        return None
    if not scenario.moves:
        return next((one for one in scenario.replies if not count(heard.said, one)), None)
    if own := _definition(scenario, heard):
        return own
    similar, closed = similarity(scenario, heard), _closed(scenario, heard)
    scored = [
        (found, one)
        for group in groups_left(scenario, heard.said)
        for one in _candidates(match_group(group, heard, closed), heard, similar)
        if (found := score(one, heard))
    ]
    best = max((found for found, _ in scored), default=0.0)
    least = best * _NEAR
    if heard.turn == 1:  # a bare "why" is answered by any reason
        least = best * _NEAR_AT_FIRST if words_of(heard.asks) else min(best, OF_THE_KIND)
    return _chosen([one for found, one in scored if found >= least], scenario, seed, heard.turn)


def _chosen(near: Sequence[Candidate], scenario: Scenario, seed: int, turn: int) -> str | None:
    """One by the seed: the first that is left of its group, but for the first answer any."""
    firsts = [*{id(one.match): one.own for one in reversed(near)}.values()][::-1]
    if not firsts:
        return None
    if turn > 1:
        return firsts[draw(seed, scenario.id, "drawn", turn) % len(firsts)]
    others = [one.own for one in near if one.own not in firsts]
    at = draw(scenario.id, "drawn") % len(firsts) + seed // _IN_A_ROW
    return [*firsts, *others][at % len(near)]


def kinds_answered(scenario: Scenario, said: str) -> frozenset[str]:
    """The kinds of which something was said."""
    groups: Sequence[Group] = (*scenario.draws_out, *scenario.moves)
    spoken = [ready(group.cues).kinds for group in groups if _is_begun(group, said)]
    return frozenset().union(*spoken)


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


def _candidates(
    match: GroupMatch, heard: TutorQuestion, similar: Mapping[str, float]
) -> Iterator[Candidate]:
    """What is left of a group; on the way to an insight the next step alone."""
    left = [own for own in match.group.says if not count(heard.said, own)]
    if isinstance(match.group, Move):
        yield from (Candidate(match, own, similar[own]) for own in left)
    elif left:
        later = max((similar[own] for own in left[1:]), default=0.0)
        yield Candidate(match, left[0], max(similar[left[0]], _LATER_STEP * later))


def _definitions(scenario: Scenario, heard: TutorQuestion) -> Sequence[str]:
    """What says something of the very word whose meaning is asked for, the most of it first."""
    words = all_words_of(word_defined(heard.asked.questions))
    found = {
        own: len(words & all_words_of(own))
        for group in scenario.moves
        if "meaning" in ready(group.cues).kinds
        for own in group.says
    }
    return sorted((own for own in found if found[own]), key=lambda own: -found[own])


def _definition(scenario: Scenario, heard: TutorQuestion) -> str | None:
    """The definition of the word that is asked for, if the scenario has one that is left."""
    if heard.kinds != {"meaning"}:
        return None
    left = [own for group in groups_left(scenario, heard.said) for own in group.says]
    found = _definitions(scenario, heard)
    return next((own for own in found if own in left and not count(heard.said, own)), None)


def _closed(scenario: Scenario, heard: TutorQuestion) -> frozenset[str]:
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


def _is_begun(group: Group, said: str) -> bool:
    return any(count(said, own) for own in group.says)
