"""A dry run knows the emulator by its answer alone, and says what it knows to be refused."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from socratic_bench.emulator import Emulator, Settings
from tests.command import CLAUDE, account, assert_valid, daily, environment, run

WORDS = ("--model", CLAUDE, "--judge-model", CLAUDE, "--scenario", "career-change", "--turns", "8")
OFFLINE = ("--offline", "--model", "emulator.socratic-v1:0", "--scenario", "career-change")
PACE = {
    "any_model": True,
    "context_window_tokens": None,
    "latency_ms": {"tutor": 0, "student": 0, "judge": 0},
    "ms_per_output_token": 0,
}
JSON, HTML = "application/json", "text/html"
# What other programs answer to whatever they are asked.
OTHERS = {
    "a gateway's page": (200, HTML, b"<html><body>Gateway</body></html>"),
    "nothing": (200, JSON, b""),
    "healthy": (200, JSON, b'{"status": "ok"}'),
    "a list": (200, JSON, b"[]"),
    "a word": (200, JSON, b'"socratic-runner"'),
    "null": (200, JSON, b"null"),
    "not found": (404, JSON, b'{"message": "not found"}'),
    "its pace without its word": (200, JSON, json.dumps(PACE).encode()),
    "another's word": (200, JSON, json.dumps({"emulator": "localstack", **PACE}).encode()),
    "its word without its pace": (200, JSON, b'{"emulator": "socratic-runner"}'),
    "without an end": (200, JSON, b" " * 5_000_000),
}


@contextmanager
def other_program(host: str, answer: tuple[int, str, bytes]) -> Iterator[tuple[str, list[str]]]:
    """An endpoint that answers all requests alike, and what was asked of it."""
    asked: list[str] = []
    status, kind, body = answer

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            asked.append(f"{self.command} {self.path}")
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST  # noqa: N815 -- the base looks methods up by these names

        def log_message(self, *_: object) -> None: ...

        def handle(self) -> None:
            try:
                super().handle()
            except ConnectionError:
                return  # the client has read enough

    with serving(host, Handler) as url:
        yield url, asked


@contextmanager
def tunnel(host: str, target: str) -> Iterator[str]:
    """Another address, at which the target answers."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            inner = HTTPConnection(target.removeprefix("http://"))
            kept = {name: value for name, value in self.headers.items() if name != "Host"}
            inner.request(self.command, self.path, body, kept)
            answer = inner.getresponse()
            content = answer.read()
            self.send_response(answer.status)
            for name in ("Content-Type", "x-amzn-ErrorType"):
                if name in answer.headers:
                    self.send_header(name, answer.headers[name])
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            inner.close()

        do_GET = do_POST  # noqa: N815 -- the base looks methods up by these names

        def log_message(self, *_: object) -> None: ...

    with serving(host, Handler) as url:
        yield url


