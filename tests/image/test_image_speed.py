"""From `docker run` to the first request, against containers that only make a client."""

import json
import subprocess
import time
from statistics import median
from urllib.parse import urlsplit

import pytest

from tests.image.engine import DOCKER, HARDENED, REPOSITORY, RUNNER, build, environment

pytestmark = pytest.mark.image

LIMIT_S = 0.3
ROUNDS = 9
MODEL = "emulator.socratic-v1:0"

# Reports by a plain connection, which costs next to nothing, that the client is made.
CLIENT_ONLY = """
import boto3
boto3.client("bedrock-runtime", region_name="us-east-1")
import socket
with socket.create_connection(({host!r}, {port})) as connection:
    connection.sendall(b"GET /made HTTP/1.0\\r\\n\\r\\n")
    connection.recv(1000)
"""


@pytest.fixture(scope="module")
def reference():
    build(f"{RUNNER}-reference", "--file", REPOSITORY / "tests/image/reference.Dockerfile")
    return f"{RUNNER}-reference"


def test_first_request(reference, bedrock, stand_ins, capsys):
    """Interleaved, so that a busy moment falls on all of them."""
    variables = {**stand_ins, "AWS_REGION": "us-east-1", "BEDROCK_MODEL_IDS": json.dumps([MODEL])}
    options = environment(variables)
    url = urlsplit(bedrock.url)
    client_only = CLIENT_ONLY.format(host=url.hostname, port=url.port)
    contenders = {
        "the image": [
            *options, RUNNER, f"--model={MODEL}", "--prompt=I am stuck.", "--turns=1", "--no-judge",
        ],
        "the SDK as it comes": [reference, client_only],
        "the SDK as cut and compiled here": ["--entrypoint=python", RUNNER, "-Ic", client_only],
    }  # fmt: skip

    times = {name: [] for name in contenders}
    for _ in range(ROUNDS):
        for name, words in contenders.items():
            times[name].append(_first_request_s(bedrock, words))

    medians = {name: median(values) for name, values in times.items()}
    over_s = medians["the image"] - min(medians.values())
    with capsys.disabled():
        print(f"\nfrom docker run to the first request, median of {ROUNDS}:")  # noqa: T201
        for name in contenders:
            print(f"  {name}: {medians[name]:.3f} s, best {min(times[name]):.3f} s")  # noqa: T201
        print(f"  over the quickest that only makes a client: {over_s:.3f} s (limit {LIMIT_S})")  # noqa: T201
    assert over_s <= LIMIT_S


def _first_request_s(bedrock, words):
    bedrock.requests.clear()
    started_s = time.monotonic()
    subprocess.run(
        [DOCKER, "run", "--rm", "--network=host", *HARDENED, *words],
        capture_output=True,
        check=True,
    )
    return bedrock.requests[0].at_s - started_s
