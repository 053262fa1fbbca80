"""Every fault that can be ordered, as it looks to boto3; and when faults strike."""

import json
import time
from contextlib import ExitStack, closing

import pytest
from botocore.eventstream import ChecksumMismatch
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionClosedError,
    EndpointConnectionError,
    EventStreamError,
)
from urllib3.exceptions import ProtocolError

from socratic_bench.emulator import Emulator, Fault, Settings, parse_fault
from socratic_bench.emulator.faults import KINDS, FaultInjector
from tests.test_emulator_support import (
    JUDGE,
    SOCRATIC,
    STUDENT,
    STUDENT_SYSTEM,
    TOOL,
    Raw,
    client,
    converse_body,
    http,
    ordered,
    shown,
    text_of,
    user,
)

QUESTION = {"modelId": SOCRATIC, "messages": [user("What is courage?")]}
VERDICT = {"modelId": JUDGE, "messages": [shown("What do you mean by courage?")]}


@pytest.fixture(scope="module")
def emulator():
    with Emulator(Settings()) as emulator:
        yield emulator


@pytest.fixture(scope="module")
def bedrock(emulator):
    bedrock = client(emulator.url)
    yield bedrock
    bedrock.close()


@pytest.mark.parametrize(
    ("kind", "status", "code", "words"),
    [
        ("throttled", 429, "ThrottlingException", "Too many requests"),
        ("daily_quota", 429, "ThrottlingException", "Too many tokens per day"),
        ("quota_exceeded", 400, "ServiceQuotaExceededException", "service quota"),
        ("not_ready", 429, "ModelNotReadyException", "not ready"),
        ("internal", 500, "InternalServerException", "unexpected error"),
        ("unavailable", 503, "ServiceUnavailableException", "unable to process"),
        ("model_timeout", 408, "ModelTimeoutException", "timed out"),
        ("model_error", 424, "ModelErrorException", "unexpected error"),
        ("validation", 400, "ValidationException", "not valid"),
        ("access_denied", 403, "AccessDeniedException", "don't have access to the model"),
        ("not_found", 404, "ResourceNotFoundException", "Could not resolve"),
        ("expired_token", 403, "ExpiredTokenException", "token included in the request is expired"),
        ("unrecognized_key", 403, "UnrecognizedClientException", "token included in the request"),
        ("on_demand", 400, "ValidationException", f"{SOCRATIC} with on-demand throughput"),
        ("legacy", 404, "ResourceNotFoundException", "marked by provider as Legacy"),
        ("context_window", 400, "ValidationException", "Input is too long for requested model."),
    ],
)
def test_an_error_has_the_status_the_name_and_the_words_of_the_service(
    emulator, bedrock, kind, status, code, words
):
    for operation in (bedrock.converse, bedrock.converse_stream):
        with ordered(emulator.url, kind), pytest.raises(ClientError) as caught:
            operation(**QUESTION)

        answer = caught.value.response
        assert answer["ResponseMetadata"]["HTTPStatusCode"] == status
        assert answer["Error"]["Code"] == code
        assert words in answer["Error"]["Message"]
        assert emulator.requests[-1].fault == kind


def test_a_throttled_call_may_be_told_how_long_to_wait(emulator, bedrock):
    with ordered(emulator.url, "throttled:ms=1500"), pytest.raises(ClientError) as caught:
        bedrock.converse(**QUESTION)

    headers = caught.value.response["ResponseMetadata"]["HTTPHeaders"]
    assert headers["x-amz-retry-after"] == "1500"


@pytest.mark.parametrize("kind", ["internal", "unavailable", "not_ready", "model_error"])
def test_any_error_may_say_how_long_to_wait(emulator, bedrock, kind):
    with ordered(emulator.url, f"{kind}:ms=7"), pytest.raises(ClientError) as caught:
        bedrock.converse(**QUESTION)

    headers = caught.value.response["ResponseMetadata"]["HTTPHeaders"]
    assert headers["x-amz-retry-after"] == "7"


def test_a_proxy_may_answer_in_its_place(emulator, bedrock):
    with ordered(emulator.url, "bad_gateway"), pytest.raises(ClientError) as caught:
        bedrock.converse(**QUESTION)

    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 502


