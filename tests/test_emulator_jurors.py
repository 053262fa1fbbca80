"""Judges of known faults: as the plain judge, but for what their ids say."""

from itertools import product
from statistics import fmean, pstdev

import pytest

from socratic_bench.emulator.catalogue import traits_of
from socratic_bench.emulator.dialogue import read_dialogue
from socratic_bench.emulator.models.reply import REFUSAL, Juror, compose, juror_of, spoken_by

ASKS = "What do you mean by falling?"
LECTURES = "Heavy objects do not fall faster. Galileo showed it."
HIGHS = {"form": 3.0, "substance": 3.0, "purity": 4.0}


def shown(reply, code):
    enclosed = f"<context-{code}>\n[student-{code}]\nThey fall.\n</context-{code}>"
    return f"{enclosed}\n\n<reply-{code}>\n{reply}\n</reply-{code}>\n\nScore it."


def answered(model_id, reply, code="0123456789abcdef"):
    body = {"messages": [{"role": "user", "content": [{"text": shown(reply, code)}]}]}
    properties = {
        name: {"type": "number", "minimum": 0, "maximum": high, "multipleOf": 0.5}
        for name, high in HIGHS.items()
    }
    schema = {"type": "object", "properties": properties}
    spec = {"name": "record_verdict", "inputSchema": {"json": schema}}
    body["toolConfig"] = {"tools": [{"toolSpec": spec}]}
    content = compose(read_dialogue(model_id, body), body, traits_of(model_id)).content[0]
    return content["toolUse"]["input"] if "toolUse" in content else content["text"]


def scores(model_id, reply, code="0123456789abcdef"):
    said = answered(model_id, reply, code)
    return {name: said[name] for name in HIGHS}


def test_a_bias_is_added_to_each_dimension_within_its_range():
    plain = scores("emulator.judge-v1:0", ASKS)
    milder = scores("emulator.judge-bias-10-v1:0", ASKS)
    harsher = scores("emulator.judge-bias--10-v1:0", ASKS)
    assert milder == {name: min(high, plain[name] + 1) for name, high in HIGHS.items()}
    assert harsher == {name: max(0, plain[name] - 1) for name in HIGHS}


@pytest.mark.parametrize("fault", ["noise", "quirk"])
def test_errors_have_the_deviation_that_the_id_says(fault):
    """Half steps add a variance of 1/48 to that of the errors."""
    model_id = f"emulator.judge-{fault}-3-v1:0"
    replies = [f"What do you mean by word{n}, and why?" for n in range(1200)]
    errors = [
        scores(model_id, reply)["substance"] - scores("emulator.judge-v1:0", reply)["substance"]
        for reply in replies
    ]
    assert fmean(errors) == pytest.approx(0, abs=0.05)
    assert pstdev(errors) == pytest.approx((0.3**2 + 1 / 48) ** 0.5, abs=0.03)


@pytest.mark.parametrize(("fault", "is_same"), [("noise", False), ("quirk", True)])
def test_only_noise_is_new_with_each_request(fault, is_same):
    model_id = f"emulator.judge-{fault}-10-v1:0"
    found = [scores(model_id, ASKS, f"{n:016x}") for n in range(20)]
    assert all(one == found[0] for one in found) is is_same
    assert scores(model_id, ASKS, f"{3:016x}") == found[3]


def test_one_prefers_what_its_own_kind_would_say():
    model_id = "emulator.judge-prefers-lecturer-v1:0"
    assert scores(model_id, ASKS) == scores("emulator.judge-v1:0", ASKS)
    plain = scores("emulator.judge-v1:0", LECTURES)
    assert scores(model_id, LECTURES) == {name: plain[name] + 1 for name in HIGHS}


def test_one_refuses():
    assert answered("emulator.judge-refuses-v1:0", ASKS) == REFUSAL


def test_each_id_says_one_thing_and_the_plain_judge_has_none():
    assert juror_of("emulator.judge-v1:0") is None
    assert juror_of("emulator.lecturer-v1:0") is None
    mixed = "emulator.judge-bias--5-noise-10-quirk-3-v1:0"
    assert juror_of(mixed) == Juror(bias=-0.5, noise=1.0, quirk=0.3)
    for bias, noise in product(("", "-bias-5"), ("", "-noise-5")):
        assert traits_of(f"emulator.judge{bias}{noise}-v1:0").is_known
    assert not traits_of("emulator.judge-kind-v1:0").is_known


def test_a_model_of_the_callers_own_says_what_its_function_says():
    body = {"messages": [{"role": "user", "content": [{"text": "Hello."}]}]}
    dialogue = read_dialogue("own.model-v1:0", body)

    def said(words):
        return spoken_by(lambda asked: words if asked is body else "", dialogue, body).content

    assert said("Why?") == ({"text": "Why?"},)
    assert said({"form": 1}) == ({"text": '{"form": 1}'},)
