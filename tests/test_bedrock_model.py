"""A model over real HTTP: against the emulator, or a service that says what it is told."""

import json
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from socratic_bench.catalogue.tokens import most_input_tokens
from socratic_bench.emulator import Emulator, Settings, parse_fault
from socratic_bench.errors import ENDINGS, ModelError
from socratic_bench.generation import GenerateConfig
from socratic_bench.models import call
from socratic_bench.models.bedrock.capabilities import Options
from socratic_bench.models.bedrock.errors import ERROR_KINDS, retry_after_s
from socratic_bench.models.call import CalledModel
from socratic_bench.retrying import RetryPolicy
from socratic_bench.types import (
    Attempt,
    CallKey,
    Completion,
    Message,
    Request,
    Text,
    Tool,
    ToolUse,
    Usage,
)
from tests.calling import Around, connected
from tests.fakes import NOON, PATIENCE_S, FakeBedrock, Said, answer, refusal

TUTOR = "emulator.socratic-v1:0"
PICKY = "emulator.picky-v1:0"
KEY = CallKey(role="tutor", index=0)
TOOL = Tool(
    name="record",
    description="Records.",
    input_schema={"type": "object", "properties": {"form": {"type": "number"}}},
)
REQUEST = Request(
    system="You are a tutor. Ask, never tell.",
    messages=(Message.user("I think all music is a matter of taste."),),
    config=GenerateConfig(max_tokens=200),
)


@dataclass
class Bench:
    """A model on a server, with everything around it in sight."""

    client: Any
    around: Around = field(default_factory=Around)

    def model(
        self, model_id: str = TUTOR, *, max_attempts: int = 3, stream: bool = True
    ) -> CalledModel:
        return self.around.model(
            self.client, model_id, max_attempts=max_attempts, options=Options(stream=stream)
        )

    def ask(self, request: Request = REQUEST, key: CallKey = KEY, **model: Any) -> Completion:
        return self.model(**model).complete(request, key)

    def fail(self, request: Request = REQUEST, key: CallKey = KEY, **model: Any) -> ModelError:
        with pytest.raises(ModelError) as failed:
            self.ask(request, key, **model)
        return failed.value


@pytest.fixture(scope="module")
def scripted() -> Iterator[tuple[FakeBedrock, Any]]:
    """One scripted service and one client for all tests of this module."""
    with FakeBedrock() as fake, connected(fake.url) as client:
        yield fake, client


@pytest.fixture
def fake(scripted: tuple[FakeBedrock, Any]) -> FakeBedrock:
    scripted[0].reset()
    return scripted[0]


@pytest.fixture
def bench(scripted: tuple[FakeBedrock, Any]) -> Bench:
    return Bench(scripted[1])


@contextmanager
def emulated(*faults: str, **settings: Any) -> Iterator[tuple[Emulator, Bench]]:
    ordered = tuple(parse_fault(fault) for fault in faults)
    with (
        Emulator(Settings(faults=ordered, keep_bodies=True, **settings)) as emulator,
        connected(emulator.url) as client,
    ):
        yield emulator, Bench(client)


