"""What the emulator's tests share: a client, the parts of requests, and a raw connection."""

import json
import socket
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from tests.fakes import PATIENCE_S

SOCRATIC = "emulator.socratic-v1:0"
JUDGE = "emulator.judge-v1:0"
STUDENT = "emulator.student-v1:0"
SONNET = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
STUDENT_SYSTEM = [{"text": "You are a student. You may end with [[end of dialogue]]."}]
TOOL = {
    "tools": [
        {
            "toolSpec": {
                "name": "record_verdict",
                "inputSchema": {"json": {"type": "object", "properties": {}}},
            }
        }
    ],
    "toolChoice": {"tool": {"name": "record_verdict"}},
}


def client(url, service="bedrock-runtime"):
    """A boto3 client as it comes, but for its retries."""
    import boto3
    from botocore.config import Config

    session = boto3.Session(
        aws_access_key_id="AKIATEST", aws_secret_access_key="secret", region_name="us-east-1"
    )
    config = Config(retries={"total_max_attempts": 1, "mode": "standard"}, read_timeout=PATIENCE_S)
    return session.client(service, endpoint_url=url, config=config)


def user(*texts):
    return {"role": "user", "content": [{"text": text} for text in texts]}


def assistant(*texts):
    return {"role": "assistant", "content": [{"text": text} for text in texts]}


def shown(reply, number="0123456789abcdef"):
    """What a judge is asked about a reply."""
    return user(f"Score this.\n<reply-{number}>\n{reply}\n</reply-{number}>\nAnswer now.")


def text_of(answer):
    return "".join(block.get("text", "") for block in answer["output"]["message"]["content"])


def post(url, path, body):
    request = urllib.request.Request(url + path, json.dumps(body).encode(), method="POST")  # noqa: S310
    with urllib.request.urlopen(request) as answer:  # noqa: S310
        return json.loads(answer.read())


def get(url, path):
    with urllib.request.urlopen(url + path) as answer:  # noqa: S310
        return json.loads(answer.read())


@contextmanager
def ordered(url, *specs) -> Iterator[None]:
    """These faults and no others for a while."""
    post(url, "/_emulator/faults", list(specs))
    yield
    post(url, "/_emulator/faults", [])


class Raw:
    """A plain TCP connection to the emulator, for what no client library would send."""

    def __init__(self, url):
        host, port = url.removeprefix("http://").split(":")
        self.socket = socket.create_connection((host, int(port)))
        self.file = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.file.close()
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def answer(self):
        """The next response: status, headers in lower case, body."""
        status = int(self.file.readline().split()[1])
        headers = {}
        while line := self.file.readline().strip():
            name, _, value = line.decode().partition(":")
            headers[name.lower()] = value.strip()
        return status, headers, self.file.read(int(headers.get("content-length", 0)))


def http(body, *headers, path="/model/emulator.socratic-v1%3A0/converse", method="POST"):
    """A signed request in bytes; without a length if one of the headers says how long it is."""
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Authorization: AWS4-HMAC-SHA256 x"]
    if not any(header.startswith(("Content-Length", "Transfer-Encoding")) for header in headers):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, *headers, "", ""]).encode() + body


def converse_body(text="What is justice?"):
    return json.dumps({"messages": [user(text)]}).encode()
