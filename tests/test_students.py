import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import product

import pytest
from msgspec.structs import replace

from socratic_bench.benchmarks.socratic.scenarios.loading import (
    FIRST_EDITION,
    builtin_ids,
    load_builtin,
)
from socratic_bench.benchmarks.socratic.student.first_edition import FirstStudent
from socratic_bench.benchmarks.socratic.student.model import (
    ModelStudent,
    prompt_sha256,
    system_prompt,
)
from socratic_bench.benchmarks.socratic.student.scripted import ScriptedStudent
from socratic_bench.benchmarks.socratic.student.seeded import walk
from socratic_bench.benchmarks.socratic.student.student import Exchange, StudentReply
from socratic_bench.generation import GenerateConfig
from socratic_bench.types import CallKey, Completion, Message, Reasoning, Request, Text

OPEN = "What do you mean by that?"
CLOSED = "Is that always so?"
ADVICE = "You should write a list. Does that help?"
LECTURE = "Let me explain how it is. " * 12
GREETING = "Hello there."
UNREADABLE = "\u4f60\u600e\u4e48\u770b\uff1f"

KINDS = {
    OPEN: "answered_open",
    CLOSED: "answered_closed",
    ADVICE: "took_advice",
    LECTURE: "heard_lecture",
    GREETING: "prompted",
    UNREADABLE: "answered_open",
    "": "prompted",
}


# --- the first edition, with which runs that were stored then go on ---


def dialogue(student, tutor: Sequence[str], opening: str = "Hello.") -> list[StudentReply]:
    """The student's replies to a tutor who says these things whatever it hears."""
    exchanges: list[Exchange] = []
    replies: list[StudentReply] = []
    said = opening
    for words in tutor:
        exchanges.append(Exchange(student=said, tutor=words))
        replies.append(student.reply(exchanges))
        said = replies[-1].text
    return replies


def patient(name: str):
    """The scenario, without its closing."""
    return replace(load_builtin(name, FIRST_EDITION), closes_after=None, closing=None)


@pytest.mark.parametrize("name", ["custom", "the-longer-decimal", "milk-price"])
@pytest.mark.parametrize(
    "tutor",
    [(OPEN,), (CLOSED,), (ADVICE,), (LECTURE,), (GREETING,), (OPEN, CLOSED, OPEN, ADVICE, LECTURE)],
    ids=["open", "closed", "advice", "lecture", "greeting", "mixed"],
)
@pytest.mark.parametrize("seed", [0, 20251105])
def test_nothing_is_said_twice_in_500_turns(name, tutor, seed):
    scenario = patient(name)

    replies = dialogue(FirstStudent(scenario, seed), (tutor * 500)[:500])

    texts = [reply.text for reply in replies]
    assert len(set(texts)) == 500
    assert not any(reply.closed for reply in replies)
    grown = texts[len(scenario.replies) :]
    assert not [text for text in grown if text != " ".join(text.split())]
    assert not [text for text in grown if set(text) & set("{}?") or ".." in text or not text]


def test_nothing_is_said_twice_by_a_student_with_few_details_either():
    scenario = replace(patient("plants-and-light"), details=("a", "a b", "a c"), replies=("Hm.",))

    replies = dialogue(FirstStudent(scenario, 1), [OPEN] * 500)

    assert len({reply.text for reply in replies}) == 500


@pytest.mark.parametrize("name", builtin_ids(FIRST_EDITION))
def test_its_own_replies_come_first_and_in_order(name):
    scenario = patient(name)

    replies = dialogue(FirstStudent(scenario, 3), [OPEN] * len(scenario.replies))

    assert replies == [
        StudentReply(text=text, closed=False, policy="scripted") for text in scenario.replies
    ]


@pytest.mark.parametrize("words", [CLOSED, GREETING, ""])
def test_own_replies_stand_alone_after_a_closed_question_or_nothing(words):
    scenario = load_builtin("custom", FIRST_EDITION)

    replies = dialogue(FirstStudent(scenario, 3), [words] * 2)

    assert [reply.text for reply in replies] == list(scenario.replies[:2])
    assert {reply.policy for reply in replies} == {"scripted"}


