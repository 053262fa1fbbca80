"""The served emulator, asked by strangers, by clients that never end, and for what is refused."""

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

import botocore.session
import pytest

from tests.command import OPENING, ROOT, Outcome, account, environment, run
from tests.test_emulator_support import Raw, assistant, http, user

SOCRATIC = "emulator.socratic-v1:0"
HAIKU = "anthropic.claude-3-haiku-20240307-v1:0"
SMALL = "meta.llama3-8b-instruct-v1:0"
PATIENCE_S = 60
MEGABYTE = 1024 * 1024
ENDLESS_BYTES = 400 * MEGABYTE


@dataclass(frozen=True)
class Served:
    url: str
    pid: int

    @property
    def port(self) -> int:
        found = urlsplit(self.url).port
        assert found is not None
        return found

    def connect(self) -> Raw:
        raw = Raw(f"http://127.0.0.1:{self.port}")
        raw.socket.settimeout(PATIENCE_S)
        return raw

    def ask(self, sent: bytes) -> tuple[int, dict[str, str], bytes]:
        with self.connect() as raw:
            raw.send(sent)
            return raw.answer()

    def most_memory_mb(self) -> float:
        status = Path(f"/proc/{self.pid}/status")
        if not status.exists():
            pytest.skip("needs /proc")
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
        assert found is not None
        return int(found[1]) / 1024


