"""Starting and stopping the emulator, its timing, and what it does without botocore."""

import asyncio
import gc
import os
import signal
import socket
import subprocess
import sys

import pytest

from socratic_bench.emulator import MODEL_IDS, Emulator, Settings
from socratic_bench.emulator.runtime import PromptCache
from tests.owned_clock import OwnedClock
from tests.test_emulator_support import (
    JUDGE,
    SOCRATIC,
    SONNET,
    Raw,
    client,
    converse_body,
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
        "print([name for name in ('botocore', 'http.server', 'ssl') if name in sys.modules])"
    )

    assert run(code) == "[]\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
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
    with OwnedClock() as clock, clock.emulator(paced) as emulator, Raw(emulator.url) as raw:
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
        every = control.list_foundation_models()["modelSummaries"]
        on_demand = control.list_foundation_models(byInferenceType="ON_DEMAND")["modelSummaries"]
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

    ids = [row["modelId"] for row in every]
    sonnet = SONNET.removeprefix("us.")
    assert ids[: len(MODEL_IDS)] == list(MODEL_IDS)
    assert sonnet in ids
    assert sonnet not in [row["modelId"] for row in on_demand]
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


def test_a_latency_counts_from_the_request_s_arrival():
    """What the endpoint itself takes lies within the latency, and no wait is added to it."""
    waits, now_s = [], [100.0]

    def wait(seconds, _closing):
        waits.append(round(seconds, 6))
        now_s[0] += seconds

    def speak(*_request):
        now_s[0] += 0.2  # what the answer takes to be made
        return "Why?"

    settings = Settings(latency_ms=300, speakers={SOCRATIC: speak})
    with (
        Emulator(settings, clock=lambda: now_s[0], wait=wait) as emulator,
        Raw(emulator.url) as raw,
    ):
        raw.send(http(converse_body()))
        raw.answer()

    assert waits == [0.1]
