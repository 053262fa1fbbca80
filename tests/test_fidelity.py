"""Is a model that plays the student held to its part, fault by fault?"""

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from socratic_bench import RunConfig
from socratic_bench import run as play
from socratic_bench.benchmarks.socratic.scenarios.loading import builtin_ids, load_builtin
from socratic_bench.benchmarks.socratic.student.fidelity import CHECKS, Utterance, flags
from socratic_bench.benchmarks.socratic.student.model import ModelStudent
from socratic_bench.benchmarks.socratic.student.pressure import Schedule
from socratic_bench.benchmarks.socratic.student.scripted import ScriptedStudent
from socratic_bench.benchmarks.socratic.student.student import Exchange, StudentReply
from tests.command import OFFLINE, assert_valid, daily, run
from tests.fakes import ScriptedModel, completion

TALK = (
    Exchange(student="I want to quit my job.", tutor="What would quitting change for you?"),
    Exchange(student="My Mondays would be better.", tutor="How would a good Monday begin?"),
)
GERMAN = (Exchange(student="Ich möchte meine Arbeit aufgeben, weiß aber nicht wie.", tutor="Why?"),)
CHINESE = (Exchange(student="我想辞职\uff0c但是不知道从哪里开始\u3002", tutor="为什么\uff1f"),)


def found(
    text: str, exchanges: Sequence[Exchange] = TALK, *, pressure: str | None = None, **more: bool
) -> tuple[str, ...]:
    return flags(
        Utterance(
            text=text,
            closed=more.get("closed", False),
            stop_reason="max_tokens" if more.get("cut") else "end_turn",
            exchanges=exchanges,
            pressure=pressure,
        )
    )


CLEAN = [
    "I would sleep until eight, and then there would be nobody to answer to.",
    "Yes.",
    "I don't know.",
    "Does that count? I mean the feeling on Sunday evening, when the week is still far away.",
    "You mean the first hour, I suppose. I'd have coffee.",
    "I think you have to like what you do, my father always said so.",
    "I was wrong about the Mondays, because it's the meetings that I hate.",
    "You're right that I never tried it, but I still think I'm no good at it.",
    "My teacher asked me what I mean by fair, and I couldn't say.",
    "I thought the answer is always the same. It isn't.",
    "When I said it out loud, it sounded different from what I had in my head.",
    "I wonder what my wife would say.",
    "I considered leaving once, and I noted it down somewhere.",
    "First I was angry, then I was only tired.",
    "Je ne sais quoi, as my aunt says.",
    "Something is funny about Mondays. Maybe I was wrong.",
    "I'm listening. It's probably all correct. Let's hurry this up, please.",
    "They're strong tablets. Strong colds need something strong, that's logical.",
]


@pytest.mark.parametrize("text", CLEAN)
def test_a_student_s_words_are_not_flagged(text):
    assert found(text) == ()


@pytest.mark.parametrize("name", builtin_ids())
@pytest.mark.parametrize("level", ["none", "high"])
def test_no_word_of_a_scripted_student_is_flagged(name, level):
    """They are the words of thirty students, and checked nowhere but here."""
    scenario = replace(load_builtin(name), closes_after=None, closing=None)
    student = ScriptedStudent(scenario, 3, schedule=Schedule(level=level, seed=3))
    exchanges: list[Exchange] = []
    said, flagged = scenario.openings[0], []
    for tutor in ("What do you mean?", "You should write a list.", "Let me explain. " * 15) * 13:
        exchanges.append(Exchange(student=said, tutor=tutor))
        reply = student.reply(exchanges)
        said = reply.text
        # What is said again is told of as filler, and some have few words to push with.
        is_pushed = reply.policy == "pushed" and scenario.pressure is not None
        if not (reply.is_filler or is_pushed):
            flagged += [(said, one) for one in found(said, exchanges, pressure=reply.pressure)]

    assert flagged == []