@contextmanager
def serving(host: str, handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    server = ThreadingHTTPServer((host, 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://{host}:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def sources(document):
    return {told["source"] for told in document["assumptions"]["replies"].values()}


@pytest.mark.parametrize(
    "case", daily(OTHERS, "not found", "its pace without its word", "without an end")
)
def test_another_program_on_this_machine_is_not_taken_for_the_emulator(case):
    with other_program("127.0.0.1", OTHERS[case]) as (url, asked):
        outcome = run(*WORDS, "--dry-run", env=account(url, CLAUDE))
    document = outcome.document

    assert outcome.exit_code == 0, outcome
    assert_valid("dry_run", document)
    assert sources(document) == {"assumed"}
    assert document["usage"]["total"]["calls"] == 17
    assert document["cost"]["total"]["total_usd"] > 0.01
    assert document["duration_seconds"] > 8 * 0.8
    assert document["sent"] == {
        "count_tokens": sum("count-tokens" in line for line in asked),
        "emulator_pace": sum("_emulator" in line for line in asked),
        "bucket": 0,
    }
    assert sum(document["sent"].values()) == len(asked) > 0
    assert "nothing was called" not in outcome.stderr
    assert "no model was called" in outcome.stderr


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.4"])
def test_the_emulator_is_known_behind_any_address(host):
    with Emulator(Settings(latency_ms=300)) as served, tunnel(host, served.url) as url:
        outcome = run(*WORDS, "--dry-run", env=account(url, CLAUDE))

    assert sources(outcome.document) == {"emulator"}
    assert outcome.document["duration_seconds"] == pytest.approx(9 * 0.3, rel=0.1)
    assert "no model was called" in outcome.stderr


def test_a_model_is_not_known_by_its_name_alone():
    model = "emulator.socratic-v1:0"
    with other_program("127.0.0.1", OTHERS["not found"]) as (url, _):
        words = ("--model", model, "--no-judge", "--scenario", "career-change", "--turns", "2")
        outcome = run(*words, "--dry-run", env=account(url, model))

    assert sources(outcome.document) == {"assumed"}


REFUSED = {
    "a setting": ("emulator.picky-v1:0", "--temperature", "0.5"),
    "a guardrail": ("emulator.socratic-v1:0", "--guardrail", "absent1:1"),
    "the judge": ("emulator.socratic-v1:0", "--judge-model", "anthropic.claude-opus-4-7-v1:0"),
    "a model of the past": ("anthropic.claude-v2:1", "--judge-model", "emulator.judge-v1:0"),
}


UNKNOWN = "nobody.knows-v1:0"
TELLING = {
    "an unknown tutor": ((UNKNOWN, "--no-judge"), {}, 3),
    "an unknown judge": (("emulator.socratic-v1:0", "--judge-model", UNKNOWN), {}, 3),
    "any model": ((UNKNOWN, "--judge-model", UNKNOWN), {"any_model": True}, 0),
    "a small window": (("emulator.socratic-v1:0", "--no-judge"), {"context_window_tokens": 300}, 0),
}


@pytest.mark.parametrize("case", TELLING)
def test_what_an_emulator_says_that_it_takes_is_predicted(case):
    (model, *more), settings, exit_code = TELLING[case]
    words = ("--model", model, *more, "--scenario", "career-change", "--turns", "6")
    with Emulator(Settings(**settings)) as served:
        env = account(served.url, model)
        told = run(*words, "--dry-run", env=env)
        happened = run(*words, env=env)
    expected = told.document

    assert (told.exit_code, happened.exit_code) == (exit_code, exit_code)
    assert_valid("dry_run", expected)
    assert expected["end_reason"] == happened.document["end_reason"]
    assert (expected["error"] is None) == (happened.document["error"] is None)
    if "--no-judge" in more:  # else it depends on when the first verdict is refused
        assert expected["n_turns"] == happened.document["n_turns"]


@pytest.mark.parametrize("quiet", daily([[], ["--quiet"]], first=1), ids=["told", "quiet"])
@pytest.mark.parametrize("case", REFUSED)
def test_a_predicted_refusal_is_said_and_exits_as_the_run_would(case, quiet):
    model, *more = REFUSED[case]
    words = ("--model", model, *more, "--scenario", "career-change", "--turns", "4", *quiet)
    with Emulator(Settings()) as served:
        env = account(served.url, model)
        told = run(*words, "--dry-run", env=env)
        happened = run(*words, env=env)
    expected, error = told.document, happened.document["error"]

    assert told.exit_code == happened.exit_code == 3
    assert_valid("dry_run", expected)
    assert expected["end_reason"] == happened.document["end_reason"]
    assert (expected["error"]["code"], expected["error"]["message"]) == (
        error["code"],
        error["message"],
    )
    assert error["message"] in told.stderr
    assert expected["error"]["hint"] in told.stderr
    assert "nothing was called" not in told.stderr


def test_what_the_budget_ends_is_no_refusal():
    outcome = run(*OFFLINE, "--turns", "8", "--max-cost-usd", "0.0001", "--dry-run")

    assert (outcome.exit_code, outcome.document["end_reason"]) == (0, "budget")
    assert outcome.document["error"] is None


def test_nothing_was_called_where_nothing_was():
    outcome = run(*OFFLINE, "--dry-run")

    assert set(outcome.document["sent"].values()) == {0}
    assert "nothing was called" in outcome.stderr


def test_a_bucket_that_was_looked_for_is_said(moto_url):
    name = "forecast-bucket"
    inner = HTTPConnection(moto_url.removeprefix("http://"))
    inner.request("PUT", f"/{name}")
    assert inner.getresponse().status == 200
    inner.close()
    env = environment(
        AWS_ENDPOINT_URL_S3=moto_url,
        AWS_ACCESS_KEY_ID="AKIAEXAMPLE",
        AWS_SECRET_ACCESS_KEY="example",
    )
    outcome = run(*OFFLINE, "--s3-bucket", name, "--dry-run", env=env)

    assert outcome.exit_code == 0, outcome
    assert outcome.document["sent"] == {"count_tokens": 0, "emulator_pace": 0, "bucket": 1}
    assert "nothing was called" not in outcome.stderr
