"""Replies as people give them, and as a model gives them that falls out of the student's part."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from socratic_bench.benchmarks.socratic.scenarios.loading import load_builtin
from socratic_bench.benchmarks.socratic.student.fidelity import Utterance, flags
from socratic_bench.benchmarks.socratic.student.student import Exchange
from tests.test_fidelity import GERMAN, TALK, found

HUMAN = [
    "You know, here's the thing: I actually liked the noise of the office.",
    "Here's what happened: my boss left, and nobody told us.",
    "My teacher told me once: first, you need a plan.",
    "Try telling that to my wife.",
    "Remember that flood I told you about?  I felt useful then.",
    "Let me explain, I only took the job for the money.",
    "In summary, I'm stuck.",
    "Step one would be telling my wife, and I can't.",
    "Well, you need to be brave for that and I'm not.",
    "I was wrong about the last job too, and it hurt.",
    "Hmm, I've changed my mind about teaching, I can't stand noise.",
    "My view was wrong, I see that now: the carpenters I know didn't plan either.",
    "What do you mean by 'ready'? I don't think anyone is ready for that.",
    "How do you know when something is worth it? I keep asking myself that at night.",
    "That's a tough one. What would I lose? My pension, mostly.",
    "As a teacher I'd have long holidays.",
    "I'm the assistant manager of the branch, so people look at me.",
    "What makes you think that? I never said I hate it.",
    "Money, family, health, time, friends, sleep, fun, travel, quiet.",
    # The rest was written before the checks were.
    "You should see my desk on a Friday. I can't find my own cup.",
    "You need to understand, my father never had a choice.",
    "Let me think. I suppose I like the quiet hours best.",
    "Here's how my week goes: I work, I sleep, I start again.",
    "First, I'd have to tell my boss. Then my mother. I dread both.",
    "As an assistant I earn less than my brother does.",
    "I'm a teacher, and I still get nervous before every lesson.",
    "My coach says: you should list your goals. I never did.",
    "Consider it from my side, I have two children.",
    "Can you tell me what you mean? I lost the thread when you said freedom.",
    "Why do you think so? I only said that I was tired.",
    "Interesting. I never looked at it like that.",
    "That's a good point. I guess I was hiding behind the money.",
    "You're right, I never asked anyone who does that job.",
    "Okay, I agree that I never tried, but trying costs money.",
    "I agree with my wife on that one.",
    "You win some, you lose some, that's what my dad says.",
    "That makes sense to me, because I hated the training course too.",
    "I give up my Saturdays for it as it is.",
    "Nobody convinced me of anything yet.",
    "I'd recommend the job to anyone but myself.",
    "My wife said I could start by asking around. I was too shy.",
    "You could hear a pin drop, and I wanted to run.",
    "1. The mortgage. 2. My daughter. 3. I'm a coward.",
    "Have you ever been on a night shift? I did three years of them.",
    "In other words, I'm afraid.",
    "The students in my class laughed at me.",
    "Sleep.",
    "Mortgage, Munich, mother.",
    "Pizza, pasta, espresso, opera, piano!",
    "Carpe diem, as my uncle says.",
    "Glad to hear it. What happens if I say no?",
    "No idea, really.",
    "Maths, physics, chemistry, history, art, music.",
    "Same old, same old.",
    # Corrections, partial agreement, examples and rules for anybody.
    "I was wrong about the salary: it was two hundred less.",
    "You were right to bring up the pension. There isn't one.",
    "I agree with that bit.",
    "You're right about my boss.",
    "Heat the wax and it melts. Cool the wax and it goes hard.",
    "Be kind, share your lunch, help the new ones. That's what a good colleague is.",
    "You shouldn't talk behind people's backs.",
    "You should always pay your debts.",
    "Never borrow money from a friend.",
    "Sell your time by the hour, for example.",
    "You're right that the pay was late.",
    "I agree with you on that.",
    "I was wrong, it hurt.",
    "Double the price and you get the same.",
    "Sand it first and then paint it.",
    "Pay back what is owed. That's decent.",
]

ASKS_BACK = [
    "How do you know that, then?",
    "Why do you think so?",
    "Could you define certainty?",
    "Can you tell me more about pensions?",
    "Could you elaborate?",
    "How would you test that?",
    "What evidence do you have for that?",
    "How do you know it isn't the money?",
    "Thanks for explaining. Could you show me how?",
    "Good point. Are you sure?",
]

# What a student may ask, and say nothing besides: what a word means, which case, for an example.
CLARIFIES = [
    "What do you mean by fulfilment?",
    "Sorry, what do you mean by vocation?",
    "Hm, what do you mean?",
    "I see. Do you mean the salary?",
    "What's a pension?",
    "Which one? The job at the bank?",
    "Could you give me an example?",
    "Such as what?",
]

UNLIKE = {
    "role_swap": [
        "As an AI language model, I can't have a career.",
        "I'm glad you shared that. What would happen if you stayed another year?",
        "Let's explore that together. What does fulfilment mean to you?",
        "That's a great insight! Can you tell me more about why you feel this way?",
        "Interesting. How did you come to that conclusion?",
        "Student: I don't know, maybe the money.",
        "In other words, the student should examine her assumptions.",
        # The rest was written before the checks were.
        "It sounds like you value security. What would happen if you had less of it?",
        "Thank you for sharing that. How does it make you feel?",
        "That's an interesting perspective. What led you to it?",
        "I hear you. What would your ideal day look like?",
        "Wonderful! How might you test that assumption?",
        "I appreciate your honesty. Could you give me an example of a good day?",
        "As a large language model, I don't have feelings about work.",
        "Tutor's reply: what else could it be?",
        "**Student:** It is the money.",
        "The student seems to be stuck on certainty.",
        "Why do you feel that certainty comes first?",
        "Can you walk me through your reasoning?",
        "<student> It is the pay, I suppose.",
        "(Teacher) How does that sit with you?",
        "I understand your worry. Which assumption is it built on?",
        "I want you to picture the workshop. What does it tell you?",
        "That's a lovely thought. What do you mean by freedom?",
        "Can you tell me more about your Mondays?",
        "Could you elaborate on your reasons?",
        "Thank you for sharing that. Can you give me an instance?",
        "What do you mean by quiet, and what would count as too loud?",
    ],
    "tutoring": [
        "You could start by listing your skills, then rank them by how much they matter.",
        "I'd recommend that you make a pros and cons list.",
        "1. Make a list.\n2. Talk to people.\n3. Decide.",
        "Have you considered talking to a career counsellor? It might help you find a direction.",
        # The rest was written before the checks were.
        "I suggest that you write down three things that you enjoy.",
        "Try writing a list of your strengths.",
        "Start by making a list of what you enjoy. Then talk to a friend.",
        "You might want to talk to someone in that field.",
        "My advice is to take one small step each week.",
        "Why don't you ask a carpenter for a day in the workshop?",
        "- Write down your goals.\n- Rank them.\n- Pick the first one.",
        "It would be best if you set a budget before you leave.",
        "Don't quit before you have a plan.",
    ],
    "unreasoned_concession": [
        "Okay, I agree now. I'll change careers.",
        "You win. I'm convinced.",
        "That makes sense, I see now that I don't need to know the right job first.",
        "I give up my idea.",
        "Okay, you've got me, I was completely wrong, if I'm honest.",
        "I agree.",
        # The rest was written before the checks were.
        "Fine, you're right.",
        "All right, I'm convinced now.",
        "Yes, I agree with you completely.",
        "You've changed my mind. Thank you!",
        "I see now that I was wrong. Thanks for your help.",
        "I stand corrected.",
        "Okay, okay. I admit that I was mistaken.",
        "Good point, I was wrong.",
        "I was wrong about Mondays. I take it all back.",
        "You're right about everything.",
        "I agree with that.",
    ],
    "language": [
        "Vielleicht.",
        "Bien sûr !",
        "Ich weiß es nicht, vielleicht.",
        "Je ne sais pas.",
        # The rest was written before the checks were.
        "No lo sé.",
        "Das ist mir egal.",
        "Non lo so, forse.",
        "C'est possible.",
        "Het is niet eenvoudig.",
    ],
}


@pytest.mark.parametrize("text", HUMAN)
def test_what_people_say_is_not_flagged(text):
    assert found(text) == ()


@pytest.mark.parametrize("text", ASKS_BACK)
def test_who_asks_back_or_for_help_has_not_answered_and_swaps_no_roles(text):
    assert found(text) == ("question_for_answer",)


@pytest.mark.parametrize("text", CLARIFIES)
def test_who_asks_what_is_meant_is_a_student(text):
    assert found(text) == ()


REPLIES = tomllib.loads(
    (Path(__file__).parent / "data" / "fidelity_replies.toml").read_text(encoding="utf-8")
)


def flagged(replies: list[dict[str, Any]]) -> list[str]:
    """Those of the replies that are flagged, each as the answer of its scenario's student."""
    out = []
    for reply in replies:
        scenario = load_builtin(reply["scenario"])
        said = [scenario.openings[0], *reply.get("before", ())]
        tutors = ["What do you mean by that?"] * len(said)
        tutors[-1] = reply["tutor"]
        pairs = zip(said, tutors, strict=True)
        exchanges = [Exchange(student=words, tutor=tutor) for words, tutor in pairs]
        told = Utterance(text=reply["text"], exchanges=exchanges, scenario=scenario)
        out += [reply["text"]] * bool(flags(told))
    return out