class TestAnswer:
    def test_all_that_the_service_says_is_read(self, fake, bench):
        fake.scripts[TUTOR] = [answer("Why?", usage={"inputTokens": 7, "outputTokens": 5})]

        found = bench.ask()
        assert found == Completion(
            message=Message.assistant("Why?"),
            stop_reason="end_turn",
            provider_stop_reason="end_turn",
            model_id=TUTOR,
            usage=Usage(input_tokens=7, output_tokens=5),
            latency_ms=5000.0,
            service_latency_ms=100.0,
            attempts=(
                Attempt(
                    started_at=NOON,
                    duration_ms=5000.0,
                    wait_ms=0.0,
                    error=None,
                    may_have_been_billed=True,
                    input_tokens_at_most=most_input_tokens(REQUEST),
                    output_tokens_at_most=REQUEST.config.max_tokens,
                    model_id=TUTOR,
                ),
            ),
            request_id=found.request_id,
            finished_at=NOON + timedelta(seconds=1),
            streamed=True,
            ttft_ms=2000.0,  # each event is a look at the clock, and so a second
            first_text_ms=2000.0,
        )

    def test_the_request_id_is_the_services(self, fake, bench):
        said = answer("Why?")
        fake.scripts[TUTOR] = [replace(said, headers={"x-amzn-RequestId": "abc-1"})]

        assert bench.ask().request_id == "abc-1"

    def test_missing_counters_are_unknown(self, fake, bench):
        body = json.loads(answer("Why?").body)
        del body["usage"], body["metrics"]
        fake.scripts[TUTOR] = [Said(json.dumps(body).encode())]

        found = bench.ask()
        assert (found.usage, found.service_latency_ms) == (None, None)

    def test_a_real_endpoint_takes_what_is_sent(self):
        with emulated() as (emulator, bench):
            found = bench.ask()

            (sent,) = emulator.requests
        assert "?" in found.message.text
        assert found.stop_reason == "end_turn"
        assert json.loads(sent.body) == {
            "messages": [{"role": "user", "content": [{"text": REQUEST.messages[0].text}]}],
            "system": [{"text": REQUEST.system}],
            "inferenceConfig": {"maxTokens": 200},
        }

    def test_cached_input_counts_as_input(self, fake, bench):
        usage = {
            "inputTokens": 7,
            "outputTokens": 5,
            "totalTokens": 312,
            "cacheReadInputTokens": 200,
            "cacheWriteInputTokens": 100,
        }
        fake.scripts[TUTOR] = [answer("Why?", usage=usage)]

        assert bench.ask().usage == Usage(
            input_tokens=307, output_tokens=5, cache_read_tokens=200, cache_write_tokens=100
        )

    def test_nulls_and_unknown_fields_do_no_harm(self, fake, bench):
        fake.scripts[TUTOR] = [
            answer("Why?", trace=None, performanceConfig=None, brandNew={"a": 1}, metrics=None)
        ]

        assert bench.ask().message == Message.assistant("Why?")

    @pytest.mark.parametrize(
        "model_id",
        [
            "anthropic.claude-3-5-sonnet-20241022-v1:0",
            "us.anthropic.claude-3-5-sonnet-20241022-v2:0",
            "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.amazon.nova-lite-v1:0",
            "arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-3-haiku-20240307-v1:0",
        ],
    )
    def test_any_form_of_id_arrives_whole(self, model_id):
        with emulated() as (emulator, bench):
            bench.ask(model_id=model_id)

            assert [record.model_id for record in emulator.requests] == [model_id]


UNREADABLE = [
    b"",
    b"{}",
    b"[]",
    b"null",
    b"5",
    b'"words"',
    b"<html><body>Sign in</body></html>",
    answer("Why?").body[:-20],
    b"\xff\xfe\x00",
    b'{"output": null, "stopReason": "end_turn"}',
    b'{"output": "words", "stopReason": "end_turn"}',
    b'{"output": {"message": "words"}, "stopReason": "end_turn"}',
    b'{"output": {"message": {"content": "words"}}, "stopReason": "end_turn"}',
    b'{"output": {"message": {"content": [5]}}, "stopReason": "end_turn"}',
    b'{"output": {"message": {"content": [{"text": 5}]}}, "stopReason": "end_turn"}',
    b'{"output": {"message": {"content": [{"text": "a", "image": {}}]}}, "stopReason": "end_turn"}',
    b'{"output": {"message": {"content": [{"text": "Why?"}]}}}',
    b'{"output": {"message": {"content": [{"text": "Why?"}]}}, "stopReason": 5}',
    b'{"output":' * 5000,
    b"[" * 100_000,
]


@pytest.mark.parametrize("body", UNREADABLE, ids=lambda body: body[:70].decode("latin-1"))
def test_a_good_status_with_no_answer_is_tried_again_and_then_reported(fake, bench, body):
    fake.scripts[TUTOR] = [Said(body)]

    error = bench.fail(stream=False)
    assert (error.code, error.end_reason, error.retryable) == (
        "unreadable_answer",
        "unavailable",
        True,
    )
    assert len(fake.of(TUTOR)) == len(error.attempts) == 3


