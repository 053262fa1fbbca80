"""The settings of the model under test, from their flags to the requests that arrive."""

import json
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from socratic_bench.emulator import Emulator, Settings, parse_fault
from socratic_bench.models.bedrock.error_table import ERROR_KINDS
from tests.command import PLAIN_RUBRIC, Outcome, account, assert_valid, begin, printed, run
from tests.fakes import FakeBedrock, answer, scored, stored

TUTOR = "emulator.socratic-v1:0"
PICKY = "emulator.picky-v1:0"
STUDENT = "emulator.student-v1:0"
JUDGE = "emulator.judge-v1:0"
SONNET = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
OPUS = "us.anthropic.claude-opus-4-7"
NOVA = "amazon.nova-lite-v1:0"
POINT = {"cachePoint": {"type": "default"}}


@contextmanager
def emulated(*faults: str, **settings: Any) -> Iterator[Emulator]:
    ordered = tuple(parse_fault(fault) for fault in faults)
    with Emulator(Settings(faults=ordered, keep_bodies=True, **settings)) as emulator:
        yield emulator


def play(
    emulator: Emulator,
    *words: str,
    model: str = TUTOR,
    turns: int = 2,
    student: Sequence[str] = ("--student-model", STUDENT),
) -> Outcome:
    """A run with a student that is a model, and a judge, which is asked about the student, too."""
    judge = () if "--judge-model" in words else ("--judge-model", JUDGE)
    return run(
        *("--model", model, "--scenario", "time-management", "--turns", str(turns)),
        *(*student, *judge, "--seed", "3", *words),
        *("--rubric", PLAIN_RUBRIC),  # its judge is asked for no insights
        env=account(emulator.url, model),
    )


def bodies(emulator: Emulator, role: str) -> list[Any]:
    return [json.loads(one.body or b"") for one in emulator.requests if one.role == role]


@pytest.mark.parametrize(
    ("words", "field", "sent", "pinned"),
    [
        (("--top-p", "0.9"), "inferenceConfig", {"maxTokens": 1024, "topP": 0.9}, {"top_p": 0.9}),
        (
            ("--temperature", "0"),
            "inferenceConfig",
            {"maxTokens": 1024, "temperature": 0.0},
            {"temperature": 0.0},
        ),
        (
            ("--service-tier", "flex"),
            "serviceTier",
            {"type": "flex"},
            {"service_tier": "flex"},
        ),
        (
            ("--latency-profile", "optimized"),
            "performanceConfig",
            {"latency": "optimized"},
            {"latency_profile": "optimized"},
        ),
        (
            ("--guardrail", "abc123:DRAFT"),
            "guardrailConfig",
            {"guardrailIdentifier": "abc123", "guardrailVersion": "DRAFT"},
            {"guardrail": "abc123:DRAFT"},
        ),
        (
            ("--enable-thinking", "--thinking-budget-tokens", "2000"),
            "additionalModelRequestFields",
            {"thinking": {"type": "enabled", "budget_tokens": 2000}},
            {"thinking_budget_tokens": 2000, "max_tokens": 3024},
        ),
    ],
)
def test_a_setting_goes_with_the_tutors_calls_alone(words, field, sent, pinned, tmp_path):
    with emulated() as emulator:
        outcome = play(emulator, *words, "--output-dir", str(tmp_path))

        assert [body.get(field) for body in bodies(emulator, "tutor")] == [sent] * 2
        others = [*bodies(emulator, "student"), *bodies(emulator, "judge")]
    assert len(others) == 1 + 2 + 1
    assert field == "inferenceConfig" or not any(field in body for body in others)
    assert all({*body["inferenceConfig"]} == {"maxTokens"} for body in others)
    assert outcome.exit_code == 0
    assert outcome.document["inputs"].items() >= pinned.items()
    assert_valid("run", outcome.document)
    (curated,) = (file for name, file in stored(tmp_path).items() if name.startswith("curated"))
    assert curated["inputs"] == outcome.document["inputs"]


def test_metadata_goes_with_every_call():
    with emulated() as emulator:
        outcome = play(emulator, "--request-metadata", "team=a", "--request-metadata", "note=")

        requests = [
            body for role in ("tutor", "student", "judge") for body in bodies(emulator, role)
        ]
    given = {"team": "a", "note": ""}
    assert [body["requestMetadata"] for body in requests] == [given] * 6
    assert outcome.document["inputs"]["request_metadata"] == given