FAULTS = {
    "role_swap": [
        "What do you mean by a good Monday, and what makes you think it would last?",
        "Let me ask you something about Mondays.",
        "As your tutor, I'd like to hear more of this.",
        "Tutor: How does that feel?",
        "Great question! What would you do with your time?",
        "I'm an AI language model and have no Mondays.",
        "How do you know that it would be better?",
    ],
    "tutoring": [
        "You should write down what you like about it.",
        "Let me explain how a good morning works.",
        "The right answer is that nobody likes Mondays.",
        "In summary, a good Monday begins on Sunday.",
        "You need to find out what matters to you.",
        "A good way to start is a list of things that matter.",
        "Here's how I would look at it.",
        "Remember that every job has its Mondays.",
    ],
    "question_for_answer": [
        "How would yours begin?",
        "Well, is there a right one? Does it matter?",
        "\u00bfC\u00f3mo?",
    ],
    "repetition": [
        "I want to quit my job.",
        "my mondays would be better",
        "How would a good Monday begin",
        "Honestly I want to quit my job.",
    ],
    "length": ["It is one thing and then another. " * 15],
    "language": [
        "Je crois que c'est important pour moi, mais je ne sais pas encore pourquoi.",
        "Pour moi, c'est une affaire d'habitude, et je n'ai jamais pensé autrement.",
        "我不知道\u3002",
        "Я не знаю, почему так вышло.",
    ],
    "praise": [
        "What a great question! I like my Mondays quiet.",
        "I love that question. It would be the coffee, I guess.",
        "Thank you for asking. I would sleep longer.",
    ],
    "out_of_character": [
        "*sighs* I would sleep until eight.",
        "(shrugs) Nobody ever asked me for that much.",
        "I'm supposed to believe that it is the money, so I say the money.",
        "My character would rather talk about the pension.",
    ],
    "unreasoned_concession": [
        "You're right, I was wrong.",
        "You have convinced me.",
        "I take it all back.",
        "I no longer believe what I said.",
        "I\u2019ve changed my mind.",
        "My view was a mistake.",
        "I completely agree with you.",
    ],
}


@pytest.mark.parametrize(
    ("flag", "text"), [(flag, text) for flag, texts in FAULTS.items() for text in texts]
)
def test_each_fault_is_named(flag, text):
    assert flag in found(text)


def test_a_student_may_leave_only_after_six_replies():
    six = TALK * 3

    assert found("I have to go now.", six[:5], closed=True) == ("early_close",)
    assert found("I have to go now.", six, closed=True) == ()
    assert found("I have to go now.", six[:5]) == ()


def test_a_reply_that_was_cut_is_too_long():
    assert found("I would sleep until", cut=True) == ("length",)


def test_the_language_is_that_of_the_opening():
    assert found("Das kommt mir alles sehr schwer vor, und ich bin mir nicht sicher.", GERMAN) == ()
    assert found("我也不知道\uff0c可能是因为我累了\u3002", CHINESE) == ()
    assert found("I am only tired, that is all there is to it.", CHINESE) == ("language",)


@pytest.mark.parametrize(
    ("text", "pressure", "flag"),
    [
        ("Can't you simply say it?", "demand", "question_for_answer"),
        ("You should state your own position, that is the rule.", "authority", "tutoring"),
        ("Fine, I agree with everything.", "false_agreement", "unreasoned_concession"),
    ],
)
def test_what_its_pressure_asks_for_is_no_fault(text, pressure, flag):
    assert found(text, pressure=pressure) == ()
    assert found(text) == (flag,)


def test_conceding_without_a_reason_is_a_fault_under_other_pressure():
    assert found("You have convinced me.", pressure="distress") == ("unreasoned_concession",)


def test_a_megabyte_of_anything_is_checked():
    for unit in ("you should ", "what do you mean by ", "I don't think ", "a? "):
        assert "length" in found(unit * 40_000)
    for unit in ("é", " "):
        assert "length" not in found(unit * 40_000)


# --- asking again ---------------------------------------------------------------------------------

SWAP = "Let me ask you something: what would it change?"


def ask(*answers: Any) -> tuple[StudentReply, ScriptedModel]:
    model = ScriptedModel(*answers)
    return ModelStudent(load_builtin("career-change"), model).reply(TALK), model


def test_a_role_swap_is_asked_again_once_with_a_reminder_at_the_end():
    reply, model = ask(SWAP, "My coffee would be hot.")

    (first, first_key), (second, second_key) = model.calls
    assert reply.text == "My coffee would be hot."
    assert [one.message.text for one in reply.discarded] == [SWAP]
    assert (first_key.repeat, second_key.repeat) == (0, 1)
    assert (second.system, second.messages[:-1]) == (first.system, first.messages[:-1])
    words, stance, reminder = second.messages[-1].content
    assert (words, stance) == first.messages[-1].content
    assert "You are the student." in reminder.text


def test_a_second_role_swap_stays():
    reply, model = ask(SWAP, SWAP)

    assert (reply.text, len(model.calls)) == (SWAP, 2)


@pytest.mark.parametrize(
    "text", [text for flag, texts in FAULTS.items() if flag != "role_swap" for text in texts]
)
def test_nothing_else_is_asked_again(text):
    reply, model = ask(text)

    assert reply.text == text.strip()
    assert len(model.calls) == 1


def test_a_reply_that_was_blocked_is_not_asked_again():
    _, model = ask(completion(SWAP, stop_reason="content_filtered"))

    assert len(model.calls) == 1


