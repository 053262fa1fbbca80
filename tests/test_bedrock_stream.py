"""Streams over real HTTP: what is an answer, what is none, and how long it may take."""

import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from socratic_bench.emulator import Emulator, Settings
from socratic_bench.emulator.answers import corrupted, event, exception
from socratic_bench.errors import Stopped
from socratic_bench.models.bedrock.converse import StreamedAnswer
from socratic_bench.models.bedrock.provider import Connection
from socratic_bench.models.bedrock.session import Endpoint
from socratic_bench.runs import CancelToken
from socratic_bench.types import Completion
from tests.calling import Around
from tests.fakes import PATIENCE_S
from tests.test_bedrock_model import KEY, REQUEST, Bench

START = event("messageStart", {"role": "assistant"})
WORDS = event("contentBlockDelta", {"delta": {"text": "Why? "}, "contentBlockIndex": 0})
BLOCK_STOP = event("contentBlockStop", {"contentBlockIndex": 0})
STOP = event("messageStop", {"stopReason": "end_turn"})
USAGE = {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}
METADATA = event("metadata", {"usage": USAGE, "metrics": {"latencyMs": 7}})
WHOLE = (START, WORDS, BLOCK_STOP, STOP, METADATA)
# Each connection carries one answer: said, so that no second request meets one that is closing.
HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.amazon.eventstream\r\n"
    b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
)
END = b"0\r\n\r\n"

Send = Callable[[bytes], None]


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


@contextmanager
def wire(play: Callable[[Send], None], call_timeout_s: float = 60.0) -> Iterator[Bench]:
    """A server that answers each request by `play`, which may stop in the middle of anything.

    Each look at the clock is a second on, so a call's time is one of so many events.
    """
    server = socket.create_server(("127.0.0.1", 0))
    ended = threading.Event()

    def serve() -> None:
        while not ended.is_set():
            try:
                connection, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=answer_on, args=(connection,), daemon=True).start()

    def answer_on(connection: socket.socket) -> None:
        with connection, closing(connection.makefile("rb")) as file:
            try:
                length = 0
                while (line := file.readline()) not in (b"\r\n", b""):
                    if line.lower().startswith(b"content-length:"):
                        length = int(line.split(b":")[1])
                file.read(length)
                play(connection.sendall)
            except OSError:
                return  # the client has left

    threading.Thread(target=serve, daemon=True).start()
    url = f"http://127.0.0.1:{server.getsockname()[1]}"
    there = Endpoint(region="us-east-1", url=url, call_timeout_s=call_timeout_s)
    with server, closing(Connection(there)) as connection:
        yield Bench(connection, Around(call_timeout_s=call_timeout_s))
        ended.set()


def sending(*frames: bytes, end: bytes = END) -> Callable[[Send], None]:
    return lambda send: send(streamed(frames, end))


def streamed(frames: Iterable[bytes], end: bytes = END) -> bytes:
    return HEAD + b"".join(map(chunk, frames)) + end


def test_a_whole_stream_is_an_answer():
    with wire(sending(*WHOLE)) as bench:
        found = bench.ask(max_attempts=1)

    assert (found.message.text, found.stop_reason) == ("Why? ", "end_turn")
    assert found.service_latency_ms == 7.0
    assert found.usage is not None


@pytest.mark.parametrize(
    ("frames", "end", "code"),
    [
        ((START, WORDS), END, "unreadable_answer"),
        ((START, WORDS, BLOCK_STOP, STOP), END, "unreadable_answer"),
        ((START, WORDS, BLOCK_STOP, METADATA), END, "unreadable_answer"),
        ((), END, "unreadable_answer"),
        ((START, WORDS[:30]), END, "unreadable_answer"),
        ((START, WORDS[:30]), b"", "connection_lost"),
        ((START, WORDS), b"", "connection_lost"),
        ((START, WORDS), b"40\r\nhalf a chunk", "connection_lost"),
        ((START, WORDS), b"zz\r\n", "connection_lost"),
        ((START, corrupted(WORDS), BLOCK_STOP, STOP, METADATA), END, "unreadable_answer"),
        ((b"<html><body>Please sign in</body></html>",), END, "unreadable_answer"),
        ((START, exception("throttlingException", {"message": "Slow."})), END, "throttled"),
        (
            (START, exception("modelStreamErrorException", {"message": "Oh."})),
            END,
            "model_error",
        ),
        ((exception("internalServerException", {"message": "Oh."}),), END, "server_error"),
        ((exception("serviceUnavailableException", {"message": "Oh."}),), END, "server_error"),
        ((exception("aNewKindOfException", {"message": "Oh."}),), END, "server_error"),
        ((event("contentBlockDelta", {"delta": {"text": 5}, "contentBlockIndex": 0}),), END,
         "unreadable_answer"),
        ((event("contentBlockDelta", {}), *WHOLE[2:]), END, "answered"),
    ],
)  # fmt: skip
def test_every_way_to_break_is_one_kind_of_failure_and_is_tried_again(frames, end, code):
    with wire(sending(*frames, end=end)) as bench:
        if code == "answered":
            assert bench.ask(max_attempts=1).message.content == ()
            return
        error = bench.fail(max_attempts=2)

    # A connection that ends is told apart from a stream that ends only if the SDK sees it first.
    codes = {code, "unreadable_answer"} if code == "connection_lost" else {code}
    assert {one.error for one in error.attempts} <= codes
    assert len(error.attempts) == 2
    assert all(one.may_have_been_billed for one in error.attempts)


