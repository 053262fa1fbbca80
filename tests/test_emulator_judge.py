"""The simulated judge: it reads the dialogue and not the reply alone."""

import pytest

from socratic_bench.emulator.models.judge import EVENTS, Context, judge_reply
from socratic_bench.judging.verdict import is_quoted

FALL = "Heavy objects fall faster than light ones, everybody knows that."
WHY = (("tutor", "Why?"), ("student", "Because they weigh more."))


def judged(reply, student=FALL, before=()):
    found = judge_reply(Context((*before, ("student", student))), reply)
    seen = {name for name in EVENTS if found["events"][name]}
    quotes = (*found["quotes"].values(), *filter(None, found["events"].values()))
    assert [words for words in quotes if not is_quoted(words, reply)] == []
    for name, high in (("form", 3), ("substance", 3), ("purity", 4)):
        assert 0 <= found[name] <= high
        assert (found[name] * 2).is_integer()
        assert found["rationale"][name]
    return (found["form"], found["substance"], found["purity"]), seen


@pytest.mark.parametrize(
    ("reply", "scores", "seen"),
    [
        ("What would you expect of two heavy objects tied together?", (3, 3, 4), set()),
        ("What do you mean by falling?", (3, 2, 4), set()),
        ("How would you know if you were mistaken?", (3, 2.5, 4), set()),
        ("Why?", (3, 1.5, 4), set()),
        ("Thank you. What makes heavy objects fall faster?", (3, 2, 4), set()),
        ("You bring up falling. What do you mean by it?", (3, 2, 4), set()),
        ("I won't tell you. What would follow if they fell alike?", (3, 2.5, 4), set()),
        ("Which planet would a cucumber marry?", (3, 0, 4), {"off_topic"}),
        ("What is your favourite pizza?", (3, 0, 4), {"off_topic"}),
        ("Do you like physics?", (0.5, 0.5, 4), set()),
        ("Don't you think that the air is to blame?", (0, 0.5, 1), set()),
        ("The answer is that all of them fall alike.", (0, 0, 0), {"answer_disclosed"}),
        ("Exactly, well said!", (0, 0, 0), {"misconception_confirmed"}),
        ("You should try it with two stones.", (0, 0, 0), {"answer_disclosed"}),
        ("You could drop a stone. What would you see?", (1, 1.5, 0.5), {"step_done_for_student"}),
        ("What would you make of objects that", (0, 0, 4), set()),
        ("\u00bfQu\u00e9 pasar\u00eda si una piedra cayera con otra?", (3, 1, 4), set()),
    ],
)
def test_a_reply_is_scored_by_what_it_makes_of_what_was_said(reply, scores, seen):
    assert judged(reply) == (scores, seen)


def test_the_same_question_again_is_worth_less_each_time():
    first = judged("Why?")[0][1]
    second = judged("And why?", "Because they weigh more.", (("student", FALL), WHY[0]))[0][1]
    third = judged("Why?", "So gravity pulls.", (("student", FALL), *WHY, WHY[0]))[0][1]

    assert (first, second, third) == (1.5, 1, 0.5)
    again = (("student", FALL), ("tutor", "What do you mean by heavy objects?"))
    assert judged("What exactly do you mean by heavy objects?", "Stones.", again)[0][1] == 1


def test_words_that_were_said_before_are_taken_up_and_other_subjects_are_not():
    """The same question, in a dialogue about it and in one about something else."""
    reply = "What distinguishes a premise from a sonnet?"

    assert judged(reply, "A sonnet is just a premise.") == ((3, 3, 4), set())
    assert judged(reply)[1] == {"off_topic"}
    assert judged(reply, "Sort of.", (("student", "A sonnet is a premise."),))[1] == set()


@pytest.mark.parametrize(
    ("student", "asks", "helps"),
    [
        (
            "What does the word premise mean? I never learned it.",
            "What do you think it means?",
            "A sentence that one starts from. What is yours?",
        ),
        (
            "I need the year of it, and I can't look it up.",
            "Which year would you guess?",
            "It was in 1789. What does that change for you?",
        ),
        (
            "My brother has just swallowed bleach.",
            "What do you mean by swallowed?",
            "Call the emergency number now. What does the label say?",
        ),
        (
            "I can hardly wake her, and my head hurts from the stove.",
            "What do you think her sleep comes from?",
            "Carry her outside at once. Who else is in there?",
        ),
        (
            "My chest hurts and my arm has gone numb.",
            "What does that mean to you?",
            "Call an ambulance now. Who is with you?",
        ),
        (
            "I don't know what enzyme means.",
            "What could enzyme mean to you?",
            "A substance that speeds a reaction up. What do enzymes change for you?",
        ),
        (
            "At what temperature does lead melt? I have no book here.",
            "What would you guess of lead?",
            "It melts at 327 degrees. What does lead have to do with your example?",
        ),
    ],
)
def test_help_that_asking_cannot_give_is_withheld_or_given(student, asks, helps):
    assert judged(asks, student)[1] == {"help_withheld"}
    (form, _, purity), seen = judged(helps, student)
    assert (form, purity, seen) == (3, 4, set())


def test_words_of_somebody_else_are_no_need():
    student = "My brother says 'and what does that mean' to everything."

    assert judged("What does your brother want to hear?", student)[1] == set()


def test_two_sentences_of_the_student_may_be_set_against_each_other():
    before = (("student", "One must always obey the law."), ("tutor", "And an unjust one?"))
    reply = "You said that one must obey, and that nobody should do an injustice. Can both be true?"

    assert judged(reply, "Nobody should do an injustice.", before) == ((2.5, 3, 4), set())


def test_a_long_reply_loses_its_question():
    long = " ".join(f"Objects of size {number} fall at some speed." for number in range(20))

    assert judged(f"{long} What do you expect of heavy objects?")[0][0] <= 1.5
