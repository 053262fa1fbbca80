"""Servers around a run: the emulator, and a relay before it that records who calls and when.

The relay also hands out credentials as Amazon's own services do: the task role of a container, the
role of an instance, and a login by single sign-on.
"""

import http.client
import json
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.image.engine import REPOSITORY

OWN_HEADERS = ("connection", "content-length", "date", "host", "server", "transfer-encoding")
LATER = datetime.now(UTC) + timedelta(hours=6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request that the relay has received."""

    at_s: float
    path: str
    headers: Mapping[str, str]

    @property
    def access_key(self) -> str | None:
        """The key that the request is signed with."""
        _, _, credential = self.headers.get("authorization", "").partition("Credential=")
        return credential.split("/")[0] or None


@dataclass(frozen=True, slots=True)
class Relay:
    url: str
    requests: list[Request] = field(default_factory=list)

    @property
    def calls(self) -> list[Request]:
        """Requests to a model."""
        return [request for request in self.requests if request.path.startswith("/model/")]


@contextmanager
def relay(target: str, *, certificate: Path | None = None) -> Iterator[Relay]:
    """Pass Bedrock's calls on to `target`; over TLS with a certificate (its key in one file)."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    scheme = "https" if certificate else "http"
    record = Relay(f"{scheme}://127.0.0.1:{server.server_port}")
    server.record, server.target = record, target  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield record
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Any

    def _answer(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.record.requests.append(
            Request(at_s=time.monotonic(), path=self.path, headers=headers)
        )
        body = self.rfile.read(int(headers.get("content-length", 0)))
        status, fields, content = (
            _forward(self.server.target, self.path, headers, body)
            if self.path.startswith("/model/")
            else _credentials(self.path, headers)
        )
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PUT = _answer  # noqa: N815 -- the names that the base class looks for

    def log_message(self, *_words: object) -> None:
        """Write no log: tests look at the recorded requests."""


Answer = tuple[int, Mapping[str, str], bytes]


def _forward(target: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
    connection = http.client.HTTPConnection(urlsplit(target).netloc, timeout=60)
    try:
        connection.request("POST", path, body, {**headers, "connection": "close"})
        answer = connection.getresponse()
        fields = {n: v for n, v in answer.getheaders() if n.lower() not in OWN_HEADERS}
        return answer.status, fields, answer.read()
    finally:
        connection.close()


def _credentials(path: str, headers: Mapping[str, str]) -> Answer:
    match path.partition("?")[0].split("/")[1:]:
        case ["task-role"] if headers.get("authorization") == "task-token":
            answer = _json(_role_keys("ASIATASKROLE"))
        case ["latest", "api", "token"]:
            answer = 200, {"x-aws-ec2-metadata-token-ttl-seconds": "21600"}, b"instance-token"
        case [*_, "security-credentials", ""]:
            answer = 200, {}, b"instance-role"
        case [*_, "security-credentials", "instance-role"]:
            answer = _json({"Code": "Success", "Type": "AWS-HMAC", **_role_keys("ASIAINSTANCE")})
        case ["federation", "credentials"]:
            answer = _sign_on_credentials(headers.get("x-amz-sso_bearer_token", ""))
        case ["token"]:
            answer = _json({"accessToken": "fresh", "expiresIn": 3600, "refreshToken": "next"})
        case _:
            answer = 404, {}, b""
    return answer


def _role_keys(access_key: str) -> dict[str, str]:
    return {
        "AccessKeyId": access_key,
        "SecretAccessKey": "secret",
        "Token": "session-token",
        "Expiration": f"{LATER:%Y-%m-%dT%H:%M:%SZ}",
        "LastUpdated": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
    }


def _sign_on_credentials(token: str) -> Answer:
    """Credentials whose key names the login that fetched them."""
    return _json(
        {
            "roleCredentials": {
                "accessKeyId": f"ASIASSO{token.upper()}",
                "secretAccessKey": "secret",
                "sessionToken": "session-token",
                "expiration": int(LATER.timestamp() * 1000),
            }
        }
    )


def _json(content: object) -> Answer:
    return 200, {"Content-Type": "application/json"}, json.dumps(content).encode()


@contextmanager
def emulator(*flags: str) -> Iterator[str]:
    """The program's own emulator, on the host; its URL."""
    words = [sys.executable, "-m", "cli", "emulator", *flags]
    with serving(words, folder=REPOSITORY) as process:
        assert process.stdout is not None
        yield str(json.loads(process.stdout.readline())["endpoint_url"])


@contextmanager
def serving(words: Sequence[str], *, folder: Path) -> Iterator["subprocess.Popen[str]"]:
    """A server that runs until the block is left."""
    with subprocess.Popen(
        words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            yield process
        finally:
            process.terminate()