def test_the_tier_and_profile_that_served_are_told_and_not_those_asked_for(tmp_path):
    served = {
        TUTOR: [
            answer(serviceTier={"type": "default"}, performanceConfig={"latency": "standard"}),
            answer("And why?"),
        ],
        JUDGE: [scored(3, 3, 4)],
    }
    with FakeBedrock(served) as service:
        outcome = run(
            *("--model", TUTOR, "--prompt", "Hi", "--turns", "2", "--judge-model", JUDGE),
            *("--service-tier", "priority", "--latency-profile", "optimized"),
            *("--output-dir", str(tmp_path)),
            env=account(service.url, TUTOR),
        )

    names = ("service_tier", "latency_profile")
    assert [[turn[name] for name in names] for turn in outcome.document["turns"]] == [
        ["default", "standard"],
        [None, None],
    ]
    (kept,) = (file for name, file in stored(tmp_path).items() if name.endswith("turn_000.json"))
    assert [kept[name] for name in names] == ["default", "standard"]
    assert_valid("turn", kept)


@pytest.mark.parametrize("words", [(), ("--no-stream",)])
def test_thoughts_are_kept_apart(words, tmp_path):
    with emulated() as emulator:
        outcome = play(
            emulator, "--enable-thinking", *words, "--output-dir", str(tmp_path), turns=3
        )
        sent = [json.dumps(body) for role in ("tutor", "student", "judge")
                for body in bodies(emulator, role)]  # fmt: skip

    turns = [file for name, file in sorted(stored(tmp_path).items()) if "turn_" in name]
    assert all(len(turn["reasoning"]) > 10 for turn in turns)
    for turn in turns:
        assert turn["reasoning"] not in turn["ai_response"]
        assert not any(turn["reasoning"][:40] in body for body in sent)
    assert not any("reasoningContent" in body for body in sent)
    assert outcome.document["judge"]["coverage"] == 1.0


def test_a_guardrail_that_intervenes_ends_the_dialogue():
    with emulated() as emulator:
        outcome = play(emulator, "--guardrail", "blocks1:7")

    assert (outcome.exit_code, outcome.document["end_reason"]) == (5, "guardrail")
    assert outcome.document["turns"][0]["unjudged_reason"] == "guardrail"


@pytest.mark.parametrize(
    ("words", "flag"),
    [
        (("--temperature", "0.5"), "--temperature"),
        (("--service-tier", "priority"), "--service-tier"),
        (("--latency-profile", "optimized"), "--latency-profile"),
        (("--guardrail", "absent1:1"), "--guardrail"),
        (("--enable-thinking",), "--enable-thinking"),
        (("--max-tokens", "8193"), "--max-tokens"),
    ],
)
def test_what_the_service_refuses_ends_the_run_by_the_flags_name(words, flag):
    with emulated() as emulator:
        outcome = play(emulator, *words, model=PICKY)

    error = outcome.document["error"]
    assert (outcome.exit_code, outcome.document["end_reason"]) == (3, "refused_request")
    assert error["code"] == "refused_setting"
    assert error["message"].startswith(f"The model refuses {flag}. {PICKY}: ")
    assert f"Leave out {flag}" in error["hint"]
    assert flag in outcome.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), ""),
        (
            ("--service-tier", "flex", "--temperature", "0.5"),
            " Of your settings it may be --temperature or --service-tier.",
        ),
        (("--request-metadata", "team=x"), " Of your settings it may be --request-metadata."),
    ],
)
def test_where_the_service_does_not_say_what_it_refuses_the_hint_names_what_it_may_be(words, told):
    with emulated("validation:role=tutor") as emulator:
        outcome = play(emulator, *words)

    error = outcome.document["error"]
    assert (outcome.exit_code, error["code"]) == (3, "invalid_request")
    assert error["hint"] == ERROR_KINDS["invalid_request"].hint.format(debug="--debug") + told