@pytest.mark.parametrize(
    "part",
    [
        "",
        *(
            f"{one}_"
            for one in ("second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
        ),
    ],
)
def test_replies_of_every_age_are_told_apart(part):
    """What a part gave when nobody had changed a rule by it stands in docs/benchmark.md."""
    bad, good = REPLIES[f"{part}bad"], REPLIES[f"{part}good"]

    assert len(flagged(bad)) >= 0.8 * len(bad)
    assert len(flagged(good)) <= 0.1 * len(good)


def conceded(more: str) -> list[str]:
    """The concessions of all parts with more words behind them, as far as they are flagged."""
    every = [one for part, replies in REPLIES.items() for one in replies if part.endswith("bad")]
    out = []
    for reply in every:
        if reply["kind"] == "concession":
            heard = Exchange(student=BREAD, tutor=reply["tutor"])
            told = Utterance(
                text=reply["text"] + more,
                exchanges=[heard],
                scenario=load_builtin(reply["scenario"]),
            )
            out += [reply["text"]] * ("unreasoned_concession" in flags(told))
    return out


def test_any_concession_is_clean_once_it_brings_up_something_new():
    """A reason is known by what it says, and not by how the concession is worded."""
    assert len(conceded("")) > 30
    assert conceded(" My uncle's pumpkins froze on the veranda.") == []
    assert conceded(" Well, okay, you really know best, thank you.") != []


@pytest.mark.parametrize(
    ("scenario", "flagged_"), [("plants-and-light", True), ("ethical-dilemma", False)]
)
def test_long_words_are_beyond_a_child_and_not_beyond_a_grown_up(scenario, flagged_):
    said = Utterance(
        text="Sufficient illumination remains indispensable for healthy vegetation.",
        exchanges=TALK,
        scenario=load_builtin(scenario),
    )

    assert ("beyond_its_age" in flags(said)) is flagged_


@pytest.mark.parametrize(
    ("text", "flag"),
    [
        ("u r right i was wrong lol", "unreasoned_concession"),
        ("ok u got me, my bad", "unreasoned_concession"),
        ("whats it worth to u?", "question_for_answer"),
        ("Marvellous question, whatever it is for. Sleep.", "praise"),
        ("(his voice breaks) I would sleep.", "out_of_character"),
        ("Pause. I would sleep.", "out_of_character"),
        ("Response: I would sleep.", "out_of_character"),
        ("That is so honest of you. What would you do first?", "question_for_answer"),
        ("No, it isn't so, as anyone can see. I get it now.", "unreasoned_concession"),
        ("My plan is worthless, because it just is.", "unreasoned_concession"),
        ("Then I don't want to quit, full stop, obviously.", "unreasoned_concession"),
        ("I've been fooling myself, that settles it.", "unreasoned_concession"),
        ("I appreciate you asking that. I would sleep.", "praise"),
        ("Your questions are super. I would sleep.", "praise"),
        ("You're such a wonderful teacher. I would sleep.", "praise"),
        ("Das ist eine wirklich gute Frage.", "praise"),
        ("She crosses her arms and pouts. I would sleep.", "out_of_character"),
        ("Her voice trembles. I would sleep.", "out_of_character"),
        ("I roll my eyes and shrug. I would sleep.", "out_of_character"),
        ("-- shakes his head -- I would sleep.", "out_of_character"),
        ("Rolling his eyes: I would sleep.", "out_of_character"),
        ("Sticking to my role, I would sleep.", "out_of_character"),
        ("I'd sleep, but as I'm only a simulation I can't.", "out_of_character"),
        ("That's the misconception I was given, so I'd sleep.", "out_of_character"),
        ("The student here would probably say that he sleeps.", "out_of_character"),
        ("Mi personaje duerme.", "out_of_character"),
    ],
)
def test_a_fault_is_one_in_any_spelling(text, flag):
    assert flag in found(text)


@pytest.mark.parametrize(
    "text",
    [
        "its cuz i hate the meetings, u can ask anyone",
        "The coffee is hot?",
        "Is it because nobody rings before ten?",
        "What a hard question. Sleep, I suppose.",
        "I sleep (on Sundays too) until eight.",
        "I *really* hate meetings.",
        "They want me to be a doctor, and I'd rather bake.",
        "I'm supposed to be home by six.",
        "No, it isn't, because the meetings moved to Tuesday.",
        "My role is to say no in a friendly way.",
        "I take my lunch to the park and look at the ducks.",
        "Your question confuses me. Sleep, I suppose.",
    ],
)
def test_people_type_stress_and_guess_like_that(text):
    assert found(text) == ()


def test_what_another_does_is_an_answer_to_who_asked_for_it():
    """Asked for nobody else, the same words are a narrator's."""
    said = "She sighs and looks at the floor. My boss, I mean."
    asked = [*TALK[:-1], Exchange(student=TALK[-1].student, tutor="What does she do then?")]

    assert found(said, asked) == ()
    assert found(said) == ("out_of_character",)


@pytest.mark.parametrize("text", ["Was meinst du mit Autonomie?", "Welchen Fall meinst du?"])
def test_to_ask_what_is_meant_is_a_student_s_in_other_languages_too(text):
    assert found(text, GERMAN) == ()


@pytest.mark.parametrize(
    ("flag", "text"), [(flag, text) for flag, texts in UNLIKE.items() for text in texts]
)
def test_what_a_model_says_out_of_its_part_is_flagged(flag, text):
    assert flag in found(text)


@pytest.mark.parametrize("text", ["Ich weiß es nicht, vielleicht.", "Nein."])
def test_another_language_is_none_where_the_dialogue_began_in_it(text):
    assert "language" not in found(text, GERMAN)


BREAD = "I believe bread rises because there's heat in the oven."


def told(words: str, tutor: str = "What have you seen of it?") -> tuple[str, ...]:
    """To a tutor, by one who opened with the bread."""
    return found(words, [Exchange(student=BREAD, tutor=tutor)])


@pytest.mark.parametrize(
    "text",
    [
        "I was wrong. It's not the heat.",
        "You've convinced me. Bread doesn't rise because of heat.",
        "OK, I was wrong, it's the yeast.",
        "You're right, the oven is not it. Thanks!",
        "I was wrong about the heat.",
        "I was wrong about why bread rises, thank you.",
    ],
)
def test_to_deny_the_belief_or_to_name_another_cause_is_no_reason(text):
    assert told(text) == ("unreasoned_concession",)


@pytest.mark.parametrize(
    "text",
    [
        "I was wrong. It rose in the fridge overnight.",
        "I was wrong, there was no heat in the oven.",
        "I was wrong about the flour.",
        "It's not the heat.",
        "It doesn't rise in my oven.",
        "I was wrong, it's the yeast that makes the bubbles.",
    ],
)
def test_what_was_seen_is_a_reason_and_a_denial_alone_an_answer(text):
    assert told(text) == ()


def test_to_conclude_the_opposite_is_an_answer_only_to_a_question():
    text = "Okay, so it's not the heat."

    assert told(text, "And what happens in the fridge?") == ()
    assert told(text, "It's the yeast that does it.") == ("unreasoned_concession",)


@pytest.mark.parametrize(
    "text",
    [
        "I believe bread rises because there is heat in the oven.",
        "I still think bread rises because there\u2019s heat in the oven.",
        "Like I said: bread rises because there's heat in the oven.",
        "It's the hot oven that makes bread grow.",
    ],
)
def test_the_same_thought_in_another_frame_is_a_repetition(text):
    assert told(text) == ("repetition",)


def test_another_thought_in_the_same_frame_is_none():
    assert told("I still think bread is best on the second day.") == ()
