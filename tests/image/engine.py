"""Talks to the Docker engine through its command, as a user does."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
DOCKER = os.environ.get("DOCKER", "docker")
BASE = os.environ.get("BASE_IMAGE", "python:3.12-slim")
RUNNER = "socratic-runner"
PATIENCE_S = 600
HARDENED = (
    "--read-only",
    "--cap-drop=ALL",
    "--security-opt=no-new-privileges",
    "--pids-limit=128",
    "--memory=512m",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A command that has ended."""

    code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> dict[str, Any]:
        """The one document on stdout."""
        assert self.stdout.count("\n") == 1, f"not one line: {self.stdout!r}\n{self.stderr}"
        found: dict[str, Any] = json.loads(self.stdout)
        return found


def command(
    words: Sequence[str | Path],
    *,
    environ: Mapping[str, str] | None = None,
    folder: Path = REPOSITORY,
    text: str = "",
) -> Ended:
    done = subprocess.run(
        [str(word) for word in words],
        input=text,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        cwd=folder,
        env={**os.environ, "DOCKER_BUILDKIT": "1", **(environ or {})},
    )
    return Ended(code=done.returncode, stdout=done.stdout, stderr=done.stderr)


def docker(*words: str | Path) -> str:
    """What a docker command says on stdout; it must succeed."""
    done = command([DOCKER, *words])
    assert done.code == 0, f"docker {words[0]} ended with {done.code}:\n{done.stderr}"
    return done.stdout.strip()


def run(*words: str | Path, image: str = RUNNER, options: Sequence[str | Path] = ()) -> Ended:
    """`docker run --rm` with the engine's options before the image and the program's words after."""
    return command([DOCKER, "run", "--rm", *options, image, *words])


def build(tag: str, *options: str | Path, context: Path = REPOSITORY) -> None:
    network = f"--network={build_network()}"
    base = f"--build-arg=BASE_IMAGE={BASE}"
    docker("build", network, base, "--progress=plain", "-t", tag, *options, context)


@cache
def build_network() -> str:
    """Some engines are set up without their default bridge; builds then need the host's network."""
    has_bridge = command([DOCKER, "network", "inspect", "bridge"]).code == 0
    return "default" if has_bridge else "host"


def inspect(image: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = json.loads(docker("image", "inspect", image))
    return found[0]


def layers(image: str) -> list[str]:
    """The digests of an image's uncompressed layers."""
    found: list[str] = inspect(image)["RootFS"]["Layers"]
    return found