@pytest.mark.parametrize(
    ("model", "words", "problem"),
    [
        (SONNET, ("--temperature", "1", "--top-p", "0.9"), "--temperature together with --top-p"),
        (OPUS, ("--temperature", "0.5"), "--temperature"),
        (OPUS, ("--top-p", "0.5"), "--top-p"),
        (NOVA, ("--enable-thinking",), "--enable-thinking"),
    ],
)
def test_what_a_model_is_known_to_refuse_is_found_before_the_first_call(model, words, problem):
    with emulated() as emulator:
        outcome = play(emulator, *words, model=model)

        assert emulator.requests == []
    assert outcome.exit_code == 2
    assert f"{model} takes no {problem}: leave it out." in outcome.document["error"]["message"]


def test_the_table_and_the_emulator_agree_on_what_is_refused():
    """What the one allows, the other serves."""
    for model in (SONNET, NOVA, "us.anthropic.claude-3-7-sonnet-20250219-v1:0"):
        words = ("--top-p", "0.9") if model != NOVA else ("--top-p", "0.9", "--temperature", "0.1")
        with emulated() as emulator:
            assert play(emulator, *words, model=model, turns=1).exit_code == 0


# --- streams ---


def operations(emulator: Emulator) -> set[tuple[str | None, str]]:
    return {(one.role, one.operation) for one in emulator.requests}


def test_all_roles_are_streamed_and_tell_their_latency():
    with emulated(ms_per_output_token=2, latency_ms=20) as emulator:
        outcome = play(emulator)

        assert operations(emulator) == {
            ("tutor", "ConverseStream"),
            ("student", "ConverseStream"),
            ("judge", "ConverseStream"),
        }
    for role in ("tutor", "student", "judge"):
        latency = outcome.document["latency"][role]
        assert 20 <= latency["ttft_ms"]["p50"] < latency["latency_ms"]["p50"]
        assert latency["service_latency_ms"]["p50"] <= latency["latency_ms"]["p50"]
    turn = outcome.document["turns"][0]
    per_s = turn["usage"]["tutor"]["output_tokens"] / turn["latency"]["tutor"]["latency_ms"] * 1000
    assert turn["latency"]["tutor"]["output_tokens_per_s"] == pytest.approx(per_s, abs=0.01)


def test_a_judge_that_calls_no_tool_within_a_stream_is_asked_for_whole_verdicts():
    judge = "emulator.whole-tools-v1:0"
    with emulated() as emulator:
        outcome = play(emulator, "--judge-model", judge, model=judge, turns=3, student=())

        asked = {
            role: [one.operation for one in emulator.requests if one.role == role]
            for role in ("tutor", "judge")
        }
    # The words of the same model are streamed on.
    assert asked["tutor"] == ["ConverseStream"] * 3
    assert asked["judge"] == ["ConverseStream", *["Converse"] * 3]
    assert outcome.document["notices"] == [
        f"{judge} refuses streamed tools: the run continues without it."
    ]
    assert outcome.document["judge"]["coverage"] == 1.0
    assert outcome.document["latency"]["judge"]["ttft_ms"] is None


@pytest.mark.parametrize("judge", ["emulator.whole-tools-v1:0", "emulator.uncached-v1:0"])
def test_verdicts_that_waited_for_a_refusal_do_not_ask_for_what_was_refused(judge):
    """The first of them writes the judge's prefix to the cache, and the others wait for it."""
    with emulated(role_latency_ms={"judge": 400}) as emulator:
        outcome = play(emulator, "--judge-model", judge, turns=4, student=())

        statuses = [one.status for one in emulator.requests if one.role == "judge"]
    assert outcome.document["judge"]["coverage"] == 1.0
    assert statuses == [400, *[200] * 4]


def test_a_judge_that_is_known_to_call_no_tool_within_a_stream_is_not_asked_for_one():
    judge = "mistral.mistral-large-2402-v1:0"
    with emulated() as emulator:
        outcome = play(emulator, "--judge-model", judge, turns=2)

        assert ("judge", "Converse") in operations(emulator)
        assert ("judge", "ConverseStream") not in operations(emulator)
    assert outcome.document["notices"] == []
    assert outcome.document["judge"]["coverage"] == 1.0


def test_without_streams_the_words_are_the_same_and_the_first_token_is_unknown():
    with emulated() as emulator:
        streamed = play(emulator).document
        plain = play(emulator, "--no-stream").document

        assert operations(emulator) >= {("tutor", "Converse")}
    assert [t["question"] for t in plain["turns"]] == [t["question"] for t in streamed["turns"]]
    assert [t["score"] for t in plain["turns"]] == [t["score"] for t in streamed["turns"]]
    assert plain["latency"]["tutor"]["ttft_ms"] is None
    assert plain["inputs"]["stream"] is False


