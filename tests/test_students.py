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
    load_builtin,
)
from socratic_bench.benchmarks.socratic.student.model import (
    ModelStudent,
    prompt_sha256,
    system_prompt,
)
from socratic_bench.benchmarks.socratic.student.pressure import walk
from socratic_bench.benchmarks.socratic.student.scripted import ScriptedStudent
from socratic_bench.benchmarks.socratic.turn import Exchange, StudentReply
from socratic_bench.generation import GenerateConfig
from socratic_bench.types import CallKey, Completion, Message, Reasoning, Request, Text

OPEN = "What do you mean by that?"


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


SCRIPT = """
import json, sys
from socratic_bench.benchmarks.socratic.scenarios.loading import load_builtin
from socratic_bench.benchmarks.socratic.turn import Exchange
from socratic_bench.benchmarks.socratic.student.pressure import walk
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