def test_an_answer_after_no_answer_counts(fake, bench):
    fake.scripts[TUTOR] = [Said(b"<html>"), Said(b""), answer("Why?")]

    found = bench.ask()
    assert found.message.text == "Why?"
    assert [one.error for one in found.attempts] == ["unreadable_answer"] * 2 + [None]


@pytest.mark.parametrize(
    "usage", [None, {}, {"inputTokens": None, "outputTokens": 5}, {"outputTokens": 5}], ids=str
)
def test_odd_counters_do_not_cost_the_answer(fake, bench, usage):
    fake.scripts[TUTOR] = [answer("Why?", usage=usage)]

    found = bench.ask()
    assert (found.message.text, found.usage) == ("Why?", None)


@dataclass(frozen=True)
class Kind:
    code: str
    end_reason: str
    retried: bool
    billed: bool = False


def kind_of(error: ModelError) -> Kind:
    """What became of a call with more than one attempt: seen by its requests, not by the table."""
    billed = {one.may_have_been_billed for one in error.attempts}
    assert len(billed) == 1
    sent = len(error.attempts) - (error.code == "expired_credentials")
    return Kind(error.code, error.end_reason, sent > 1, billed.pop())


THROTTLED = Kind("throttled", "unavailable", retried=True)
DAILY_QUOTA = Kind("daily_quota", "unavailable", retried=False)
UNREADABLE_KIND = Kind("unreadable_answer", "unavailable", retried=True, billed=True)
LOST = Kind("connection_lost", "unavailable", retried=True, billed=True)
SERVER = Kind("server_error", "unavailable", retried=True, billed=True)
LEGACY = Kind("legacy_model", "unknown_model", retried=False)
FAULT_KINDS = {
    "throttled": THROTTLED,
    "daily_quota": DAILY_QUOTA,
    "not_ready": Kind("not_ready", "unavailable", retried=True),
    "internal": SERVER,
    "unavailable": SERVER,
    "model_timeout": Kind("model_timeout", "unavailable", retried=True, billed=True),
    "model_error": Kind("model_error", "unavailable", retried=True, billed=True),
    "validation": Kind("invalid_request", "refused_request", retried=False),
    "access_denied": Kind("access_denied", "access", retried=False),
    "not_found": Kind("unknown_model", "unknown_model", retried=False),
    "expired_token": Kind("expired_credentials", "credentials", retried=False),
    "on_demand": Kind("needs_profile", "refused_request", retried=False),
    "legacy": LEGACY,
    "context_window": Kind("context_window", "context_window", retried=False),
    "reset": LOST,
    "cut": UNREADABLE_KIND,
    "corrupt": UNREADABLE_KIND,
    "empty_body": UNREADABLE_KIND,
    "html": UNREADABLE_KIND,
    "truncated_json": UNREADABLE_KIND,
    "no_output": UNREADABLE_KIND,
}


STREAM_KINDS = {
    **FAULT_KINDS,
    "cut": LOST,
    "cut_frame": UNREADABLE_KIND,
    "no_metadata": UNREADABLE_KIND,
}
# An error is one whether a stream was asked for or not; a broken body is another one.
BROKEN = (
    "internal",
    "reset",
    "cut",
    "corrupt",
    "empty_body",
    "html",
    "truncated_json",
    "no_output",
)
FAULT_CASES = [
    *((False, kind, FAULT_KINDS[kind]) for kind in BROKEN),
    *((True, kind, expected) for kind, expected in STREAM_KINDS.items()),
]


@pytest.mark.parametrize(("stream", "kind", "expected"), FAULT_CASES)
def test_each_fault_has_its_meaning_and_costs_no_request_too_many(stream, kind, expected):
    """Counted at the server, so that nobody's hidden retries go unseen."""
    with emulated(kind) as (emulator, bench):
        error = bench.fail(stream=stream, max_attempts=3)

        n_requests = len(emulator.requests)
        operations = {record.operation for record in emulator.requests}
    assert operations == {"ConverseStream" if stream else "Converse"}
    assert kind_of(error) == expected
    assert error.retryable is (error.end_reason == "unavailable")
    once_more = kind == "expired_token"  # new credentials are asked for once
    n_expected = 3 if expected.retried else 1 + once_more
    assert n_requests == len(error.attempts) == n_expected
    assert {one.error for one in error.attempts} == {error.code}
    assert len(bench.around.waits) == n_requests - 1 - once_more
    assert error.hint


