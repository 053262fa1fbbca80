"""Starting and stopping the emulator, its timing, and what it does without botocore."""

import asyncio
import contextlib
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading

import pytest

from socratic_bench.emulator import MODEL_IDS, Emulator, Settings
from socratic_bench.emulator import loop as emulator_loop
from socratic_bench.emulator.cache import PromptCache
from socratic_bench.emulator.connections import ConnectionPool
from socratic_bench.emulator.loop import loop_factory
from socratic_bench.emulator.shapes import MismatchError
from socratic_bench.emulator.validation import Validator, read_model, service_validator
from socratic_bench.emulator.wire import Answer, Connection
from tests.owned_clock import OwnedClock
from tests.test_emulator_support import (
    JUDGE,
    SOCRATIC,
    SONNET,
    Raw,
    client,
    converse_body,
    get,
    http,
    shown,
    user,
)

SERVE = """
from socratic_bench.emulator import Settings, serve
serve(Settings(), host="127.0.0.1", port=0, ready=lambda url: print(url, flush=True))
print("ended", flush=True)
"""


def run(code, *arguments):
    return subprocess.run(
        [sys.executable, *arguments, "-c", code], capture_output=True, text=True, check=True
    ).stdout


def test_the_package_is_light_until_it_is_started():
    code = (
        "import sys; from socratic_bench.emulator import Settings, parse_fault, MODEL_IDS;"
        "print([name for name in ('asyncio', 'botocore', 'ssl') if name in sys.modules])"
    )

    assert run(code) == "[]\n"


