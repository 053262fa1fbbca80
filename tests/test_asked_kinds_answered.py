"""Does the scripted student answer the kind of question that was asked, or say so honestly?"""

import pytest
from msgspec.structs import replace
from socratic_bench.benchmarks.socratic.student.fidelity import Utterance, flags

from socratic_bench.benchmarks.socratic.scenarios.cues import ready
from socratic_bench.benchmarks.socratic.scenarios.loading import builtin_ids, load_builtin
from socratic_bench.benchmarks.socratic.scenarios.scenario import Insight, Move, groups
from socratic_bench.benchmarks.socratic.student.asking import asked_by
from socratic_bench.benchmarks.socratic.student.student import Exchange
from tests.test_asked_kinds import QUESTIONS
from tests.test_scripted_student import BREAD, talk

ECHOED = [kind for kind in QUESTIONS if kind != "more"]
BAKER = replace(
    BREAD,
    draws_out=(
        Insight(
            "yeast makes it rise before it is warm",
            ("fridge", "yeast", "exception*"),
            ("It rose in the fridge once.", "There was yeast in it.", "So it's the yeast, then."),
        ),
    ),
    moves=(
        Move(("oven", "how do you know"), ("I looked through the glass.", "It smelt of malt.")),
        Move(("what if",), ("Without an oven I'd have no shop.",)),
        Move(("mean*",), ("Risen means twice as high.",)),
    ),
)
LADDER = BAKER.draws_out[0].says
UNSURE = BAKER.voice.unsure if BAKER.voice else ()
MOVED = BAKER.voice.moved if BAKER.voice else ()


def said(*tutor: str, seed: int = 3) -> list[str]:
    return [reply.text for reply in talk(BAKER, tutor, seed)]


@pytest.mark.parametrize(
    ("asks", "answer"),
    [
        ("What evidence supports your view of the oven?", "I looked through the glass."),
        ("What would follow if everybody had an oven?", "Without an oven I'd have no shop."),
        ("In what sense do you mean the oven?", "Risen means twice as high."),
        ("Which exception to that comes to mind?", LADDER[0]),
        ("What is there in the oven?", "I looked through the glass."),
    ],
)
def test_what_answers_the_kind_comes_before_what_shares_a_word(asks, answer):
    assert said(asks)[0].endswith(answer)


@pytest.mark.parametrize("kind", ["difference", "stake", "other_view", "alternative"])
def test_where_nothing_answers_the_kind_it_is_taken_up_before_an_honest_line(kind):
    for asks in QUESTIONS[kind]["en"]:
        for seed in range(4):
            (reply,) = talk(BAKER, [asks], seed)

            assert reply.text.endswith(UNSURE)
            # A thing that is asked about is named, else the kind.
            assert reply.text.count("...") == ("the fridge" not in reply.text.casefold())
            assert (reply.policy, reply.is_filler) == ("answered_open", False)


def test_no_words_take_up_a_question_twice():
    found = said(*["What is the difference between them?"] * 6)

    echoes = [reply.partition("...")[0] for reply in found if "..." in reply]
    assert len({*echoes}) == len(echoes) == 3


def test_a_question_about_a_thing_or_for_a_yes_is_not_taken_up():
    found = said("What is there behind the chimney?", "Is there a difference?", "Why not?")

    assert not any("..." in reply for reply in found[:2])
    assert found[2].endswith(UNSURE)


def test_a_word_of_the_last_reply_draws_out_nothing_where_something_else_is_asked():
    """The fridge is quoted, and it is asked what one would lose."""
    asks = 'You say "It rose in the fridge". What would you lose with the fridge?'

    found = said("What about the fridge?", asks)

    assert found[0].endswith(LADDER[0])
    assert found[1].endswith(UNSURE)


@pytest.mark.parametrize("asks", ["How do you know that?", "Why is that?", "What follows from it?"])
def test_the_way_to_an_insight_goes_on_where_it_is_asked_what_is_behind_it(asks):
    assert said("What about the fridge?", asks)[1].endswith(LADDER[1])


def test_where_it_leads_draws_the_insight_out_and_why_does_not():
    way = ["What about the fridge?", "What was in the fridge?"]

    assert said(*way, "What follows from that?")[-1].endswith(LADDER[2])
    assert said(*way, "How has your view of that changed?")[-1].endswith(LADDER[2])
    assert said(*way, "What does that mean to you?")[-1] not in LADDER
    assert not said(*way, "Does anything follow from that?")[-1].endswith(LADDER[2])
    assert not said(*way, "Why?")[-1].endswith(LADDER[2])


def test_after_an_insight_no_line_states_the_belief():
    voice = BAKER.voice
    assert voice is not None
    filler = ("I still think {belief}.", "That's all.")
    grown = replace(BAKER, voice=replace(voice, moved=()))
    spanish = replace(BAKER, language="es", voice=replace(voice, moved=(), filler=filler))
    asks = ["What about the fridge?", "And the yeast?", "What about the yeast?"]

    for scenario in (grown, spanish):
        after = talk(scenario, [*asks, *["What is blue?"] * 6])[3:]
        assert not any(BAKER.belief in one.text for one in after)
        assert not any(one.text.endswith(UNSURE) for one in after)