def test_nobody_may_connect_for_a_while():
    with Emulator(Settings(faults=(parse_fault("refused:count=1:ms=600000"),))) as served:
        first, second = client(served.url), client(served.url)
        with pytest.raises(ConnectionClosedError):
            first.converse(**QUESTION)
        for _ in range(3):
            with pytest.raises(EndpointConnectionError):
                second.converse(**QUESTION)
        first.close()
        second.close()

        assert [request.fault for request in served.requests] == ["refused"]


def test_after_that_while_everybody_may_connect_again():
    with Emulator(Settings(faults=(parse_fault("refused:count=1:ms=100"),))) as served:
        first, second = client(served.url), client(served.url)
        with pytest.raises(ConnectionClosedError):
            first.converse(**QUESTION)
        while True:
            try:
                answer = second.converse(**QUESTION)
            except EndpointConnectionError:
                continue
            break
        first.close()
        second.close()

        assert answer["stopReason"] == "end_turn"
        assert [request.fault for request in served.requests] == ["refused", None]


def test_streaming_alone_may_be_denied(emulator, bedrock):
    with ordered(emulator.url, "denied_streaming"):
        with pytest.raises(ClientError, match="bedrock:InvokeModelWithResponseStream"):
            bedrock.converse_stream(**QUESTION)

        assert text_of(bedrock.converse(**QUESTION))


@pytest.mark.parametrize("kind", ["reset", "cut", "corrupt", "html"])
def test_a_broken_answer_cannot_be_read(emulator, bedrock, kind):
    with ordered(emulator.url, kind):
        answer = outcome(lambda: bedrock.converse(**QUESTION))

    assert isinstance(answer, (BotoCoreError, ValueError)) or "output" not in answer


@pytest.mark.parametrize("kind", ["empty_body", "truncated_json", "no_output"])
def test_a_success_may_hold_nothing(emulator, bedrock, kind):
    with ordered(emulator.url, kind):
        answer = outcome(lambda: bedrock.converse(**QUESTION))

    assert isinstance(answer, (BotoCoreError, ValueError)) or "output" not in answer


def outcome(call):
    try:
        return call()
    except (BotoCoreError, ValueError) as error:
        return error


def events(bedrock):
    with closing(bedrock.converse_stream(**QUESTION)["stream"]) as stream:
        return [next(iter(event)) for event in stream]


@pytest.mark.parametrize(
    ("kind", "error"),
    [("cut", ProtocolError), ("corrupt", ChecksumMismatch), ("stream_error", EventStreamError)],
)
def test_a_stream_may_break(emulator, bedrock, kind, error):
    with ordered(emulator.url, kind), pytest.raises(error):
        events(bedrock)


def test_each_kind_of_stream_error_comes_in_turn(emulator, bedrock):
    seen = set()
    with ordered(emulator.url, "stream_error"):
        for _ in range(3):
            with pytest.raises(EventStreamError) as caught:
                events(bedrock)
            seen.add(caught.value.response["Error"]["Code"])

    assert seen == {
        "internalServerException",
        "throttlingException",
        "modelStreamErrorException",
    }


def test_a_stream_may_end_within_a_frame_and_nobody_notices(emulator, bedrock):
    with ordered(emulator.url, "cut_frame"):
        names = events(bedrock)

    assert "messageStop" not in names


def test_a_stream_may_lack_its_metadata(emulator, bedrock):
    with ordered(emulator.url, "no_metadata"):
        assert events(bedrock)[-1] == "messageStop"


def test_a_hanging_call_is_answered_in_the_end(emulator, bedrock):
    with ordered(emulator.url, "hang:ms=120:count=1"):
        answer = bedrock.converse(**QUESTION)

    assert text_of(answer)
    assert answer["metrics"]["latencyMs"] == 120