def test_the_emulator_never_imports_the_sdk():
    code = (
        "import sys; from socratic_bench.emulator import Emulator\n"
        "with Emulator(): pass\n"
        "print(sorted({name.split('.')[0] for name in sys.modules}), *sys.modules)"
    )

    top, *names = run(code).split("] ")
    assert "boto" not in top
    rooms = {name for name in names[0].split() if name.startswith("socratic_bench.")}
    strangers = {name.split(".")[1] for name in rooms} - {"emulator", "types", "version"}
    assert strangers == set()


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_a_served_emulator_ends_on_a_signal(number):
    with subprocess.Popen(
        [sys.executable, "-c", SERVE], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        url = process.stdout.readline().strip()
        with Raw(url) as raw:
            raw.send(http(converse_body()))
            assert raw.answer()[0] == 200
            process.send_signal(number)
            out, err = process.communicate()

    assert (out, err, process.returncode) == ("ended\n", "", 0)


def test_an_emulator_can_be_closed_twice_and_drops_its_connections():
    emulator = Emulator()
    with Raw(emulator.url) as raw:
        raw.send(http(converse_body()))
        raw.answer()
        emulator.close()
        emulator.close()

        assert raw.file.read() == b""


def test_a_port_that_is_taken_is_the_callers_error():
    with Emulator() as emulator, pytest.raises(OSError, match="in use"):
        Emulator(port=int(emulator.url.rpartition(":")[2]))


def test_five_hundred_connections_are_answered_at_once():
    async def ask(host, port, barrier):
        reader, writer = await asyncio.open_connection(host, port)
        await barrier.wait()
        writer.write(http(converse_body()))
        status = (await reader.readline()).split()[1]
        writer.close()
        return status

    async def ask_all(host, port):
        barrier = asyncio.Barrier(500)
        return await asyncio.gather(*(ask(host, port, barrier) for _ in range(500)))

    with Emulator() as emulator:
        host, port = emulator.url.removeprefix("http://").split(":")
        statuses = asyncio.run(ask_all(host, int(port)))
        connections = {record.connection for record in emulator.requests}

    assert statuses == [b"200"] * 500
    assert len(connections) == 500


def test_each_role_has_its_latency_and_reports_it():
    settings = Settings(latency_ms=5, role_latency_ms={"judge": 40})
    with Emulator(settings) as emulator:
        bedrock = client(emulator.url)
        tutor = bedrock.converse(modelId=SOCRATIC, messages=[user("Why?")])
        judge = bedrock.converse(modelId=JUDGE, messages=[shown("Why?")])
        bedrock.close()

    assert (tutor["metrics"]["latencyMs"], judge["metrics"]["latencyMs"]) == (5, 40)


def test_a_paced_stream_arrives_bit_by_bit():
    """On a clock that moves on only once the client waits for the next piece."""
    paced = Settings(ms_per_output_token=4)
    with OwnedClock().emulator(paced) as emulator, Raw(emulator.url) as raw:
        raw.send(http(converse_body(), path="/model/emulator.socratic-v1%3A0/converse-stream"))
        pieces = []
        while not pieces or not pieces[-1].endswith(b"0\r\n\r\n"):
            pieces.append(raw.socket.recv(1 << 16))

    assert len(pieces) > 3
    assert b"messageStart" not in pieces[-1]


def test_a_client_that_leaves_early_harms_nobody():
    with Emulator(Settings(latency_ms=30)) as emulator:
        for _ in range(3):
            with Raw(emulator.url) as raw:
                raw.send(http(converse_body()))
        with Raw(emulator.url) as raw:
            raw.send(http(converse_body()))

            assert raw.answer()[0] == 200


def test_bodies_are_kept_only_where_asked_for():
    with Emulator(Settings(keep_requests=2)) as emulator:
        with Raw(emulator.url) as raw:
            for _ in range(3):
                raw.send(http(converse_body()))
                raw.answer()
        records = emulator.requests

    assert [(record.seq, record.body) for record in records] == [(2, None), (3, None)]
    assert len({record.body_sha256 for record in records}) == 1


def test_without_botocore_validation_is_off_and_health_says_so(monkeypatch):
    monkeypatch.setattr("socratic_bench.emulator.validation.find_spec", lambda _name: None)
    service_validator.cache_clear()
    with Emulator() as emulator:
        service_validator.cache_clear()
        health = get(emulator.url, "/_emulator/health")
        with Raw(emulator.url) as raw:
            raw.send(http(json.dumps({"messages": [user("Why?")], "unknown": 1}).encode()))
            answered = raw.answer()[0]
            raw.send(http(b'{"messages": ["Why?"]}'))
            refused = raw.answer()[0]

    assert health["validation"] is False
    assert (answered, refused) == (200, 400)


def test_the_model_may_be_a_plain_file(tmp_path):
    model = {
        "operations": {"Converse": {"input": {"shape": "Request"}}, "Other": {}},
        "shapes": {
            "Request": {
                "type": "structure",
                "members": {
                    "modelId": {"shape": "Id", "location": "uri"},
                    "at": {"shape": "Time"},
                },
            },
            "Id": {"type": "string", "max": 3},
            "Time": {"type": "timestamp"},
        },
    }
    (tmp_path / "service-2.json").write_text(json.dumps(model))

    validator = Validator(read_model(tmp_path))

    validator.check("Converse", "abc", {"at": "whenever"})
    validator.check("Other", "abcd", {})
    with pytest.raises(Exception, match="at 'modelId' failed to satisfy constraint"):
        validator.check("Converse", "abcd", {})
    assert read_model(tmp_path / "nowhere") is None


def test_a_mismatch_at_the_top_is_said_of_the_body():
    error = MismatchError("The value at", "is not an object.").as_service_error()

    assert error.message == "The value at 'body' is not an object."


def cache_request(text, ttl=None):
    point = {"cachePoint": {"type": "default", **({"ttl": ttl} if ttl else {})}}
    return {"system": [{"text": text * 2000}, point], "messages": []}


def test_a_prefix_is_readable_once_an_answer_has_begun_and_for_five_minutes_after_each_use():
    now = [0.0]
    cache = PromptCache(lambda: now[0])

    def read(request, *, begin=True):
        use = cache.use(SOCRATIC, request, 100)
        if begin:
            use.commit()
        return use.read

    assert read(cache_request("abc "), begin=False) == 0
    assert read(cache_request("abc ")) == 0
    now[0] = 299
    assert read(cache_request("abc "), begin=False) > 0
    now[0] = 299 + 299
    assert read(cache_request("abc "), begin=False) > 0
    now[0] += 301
    assert read(cache_request("abc ")) == 0
    assert read(cache_request("def ", "1h")) == 0
    now[0] += 3599
    assert read(cache_request("def ", "1h"), begin=False) > 0


def test_the_control_plane_lists_models_and_profiles():
    with Emulator() as emulator:
        control = client(emulator.url, "bedrock")
        ours = control.list_foundation_models(byProvider="Emulator")["modelSummaries"]
        profiled = control.list_foundation_models(byProvider="anthropic", byOutputModality="TEXT")
        on_demand = control.list_foundation_models(byInferenceType="ON_DEMAND")["modelSummaries"]
        tunable = control.list_foundation_models(byCustomizationType="FINE_TUNING")
        found = control.get_foundation_model(modelIdentifier=SOCRATIC)["modelDetails"]
        available = control.get_foundation_model_availability(modelId=SOCRATIC)
        pages = list(
            control.get_paginator("list_inference_profiles").paginate(
                PaginationConfig={"PageSize": 7}
            )
        )
        none = control.list_inference_profiles(typeEquals="APPLICATION")
        profile = control.get_inference_profile(inferenceProfileIdentifier=SONNET)
        codes = [
            error_code(lambda: control.get_foundation_model(modelIdentifier="a.b")),
            error_code(lambda: control.get_inference_profile(inferenceProfileIdentifier="a.b")),
        ]
        control.close()

    assert [row["modelId"] for row in ours] == list(MODEL_IDS)
    sonnet = SONNET.removeprefix("us.")
    assert sonnet in [row["modelId"] for row in profiled["modelSummaries"]]
    assert sonnet not in [row["modelId"] for row in on_demand]
    assert tunable["modelSummaries"] == []
    assert found["modelArn"].endswith(f"foundation-model/{SOCRATIC}")
    assert available["authorizationStatus"] == "AUTHORIZED"
    ids = [row["inferenceProfileId"] for page in pages for row in page["inferenceProfileSummaries"]]
    assert len(pages) > 2
    assert SONNET in ids
    assert len(set(ids)) == len(ids)
    assert none["inferenceProfileSummaries"] == []
    assert profile["models"][0]["modelArn"].endswith(sonnet)
    assert codes == ["ResourceNotFoundException"] * 2


def error_code(call):
    from botocore.exceptions import ClientError

    with pytest.raises(ClientError) as caught:
        call()
    return caught.value.response["Error"]["Code"]


def test_a_page_that_cannot_be_is_refused():
    with Emulator() as emulator, Raw(emulator.url) as raw:
        raw.send(http(b"", path="/inference-profiles?nextToken=abc", method="GET"))

        assert raw.answer()[0] == 400


def test_many_threads_share_an_emulator():
    statuses = []

    def ask():
        with Raw(emulator.url) as raw:
            for _ in range(10):
                raw.send(http(converse_body()))
                statuses.append(raw.answer()[0])

    with Emulator() as emulator:
        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seqs = [record.seq for record in emulator.requests]

    assert statuses == [200] * 80
    assert seqs == list(range(1, 81))


def test_the_emulator_can_listen_on_ipv6():
    if not socket.has_ipv6 or os.environ.get("NO_IPV6"):
        pytest.skip("no IPv6 here")
    try:
        emulator = Emulator(host="::1")
    except OSError:
        pytest.skip("no IPv6 here")
    with emulator:
        assert emulator.url.startswith("http://[::1]:")


def test_a_caller_who_stands_in_the_door_when_it_closes_leaves_no_open_socket():
    """A socket left open warns when it is collected, and pytest makes the warning a failure."""
    for _ in range(40):
        with Emulator() as emulator:
            host, port = emulator.url.removeprefix("http://").split(":")
            callers = [socket.create_connection((host, int(port))) for _ in range(10)]
        for caller in callers:
            caller.close()
    gc.collect()


class _Clock(asyncio.SelectorEventLoop):
    """A loop whose time stands still but where it is moved on, and jumps to the next timer."""

    now_s = 100.0

    def time(self):
        return self.now_s

    def call_at(self, when, callback, *args, context=None):
        def at_last():
            self.now_s = max(self.now_s, when)
            callback(*args)

        return self.call_soon(at_last, context=context)


def _sent(handle):
    """When a connection sent what, in seconds since the request came, for a request's handler."""
    loop = _Clock()
    sent = []

    class Line(asyncio.Transport):
        def __init__(self, own):
            super().__init__()
            self._own = own

        def get_extra_info(self, _name, _default=None):
            return self._own

        def write(self, data):
            sent.append((round(loop.now_s - _Clock.now_s, 6), data))

    async def ask(own):
        pool = ConnectionPool(most=1, read_timeout_s=1000)
        connection = Connection(lambda _request: handle(loop), pool, 1, lambda _seconds: None)
        connection.connection_made(Line(own))
        connection.data_received(http(converse_body()))
        for _ in range(4):
            await asyncio.sleep(0)

    with contextlib.closing(loop), socket.socket() as own:
        loop.run_until_complete(ask(own))
    return sent


def test_a_latency_counts_from_the_request_s_arrival():
    """What the endpoint itself takes to answer, here 0.2 s, lies within the latency."""

    def handle(loop):
        loop.now_s += 0.2
        return Answer(((0.3, b"head"), (0.1, b"one"), (0, b"two"), (0.1, b"three")))

    assert _sent(handle) == [(0.3, b"head"), (0.4, b"one"), (0.4, b"two"), (0.5, b"three")]


def test_an_answer_that_is_late_already_is_sent_at_once():
    def handle(loop):
        loop.now_s += 0.5
        return Answer(((0.3, b"late"), (0.1, b"late, too"), (0.2, b"in time")))

    assert _sent(handle) == [(0.5, b"late"), (0.5, b"late, too"), (0.6, b"in time")]


@pytest.fixture
def waits(monkeypatch):
    """The seconds for which a loop waits, none of which pass."""
    asked = []

    def wait(readers, _writers, _others, timeout_s):
        asked.append(timeout_s)
        return ([], [], []) if readers else None

    monkeypatch.setattr(emulator_loop.select, "select", wait)
    return asked


@pytest.mark.skipif(not hasattr(select, "epoll"), reason="other systems' loops are punctual")
def test_a_long_wait_ends_a_little_early_and_its_rest_is_waited_for_to_the_microsecond(waits):
    with contextlib.closing(loop_factory()()) as loop:
        for timeout_s in (0.3, 0.00075, 0, -1):
            assert loop._selector.select(timeout_s) == []

    (long, rest) = waits
    assert 0.299 < long < 0.3
    assert rest == 0.00075


def test_a_punctual_loop_hears_of_what_comes_in_while_it_waits():
    async def answered():
        ours, theirs = socket.socketpair()
        with ours, theirs:
            reader, writer = await asyncio.open_connection(sock=ours)
            asyncio.get_running_loop().call_later(0.01, theirs.send, b"hello")
            async with asyncio.timeout(60):
                heard = await reader.read(5)
            writer.close()
        return heard

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        assert runner.run(answered()) == b"hello"


@pytest.mark.skipif(not hasattr(select, "epoll"), reason="other systems' loops are punctual")
def test_a_loop_in_a_program_with_many_open_files_waits_all_the_same(monkeypatch):
    monkeypatch.setattr(emulator_loop, "DESCRIPTORS", 0)

    async def slept():
        await asyncio.sleep(0.001)
        return "awake"

    with asyncio.Runner(loop_factory=loop_factory()) as runner, monkeypatch.context() as patched:
        patched.setattr(emulator_loop.select, "select", lambda *_: pytest.fail("out of range"))
        assert runner.run(slept()) == "awake"
