"""The emulator's HTTP, spoken to by boto3, by the AWS CLI and byte by byte."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from socratic_bench.emulator import Emulator, Settings
from tests.test_emulator_support import (
    SOCRATIC,
    SONNET,
    Raw,
    assistant,
    client,
    converse_body,
    get,
    http,
    post,
    user,
)

PROFILE_ARN = f"arn:aws:bedrock:us-east-1:216874796537:inference-profile/{SONNET}"


@pytest.fixture(scope="module")
def emulator():
    with Emulator(Settings(keep_bodies=True)) as emulator:
        yield emulator


@pytest.fixture(scope="module")
def bedrock(emulator):
    bedrock = client(emulator.url)
    yield bedrock
    bedrock.close()


def aws(url, *arguments):
    command = Path(sys.executable).with_name("aws")
    environment = {
        "PATH": os.environ["PATH"],
        "AWS_ACCESS_KEY_ID": "AKIATEST",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_EC2_METADATA_DISABLED": "true",
        "HOME": os.devnull,
    }
    done = subprocess.run(
        [
            *(str(command), *arguments),
            *("--region", "us-east-1", "--endpoint-url", url, "--output", "json"),
        ],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_published_example_of_the_aws_command_is_answered(emulator):
    messages = [
        user("Write a short story about dragons"),
        assistant("Once upon a time there was a dragon."),
        user("Give me one more."),
    ]

    answer = aws(
        emulator.url,
        *("bedrock-runtime", "converse", "--model-id", PROFILE_ARN),
        *("--messages", json.dumps(messages), "--inference-config", "{}"),
        "--additional-model-request-fields",
        '{"thinking":{"type":"enabled","budget_tokens":2000}}',
        *("--performance-config", '{"latency":"standard"}'),
    )

    thought, said = answer["output"]["message"]["content"]
    assert thought["reasoningContent"]["reasoningText"]["signature"]
    assert said["text"].endswith("?")
    assert answer["stopReason"] == "end_turn"
    assert answer["performanceConfig"] == {"latency": "standard"}
    assert emulator.requests[-1].model_id == PROFILE_ARN


def test_the_aws_command_lists_models(emulator):
    listed = aws(emulator.url, "bedrock", "list-foundation-models", "--by-provider", "emulator")

    assert SOCRATIC in [row["modelId"] for row in listed["modelSummaries"]]


def test_an_id_is_decoded_once(emulator, bedrock):
    bedrock.converse(modelId=PROFILE_ARN, messages=[user("What is justice?")])
    with Raw(emulator.url) as raw:
        raw.send(http(converse_body(), path="/model/emulator.a%2Fb%253A0/converse"))
        raw.answer()

    assert [record.model_id for record in emulator.requests[-2:]] == [
        PROFILE_ARN,
        "emulator.a/b%3A0",
    ]


def test_every_answer_has_a_request_id_of_its_own(bedrock):
    answers = [bedrock.converse(modelId=SOCRATIC, messages=[user("Why?")]) for _ in range(2)]

    one, other = (answer["ResponseMetadata"]["RequestId"] for answer in answers)
    assert one != other


def test_an_unsigned_request_is_refused(emulator):
    with Raw(emulator.url) as raw:
        raw.send(
            b"POST /model/emulator.socratic-v1%3A0/converse HTTP/1.1\r\nHost: localhost\r\n"
            b"Content-Length: 2\r\n\r\n{}"
        )
        status, headers, body = raw.answer()

    assert status == 403
    assert headers["x-amzn-errortype"] == "MissingAuthenticationTokenException"
    assert json.loads(body) == {"message": "Missing Authentication Token"}


def test_one_connection_serves_many_requests_also_when_they_come_at_once(emulator):
    with Raw(emulator.url) as raw:
        raw.send(http(converse_body("One?")) + http(converse_body("Two?")) + http(b"not json"))
        statuses = [raw.answer()[0] for _ in range(3)]

    assert statuses == [200, 200, 400]
    assert len({record.connection for record in emulator.requests[-3:]}) == 1


def test_a_request_may_arrive_byte_by_byte(emulator):
    with Raw(emulator.url) as raw:
        for at in http(converse_body()):
            raw.send(bytes([at]))

        assert raw.answer()[0] == 200


def test_a_body_in_chunks_is_refused_with_what_to_do(emulator):
    with Raw(emulator.url) as raw:
        raw.send(http(b"", "Transfer-Encoding: chunked") + b"2\r\n{}\r\n0\r\n\r\n")
        status, _, body = raw.answer()

    assert status == 411
    assert json.loads(body) == {"message": "Send the body whole, with a Content-Length."}


def test_a_client_that_waits_for_the_go_ahead_gets_it(emulator):
    body = converse_body()
    request = http(body, "Expect: 100-continue")
    with Raw(emulator.url) as raw:
        raw.send(request.removesuffix(body))
        status, _, _ = raw.answer()
        assert status == 100
        raw.send(body)

        assert raw.answer()[0] == 200


def test_a_body_of_twenty_megabytes_is_read():
    settings = Settings(context_window_tokens=10_000_000)
    with Emulator(settings) as emulator, Raw(emulator.url) as raw:
        raw.send(http(converse_body("why " * 5_000_000)))

        assert raw.answer()[0] == 200


def test_a_connection_is_closed_for_a_client_that_asks_for_it(emulator):
    with Raw(emulator.url) as raw:
        raw.send(http(converse_body(), "Connection: close"))

        assert raw.answer()[0] == 200
        assert raw.file.read() == b""


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/model/x/invoke"), ("PUT", "/"), ("GET", "/x")]
)
def test_an_operation_that_is_not_there_is_not_found(emulator, method, path):
    with Raw(emulator.url) as raw:
        raw.send(http(b"{}", path=path, method=method))
        status, headers, _ = raw.answer()

    assert (status, headers["x-amzn-errortype"]) == (404, "UnknownOperationException")


def test_the_inspection_shows_requests_takes_faults_and_forgets(emulator):
    with Raw(emulator.url) as raw:
        raw.send(http(converse_body("Look?")))
        raw.answer()
    last = get(emulator.url, "/_emulator/requests")[-1]
    orders = post(emulator.url, "/_emulator/faults", ["internal:count=1"])
    post(emulator.url, "/_emulator/faults", [])
    post(emulator.url, "/_emulator/reset", None)

    assert (last["operation"], last["role"], last["turn"], last["status"]) == (
        "Converse",
        "tutor",
        0,
        200,
    )
    assert json.loads(last["body"])["messages"][0]["content"] == [{"text": "Look?"}]
    assert orders == {"faults": 1}
    assert get(emulator.url, "/_emulator/requests") == []
    assert get(emulator.url, "/_emulator/health") == {"status": "ok"}


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/_emulator/faults", b'["earthquake"]', 400),
        ("/_emulator/faults", b"[1]", 400),
        ("/_emulator/faults", b"{", 400),
        ("/_emulator/nowhere", b"", 404),
    ],
)
def test_the_inspection_says_what_is_wrong_with_an_order(emulator, path, body, status):
    with Raw(emulator.url) as raw:
        raw.send(http(body, path=path))
        answered, _, message = raw.answer()

    assert answered == status
    assert json.loads(message)["message"]
