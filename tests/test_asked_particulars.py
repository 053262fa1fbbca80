"""Does the scripted student answer just what was asked, about the very thing that was named?"""

import pytest
from msgspec.structs import replace

from socratic_bench.benchmarks.socratic.scenarios.loading import load_builtin
from socratic_bench.benchmarks.socratic.scenarios.scenario import Move
from tests.test_scripted_student import BREAD, talk

SURE, TESTED = "I was quite sure of it.", "I could test it with a thermometer."
BAKER = replace(
    BREAD,
    knows="The chimney behind the shop, and Hanna, who sells the rolls.",
    moves=(
        Move(("evidence",), (SURE, TESTED)),
        Move(("what if",), ("Without flour I'd have no shop.",)),
        Move(("doubt*",), ("If it burned I'd doubt it.",)),
        Move(("oven",), ("It was bought in Graz, by my uncle.", "It is made of iron.")),
        Move(("other side",), ("My wife says it's the flour.",)),
    ),
)
UNSURE = BAKER.voice.unsure if BAKER.voice else ()
POLAR = BAKER.voice.polar if BAKER.voice else ()


def said(*tutor: str, seed: int = 3) -> list[str]:
    return [reply.text for reply in talk(BAKER, tutor, seed)]


@pytest.mark.parametrize(
    ("asks", "answer"),
    [
        ("How sure are you, and what does that certainty rest on?", SURE),
        ("How could you test that?", TESTED),
        ("What evidence would make you doubt that?", "If it burned I'd doubt it."),
        ("What would follow for the flour?", "Without flour I'd have no shop."),
        ("Who knows about your oven?", "It was bought in Graz, by my uncle."),
        ("What would your wife say?", "My wife says it's the flour."),
    ],
)
def test_of_a_kind_that_comes_which_answers_just_this(asks, answer):
    for seed in range(4):
        assert said(asks, seed=seed)[0].endswith(answer)


@pytest.mark.parametrize(
    "asks",
    [
        "How has your view of that changed?",
        "What would follow for the swimming pool?",
        "What would happen if you closed the harbour?",
        "What would your brother say?",
        "What does the mayor think about it?",
    ],
)
def test_what_is_about_another_thing_or_another_person_is_no_answer(asks):
    for seed in range(4):
        assert said(asks, seed=seed)[0].endswith(UNSURE)


def test_what_nothing_answers_is_named_if_it_belongs_to_the_student_s_matter():
    behind, hanna, pool = said(
        "What is there behind your chimney?", "What did Hanna see?", "What is there in the pool?"
    )

    assert "my chimney" in behind
    assert "Hanna" in hanna
    assert "pool" not in pool
    assert behind.endswith(UNSURE)


def test_who_and_when_that_are_not_known_are_named_once():
    found = said("When did it rise?", "When was that?")

    assert ["When exactly, I don't know." in one for one in found] == [True, False]


def test_a_yes_or_no_question_about_another_thing_gets_neither():
    assert said("Do you swim in the harbour?")[0].endswith(POLAR)


@pytest.mark.parametrize(
    ("name", "asks", "word"),
    [
        ("own-fault", "Wie sicher bist du dir?", "sicher"),
        ("forgive-my-sister", "¿Cómo podrías comprobarlo?", "tendría"),
        ("grandfather-at-the-wheel", "Was setzt du dabei voraus?", "davon aus"),
    ],
)
def test_the_side_that_is_asked_for_is_known_in_other_languages(name, asks, word):
    scenario = replace(load_builtin(name), draws_out=())

    assert word in talk(scenario, [asks])[0].text.casefold()
