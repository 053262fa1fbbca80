"""How surely a question asks for a sentence of the student's.

Its similarity (see `examples`), the cues of its scenario, that it is marked as an answer to the
kind of the question ("how do you know", "what would follow"), and that it goes on with what was
just said: all of it is added. Below `THRESHOLD` the sentence is not asked for.
"""

from collections.abc import Collection

from msgspec import Struct

from socratic_bench.benchmarks.socratic.scenarios.cues import Cues, ready, straight
from socratic_bench.benchmarks.socratic.scenarios.scenario import Insight, Move
from socratic_bench.benchmarks.socratic.student.asking import QuestionForm, has_number
from socratic_bench.benchmarks.socratic.student.aspects import NO_ANSWER, suits
from socratic_bench.benchmarks.socratic.student.kinds import OF_ANOTHER
from socratic_bench.benchmarks.socratic.student.particulars import speaks_of
from socratic_bench.benchmarks.socratic.student.shared_words import words_of
from socratic_bench.benchmarks.socratic.student.tutor_question import TutorQuestion

Group = Insight | Move

THRESHOLD = 0.7
# That a sentence answers the kind of the question, or another one; the kind says less of a question
# that is about more than the opening.
OF_THE_KIND, _OF_ANOTHER_KIND = 0.9, -0.8
_OF_THE_KIND_OF_A_THING, _OF_ANOTHER_KIND_OF_A_THING = 0.15, -0.2
_SUITS = 0.35  # more or less for what answers just this side of the kind, or another side
_MOST_CUES = 2
# A cue of the matter, and one that only takes up what was said or stands beside the question. Where
# there are no example questions, and on the way to an insight, it does for all.
_CUE, _CUE_ALONE, _TAKEN_UP = 0.35, 0.75, 0.1
_GOES_ON, _LEADS_ON = 0.2, 1.0
_DEFINED = 7  # words: "When I say the right job, I see"
_ASIDE_WORDS = 30  # what is said before a question, if it is short, says what the question is about
# What the next step to an insight answers, if it is asked of the step before it.
_OF_A_STEP = frozenset(("reason", "evidence", "consequence", "more"))


class GroupMatch(Struct, frozen=True):
    """What a question has to do with a group as a whole.

    `kinds` are those of the question that the group answers and that are not closed, `cue_score`
    and `leads_on` what its cues weigh and that it goes on with what was said.
    """

    group: Group
    kinds: frozenset[str]
    has_cue: bool
    cue_score: float
    leads_on: float

    @property
    def all_kinds(self) -> frozenset[str]:
        return ready(self.group.cues).kinds


class Candidate(Struct, frozen=True):
    """A sentence that may come, and how like its example questions the question is."""

    match: GroupMatch
    own: str
    similarity: float

    @property
    def known(self) -> str:
        """The sentence and its example questions."""
        place = self.match.group.says.index(self.own)
        return " ".join((self.own, *self.match.group.asked[place : place + 1]))


def match_group(group: Group, heard: TutorQuestion, closed: Collection[str]) -> GroupMatch:
    """`closed` are kinds that draw nothing out any more."""
    cues = ready(group.cues)
    found = cues.matching(heard.asked.questions)
    return GroupMatch(
        group,
        cues.kinds & heard.kinds - {*closed},
        bool(found),
        _of_cues(group, cues, found, heard),
        _leads_on(group, heard),
    )


def score(one: Candidate, heard: TutorQuestion) -> float:
    """0 if the sentence is not asked for surely enough, or may not come."""
    found = one.similarity + one.match.leads_on + one.match.cue_score + _of_the_kind(one, heard)
    return found if found >= THRESHOLD and _may_come(one, heard) else 0.0