@pytest.mark.parametrize(
    ("model", "faults", "notice"),
    [
        (
            TUTOR,
            ("denied_streaming:role=tutor",),
            (
                f"Streaming of {TUTOR} is denied (bedrock:InvokeModelWithResponseStream): "
                "the run continues without it."
            ),
        ),
        (
            "emulator.whole-v1:0",
            (),
            "emulator.whole-v1:0 refuses streaming: the run continues without it.",
        ),
    ],
)
def test_a_refused_stream_is_remembered(model, faults, notice):
    with emulated(*faults) as emulator:
        outcome = play(emulator, model=model, turns=3)

        asked = [one.operation for one in emulator.requests if one.role == "tutor"]
    assert outcome.exit_code == 0
    assert asked == ["ConverseStream", "Converse", "Converse", "Converse"]
    assert outcome.document["notices"] == [notice]
    assert outcome.document["latency"]["tutor"]["unanswered_maybe_billed"] == 0


@pytest.mark.parametrize("kind", ["cut", "cut_frame", "corrupt", "stream_error", "no_metadata"])
def test_a_broken_stream_is_tried_again_and_may_be_billed(kind, tmp_path):
    with emulated(f"{kind}:role=tutor:count=2") as emulator:
        outcome = play(emulator, "--output-dir", str(tmp_path))

    document = outcome.document
    (kept,) = (file for name, file in stored(tmp_path).items() if name.endswith("turn_000.json"))
    assert (outcome.exit_code, document["usage"]["tutor"]["attempts"]) == (0, 4)
    assert document["latency"]["tutor"]["unanswered_maybe_billed"] == 2
    assert [one["may_have_been_billed"] for one in kept["attempts"]] == [True] * 3
    assert kept["attempts"][-1]["error"] is None


# --- cache points ---


def test_requests_say_what_is_worth_caching():
    with emulated(cache_minimum_tokens=200) as emulator:
        outcome = play(emulator, turns=4)

        tutors = bodies(emulator, "tutor")
    assert [
        [at for at, message in enumerate(body["messages"]) if POINT in message["content"]]
        for body in tutors
    ] == [[0], [0, 2], [2, 4], [4, 6]]
    assert outcome.document["usage"]["tutor"]["cache_read_tokens"] > 0
    assert outcome.document["usage"]["student"]["cache_read_tokens"] > 0


def test_without_a_cache_no_request_has_a_point_and_nothing_else_changes():
    with emulated(cache_minimum_tokens=200) as emulator:
        with_points = play(emulator, turns=3).document
        outcome = play(emulator, "--no-prompt-cache", turns=3)

        requests = [one.body or b"" for one in emulator.requests]
    assert sum(b"cachePoint" in body for body in requests[: len(requests) // 2]) > 0
    assert not any(b"cachePoint" in body for body in requests[len(requests) // 2 :])
    plain = outcome.document
    assert [t["question"] for t in plain["turns"]] == [t["question"] for t in with_points["turns"]]
    assert plain["usage"]["tutor"]["cache_read_tokens"] == 0
    assert plain["inputs"]["prompt_cache"] is False


def test_a_signal_ends_a_run_while_a_stream_is_under_way():
    """A reply would take an hour. tests/test_signals.py has the other signals."""
    with emulated(ms_per_output_token=60_000) as emulator:
        words = ("--model", TUTOR, "--prompt", "Hi", "--no-judge", "--turns", "2")
        process = begin(*words, env=account(emulator.url, TUTOR), stderr=subprocess.DEVNULL)
        while not emulator.requests:
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        stdout, _ = process.communicate()

    assert process.returncode == 143
    assert printed(stdout)["end_reason"] == "interrupted"


def test_the_time_of_a_call_bounds_its_stream():
    with emulated(ms_per_output_token=60_000) as emulator:
        outcome = play(emulator, "--call-timeout", "0.3", "--max-attempts", "2")

    assert (outcome.exit_code, outcome.document["error"]["code"]) == (4, "read_timeout")
    assert outcome.document["latency"]["tutor"]["unanswered_maybe_billed"] == 2