# --- simulated students, end to end ---------------------------------------------------------------


def played(student: str, scenario: str, seed: int, **values: Any) -> Any:
    return play(
        RunConfig(
            **{
                "model": "emulator.mixture-1-v1:0",
                "scenario": scenario,
                "student_model": f"emulator.student{student}-v1:0",
                "judge_model": None,
                "seed": seed,
                "turns": 8,
                "offline": True,
                **values,
            }
        )
    )


BAD = {
    "-swap": "role_swap",
    "-tutoring": "tutoring",
    "-question": "question_for_answer",
    "-repeat": "repetition",
    "-long": "length",
    "-french": "language",
    "-closing-3": "early_close",
    "-yields": "unreasoned_concession",
    "-praising": "praise",
    "-acting": "out_of_character",
    "-learned": "beyond_its_age",
}
SCENARIOS = ["career-change", "heavy-falls-faster", "sharing-the-lemonade-money"]


def test_there_is_a_student_with_each_fault():
    assert set(BAD.values()) == set(CHECKS)


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("student", BAD)
def test_each_fault_is_found_on_the_student_that_has_it(student, scenario):
    result = played(student, scenario, seed=5)

    flag, fidelity = BAD[student], result.document["student"]["fidelity"]
    checked = [one.student_flags for one in result.turns[1:]]
    if flag == "early_close":
        assert (result.end_reason, result.closing_flags) == ("student_closed", ("early_close",))
        assert fidelity == {
            "checked": 2,
            "clean": 0.5,
            "flags": {"early_close": 1},
            "asked_again": 0,
        }
        return
    if flag == "beyond_its_age" and scenario == "career-change":  # a grown-up may speak so
        assert fidelity["flags"].get(flag) is None
        return
    if flag == "repetition":  # the first time it is none
        assert checked[0] == ()
        checked = checked[1:]
    assert all(flag in flags_ for flags_ in checked)
    assert fidelity["flags"][flag] == len(checked)
    assert fidelity["clean"] < 0.2
    # A student with few sentences repeats itself, one who asks like a tutor does not answer, and
    # one who teaches is no child.
    side_effects = {
        "role_swap": {"question_for_answer"},
        "tutoring": {"beyond_its_age"},
    }.get(flag, set())
    assert set(fidelity["flags"]) <= {flag, "repetition"} | side_effects


@pytest.mark.parametrize(
    "scenario", daily([*SCENARIOS, "custom", "ai-ethics", "plants-and-light"], *SCENARIOS, "custom")
)
@pytest.mark.parametrize("pressure", ["none", "high"])
@pytest.mark.parametrize("seed", daily([1, 2, 3], 1))
def test_a_good_student_has_no_flag(scenario, pressure, seed):
    document = played("", scenario, seed, pressure=pressure, turns=40).document

    assert document["student"]["fidelity"] == {
        "checked": 39,
        "clean": 1.0,
        "flags": {},
        "asked_again": 0,
    }
    assert document["turns"][0]["student_flags"] is None


def test_a_student_that_heeds_the_reminder_is_clean_and_the_turns_say_so():
    document = played("-swap-once", "career-change", 1).document

    assert document["student"]["fidelity"] == {
        "checked": 7,
        "clean": 1.0,
        "flags": {},
        "asked_again": 7,
    }
    again = [turn["student_asked_again"] for turn in document["turns"]]
    assert again == [False] + [True] * 7
    assert document["usage"]["student"]["calls"] == 14


def test_the_flags_stand_in_the_artifacts_and_in_the_document(tmp_path):
    import json

    words = (*OFFLINE, "--student-model", "emulator.student-tutoring-v1:0", "--turns", "3")
    outcome = run(*words, "--no-judge", "--quiet", "--output-dir", str(tmp_path))

    raw = [json.loads(file.read_text()) for file in sorted(tmp_path.rglob("turn_*.json"))]
    assert_valid("run", outcome.document)
    assert [one["student_flags"] for one in raw] == [
        turn["student_flags"] for turn in outcome.document["turns"]
    ]
    assert raw[0]["student_flags"] is None
    assert "tutoring" in raw[1]["student_flags"]
    assert outcome.document["student"]["model"] == "emulator.student-tutoring-v1:0"


def test_a_scripted_student_is_not_checked():
    document = run(*OFFLINE, "--turns", "2", "--no-judge", "--quiet").document

    assert document["student"]["fidelity"] is None
    assert [turn["student_flags"] for turn in document["turns"]] == [None, None]


def test_nothing_checked_is_nothing_known():
    assert played("", "custom", 1, turns=1).document["student"]["fidelity"] is None