def test_a_service_that_hangs_is_a_read_timeout():
    with (
        Emulator(Settings(faults=(parse_fault("hang:ms=60000"),))) as emulator,
        connected(emulator.url, call_timeout_s=0.05) as client,
    ):
        error = Bench(client, Around(call_timeout_s=0.05)).fail(max_attempts=2)
        # What nobody waits for any more may not have been taken up yet.
        while len(emulator.requests) < 2:
            threading.Event().wait(0.01)
        assert len(emulator.requests) == 2
    assert kind_of(error) == Kind("read_timeout", "unavailable", retried=True, billed=True)


def test_nobody_at_the_port_is_a_connection_error():
    with FakeBedrock() as gone:
        url = gone.url
    with connected(url) as client:
        error = Bench(client).fail(max_attempts=2)

    assert kind_of(error) == Kind("connection", "unavailable", retried=True)
    assert len(error.attempts) == 2


@pytest.mark.parametrize(
    ("status", "code", "message", "kind"),
    [
        (400, "ThrottlingException", "Slow down.", THROTTLED),
        (429, "TooManyRequestsException", "Slow down.", THROTTLED),
        (400, "ServiceQuotaExceededException", "Too much.", THROTTLED),
        (429, "", "", THROTTLED),
        (502, "", "", SERVER),
        (504, "", "", SERVER),
        (403, "", "", Kind("access_denied", "access", retried=False)),
        (404, "", "", Kind("unknown_model", "unknown_model", retried=False)),
        (
            403,
            "UnrecognizedClientException",
            "",
            Kind("no_credentials", "credentials", retried=False),
        ),
        (
            403,
            "InvalidSignatureException",
            "",
            Kind("no_credentials", "credentials", retried=False),
        ),
        (403, "ExpiredToken", "", Kind("expired_credentials", "credentials", retried=False)),
        (400, "RequestExpired", "", Kind("expired_credentials", "credentials", retried=False)),
        (
            400,
            "ValidationException",
            "The provided model identifier is invalid.",
            Kind("unknown_model", "unknown_model", retried=False),
        ),
        (
            400,
            "ValidationException",
            "prompt is too long: 210000 tokens > 200000 maximum",
            Kind("context_window", "context_window", retried=False),
        ),
        (
            400,
            "ValidationException",
            "Invocation of model ID x with on-demand throughput isn't supported.",
            Kind("needs_profile", "refused_request", retried=False),
        ),
        (
            400,
            "ValidationException",
            "The maximum tokens you requested exceeds the model limit of 4096.",
            Kind("refused_setting", "refused_request", retried=False),
        ),
        (429, "ThrottlingException", "Too many tokens per day, please wait.", DAILY_QUOTA),
        (400, "ThrottlingException", "Too many tokens, please wait.", THROTTLED),
        (
            404,
            "ResourceNotFoundException",
            "This model version has reached the end of its life.",
            LEGACY,
        ),
        (403, "AccessDeniedException", "This Model is marked by provider as Legacy.", LEGACY),
        (400, "ValidationException", "This Model is marked by provider as Legacy.", LEGACY),
        (418, "TeapotException", "", Kind("invalid_request", "refused_request", retried=False)),
    ],
)
def test_errors_are_told_apart_by_code_then_words_then_status(
    fake, bench, status, code, message, kind
):
    fake.scripts[TUTOR] = [refusal(status, code, message)]

    error = bench.fail(max_attempts=2)
    assert kind_of(error) == kind
    assert len(fake.of(TUTOR)) == len(error.attempts)


@pytest.mark.parametrize("message", [{"a": 1}, ["no"], 7, None, True])
def test_a_message_that_is_no_text_is_told_as_it_is(fake, bench, message):
    fake.scripts["m"] = [Said(json.dumps({"message": message}).encode(), 400)]
    with pytest.raises(ModelError) as caught:
        bench.model("m").complete(REQUEST, KEY)

    assert caught.value.code == "invalid_request"
    assert len(caught.value.attempts) == 1


