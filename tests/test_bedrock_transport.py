"""What is refused before it is sent, and answers that are too large."""

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import HTTPClientError

from socratic_bench.models.bedrock.transport import (
    ANSWER_MAX_BYTES,
    OTHER_MAX_BYTES,
    AnswerTooLargeError,
    UnsendableError,
    _BoundedResponse,
    check_sendable,
    unwrapped_error,
)

URL = "https://bedrock-runtime.us-east-1.amazonaws.com/model/m/converse"


class Body:
    """The body of a response that goes on for so many bytes."""

    def __init__(self, n_bytes: int) -> None:
        self._n_bytes = n_bytes
        self.is_closed = False

    def stream(self, amount: int = 100_000) -> Iterator[bytes]:
        for _ in range(0, self._n_bytes, amount):
            yield b"x" * amount

    def close(self) -> None:
        self.is_closed = True


def response_of(url: str, body: Any) -> AWSResponse:
    return _BoundedResponse(url, 200, {}, body)


@pytest.mark.parametrize(
    ("url", "max_bytes"),
    [(URL, ANSWER_MAX_BYTES), ("https://bucket.s3.amazonaws.com/?list-type=2", OTHER_MAX_BYTES)],
)
def test_an_answer_is_read_up_to_its_bound(url, max_bytes):
    large, too_large = Body(max_bytes), Body(max_bytes + 1)

    assert len(response_of(url, large).content) == max_bytes
    with pytest.raises(AnswerTooLargeError, match="no end within"):
        _ = response_of(url, too_large).content
    assert (large.is_closed, too_large.is_closed) == (False, True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Authorization", "AWS4 Credential=SECRET\n"),
        ("Authorization", b"Bearer SECRET\r"),
        ("X-Amz-Security-Token", "“SECRET”"),
        ("User-Agent", "one\r\nSECRET"),
    ],
)
def test_a_header_that_http_cannot_carry_is_named_and_not_shown(name, value):
    with pytest.raises(UnsendableError) as refused:
        check_sendable(URL, {"Content-Type": "application/json", name: value})

    assert refused.value.header == name
    assert name in str(refused.value)
    assert "SECRET" not in str(refused.value)


@pytest.mark.parametrize("address", ["https://host\n/", "https://a b/", "https://user:SECRET@\r/"])
def test_an_address_with_a_line_break_is_refused_and_not_shown(address):
    with pytest.raises(UnsendableError) as refused:
        check_sendable(address, {})

    assert (refused.value.header, "SECRET" in str(refused.value)) == (None, False)


def test_what_is_sound_may_be_sent():
    check_sendable(URL, {"Authorization": "AWS4-HMAC-SHA256 Credential=A/b", "X-Folded": "a\r\n b"})


def test_errors_inside_the_sdk_s_own_are_found():
    too_large, unnamed = AnswerTooLargeError("no end"), HTTPClientError(error=OSError("gone"))

    assert unwrapped_error(HTTPClientError(error=too_large)) is too_large
    assert unwrapped_error(unnamed) is unnamed
    assert isinstance(unwrapped_error(HTTPClientError(error=ValueError("port"))), UnsendableError)