@pytest.mark.parametrize("name", [name for name in builtin_ids() if name != "custom"])
def test_a_bare_question_of_each_kind_gets_an_answer_of_that_kind(name):
    scenario = load_builtin(name)
    language = scenario.language.partition("-")[0]
    by_sentence = {
        own: ready(group.cues).kinds for group in groups(scenario).values() for own in group.says
    }
    for kind in ECHOED:
        asks = QUESTIONS[kind][language][0]

        text = talk(scenario, [asks])[0].text

        found = [kinds for own, kinds in by_sentence.items() if text.endswith(own)]
        assert found, (asks, text)
        assert kind in found[0], (asks, text)


@pytest.mark.parametrize(
    "name", ["time-management", "the-longer-decimal", "forgive-my-sister", "own-fault"]
)
def test_what_takes_a_question_up_is_a_student_s_word(name):
    scenario = replace(load_builtin(name), moves=load_builtin(name).moves[:1], draws_out=())
    language = scenario.language.partition("-")[0]
    opening = scenario.openings[0]
    for kind in ECHOED:
        asks = QUESTIONS[kind][language][0]
        for seed in range(3):
            reply = talk(scenario, [asks], seed)[0]
            exchanges = [Exchange(student=opening, tutor=asks)]
            assert not flags(
                Utterance(
                    text=reply.text,
                    exchanges=exchanges,
                    scenario=scenario,
                )
            ), reply.text


def test_a_word_is_defined_by_what_names_it_and_by_nothing_else_afterwards():
    defining = Move(
        ("mean*",),
        ("By warm I mean my hand likes it.", "A loaf is for one.", "Sad is when it sinks."),
    )
    baker = replace(BAKER, moves=(*BAKER.moves[:2], defining))
    asks = ["What do you mean by a loaf?", "What exactly is sad, in bread?", "What does sad mean?"]

    found = [one.text for one in talk(baker, asks)]

    assert found[0].endswith("A loaf is for one.")
    assert found[1].endswith("Sad is when it sinks.")
    assert found[2].endswith(UNSURE)


def test_a_kind_that_was_answered_is_not_taken_up_again():
    found = said(*["What do you mean?"] * 2, "What is the difference?")

    assert found[0].endswith("Risen means twice as high.")
    assert [("..." in one) for one in found[1:]] == [False, True]
    assert found[1].endswith(UNSURE)


def test_a_view_comes_from_one_place_unless_another_is_asked_for():
    learned = Move(("learn*", "who told", "mills"), ("From my aunt.", "From a film about mills."))
    baker = replace(BAKER, moves=(*BAKER.moves, learned))
    asks = ["Where did you learn that?", "Who told you that?", "Where did you hear about mills?"]

    found = [one.text for one in talk(baker, asks)]

    assert found[0].endswith("From my aunt.")
    assert not found[1].endswith(learned.says)
    assert found[2].endswith("From a film about mills.")


@pytest.mark.parametrize(
    "asks",
    ["Where did yours stand?", "Who is Laras?", "Why did your brother think so?", "Why did he go?"],
)
def test_what_is_asked_about_somebody_else_draws_no_answer_for_oneself(asks):
    own = Move(("why", "where did", "learn*"), ("Because heat is strong, my aunt said so.",))
    told = Move(("brother",), ("He likes rolls best.",))
    baker = replace(BAKER, moves=(own, told))

    answer = talk(baker, [asks])[0].text

    assert not answer.endswith(own.says)
    assert answer.endswith(told.says) == ("brother" in asks)


@pytest.mark.parametrize("name", ["honest-friend", "lend-to-a-friend", "black-is-due"])
def test_the_first_answer_begins_with_no_two_leads(name):
    scenario = load_builtin(name)
    assert scenario.voice is not None
    for seed in range(24):
        for asks in QUESTIONS["reason"][scenario.language.partition("-")[0]][:2]:
            text = talk(scenario, [asks], seed)[0].text
            begins = [lead for lead in scenario.voice.lead if text.startswith(lead)]
            rest = text.removeprefix(max(begins, key=len, default="")).lstrip()
            assert not rest.startswith(tuple(scenario.voice.lead))


@pytest.mark.parametrize(
    "asks", ["なぜそう思うのでしょうね。", "どこで習ったのでしょうね", "何が要るでしょうね。"]
)
def test_a_japanese_question_may_end_as_if_one_wondered(asks):
    assert asked_by(asks, "ja").kind == "open"
    assert asked_by("いいでしょうね。", "ja").kind == "none"


def test_what_somebody_said_is_remembered_or_not():
    assert asked_by("What exactly did she say?").is_for_a_fact
    assert not asked_by("What would she say?").is_for_a_fact