def test_the_message_names_the_model_and_what_the_service_said(fake, bench):
    fake.scripts[TUTOR] = [refusal(403, "AccessDeniedException", "Not authorized.")]

    assert bench.fail().message == f"{TUTOR}: AccessDeniedException: Not authorized."


@pytest.mark.parametrize("name", ERROR_KINDS)
def test_every_kind_of_failure_says_what_to_do_next_and_ends_a_run(name):
    kind = ERROR_KINDS[name]

    assert kind.hint
    assert kind.end_reason in ENDINGS
    lasts = name in ("daily_quota", "stalled")
    assert kind.retried is (kind.end_reason == "unavailable" and not lasts)
    assert kind.retried or not kind.maybe_billed


class TestRetries:
    @pytest.mark.parametrize("max_attempts", [1, 2, 5])
    def test_a_call_sends_as_many_requests_as_it_may_and_no_more(self, fake, bench, max_attempts):
        fake.scripts[TUTOR] = [refusal(503, "ServiceUnavailableException")]

        error = bench.fail(max_attempts=max_attempts)
        assert len(fake.of(TUTOR)) == len(error.attempts) == max_attempts
        assert len(bench.around.waits) == max_attempts - 1

    def test_waits_grow_up_to_a_bound_and_start_at_zero(self, fake, bench):
        fake.scripts[TUTOR] = [refusal(503, "ServiceUnavailableException")]

        bench.fail(max_attempts=10)
        expected = [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 20.0, 20.0, 20.0]
        assert bench.around.bounds[:9] == [(0, bound) for bound in expected]
        assert bench.around.waits == expected

    def test_the_jitter_is_full(self, fake, bench):
        fake.scripts[TUTOR] = [refusal(503, "ServiceUnavailableException")]
        bench.around.share = 0.0

        bench.fail(max_attempts=4)
        assert bench.around.waits == [0.0, 0.0, 0.0]

    def test_attempts_tell_what_failed_and_what_was_waited(self, fake, bench):
        fake.scripts[TUTOR] = [
            refusal(429, "ThrottlingException"),
            refusal(500, "InternalServerException"),
            answer("Why?"),
        ]

        found = bench.ask()
        assert [(one.error, one.wait_ms) for one in found.attempts] == [
            ("throttled", 0.0),
            ("server_error", 500.0),
            (None, 1000.0),
        ]
        assert (found.wait_before_ms, found.wait_between_ms) == (0.0, 1500.0)
        assert (found.ttft_ms, found.latency_ms) == (2000.0, 5000.0)
        assert (found.overhead_ms, found.output_tokens_per_s) == (4900.0, 5 / 5)

    def test_what_stays_wrong_is_not_tried_again_after_what_passed(self, fake, bench):
        fake.scripts[TUTOR] = [
            refusal(429, "ThrottlingException"),
            refusal(403, "AccessDeniedException"),
        ]

        error = bench.fail(max_attempts=10)
        assert [one.error for one in error.attempts] == ["throttled", "access_denied"]

    def test_the_servers_wait_is_honoured_with_a_quarter_of_jitter(self, fake, bench):
        fake.scripts[TUTOR] = [
            refusal(429, "ThrottlingException", x_amz_retry_after="4000"),
            refusal(429, "ThrottlingException", Retry_After="8"),
            refusal(429, "ThrottlingException"),
            answer("Why?"),
        ]

        bench.ask(max_attempts=4)
        assert bench.around.bounds == [(0, 1.0), (0, 2.0), (0, 2.0)]
        assert bench.around.waits == [5.0, 10.0, 2.0]

    def test_the_emulators_wait_is_honoured_too(self):
        with emulated("throttled:count=1:ms=1500") as (emulator, bench):
            bench.around.share = 0.0
            bench.ask()

            assert len(emulator.requests) == 2
        assert bench.around.waits == [1.5]

    def test_an_absurd_wait_is_bounded(self, fake, bench):
        fake.scripts[TUTOR] = [
            refusal(429, "ThrottlingException", x_amz_retry_after="86400000"),
            answer("Why?"),
        ]
        bench.around.share = 0.0

        bench.ask()
        assert bench.around.waits == [120.0]

    def test_a_call_is_bounded_in_time_as_well(self):
        """By a clock of its own: each wait moves it on by what was waited."""
        now = [1000.0]
        tries = []

        def sleep(seconds: float) -> None:
            now[0] += seconds

        def fail() -> None:
            tries.append(now[0])
            raise ModelError("Slow.", code="throttled", end_reason="unavailable", retryable=True)

        policy = RetryPolicy(
            max_attempts=1000, window_s=call.RETRY_WINDOW_S, uniform=lambda low, _high: low
        )
        with pytest.raises(ModelError):
            policy.call(
                fail,
                passes=lambda _: True,
                sleep=sleep,
                monotonic_s=lambda: now[0],
                server_wait_s=lambda _: 100.0,
            )
        assert tries == [1000.0 + 100 * number for number in range(10)]
        assert call.RETRY_WINDOW_S == 900

    def test_what_the_first_try_took_is_part_of_the_bound(self):
        class Slow(Around):
            def monotonic_s(self) -> float:
                self.now_s += 500.0
                return self.now_s

        with emulated("reset") as (emulator, bench):
            bench.around = Slow()
            error = bench.fail(max_attempts=3)

            assert len(emulator.requests) == len(error.attempts) == 1

    def test_other_errors_fly_at_once(self):
        tries = []

        def fail() -> None:
            tries.append(1)
            raise KeyError("defect")

        with pytest.raises(KeyError):
            RetryPolicy(max_attempts=5).call(
                fail,
                passes=lambda error: isinstance(error, ModelError),
                sleep=tries.append,
                monotonic_s=lambda: 0.0,
            )
        assert tries == [1]

    @pytest.mark.parametrize(
        ("headers", "wait"),
        [
            ({"x-amz-retry-after": "1500"}, 1.5),
            ({"retry-after": "3"}, 3.0),
            ({"x-amz-retry-after": "1500", "retry-after": "3"}, 1.5),
            ({"x-amz-retry-after": "soon", "retry-after": "3"}, 3.0),
            ({"x-amz-retry-after": "0"}, 0.0),
            ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
            ({"x-amz-retry-after": "-5"}, None),
            ({"x-amz-retry-after": "nan"}, None),
            ({"x-amz-retry-after": "inf"}, None),
            ({}, None),
        ],
    )
    def test_only_a_wait_that_can_be_waited_is_asked_for(self, headers, wait):
        assert retry_after_s(headers) == wait

    @given(st.dictionaries(st.sampled_from(["x-amz-retry-after", "retry-after"]), st.text()))
    def test_any_header_is_a_wait_or_none(self, headers):
        wait = retry_after_s(headers)

        assert wait is None or 0 <= wait < float("inf")


