"""A real engine, the image under test, and stand-ins for Amazon's services on the loopback."""

import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from tests.image.doubles import Relay, emulator, relay, serving
from tests.image.engine import DOCKER, RUNNER, Ended, build, build_network, command

BUCKET = "socratic-benchmark-data"
REGION = "us-east-1"
STAND_IN_KEYS = {"aws_access_key_id": "AKIASTANDIN", "aws_secret_access_key": "secret"}

# Documented commands are run word for word; this script adds options for the stand-ins.
WRAPPER = """\
#!/bin/bash
verb=$1
shift
set -- "${{@/#socratic-runner/{runner}}}"  # a tag of the tests' own
case $verb in
  build) exec {docker} build --network={network} "$@" ;;
  run) case " $* " in
      *" --network"*) exec {docker} run --env-file {environment} "$@" ;;
      *) exec {docker} run --network=host --env-file {environment} "$@" ;;
    esac ;;
  *) exec {docker} "$verb" "$@" ;;
esac
"""


@pytest.fixture(scope="session", autouse=True)
def image() -> Iterator[str]:
    """The image of the working tree. Without an engine the session ends."""
    if command([DOCKER, "version"]).code != 0:
        pytest.exit(f"No Docker engine answers to '{DOCKER} version'; see docs/docker.md.", 1)
    # A run that was killed leaves its tags, and older composes never build what has one.
    _remove_test_images()
    build(RUNNER)
    yield RUNNER
    _remove_test_images()


def _remove_test_images() -> None:
    tags = command([DOCKER, "images", "--format={{.Repository}}:{{.Tag}}"]).stdout.split()
    test_tags = [tag for tag in tags if tag.startswith(RUNNER)]
    if test_tags:
        command([DOCKER, "image", "rm", "--force", *test_tags])


@pytest.fixture(scope="session")
def emulator_url() -> Iterator[str]:
    with emulator() as url:
        yield url


@pytest.fixture
def bedrock(emulator_url: str) -> Iterator[Relay]:
    """The emulator, behind a relay that records this test's requests."""
    with relay(emulator_url) as requests:
        yield requests


@pytest.fixture(scope="session")
def moto_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """moto's server, in the place of S3 and STS."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    words = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with serving(words, folder=tmp_path_factory.mktemp("moto")):
        _wait_for(port)
        yield f"http://127.0.0.1:{port}"


def _wait_for(port: int) -> None:
    for _ in range(300):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    pytest.fail(f"Nothing listens on port {port}.")


@pytest.fixture
def s3(moto_url: str) -> Iterator[Any]:
    """A client for the stand-in's S3, with an empty bucket."""
    client = boto3.client("s3", endpoint_url=moto_url, region_name=REGION, **STAND_IN_KEYS)
    client.create_bucket(Bucket=BUCKET)
    yield client
    for key in keys_in(client):
        client.delete_object(Bucket=BUCKET, Key=key)
    client.delete_bucket(Bucket=BUCKET)
    client.close()


def keys_in(client: Any) -> list[str]:
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
    return [entry["Key"] for page in pages for entry in page.get("Contents", [])]


@pytest.fixture
def stand_ins(bedrock: Relay, moto_url: str) -> dict[str, str]:
    """The variables that send a run to the stand-ins."""
    return {
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": bedrock.url,
        "AWS_ENDPOINT_URL_S3": moto_url,
        "AWS_ENDPOINT_URL_STS": moto_url,
        "AWS_ACCESS_KEY_ID": STAND_IN_KEYS["aws_access_key_id"],
        "AWS_SECRET_ACCESS_KEY": STAND_IN_KEYS["aws_secret_access_key"],
    }


@pytest.fixture
def shell(stand_ins: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> "Shell":
    """Runs commands as documented, with the script above as `docker`."""
    return Shell(tmp_path_factory.mktemp("shell"), stand_ins)


class Shell:
    def __init__(self, folder: Path, variables: dict[str, str]) -> None:
        self._folder = folder
        self._variables = variables
        wrapper = folder / "docker"
        wrapper.write_text(
            WRAPPER.format(
                docker=DOCKER,
                network=build_network(),
                environment=folder / "env",
                runner=RUNNER,
            )
        )
        wrapper.chmod(0o755)

    def __call__(self, script: str, *, keys: bool = True, **more: str) -> Ended:
        """Each container has the stand-ins' variables, with or without keys, and `more`."""
        variables = {
            name: value for name, value in self._variables.items() if keys or "_KEY" not in name
        } | more
        lines = "".join(f"{name}={value}\n" for name, value in variables.items())
        (self._folder / "env").write_text(lines)
        path = f"{self._folder}:{os.environ['PATH']}"
        return command(["bash", "-euo", "pipefail", "-c", script], environ={"PATH": path})