@pytest.mark.parametrize("words", [ADVICE, LECTURE])
def test_advice_and_lectures_get_a_reaction_before_the_next_own_reply(words):
    scenario = load_builtin("custom", FIRST_EDITION)

    replies = dialogue(FirstStudent(scenario, 3), [OPEN, words, words, OPEN])

    kind = KINDS[words]
    assert [reply.policy for reply in replies] == ["scripted", kind, kind, "scripted"]
    before = []
    for reply, own in zip(replies[1:3], scenario.replies[1:3], strict=True):
        assert reply.text.endswith(f" {own}")
        before.append(reply.text.removesuffix(f" {own}"))
    assert all(before)
    assert before[0] != before[1]


@pytest.mark.parametrize(("words", "kind"), KINDS.items())
def test_what_the_tutor_did_decides_the_kind_of_reply(words, kind):
    scenario = load_builtin("career-change", FIRST_EDITION)

    replies = dialogue(FirstStudent(scenario, 3), [OPEN] * 8 + [words])

    assert replies[-1].policy == kind


def test_a_closed_question_gets_a_shorter_answer_than_an_open_one():
    student = FirstStudent(load_builtin("career-change", FIRST_EDITION), 3)

    def mean_length(words: str) -> float:
        return sum(len(reply.text) for reply in dialogue(student, [words] * 48)[8:]) / 40

    assert mean_length(CLOSED) * 1.8 < mean_length(OPEN)


def test_only_a_scenario_that_says_so_closes():
    scenario = load_builtin("the-longer-decimal", FIRST_EDITION)
    assert scenario.closes_after == 16

    replies = dialogue(FirstStudent(scenario, 3), [OPEN] * 16)

    assert [reply.closed for reply in replies] == [False] * 15 + [True]
    assert replies[-1] == StudentReply(text=scenario.closing, closed=True, policy="scripted")


def test_a_dialogue_can_be_taken_up_anywhere():
    scenario = load_builtin("giraffe-necks", FIRST_EDITION)
    tutor = [OPEN, ADVICE, CLOSED, OPEN, LECTURE] * 6
    replies = dialogue(FirstStudent(scenario, 8), tutor)
    said = ["Hello.", *(reply.text for reply in replies)]
    exchanges = [
        Exchange(student=s, tutor=t) for s, t in zip(said[: len(tutor)], tutor, strict=True)
    ]

    again = [FirstStudent(scenario, 8).reply(exchanges[:n]) for n in range(len(exchanges), 0, -1)]

    assert again == replies[::-1]


def test_another_seed_is_another_student():
    scenario = load_builtin("custom", FIRST_EDITION)

    one, other = (dialogue(FirstStudent(scenario, s), [OPEN] * 40) for s in (1, 2))

    assert one[:8] == other[:8]
    assert one[8:] != other[8:]


SCRIPT = """
import json, sys
from socratic_bench.benchmarks.socratic.scenarios.loading import load_builtin
from socratic_bench.benchmarks.socratic.student.student import Exchange
from socratic_bench.benchmarks.socratic.student.scripted import ScriptedStudent
scenario = load_builtin("ai-ethics")
student = ScriptedStudent(scenario, 42)
exchanges, said = [], scenario.openings[0]
for _ in range(40):
    exchanges.append(Exchange(student=said, tutor="What then?"))
    said = student.reply(exchanges).text
print(json.dumps([exchange.student for exchange in exchanges]))
"""


def test_the_same_seed_says_the_same_in_every_process():
    def said(hash_seed: str) -> list[str]:
        env = {**os.environ, "PYTHONHASHSEED": hash_seed}
        ran = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=env, capture_output=True, text=True, check=True
        )
        return json.loads(ran.stdout)

    scenario = load_builtin("ai-ethics")
    opening = scenario.openings[0]
    replies = dialogue(ScriptedStudent(scenario, 42), ["What then?"] * 39, opening)
    here = [opening, *(reply.text for reply in replies)]

    assert said("0") == said("4711") == here


@pytest.mark.parametrize("sizes", [(7, 3, 5), (6, 4, 2), (4, 4, 4), (1, 3), (5,)])
def test_a_walk_meets_every_combination_once(sizes):
    steps = [walk(position, sizes) for position in range(len(list(product(*map(range, sizes)))))]

    assert sorted(steps) == sorted(product(*map(range, sizes)))