@pytest.mark.parametrize(
    ("kind", "stop_reason", "content"),
    [
        ("empty_reply", "end_turn", [{"text": ""}]),
        ("filtered", "content_filtered", []),
        (
            "guardrail",
            "guardrail_intervened",
            [{"text": "Sorry, the model cannot answer this question."}],
        ),
        ("malformed_output", "malformed_model_output", []),
    ],
)
def test_a_model_may_say_nothing_of_use(emulator, bedrock, kind, stop_reason, content):
    with ordered(emulator.url, kind):
        answer = bedrock.converse(**QUESTION)

    assert answer["stopReason"] == stop_reason
    assert answer["output"]["message"]["content"] == content


@pytest.mark.parametrize(
    ("kind", "stop_reason"),
    [("max_tokens", "max_tokens"), ("context_stop", "model_context_window_exceeded")],
)
def test_a_reply_may_be_cut_short(emulator, bedrock, kind, stop_reason):
    whole = text_of(bedrock.converse(**QUESTION))
    with ordered(emulator.url, kind):
        answer = bedrock.converse(**QUESTION)
        verdict = bedrock.converse(**VERDICT, toolConfig=TOOL)

    assert answer["stopReason"] == stop_reason
    assert text_of(answer)
    assert whole.startswith(text_of(answer))
    assert whole != text_of(answer)
    assert verdict["output"]["message"]["content"][0]["toolUse"]["input"] == {}


def test_a_model_may_think_and_say_nothing(emulator, bedrock):
    with ordered(emulator.url, "reasoning_only"):
        (block,) = bedrock.converse(**QUESTION)["output"]["message"]["content"]

    assert "reasoningContent" in block


def test_a_reply_may_be_ten_megabytes_long(emulator, bedrock):
    with ordered(emulator.url, "huge_reply"):
        assert len(text_of(bedrock.converse(**QUESTION))) >= 10 * 2**20
        deltas = bedrock.converse_stream(**QUESTION)["stream"]
        assert sum(len(str(event)) for event in deltas) >= 10 * 2**20


@pytest.mark.parametrize(
    ("kind", "dimension", "value"),
    [
        ("out_of_range", "purity", 7),
        ("off_step", "substance", 2.3),
        ("missing_dimension", "purity", None),
        ("string_score", "form", "3.0"),
    ],
)
@pytest.mark.parametrize("tool", [{}, {"toolConfig": TOOL}])
def test_a_verdict_may_be_wrong_in_one_place(emulator, bedrock, tool, kind, dimension, value):
    right = verdict_of(bedrock.converse(**VERDICT, **tool))
    with ordered(emulator.url, kind):
        wrong = verdict_of(bedrock.converse(**VERDICT, **tool))

    assert wrong.get(dimension) == value
    right.pop(dimension)
    wrong.pop(dimension, None)
    assert wrong == right


def verdict_of(answer):
    block = answer["output"]["message"]["content"][-1]
    return block["toolUse"]["input"] if "toolUse" in block else json.loads(block["text"])


def test_a_score_may_be_no_number(emulator, bedrock):
    with ordered(emulator.url, "nan_score"):
        verdict = verdict_of(bedrock.converse(**VERDICT))

    assert verdict["form"] != verdict["form"]  # as only NaN is


@pytest.mark.parametrize("tool", [{}, {"toolConfig": TOOL}])
def test_a_verdict_may_be_prose_or_wrapped_in_prose(emulator, bedrock, tool):
    with ordered(emulator.url, "prose_verdict"):
        prose = text_of(bedrock.converse(**VERDICT, **tool))
    with ordered(emulator.url, "wrapped_verdict"):
        wrapped = text_of(bedrock.converse(**VERDICT, **tool))

    assert "{" not in prose
    assert not wrapped.startswith("{")
    inner = wrapped.partition("```json\n")[2].partition("```")[0]
    assert set(json.loads(inner)) == {"form", "substance", "purity", "rationale"}


