"""Calls a second that the emulator answers: raw sockets, each sending its next call at its answer.

    python -m bench.load [--url URL] [--connections 500] [--seconds 4]

Without a URL an emulator is started for it. The load comes from one process with one event loop
and sends the same small Converse request over and over; it counts whole answers, none of which
may be an error. Client and emulator share the machine, so the figure is a lower bound.
"""

import argparse
import asyncio
import json
import sys
import time
from http.client import HTTPConnection
from urllib.parse import quote, urlsplit

from bench.contenders import TUTOR, emulator

LOADED = 500
MAX_WAIT_S = 60.0
BODY = json.dumps(
    {
        "messages": [{"role": "user", "content": [{"text": "I am stuck."}]}],
        "inferenceConfig": {"maxTokens": 64},
    }
).encode()


class _Caller(asyncio.Protocol):
    """One connection. An answer is whole once as many bytes came as its head promises."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._buffer = bytearray()
        self.answered = 0
        self.failed = 0
        self.has_answer = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        length = int(self._buffer[:end].lower().split(b"content-length:")[1].split(b"\r\n")[0])
        if len(self._buffer) < end + 4 + length:
            return
        self.failed += not self._buffer.startswith(b"HTTP/1.1 200 ")
        self.answered += 1
        self.has_answer.set()
        self._buffer.clear()
        self._transport.write(self._request)


def measure_load(url: str, *, connections: int = LOADED, seconds: float = 4.0) -> float:
    """Answers a second, once all connections have had one. Exits if an answer is an error."""
    return asyncio.run(_load(url, connections, seconds))


async def _load(url: str, connections: int, seconds: float) -> float:
    where = urlsplit(url)
    request = (
        f"POST /model/{quote(TUTOR)}/converse HTTP/1.1\r\nHost: {where.netloc}\r\n"
        f"Authorization: AWS4-HMAC-SHA256 bench\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(BODY)}\r\n\r\n"
    ).encode() + BODY
    loop = asyncio.get_running_loop()
    opened = [
        await loop.create_connection(lambda: _Caller(request), where.hostname, where.port)
        for _ in range(connections)
    ]
    callers = [caller for _, caller in opened]
    waits = [caller.has_answer.wait() for caller in callers]
    await asyncio.wait_for(asyncio.gather(*waits), MAX_WAIT_S)
    before, started_s = sum(caller.answered for caller in callers), time.monotonic()
    await asyncio.sleep(seconds)
    answered = sum(caller.answered for caller in callers) - before
    took_s = time.monotonic() - started_s
    for transport, _ in opened:
        transport.abort()
    if failed := sum(caller.failed for caller in callers):
        sys.exit(f"{failed} answers of the emulator were errors.")
    return answered / took_s


def sequence_s(url: str, calls: int) -> float:
    """Seconds for so many calls, one after the other, on one connection and with no SDK.

    What it takes beyond the endpoint's latency is the machine's own doing.
    """
    where = urlsplit(url)
    connection = HTTPConnection(where.hostname or "", where.port)
    headers = {"Authorization": "AWS4-HMAC-SHA256 bench", "Content-Type": "application/json"}
    started_s = time.monotonic()
    for _ in range(calls):
        connection.request("POST", f"/model/{quote(TUTOR)}/converse", BODY, headers)
        connection.getresponse().read()
    connection.close()
    return time.monotonic() - started_s


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--url")
    parser.add_argument("--connections", type=int, default=LOADED)
    parser.add_argument("--seconds", type=float, default=4.0)
    found = parser.parse_args()
    options = {"connections": found.connections, "seconds": found.seconds}
    if found.url:
        rate = measure_load(found.url, **options)
    else:
        with emulator() as url:
            rate = measure_load(url, **options)
    print(f"{rate:.0f} calls a second over {found.connections} connections")


if __name__ == "__main__":
    main()
