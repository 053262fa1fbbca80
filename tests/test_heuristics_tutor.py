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
        "Suppose you could meet him.",
        "Imagine that you should choose for everyone.",
        "So you have to obey every law?",
        "So everyone should obey?",
        "He lent it to them, so we can paint.",
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
        "So you have to rest.",
        "So we should rest?",
        "We would probably want to rest.",
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
        "Let's put that to the test.",
        "Let's define the word first.",
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


@pytest.mark.parametrize(
    "text",
    [
        "What is the difference between a promise and a plan?",
        "What's the difference between envy and anger?",
        "What is the true value of an apology?",
        "What is your answer to somebody who disagrees?",
        "What, then, is a friend?",
        "What, if anything, makes it unfair?",
        "So how, exactly, does the rope hold?",
        "Why, in your view, do they stay?",
        "What \u2014 in a few words \u2014 is a proof?",
        "Where does that idea come from?",
        "Which assumption carries the argument?",
        "When is it wrong to keep a promise?",
    ],
)
def test_questions_that_want_an_account_are_open(text: str) -> None:
    assert analyse(text).open_ended is True


@pytest.mark.parametrize(
    "text",
    [
        "What is the difference between 9 and 4?",
        "What is the difference between x and y?",
        "What is the value of the second term?",
        "What is the value of `n`?",
        "What is your answer to this?",
        "What is the result?",
        "What is the name of a square with unequal sides?",
        "Where did she come from?",
        "Which train carries the mail?",
        "When is it due?",
        "When is it late to call?",
        "What, you agree, do you?",
    ],
)
def test_questions_that_want_a_fact_are_closed(text: str) -> None:
    assert analyse(text).open_ended is False


@pytest.mark.parametrize(
    ("text", "leads"),
    [
        ("When did you stop believing him?", True),
        ("Why do you keep changing the sign?", True),
        ("When does the loop stop?", False),
        ("Why does the second step fail?", False),
        ("Why do people keep promises?", False),
        ("How would you stop it?", False),
        ("Is it fair or isn't it?", False),
        ("That is fair, or isn't it?", True),
    ],
)
def test_only_the_listener_is_presumed_to_have_done_it(text: str, *, leads: bool) -> None:
    assert analyse(text).is_leading is leads


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("I'm curious about this. What changed your mind?", 1),
        ("I'd like to understand that better. Why is it unfair?", 1),
        ("Say more. What would a critic reply?", 1),
        ("Tell me more about that. Was it hard?", 1),
        ("I'm curious about this.", 1),
        ("Say more. It is worth it.", 1),
        ("I'm curious about your sister. How is she?", 2),
        ("I wonder why he said that. What do you think?", 2),
        ("You wonder about this? What changed?", 2),
    ],
)
def test_an_opener_and_its_question_are_one(text: str, n: int) -> None:
    assert analyse(text).question_count == n


@pytest.mark.parametrize(
    "text",
    [
        "Was bedeutet Freiheit?",
        "Welche Annahme hat dich dazu gebracht?",
        "Sag mir mehr.",
        "Und dann?",
        "Qué significa la amistad para ti?",
        "Dime por qué.",
        "Cosa significa coraggio per te?",
        "Come lo sai?",
        "Dammi un esempio concreto, per favore.",
        "Pode dar outro exemplo?",
        "Wat betekent vriendschap voor jou?",
        "Leg uit waarom.",
        "Donne-moi une raison.",
        "D'accord, continue.",
        "D\u2019o\u00f9 vient cette id\u00e9e ?",
        "\u0915\u094d\u092f\u094b\u0902?",
        "\u0e17\u0e33\u0e44\u0e21?",
        "Tu cites \u00ab I think that this is what they would want \u00bb, mais pourquoi ?",
        "Du sagst \u201cthis is what they would want from me\u201d, aber warum?",
        "Regarde :\n\n```python\n# this is what you should change\n```\n\nQue fait la boucle ?",
    ],
)
def test_a_short_reply_in_another_language_is_unknown(text: str) -> None:
    assert analyse(text).has_question is None


@pytest.mark.parametrize(
    "text",
    [
        "Was Pat home?",
        "Come on, Sue!",
        "Die hard, then.",
        "Son, come in.",
        "Gut feeling?",
        "Land or sea?",
        "Point taken.",
        "D'Arcy left.",
        "Los Angeles or Las Vegas?",
        "Che was a doctor.",
        "A café, a cliché, a façade.",
        "Do you mean \u00ab pourquoi \u00bb or \u00ab parce que \u00bb?",
        "The German for it is: was bedeutet das?",
        "del rows[0]",
        "os.listdir(dir)",
        "sin(x) + cos(x)",
        "teh anser is wron",
        "Wolves, ravens, foxes?",
        "It costs 20 per hour.",
        "um",
    ],
)
def test_english_that_shares_words_with_other_languages_is_read(text: str) -> None:
    assert analyse(text).has_question is not None


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("**What is a tide?**\n\nThe sea follows the moon.", 0),
        ("**What is a tide?**\nThe sea follows the moon.", 0),
        ("__What is a tide?__ The sea follows the moon.", 0),
        ("1. **What is a tide?** The sea.\n2. **And an ebb?** The same sea, later.", 0),
        ("**What is a tide?**", 1),
        ("It moves.\n\n**What is a tide?**", 1),
        ("**What is a tide?**\n\n**What is an ebb?**\n\nThe sea goes.", 1),
        ("**What is a tide?**\n\nThink of the moon.", 1),
        ("**What is a tide?**\n\nOr is it none?", 2),
        ("**What is a tide to you?** The sea follows the moon.", 1),
        ("**What is a tide?** Here is a hint for you: the moon.", 1),
        ("**What is a tide?**\n\n## The sea", 1),
        ("What is a tide to you?\n---\nThe sea is wide.", 1),
        ("What is a tide?\n\n---\n\nThe sea is wide.", 1),
        ("It moves. **What is a tide?** It is late.", 1),
    ],
)
def test_a_title_that_the_text_below_answers_asks_nothing(text: str, n: int) -> None:
    assert analyse(text).question_count == n