@pytest.mark.parametrize("end", [b"", b"40\r\nhalf a chunk", b"zz\r\n", chunk(corrupted(WORDS))])
def test_what_breaks_after_the_answer_takes_nothing_from_it(end):
    with wire(sending(*WHOLE, end=end)) as bench:
        assert bench.ask(max_attempts=1).message.text == "Why? "


def trickling(data: bytes) -> Callable[[Send], None]:
    """The beginning of a stream, and then a little of it again and again, for ever."""

    def play(send: Send) -> None:
        send(HEAD + chunk(START))
        while True:
            send(data)
            time.sleep(0.001)

    return play


def test_a_stream_that_trickles_for_ever_is_a_timeout():
    """Each of its events comes in time, but more of them than the call has seconds."""
    with wire(trickling(chunk(WORDS))) as bench:
        error = bench.fail(max_attempts=2)

    assert [one.error for one in error.attempts] == ["read_timeout"] * 2
    assert all(one.may_have_been_billed for one in error.attempts)


def test_a_stream_that_trickles_within_a_chunk_is_a_timeout():
    """No event ever comes, however long it is waited for."""

    def play(send: Send) -> None:
        send(HEAD + chunk(START) + b"fffff\r\n")
        while True:
            send(b"x")
            time.sleep(0.02)

    with wire(play, call_timeout_s=0.4) as bench:
        error = bench.fail(max_attempts=1)

    assert error.code == "read_timeout"


def test_the_end_of_the_run_does_not_wait_for_a_stream():
    cancel_token = CancelToken()
    asked = threading.Event()

    def play(send: Send) -> None:
        asked.set()
        trickling(chunk(WORDS))(send)

    with wire(play) as bench:
        bench.around.cancel_token = cancel_token
        bench.around.call_timeout_s = 1e9
        threading.Thread(target=lambda: (asked.wait(PATIENCE_S), cancel_token.interrupt(2))).start()
        with pytest.raises(Stopped):
            bench.ask(max_attempts=1)


def test_connections_are_kept_between_streams():
    with Emulator(Settings()) as emulator:
        there = Endpoint(region="us-east-1", url=emulator.url)
        with closing(Connection(there)) as connection:
            model = Bench(connection).model()
            found = [model.complete(REQUEST, KEY) for _ in range(4)]

        assert {one.connection for one in emulator.requests} == {1}
    assert all(isinstance(one, Completion) and one.streamed for one in found)


@pytest.mark.parametrize("n_bytes", [1, 7, 10_000])
def test_a_frame_may_come_in_any_pieces(n_bytes):
    whole = b"".join(WHOLE)
    pieces = [whole[at : at + n_bytes] for at in range(0, len(whole), n_bytes)]
    with wire(sending(*pieces)) as bench:
        assert bench.ask(max_attempts=1).message.text == "Why? "


class TestAssembly:
    def test_blocks_come_together_by_their_index(self):
        answer = put_together(
            delta(0, {"reasoningContent": {"text": "Let me "}}),
            delta(0, {"reasoningContent": {"text": "think."}}),
            delta(0, {"reasoningContent": {"signature": "x"}}),
            delta(1, {"text": "Why"}),
            {"contentBlockStart": {"start": {"toolUse": {"toolUseId": "u", "name": "n"}},
                                   "contentBlockIndex": 2}},
            delta(1, {"text": "?"}),
            delta(2, {"toolUse": {"input": '{"form"'}}),
            delta(2, {"toolUse": {"input": ": 3}"}}),
        )  # fmt: skip

        assert answer["output"]["message"]["content"] == [
            {"reasoningContent": {"reasoningText": {"text": "Let me think.", "signature": "x"}}},
            {"text": "Why?"},
            {"toolUse": {"toolUseId": "u", "name": "n", "input": {"form": 3}}},
        ]
        assert (answer["stopReason"], answer["usage"]) == ("end_turn", USAGE)

    def test_a_tool_without_input_is_called_with_none(self):
        assert called_with("") == {"toolUse": {"toolUseId": "u", "name": "n", "input": {}}}

    @pytest.mark.parametrize(
        "given", ['{"form": ', '{"form": 3}{"form": 1}', "[" * 100_000, "three"]
    )
    def test_a_tools_input_that_is_no_json_stays_what_the_model_said(self, given):
        assert called_with(given) == {"text": given}


def called_with(given: str) -> dict[str, Any]:
    answer = put_together(
        {"contentBlockStart": {"start": {"toolUse": {"toolUseId": "u", "name": "n"}},
                               "contentBlockIndex": 0}},
        delta(0, {"toolUse": {"input": given[:4]}}),
        delta(0, {"toolUse": {"input": given[4:]}}),
    )  # fmt: skip
    [block] = answer["output"]["message"]["content"]
    return block


def delta(index: int, content: dict[str, Any]) -> dict[str, Any]:
    return {"contentBlockDelta": {"delta": content, "contentBlockIndex": index}}


def put_together(*events: dict[str, Any]) -> dict[str, Any]:
    answer = StreamedAnswer()
    sent = (
        {"messageStart": {"role": "assistant"}},
        *events,
        {"messageStop": {"stopReason": "end_turn"}},
        {"somethingNew": {}},
        {"metadata": {"usage": USAGE}},
    )
    for number, event_sent in enumerate(sent):
        assert answer.complete_ms is None
        answer.add(event_sent, float(number))
    assert answer.complete_ms == len(sent) - 1
    return answer.fields()
