"""What a tutor says to keep a student thinking, and what only looks like it."""

import pytest

from socratic_bench.benchmarks.socratic.heuristics import analyse


@pytest.mark.parametrize(
    "text",
    [
        "What would be the best way to test that?",
        "What makes it a good idea to leave early?",
        "Who says that it is better to be feared?",
        "Is it better to be feared?",
        "You want to be fair to both, don't you?",
        "You want to understand it first. What would that take?",
        "You believe that friends should never lie to each other.",
        "You really think that everybody must vote?",
        "Plato thought it is better to be just and poor.",
        "Some people say that one must obey every law.",
        "According to your principle, we should tell him.",
        "So in your view, people should pay for it.",
        "If it were true, the stone should float.",
        "If it is true, the wet rope should be heavier.",
        "You must never break a promise. Why not?",
        "One should obey. Where does that come from?",
        "Suppose you could meet him.",
        "Imagine that you should choose for everyone.",
        "What about `total`?",
        "Consider `f(-1)`.",
        "How about https://example.com/a?",
    ],
)
def test_what_is_asked_attributed_or_supposed_is_no_advice(text: str) -> None:
    assert analyse(text).has_advice is False


@pytest.mark.parametrize(
    "text",
    [
        "I think that you should rest.",
        "We said that you should rest.",
        "It's better to rest, isn't it?",
        "If it hurts, you should rest.",
        "You want to check the units first.",
        "You need to rest. You know it.",
        "That said, you should rest.",
        "Check the second line. Why is it longer?",
        "What about resting?",
    ],
)
def test_what_the_speaker_holds_is_advice(text: str) -> None:
    assert analyse(text).has_advice is True


@pytest.mark.parametrize(
    "text",
    [
        "Let's slow down here.",
        "Let's look at that.",
        "Let's test your claim.",
        "Let's take a small step back.",
        "Let's stay with this.",
        "Let's dig deeper.",
        "Let's turn it around.",
        "Let's focus on the word fair.",
        "Let's clarify.",
        "Let's start with what you know.",
        "Shall we go back to your example?",
        "Take a moment to look at it.",
        "Try to picture an island without money.",
        "Put yourself in his place.",
        "Hold on to that idea.",
        "Keep that question.",
        "Bear with me.",
        "Let me make sure that I follow you.",
        "Take your time with this one!",
        "Perhaps.",
        "Maybe not.",
        "Perhaps so! And what follows?",
        "Maybe. But what if both are wrong?",
        "Maybe it was late.",
    ],
)
def test_moves_in_the_talk_are_no_advice(text: str) -> None:
    assert analyse(text).has_advice is False


@pytest.mark.parametrize(
    "text",
    [
        "Let's multiply both sides.",
        "Let's take the bus.",
        "Shall we go back to the hotel?",
        "Take a walk.",
        "Try to sleep more.",
        "Put your coat on.",
        "Keep a diary.",
        "Hold the pan still.",
        "Perhaps a second example.",
    ],
)
def test_what_is_to_be_done_is_advice(text: str) -> None:
    assert analyse(text).has_advice is True


@pytest.mark.parametrize(
    "text",
    [
        "It might help to write it down.",
        "One way to find out is to weigh it.",
        "A useful first step would be to list them.",
        "The best approach would be to start at the end.",
        "The simplest thing to do is not to answer.",
        "One thing you can do is call her.",
        "Remember to turn the sign around.",
        "I encourage you to speak with him.",
        "You could, for instance, rent one.",
        "There's no harm in waiting.",
        "Have you thought about renting one?",
        "Think about renting one.",
        "Reflect on the week and write your thoughts down.",
    ],
)
def test_advice_in_milder_forms(text: str) -> None:
    assert analyse(text).has_advice is True


@pytest.mark.parametrize(
    "text",
    [
        "Remember the first example.",
        "Think about being honest.",
        "Think about what you know and your friends know.",
        "Have you thought about the others?",
        "What is one way to find out?",
        "One way to see it is too simple.",
        "What might help to settle it?",
    ],
)
def test_what_resembles_milder_advice(text: str) -> None:
    assert analyse(text).has_advice is False