def test_a_fault_strikes_whom_it_is_meant_for(emulator, bedrock):
    def struck(**request):
        bedrock.converse(**request)
        return emulator.requests[-1].fault

    student = {"modelId": STUDENT, "system": STUDENT_SYSTEM, "messages": [user("Begin.")]}
    with ordered(emulator.url, "empty_reply:role=student"):
        assert [struck(**QUESTION), struck(**student)] == [None, "empty_reply"]
    with ordered(emulator.url, "empty_reply:model=judge-v1:0:op=Converse"):
        assert [struck(**QUESTION), struck(**VERDICT)] == [None, "empty_reply"]
    with ordered(emulator.url, "prose_verdict"):
        assert [struck(**QUESTION), struck(**VERDICT)] == [None, "prose_verdict"]
    with ordered(emulator.url, "no_output:op=ConverseStream"):
        assert struck(**QUESTION) is None


def test_faults_are_counted_skipped_and_drawn_by_the_seed():
    def strikes(*specs, seed=0, calls=200):
        injector = FaultInjector([parse_fault(spec) for spec in specs], seed)
        struck = [injector.next_fault("tutor", SOCRATIC, "Converse") for _ in range(calls)]
        return [number for number, fault in enumerate(struck) if fault]

    assert strikes("internal:after=2:count=3", calls=9) == [2, 3, 4]
    assert strikes("internal:count=1", "reset:count=1", calls=9) == [0, 1]
    drawn = strikes("internal:p=0.3", seed=1)
    assert 40 <= len(drawn) <= 80
    assert strikes("internal:p=0.3", seed=1) == drawn
    assert strikes("internal:p=0.3", seed=2) != drawn


def test_a_spec_is_read():
    spec = "throttled:role=judge:count=2:after=1:p=0.5:model=judge-v1:0:ms=20:op=Converse"

    assert parse_fault(spec) == Fault(
        kind="throttled",
        role="judge",
        count=2,
        after=1,
        p=0.5,
        model="judge-v1:0",
        ms=20,
        op="Converse",
    )
    assert [parse_fault(kind).kind for kind in KINDS] == list(KINDS)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("earthquake", "Unknown fault 'earthquake'"),
        ("", "Unknown fault ''"),
        ("reset:now", "In the fault 'reset:now': Object contains unknown field `now`"),
        ("reset:role=boss", "In role of the fault 'reset:role=boss': Invalid enum value 'boss'"),
        ("reset:count=many", "In count of the fault 'reset:count=many': Expected `int | null`"),
        ("reset:p=2", "In p of the fault 'reset:p=2': Expected `float` <= 1.0"),
        ("reset:p=nan", "Expected `float` >= 0.0"),
        ("reset:after=-1", "Expected `int` >= 0"),
    ],
)
def test_a_spec_that_cannot_be_read_is_refused_in_a_sentence(spec, message):
    with pytest.raises(ValueError, match=r"^[A-Z].*[.]$") as caught:
        parse_fault(spec)

    assert message in str(caught.value)


def test_too_many_calls_are_throttled_and_told_when_to_come_back():
    """On a clock that stands still, so that none is earned back meanwhile."""
    with Emulator(Settings(requests_per_minute=20), clock=lambda: 0.0) as emulator:
        bedrock = client(emulator.url)
        bedrock.converse(**QUESTION)
        bedrock.converse(**QUESTION)
        with pytest.raises(ClientError) as caught:
            bedrock.converse(**QUESTION)
        bedrock.close()

    answer = caught.value.response
    assert answer["Error"]["Code"] == "ThrottlingException"
    assert 0 < int(answer["ResponseMetadata"]["HTTPHeaders"]["x-amz-retry-after"]) <= 3000


def test_each_model_has_a_quota_of_its_own_and_is_refused_at_once():
    """The first answer of each model takes an hour, the refusal of the second request does not."""
    paths = [f"/model/emulator.drift-{turn}-v1%3A0/converse" for turn in (5, 6, 7)]
    settings = Settings(requests_per_minute=10, latency_ms=3_600_000)
    statuses = []
    with Emulator(settings, clock=lambda: 0.0) as emulator, ExitStack() as stack:
        for path in paths:
            answered, refused = (stack.enter_context(Raw(emulator.url)) for _ in range(2))
            answered.send(http(converse_body(), path=path))
            while len(emulator.requests) % 2 == 0:
                time.sleep(0.001)
            refused.send(http(converse_body(), path=path))
            statuses.append(refused.answer()[0])

    assert statuses == [429] * len(paths)