def _of_the_kind(one: Candidate, heard: TutorQuestion) -> float:
    kinds = one.match.kinds
    if "meaning" in kinds and one.match.group.asked and not _defines_what_was_said(one, heard):
        kinds -= {"meaning"}
    suit = suits(heard.asks, kinds, one.own) if kinds else 0
    found = _SUITS * suit
    if kinds and suit != NO_ANSWER:
        return found + (_OF_THE_KIND_OF_A_THING if _is_of_a_thing(one, heard) else OF_THE_KIND)
    is_of_another = heard.is_of_a_kind and not heard.kinds & {*one.match.all_kinds, OF_ANOTHER}
    if is_of_another and not one.match.leads_on:
        is_of_a_thing = _is_of_a_thing(one, heard)
        return found + (_OF_ANOTHER_KIND_OF_A_THING if is_of_a_thing else _OF_ANOTHER_KIND)
    return found


def _is_of_a_thing(one: Candidate, heard: TutorQuestion) -> bool:
    """Whether the question names a thing of which the sentence may not be."""
    if one.match.group.asked:
        return not (heard.is_about_the_opening and heard.is_of_a_kind)
    return heard.kinds != {"meaning"} and not speaks_of(one.own, "", heard.particulars)


def _defines_what_was_said(one: Candidate, heard: TutorQuestion) -> bool:
    """Whether it begins with a word that was spoken of: one defines no other unasked."""
    begins = " ".join(one.own.split()[:_DEFINED])
    return bool(words_of(begins) & words_of(f"{heard.said} {heard.asked.questions}"))


def _may_come(one: Candidate, heard: TutorQuestion) -> bool:
    """Not where a number or somebody else is asked about that the sentence does not have, and no
    insight before it is due: neither a mere "why" gets there nor a question for a yes.
    """
    if heard.asked.is_for_a_number and not has_number(one.own):
        return False
    if not speaks_of(one.own, heard.asks, ()) or not _is_of_whom(one, heard):
        return False
    is_insight = isinstance(one.match.group, Insight) and one.own == one.match.group.says[-1]
    return not is_insight or _is_due(one, heard)


def _is_of_whom(one: Candidate, heard: TutorQuestion) -> bool:
    """Whether the sentence, an example question or a cue names whom it is asked about."""
    if isinstance(one.match.group, Move) and one.match.has_cue:
        return True
    return speaks_of(one.known, "", heard.others)


def _is_due(one: Candidate, heard: TutorQuestion) -> bool:
    if heard.asked.kind != "open" or "reason" in heard.kinds:
        return False
    is_marked = bool(one.match.all_kinds & heard.kinds) and heard.is_on_topic
    is_its_matter = one.similarity >= THRESHOLD or one.match.has_cue
    return heard.asks_for_the_end or is_marked or is_its_matter


def _of_cues(group: Group, cues: Cues, found: Collection[str], heard: TutorQuestion) -> float:
    n_own = min(_MOST_CUES, len([cue for cue in found if cue not in heard.known]))
    taken_up = _TAKEN_UP * (len(found) > n_own or _is_beside(cues, heard.asked))
    if not group.asked:
        return _CUE_ALONE * max(n_own, bool(found) and not heard.is_of_a_kind) + taken_up
    return (_CUE_ALONE if isinstance(group, Insight) else _CUE) * n_own + taken_up


def _leads_on(group: Group, heard: TutorQuestion) -> float:
    """What it weighs that it is asked on, of what the group was just spoken from."""
    if not any(own in heard.last for own in group.says) or not heard.refers_back:
        return 0.0
    is_of_all = not heard.particulars and heard.asks == straight(heard.asked.questions)
    leads_on = heard.asks_for_the_end or bool(heard.kinds & _OF_A_STEP)
    if isinstance(group, Insight) and leads_on and is_of_all:
        return _LEADS_ON
    return _GOES_ON * isinstance(group, Move)


def _is_beside(cues: Cues, asked: QuestionForm) -> bool:
    is_short = len(asked.rest.split()) <= _ASIDE_WORDS
    return asked.kind == "open" and is_short and bool(cues.matching(asked.rest))