class TestRefusedFields:
    """A model that the capability table does not know, and that takes less than a modern one."""

    REQUEST = Request(
        system="Ask, never tell.",
        messages=(Message.user("Hello."),),
        config=GenerateConfig(max_tokens=200),
        is_cacheable_prefix=True,
    )

    def test_it_is_asked_again_without_each_field_that_it_refuses(self):
        with emulated() as (emulator, bench):
            found = bench.ask(self.REQUEST, model_id=PICKY, max_attempts=1)
            sent = [json.loads(record.body) for record in emulator.requests]

        config = {"maxTokens": 200}
        point = {"cachePoint": {"type": "default"}}
        folded = [{"text": "Ask, never tell.\n\n"}, {"text": "Hello."}]
        assert found.message.text
        assert [one.error for one in found.attempts] == ["invalid_request"] * 2 + [None]
        assert sent == [
            {
                "messages": [{"role": "user", "content": [{"text": "Hello."}, point]}],
                "system": [{"text": "Ask, never tell."}],
                "inferenceConfig": config,
            },
            {
                "messages": [{"role": "user", "content": [*folded, point]}],
                "inferenceConfig": config,
            },
            {"messages": [{"role": "user", "content": folded}], "inferenceConfig": config},
        ]
        assert bench.around.waits == []

    def test_what_it_refuses_is_remembered_and_said_once(self):
        with emulated() as (emulator, bench):
            model = bench.model(PICKY)
            model.complete(self.REQUEST, KEY)
            before = len(emulator.requests)
            found = model.complete(self.REQUEST, KEY)

            assert len(emulator.requests) == before + 1
        assert [one.error for one in found.attempts] == [None]
        assert bench.around.notices == [
            f"{PICKY} refuses system: the run continues without it.",
            f"{PICKY} refuses prompt cache: the run continues without it.",
        ]

    def test_a_forced_tool_becomes_json_in_words(self):
        request = replace(self.REQUEST, tool=TOOL, system=None)
        with emulated() as (emulator, bench):
            bench.ask(request, model_id=PICKY)
            sent = [json.loads(record.body) for record in emulator.requests]

        assert "toolConfig" in sent[0]
        assert "toolConfig" not in sent[-1]
        assert "JSON Schema" in sent[-1]["messages"][0]["content"][0]["text"]
        assert bench.around.notices[0] == (
            f"{PICKY} refuses forced tool: the run continues without it."
        )

    def test_a_refusal_that_goes_on_without_the_field_ends_the_call(self, fake, bench):
        """A service that repeats itself must not be asked for ever."""
        fake.scripts["odd"] = [
            refusal(400, "ValidationException", "This model doesn't support system messages.")
        ]

        error = bench.fail(self.REQUEST, model_id="odd", max_attempts=5)
        assert (error.code, len(fake.of("odd"))) == ("invalid_request", 2)

    def test_threads_that_learn_together_say_it_once(self, fake, bench):
        both_sent = threading.Barrier(2, timeout=PATIENCE_S)

        def refuse(sent: Any) -> Said:
            if "system" not in sent.body:
                return answer("Why?")
            both_sent.wait()
            return refusal(400, "ValidationException", "It doesn't support system messages.")

        fake.scripts["odd"] = refuse
        model = bench.model("odd")
        with ThreadPoolExecutor(2) as pool:
            found = list(pool.map(lambda _: model.complete(REQUEST, KEY), range(2)))

        assert [len(one.attempts) for one in found] == [2, 2]
        assert len(bench.around.notices) == 1

    def test_refusals_and_retries_mix(self, fake, bench):
        fake.scripts["odd"] = [
            refusal(429, "ThrottlingException"),
            refusal(400, "ValidationException", "It doesn't support system messages."),
            refusal(429, "ThrottlingException"),
            answer("Why?"),
        ]

        found = bench.ask(model_id="odd", max_attempts=3)
        assert [one.error for one in found.attempts] == [
            "throttled",
            "invalid_request",
            "throttled",
            None,
        ]