@contextmanager
def serve(*words: str, before: Sequence[str] = ()) -> Iterator[Served]:
    """The real command in a process of its own, until the block ends; `before` stands before it."""
    with subprocess.Popen(
        [*before, sys.executable, "-m", "cli", "emulator", *words],
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        try:
            yield Served(json.loads(process.stdout.readline())["endpoint_url"], process.pid)
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def emulator() -> Iterator[Served]:
    with serve() as served:
        yield served


@pytest.fixture(scope="module")
def hasty() -> Iterator[Served]:
    with serve("--read-timeout", "0.5") as served:
        yield served


def converse(model: str = SOCRATIC, *headers: str, **fields: object) -> bytes:
    body = {"messages": [user("What is justice?")]} | fields
    path = f"/model/{quote(model, safe='')}/converse"
    return http(json.dumps(body).encode(), *headers, path=path)


def as_host(sent: bytes, *lines: str) -> bytes:
    """The request with these lines in the place of its Host."""
    wanted = "".join(f"{line}\r\n" for line in lines).encode("latin-1")
    return sent.replace(b"Host: localhost\r\n", wanted)


# --- who may ask ---

DOORS = {
    "converse": converse(),
    "models": http(b"", path="/foundation-models", method="GET"),
    "requests": http(b"", path="/_emulator/requests", method="GET"),
    "pace": http(b"", path="/_emulator/pace", method="GET"),
    "reset": http(b"", path="/_emulator/reset"),
    "faults": http(b"[]", path="/_emulator/faults"),
}
STRANGERS = (
    "attacker.example",
    "attacker.example:{port}",
    "localhost.attacker.example:{port}",
    "127.0.0.1.attacker.example",
    "localhost@attacker.example",
    "attacker.example@localhost",
    "169.254.169.254",
    "10.20.30.40:{port}",
    "[2001:db8::1]:{port}",
    "0x7f.attacker.example",
    "localhost:{port}:80",
    "localhost/",
    "emulator:{port}",
    "",
)
OWN = (
    "localhost:{port}",
    "LocalHost",
    "localhost.:{port}",
    "anything.localhost:{port}",
    "127.0.0.1:{port}",
    "127.0.0.2:{port}",
    "[::1]:{port}",
)


@pytest.mark.parametrize("door", DOORS)
def test_a_name_that_is_not_the_endpoint_s_own_is_refused_at_every_door(emulator, door):
    answers = {
        host: emulator.ask(as_host(DOORS[door], f"Host: {host.format(port=emulator.port)}"))
        for host in (*STRANGERS, *OWN)
    }

    statuses = {host: status for host, (status, _, _) in answers.items()}
    assert statuses == dict.fromkeys(STRANGERS, 403) | dict.fromkeys(OWN, 200)
    _, headers, body = answers[STRANGERS[0]]
    assert headers["x-amzn-errortype"] == "AccessDeniedException"
    assert "--allowed-host" in json.loads(body)["message"]


def test_a_request_without_a_host_or_with_two_is_refused(emulator):
    missing = emulator.ask(as_host(converse()))
    twice = emulator.ask(as_host(converse(), "Host: localhost", "Host: attacker.example"))

    assert (missing[0], twice[0]) == (400, 400)


PAGES = {
    "another site": (("Origin: http://attacker.example",), 403),
    "another port": (("Origin: http://localhost:3000",), 403),
    "a file or a sandbox": (("Origin: null",), 403),
    "two origins": (("Origin: http://localhost", "Origin: http://attacker.example"), 400),
    "the own name as a prefix": (("Origin: http://localhost.attacker.example",), 403),
    "no cors": (("Sec-Fetch-Site: cross-site",), 403),
    "a sibling": (("Sec-Fetch-Site: same-site",), 403),
    "the endpoint itself": (("Origin: http://localhost", "Sec-Fetch-Site: same-origin"), 200),
    "the address bar": (("Sec-Fetch-Site: none",), 200),
}


@pytest.mark.parametrize("page", PAGES)
def test_pages_of_other_sites_are_refused_at_every_door(emulator, page):
    lines, expected = PAGES[page]

    statuses = {
        name: emulator.ask(as_host(sent, "Host: localhost", *lines))[0]
        for name, sent in DOORS.items()
    }

    assert statuses == dict.fromkeys(DOORS, expected)


def test_what_was_refused_changes_nothing(emulator):
    emulator.ask(DOORS["faults"])
    emulator.ask(converse(messages=[user("Seen?")]))
    listed = json.loads(emulator.ask(DOORS["requests"])[2])
    evil = "Origin: http://attacker.example"
    emulator.ask(as_host(http(b'["internal"]', path="/_emulator/faults"), "Host: localhost", evil))
    emulator.ask(as_host(DOORS["reset"], "Host: localhost", evil))

    assert listed
    assert json.loads(emulator.ask(DOORS["requests"])[2]) == listed
    assert emulator.ask(converse())[0] == 200


def test_a_name_that_is_allowed_reaches_an_endpoint_on_every_address():
    """As in a network of containers, where a service is reached by its name."""
    with serve(
        "--host", "0.0.0.0", "--allowed-host", "Emulator", "--allowed-host", "b:81"
    ) as found:
        hosts = {
            "emulator": 200,
            f"emulator:{found.port}": 200,
            "b:81": 200,
            "b:82": 403,
            f"localhost:{found.port}": 200,
            f"127.0.0.1:{found.port}": 200,
            f"0.0.0.0:{found.port}": 200,
            f"attacker.example:{found.port}": 403,
            f"emulator.attacker.example:{found.port}": 403,
            f"10.20.30.40:{found.port}": 403,
        }
        statuses = {host: found.ask(as_host(converse(), f"Host: {host}"))[0] for host in hosts}

    assert statuses == hosts


@pytest.mark.parametrize("name", ["http://emulator", "a b", "", "*", "a/b"])
def test_an_allowed_host_that_is_none_is_a_mistake(name):
    outcome = run("emulator", "--allowed-host", name)

    assert outcome.exit_code == 2
    assert "NAME" in outcome.document["error"]["message"]


# --- clients that never end ---

PARTS = {
    "no end of the line": b"POST /model/x",
    "no end of the head": b"POST / HTTP/1.1\r\nHost: localhost\r\nX: ",
    "no body": http(b"", "Content-Length: 100"),
    "half a body": http(b"{", "Content-Length: 100"),
    "half a control body": http(b"[", "Content-Length: 9", path="/_emulator/faults"),
}


@pytest.mark.parametrize("part", PARTS)
def test_a_request_that_does_not_arrive_is_aborted(hasty, part):
    with hasty.connect() as raw:
        raw.send(PARTS[part])
        status, _, _ = raw.answer()

        assert status == 408
        assert raw.file.read() == b""


def test_a_connection_that_asks_for_nothing_is_aborted_but_not_one_that_has_asked(hasty):
    with hasty.connect() as asked, hasty.connect() as silent:
        asked.send(converse())
        asked.answer()
        assert silent.file.read() == b""
        asked.send(converse())
        assert asked.answer()[0] == 200


@pytest.mark.parametrize(
    "part", [b"POST / HTTP/1.1\r\nHost: localhost\r\nX: ", http(b"", "Content-Length: 99999")]
)
def test_a_request_that_drips_is_aborted(hasty, part):
    with hasty.connect() as raw:
        raw.send(part)
        raw.socket.settimeout(0.05)
        until_s, came = time.monotonic() + PATIENCE_S, b""
        while not came and time.monotonic() < until_s:
            raw.send(b"x")
            try:
                came = raw.socket.recv(12)
            except TimeoutError:
                continue

    assert came == b"HTTP/1.1 408"


def send_until_refused(raw: Raw, data: bytes) -> int:
    """Send on and on until nobody takes any more; the bytes that were taken."""
    sent_bytes = 0
    with suppress(OSError):
        while sent_bytes < ENDLESS_BYTES:
            raw.send(data)
            sent_bytes += len(data)
    return sent_bytes


def test_a_client_that_takes_no_answers_is_aborted_and_fills_no_memory(hasty):
    before_mb = hasty.most_memory_mb()
    with hasty.connect() as raw:
        sent_bytes = send_until_refused(raw, DOORS["models"] * 100)

    assert sent_bytes < ENDLESS_BYTES
    assert hasty.most_memory_mb() - before_mb < 50
    assert hasty.ask(converse())[0] == 200


ENDLESS = {
    "a head": (b"POST / HTTP/1.1\r\nHost: localhost\r\n", b"X: y\r\n" * 10_000),
    "a line": (b"POST /", b"x" * 60_000),
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_what_has_no_end_is_read_up_to_a_bound(emulator, kind):
    begun, more = ENDLESS[kind]
    before_mb = emulator.most_memory_mb()
    with emulator.connect() as raw:
        raw.send(begun)
        send_until_refused(raw, more)
        # What a client still sends may have the system forget the answer that it did not read.
        with suppress(OSError):
            assert raw.socket.recv(12) in (b"HTTP/1.1 413", b"HTTP/1.1 431", b"HTTP/1.1 400")

    assert emulator.most_memory_mb() - before_mb < 150
    assert emulator.ask(converse())[0] == 200


FAULTS = "/_emulator/faults"
MALFORMED = {
    "more than a body may be": (http(b"", f"Content-Length: {33 * MEGABYTE}"), 413),
    "more than an order may be": (http(b"", f"Content-Length: {MEGABYTE}", path=FAULTS), 413),
    "a length of many digits": (http(b"", "Content-Length: " + "9" * 5000), 400),
    "a length with a sign": (http(b"{}", "Content-Length: +2"), 400),
    "two lengths": (http(b"{}", "Content-Length: 2", "Content-Length: 3"), 400),
    "a length and chunks": (http(b"{}", "Content-Length: 2", "Transfer-Encoding: chunked"), 411),
    "no HTTP": (b"HELO there you\r\n\r\n", 400),
    "a deep order": (http(b"[" * 30_000, path=FAULTS), 400),
    "a deep body": (http(b'{"messages":' + b"[" * 200_000), 400),
    "a deep document": (
        converse(additionalModelRequestFields=json.loads('{"a":' * 900 + "1" + "}" * 900)),
        200,
    ),
    "a deep null": (
        http(b'{"additionalModelRequestFields":' + b'{"a":' * 2000 + b"null" + b"}" * 2001),
        400,
    ),
    "a fault for ever": (http(b'["hang:ms=inf"]', path=FAULTS), 400),
    "a fault for years": (http(b'["hang:ms=1e300"]', path=FAULTS), 400),
    "too many faults": (http(json.dumps(["cut"] * 5000).encode(), path=FAULTS), 400),
    "a page of no number": (
        http(b"", path="/inference-profiles?nextToken=%C2%B2", method="GET"),
        400,
    ),
    "a page of many digits": (
        http(b"", path=f"/inference-profiles?maxResults={'9' * 5000}", method="GET"),
        400,
    ),
    "a model of many letters": (converse("m" * 50_000), 400),
}


@pytest.mark.parametrize("kind", MALFORMED)
def test_what_is_malformed_or_too_much_is_refused_and_the_next_request_answered(emulator, kind):
    sent, expected = MALFORMED[kind]

    assert emulator.ask(sent)[0] == expected
    assert emulator.ask(converse())[0] == 200


def test_connections_that_ask_for_nothing_keep_nobody_out():
    with serve("--max-connections", "20") as served:
        idle = [served.connect() for _ in range(100)]
        for raw in idle[::2]:
            with suppress(OSError):
                raw.send(b"POST / HTTP/1.1\r\n")
        status, _, _ = served.ask(converse())
        for raw in idle:
            raw.socket.close()

    assert status == 200


def test_many_dialogues_are_carried_where_a_process_may_open_few_files():
    """256 of them have up to as many calls of models and of judges under way."""
    with ExitStack() as started:
        few = ("sh", "-c", 'ulimit -S -n 256; exec "$@"', "sh")
        served = started.enter_context(serve(before=few))
        busy = [started.enter_context(served.connect()) for _ in range(600)]
        for raw in busy:
            raw.send(converse())
        statuses = {raw.answer()[0] for raw in busy}

    assert statuses == {200}


def test_more_connections_than_there_may_be_are_refused_while_all_are_answered():
    stream = converse().replace(b"/converse ", b"/converse-stream ")
    with serve("--max-connections", "5", "--ms-per-output-token", "500") as served:
        busy = [served.connect() for _ in range(5)]
        for raw in busy:
            raw.send(stream)
        begun = [raw.socket.recv(12) for raw in busy]
        with served.connect() as late:
            refused = late.answer()[0]
        gone_on = [len(raw.socket.recv(10)) for raw in busy]
        for raw in busy:
            raw.socket.close()

    assert (begun, refused) == ([b"HTTP/1.1 200"] * 5, 503)
    assert gone_on == [10] * 5


# --- what the service refuses ---

NO_MODELS = (
    "emulator.socratic-v2:0",
    "emulator.socrates-v1:0",
    "emulator.student-genius-v1:0",
    "emulator.drift--v1:0",
    "us.emulator.socratic-v1:0",
    "my.own-model-v1:0",
    "anthropic.claude-3-5-sonnet-20241022-v9:0",
    "anthropic.claude-sonnet-4",
    "us.anthropic.claude",
    "x9.anthropic.claude-3-haiku-20240307-v1:0",
    *(f"{prefix}.{HAIKU}" for prefix in ("zz", "uk", "es", "us-east", "US")),
    "xx.amazon.titan-text-premier-v1:0",
    "arn:aws:bedrock:eu-west-2:123456789012:inference-profile/uk.amazon.nova-lite-v1:0",
    "amazon.nova-lite-v1:0.more",
    f"arn:aws:bedrock:us-east-1::foundation-model/us.{HAIKU}",
    f"arn:aws:bedrock:us-east-1:123456789012:inference-profile/{HAIKU}",
    "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abcdefghijkl",
    "arn:aws:bedrock:us-east-1:123456789012:provisioned-model/abcdefghijkl",
)
MODELS = (
    "emulator.drift-7-v1:0",
    "emulator.mixture-12-v1:0",
    "emulator.whole-v1:0",
    "emulator.whole-tools-v1:0",
    "emulator.uncached-v1:0",
    "emulator.student-closing-3-v1:0",
    "emulator.student-swap-once-v1:0",
    "anthropic.claude-3-5-sonnet-20241022-v1:0",
    "meta.llama3-1-70b-instruct-v1:0",
    "mistral.mistral-large-2407-v1:0",
    "amazon.titan-text-premier-v1:0",
    "qwen.qwen3-32b-v1:0",
    "openai.gpt-oss-120b-1:0",
    "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "apac.anthropic.claude-sonnet-4-20250514-v1:0",
    f"arn:aws:bedrock:us-east-1::foundation-model/{HAIKU}",
    "arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.amazon.nova-lite-v1:0",
)
UNKNOWN = "The provided model identifier is invalid."


def got(served: Served, path: str) -> int:
    return served.ask(http(b"", path=path, method="GET"))[0]


def about(served: Served, model: str) -> int:
    return got(served, f"/foundation-models/{quote(model, safe='')}")


def said(answer: tuple[int, dict[str, str], bytes]) -> tuple[int, str, str]:
    status, headers, body = answer
    return status, headers.get("x-amzn-errortype", ""), json.loads(body).get("message", "")


@pytest.mark.parametrize("model", NO_MODELS)
def test_an_unknown_model_is_refused_as_the_service_refuses_it(emulator, model):
    status, name, message = said(emulator.ask(converse(model)))

    assert (status, name) == (400, "ValidationException")
    assert message == UNKNOWN or "at 'modelId' failed to satisfy constraint" in message
    assert about(emulator, model) == 404


def test_every_model_that_answers_is_known_to_the_control_plane(emulator):
    listed = json.loads(emulator.ask(DOORS["models"])[2])["modelSummaries"]
    ids = [row["modelId"] for row in listed]
    answers = {model: said(emulator.ask(converse(model))) for model in (*ids, *MODELS)}

    assert len(ids) > 100
    assert [model for model, answer in answers.items() if answer[2] == UNKNOWN] == []
    assert [model for model in answers if about(emulator, model) != 200] == []
    assert {answers[model][0] for model in MODELS} == {200}
    profile = "apac.anthropic.claude-sonnet-4-20250514-v1:0"
    assert got(emulator, f"/inference-profiles/{quote(profile)}") == 200


def test_any_model_is_answered_and_known_where_that_was_asked_for():
    well_formed = [model for model in NO_MODELS if "foundation-model/us." not in model]
    with serve("--any-model") as served:
        answers = {served.ask(converse(model))[0] for model in well_formed}
        known = {about(served, model) for model in well_formed}

    assert (answers, known) == ({200}, {200})


BLANK = "is blank. Add text to the text field, and try again."
IN_MESSAGES = "The text field in the ContentBlock object at messages"
DOCUMENT = {"document": {"format": "txt", "name": "a", "source": {"text": "so"}}}
TOOL = {"tools": [{"toolSpec": {"name": "look", "inputSchema": {"json": {"type": "object"}}}}]}


def tool_dialogue(result: str) -> list[object]:
    use = {"toolUse": {"toolUseId": "t1", "name": "look", "input": {}}}
    content = [{"toolResult": {"toolUseId": "t1", "content": [{"text": result}]}}]
    return [
        user("a"),
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": content},
    ]


def documents(*names: str) -> list[object]:
    blocks = [{"document": DOCUMENT["document"] | {"name": name}} for name in names]
    return [{"role": "user", "content": [{"text": "Read."}, *blocks]}]


REFUSED = {
    "blank": ({"messages": [user("")]}, f"{IN_MESSAGES}.0.content.0 {BLANK}"),
    "spaces": ({"messages": [user(" \n\t ")]}, f"{IN_MESSAGES}.0.content.0 {BLANK}"),
    "a blank block": ({"messages": [user("Why?", " ")]}, f"{IN_MESSAGES}.0.content.1 {BLANK}"),
    "blank at last": (
        {"messages": [user("a"), assistant("b"), user("")]},
        f"{IN_MESSAGES}.2.content.0 {BLANK}",
    ),
    "a blank reply": (
        {"messages": [user("a"), assistant("b", " "), user("c")]},
        f"{IN_MESSAGES}.1.content.1 {BLANK}",
    ),
    "a blank system prompt": (
        {"system": [{"text": " "}]},
        f"The text field in the SystemContentBlock object at system.0 {BLANK}",
    ),
    "a blank result": (
        {"messages": tool_dialogue(""), "toolConfig": TOOL},
        "text content blocks must be non-empty",
    ),
    "no content": ({"messages": [{"role": "user", "content": []}]}, "at messages.0 is empty"),
    "no message": ({"messages": []}, "A conversation must start with a user message."),
    "the assistant first": (
        {"messages": [assistant("a"), user("b")]},
        "A conversation must start with a user message.",
    ),
    "the user twice": (
        {"messages": [user("a"), user("b")]},
        "A conversation must alternate between user and assistant roles.",
    ),
    "too many tokens asked for": (
        {"inferenceConfig": {"maxTokens": 8193}},
        "The maximum tokens you requested exceeds the model limit of 8192.",
    ),
    "more than the window": (
        {"messages": [user("why " * 210_000)]},
        "Input is too long for requested model.",
    ),
    "more than the window in all": (
        {"system": [{"text": "why " * 110_000}], "messages": [user("why " * 110_000)]},
        "Input is too long for requested model.",
    ),
    "one document twice": (
        {"messages": documents("a", "a")},
        "Messages can't contain duplicate document names.",
    ),
    "six documents": (
        {"messages": documents(*"abcdef")},
        "You can't include more than 5 documents in a request.",
    ),
    "a document without a text": (
        {"messages": [{"role": "user", "content": [DOCUMENT]}]},
        "Include a text block",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("operation", ["converse", "converse-stream"])
def test_a_request_is_refused_as_the_service_refuses_it(emulator, case, operation):
    fields, words = REFUSED[case]

    status, name, message = said(
        emulator.ask(converse(**fields).replace(b"/converse ", f"/{operation} ".encode()))
    )

    assert (status, name) == (400, "ValidationException")
    assert words in message


@pytest.mark.parametrize(
    ("model", "tokens", "status"),
    [(SMALL, 8000, 200), (SMALL, 8500, 400), (HAIKU, 8500, 200), (HAIKU, 200_001, 400)],
)
def test_each_model_has_a_window_of_its_own(emulator, model, tokens, status):
    assert emulator.ask(converse(model, messages=[user("why " * tokens)]))[0] == status


def test_a_window_can_be_set():
    with serve("--context-window-tokens", "100") as served:
        short, long = (
            said(served.ask(converse(messages=[user("why " * tokens)]))) for tokens in (90, 110)
        )

    assert short[0] == 200
    assert long == (400, "ValidationException", "Input is too long for requested model.")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (f"POST /model/{HAIKU}/invoke", "InvokeModel"),
        (f"POST /model/{HAIKU}/invoke-with-response-stream", "InvokeModelWithResponseStream"),
        (
            f"POST /model/{HAIKU}/invoke-with-bidirectional-stream",
            "InvokeModelWithBidirectionalStream",
        ),
        ("POST /async-invoke", "StartAsyncInvoke"),
        ("GET /async-invoke", "ListAsyncInvokes"),
        ("GET /async-invoke?maxResults=1", "ListAsyncInvokes"),
        (
            "GET /async-invoke/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Aasync-invoke%2Fa",
            "GetAsyncInvoke",
        ),
        ("POST /guardrail/abc/version/1/apply", "ApplyGuardrail"),
        ("POST /guardrail-checks/invoke", "InvokeGuardrailChecks"),
    ],
)
def test_an_operation_that_is_not_played_is_refused_by_its_name(emulator, path, name):
    method, _, target = path.partition(" ")
    status, kind, message = said(emulator.ask(http(b"{}", path=target, method=method)))

    assert (status, kind) == (404, "UnknownOperationException")
    assert message.startswith(f"{name} is not played here")
    assert "Converse" in message


def test_every_operation_of_the_service_is_played_or_refused_by_its_name(emulator):
    """Of the SDK's own model of the service, so that a new one is noticed."""
    service = botocore.session.get_session().get_service_model("bedrock-runtime")
    for name in service.operation_names:
        asked = service.operation_model(name).http
        path = re.sub(r"\{\w+\}", "x", asked["requestUri"])
        status, _, message = said(emulator.ask(http(b"{}", path=path, method=asked["method"])))

        assert status == 400 or message.startswith(f"{name} is not played here"), name


# --- a smoke test on it means something ---


def smoke(url: str, model: str, turns: int, *more: str) -> Outcome:
    asked = ("--model", model, "--judge-model", "emulator.judge-v1:0", "--prompt", OPENING)
    return run(*asked, "--turns", str(turns), "--quiet", *more, env=account(url, model))


def test_a_run_with_a_misspelt_model_fails_at_the_emulator_as_at_the_service(emulator):
    misspelt = "anthropic.claude-3-5-sonet-20241022-v1:0"
    outcome = smoke(emulator.url, misspelt, 2)
    told = smoke(emulator.url, misspelt, 2, "--dry-run")

    assert outcome.exit_code == told.exit_code == 3
    assert outcome.document["end_reason"] == told.document["end_reason"] == "unknown_model"
    assert UNKNOWN in outcome.document["error"]["message"]


def test_a_run_that_outgrows_the_window_ends_so():
    with serve("--context-window-tokens", "1200") as served:
        outcome = smoke(served.url, SOCRATIC, 40)
        told = smoke(served.url, SOCRATIC, 40, "--dry-run")

    assert outcome.document["end_reason"] == told.document["end_reason"] == "context_window"


def test_offline_needs_no_leave_for_any_model():
    env = environment(BEDROCK_MODEL_IDS='["my.own-model-v1:0"]')
    asked = ("--offline", "--model", "my.own-model-v1:0", "--prompt", OPENING, "--turns", "1")
    told, played = (run(*asked, "--quiet", *more, env=env) for more in (("--dry-run",), ()))

    assert (told.exit_code, played.exit_code) == (0, 0)
    assert told.document["end_reason"] == played.document["end_reason"] == "max_turns"