def completion(text: str, stop_reason: str = "end_turn") -> Completion:
    return Completion(
        message=Message("assistant", (Reasoning("secret"), *Message.assistant(text).content)),
        stop_reason=stop_reason,
        usage=None,
        latency_ms=1.0,
        service_latency_ms=None,
        attempts=(),
        request_id=None,
        finished_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


@dataclass
class FakeModel:
    answers: list[Completion]
    calls: list[tuple[Request, CallKey]] = field(default_factory=list)
    model_id: str = "fake.student"

    def complete(self, request: Request, key: CallKey) -> Completion:
        self.calls.append((request, key))
        return self.answers.pop(0)


TALK = (
    Exchange(student="I want to quit.", tutor="What would quitting change?"),
    Exchange(student="My Mondays.", tutor="How so?"),
)


def ask(*answers: Completion) -> tuple[StudentReply, FakeModel]:
    model = FakeModel(list(answers))
    student = ModelStudent(load_builtin("career-change"), model)
    return student.reply(TALK), model


STANDS = (
    "(Unheard by the tutor, where you stand now: you still think I have to know which job is the "
    "right one before I make any move at all. Nothing you have said gives that up.)"
)


def test_the_model_sees_the_dialogue_from_the_student_s_side():
    answer = completion("  I'd sleep on Sundays. ")
    scenario = load_builtin("career-change")

    reply, model = ask(answer)

    assert reply == StudentReply(
        text="I'd sleep on Sundays.", closed=False, policy="model", completion=answer
    )
    ((request, key),) = model.calls
    assert key == CallKey(role="student", index=2)
    assert request == Request(
        system=system_prompt(scenario),
        messages=(
            Message.user("(The tutor is here and listens. Say what brings you.)"),
            Message.assistant("I want to quit."),
            Message.user("What would quitting change?"),
            Message.assistant("My Mondays."),
            Message("user", (Text("How so?"), Text(STANDS))),
        ),
        config=GenerateConfig(max_tokens=300),
        is_cacheable_prefix=True,
    )


@pytest.mark.parametrize(
    ("said", "text", "closed"),
    [
        ("I have to go. [[end of dialogue]]", "I have to go.", True),
        ("I have to go.\n\n[[End of Dialogue]].\n", "I have to go.", True),
        ("[[end of dialogue]]", "", True),
        ("Twice. [[end of dialogue]] [[end of dialogue]]", "Twice.", True),
        (
            "Is this the [[end of dialogue]] already, I wonder.",
            "Is this the already, I wonder.",
            False,
        ),
        ("[[end of dialogue]] Wait, one thing.", "Wait, one thing.", False),
        ("It's the end of dialogue for me.", "It's the end of dialogue for me.", False),
        ("[end of dialogue]", "[end of dialogue]", False),
        ("I know now.", "I know now.", False),
    ],
)
def test_only_the_closing_token_at_the_end_closes(said, text, closed):
    reply, model = ask(completion(said))

    assert (reply.text, reply.closed, len(model.calls)) == (text, closed, 1)


def test_an_empty_reply_is_asked_for_once_more():
    empty, second = completion(" \n"), completion("Sorry. I was far away.")

    reply, model = ask(empty, second)

    assert reply == StudentReply(
        text="Sorry. I was far away.",
        closed=False,
        policy="model",
        completion=second,
        discarded=(empty,),
    )
    (first_request, first_key), (request, key) = model.calls
    assert request == first_request
    assert (first_key, key) == (
        CallKey(role="student", index=2),
        CallKey(role="student", index=2, repeat=1),
    )


def test_twice_empty_comes_back_empty():
    reply, model = ask(completion(""), completion(""))

    assert (reply.text, reply.closed, len(model.calls)) == ("", False, 2)


@pytest.mark.parametrize("reason", ["content_filtered", "guardrail_intervened"])
def test_a_filtered_reply_is_not_asked_for_again(reason):
    reply, model = ask(completion("", reason))

    assert (reply.text, reply.completion.stop_reason, len(model.calls)) == ("", reason, 1)


def test_the_instructions_hold_the_scenario_s_words_unharmed():
    persona = "Likes $5 notes, {braces}, {{belief}}, \\1 and 100 %."
    scenario = replace(load_builtin("custom"), persona=persona, belief="x is $y")

    prompt = system_prompt(scenario)

    assert persona in prompt
    assert '"I think x is $y. I think so because it has worked' in prompt
    assert "[[end of dialogue]]" in prompt
    assert "{{" not in prompt.replace(persona, "")


def test_resistance_changes_the_instructions():
    scenario = load_builtin("custom")

    prompts = {system_prompt(replace(scenario, resistance=r)) for r in ("low", "medium", "high")}

    assert len(prompts) == 3


def test_the_instructions_have_a_fingerprint():
    assert len(bytes.fromhex(prompt_sha256())) == 32