MODELS = (
    "anthropic.claude-3-haiku-20240307-v1:0",
    "us.anthropic.claude-3-5-haiku-20241022-v1:0",
    "us.anthropic.claude-3-7-sonnet-20250219-v1:0",
    "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "us.anthropic.claude-opus-4-7",
    "amazon.nova-lite-v1:0",
    "amazon.titan-text-express-v1",
    "meta.llama3-1-8b-instruct-v1:0",
    "mistral.mistral-7b-instruct-v0:2",
    "mistral.mistral-large-2402-v1:0",
    "us.mistral.pixtral-large-2502-v1:0",
    "us.deepseek.r1-v1:0",
    "cohere.command-r-v1:0",
)


def test_known_models_need_no_second_request():
    """The capability table and the emulator's own table agree on what models take."""
    request = Request(
        system="Ask, never tell. " * 300,
        messages=(Message.user("Hello."),),
        config=GenerateConfig(max_tokens=200),
        tool=TOOL,
        is_cacheable_prefix=True,
    )
    with emulated() as (emulator, bench):
        for model_id in MODELS:
            bench.ask(request, model_id=model_id)
        counted = Counter(record.model_id for record in emulator.requests)

    assert counted == dict.fromkeys(MODELS, 1)


def test_a_tool_call_is_read_with_its_arguments(fake, bench):
    use = {"toolUseId": "id-1", "name": "record", "input": {"form": 2.5, "why": None}}
    fake.scripts[TUTOR] = [answer([{"text": "So."}, {"toolUse": use}], "tool_use")]

    found = bench.ask(replace(REQUEST, tool=TOOL))
    assert found.message.content == (
        Text("So."),
        ToolUse("id-1", "record", {"form": 2.5, "why": None}),
    )
