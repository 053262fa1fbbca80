"""Talks to the Docker engine through its command, as a user does."""

import gzip
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any

REPOSITORY = Path(__file__).resolve().parents[2]
DOCKER = os.environ.get("DOCKER", "docker")
BASE = os.environ.get("BASE_IMAGE", "python:3.12-slim")
# A tag for tests alone: no image of the user is replaced.
RUNNER = "socratic-image-test"
PATIENCE_S = 1800  # only against a command that hangs: some take minutes
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
        document: dict[str, Any] = json.loads(self.stdout)
        return document


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
    """Stdout of a docker command, which must succeed."""
    done = command([DOCKER, *words])
    assert done.code == 0, f"docker {words[0]} ended with {done.code}:\n{done.stderr}"
    return done.stdout.strip()


def run(*words: str | Path, image: str = RUNNER, options: Sequence[str | Path] = ()) -> Ended:
    """`docker run --rm`, the engine's options before the image and the arguments after."""
    return command([DOCKER, "run", "--rm", *options, image, *words])


def environment(variables: Mapping[str, str]) -> list[str]:
    """The engine's options that set variables in a container."""
    return [f"--env={name}={value}" for name, value in variables.items()]


def build(tag: str, *options: str | Path, context: Path = REPOSITORY) -> str:
    """Build an image. Return the log."""
    arguments = {name: os.environ[name] for name in ("VERSION", "REVISION") if name in os.environ}
    build_arguments = [
        f"--build-arg={name}={value}" for name, value in {"BASE_IMAGE": BASE, **arguments}.items()
    ]
    network = f"--network={build_network()}"
    words = ["build", network, "--progress=plain", "-t", tag, *build_arguments, *options, context]
    done = command([DOCKER, *words])
    assert done.code == 0, f"docker build ended with {done.code}:\n{done.stderr}"
    return done.stderr


@cache
def compose_words() -> list[str]:
    """Either generation of compose."""
    for words in ([DOCKER, "compose"], ["docker-compose"]):
        if shutil.which(words[0]) and command([*words, "version"]).code == 0:
            return words
    raise AssertionError("Neither 'docker compose' nor 'docker-compose' is there.")


def compose(*words: str, folder: Path = REPOSITORY) -> Ended:
    settings = {
        "BASE_IMAGE": BASE,
        "BUILD_NETWORK": build_network(),
        "COMPOSE_PROJECT_NAME": "socratic-image-test",
        # The older of the two builders, where there still is a choice.
        "COMPOSE_DOCKER_CLI_BUILD": "0",
        "DOCKER_BUILDKIT": "0" if compose_words()[0] == "docker-compose" else "1",
        "PATH": f"{Path(shutil.which(DOCKER) or '.').parent}:{os.environ['PATH']}",
    }
    return command([*compose_words(), *words], environ=settings, folder=folder)


@cache
def build_network() -> str:
    """Some engines are set up without their default bridge; builds then need the host's network."""
    has_bridge = command([DOCKER, "network", "inspect", "bridge"]).code == 0
    return "default" if has_bridge else "host"


def clone(folder: Path) -> Path:
    """Copy the repository's files, as a clone would have them, with changes not yet committed."""
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    for name in subprocess.check_output(words, cwd=REPOSITORY, text=True).split("\0"):
        if name and (REPOSITORY / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, folder / name)
    return folder


def inspect(image: str) -> dict[str, Any]:
    images: list[dict[str, Any]] = json.loads(docker("image", "inspect", image))
    return images[0]


def layers(image: str) -> list[str]:
    """The digests of an image's uncompressed layers."""
    digests: list[str] = inspect(image)["RootFS"]["Layers"]
    return digests


def own_layers(image: str, folder: Path) -> list[list[str] | str]:
    """An image's layers over its base: the names in the first layer, then digests of the others.

    The first layer's digest says nothing: it contains the time of its build, and of two builds with
    the same outcome the engine's cache may give either.
    """
    n_base = len(layers(BASE))
    with (
        _saved_layers(image, folder) as archives,
        tarfile.open(fileobj=list(archives)[n_base]) as first,
    ):
        names = sorted(first.getnames())
    return [names, *layers(image)[n_base + 1 :]]


def size_over_base_mb(image: str, folder: Path) -> float:
    """Size of a pull beyond the base: layers compressed as a registry stores them."""
    own = set(layers(image)) - set(layers(BASE))
    with _saved_layers(image, folder) as archives:
        n_bytes = sum(
            len(gzip.compress(layer.read(), 6))
            for digest, layer in zip(layers(image), archives, strict=True)
            if digest in own
        )
    return n_bytes / 1e6


@contextmanager
def _saved_layers(image: str, folder: Path) -> Iterator[Iterator[IO[bytes]]]:
    """The archives of an image's layers, in their order."""
    archive = folder / "image.tar"
    # By its id: a name without a tag stands for all images of that name.
    docker("save", "-o", archive, inspect(image)["Id"])
    with tarfile.open(archive) as saved:
        (manifest,) = json.load(_member(saved, "manifest.json"))
        yield (_member(saved, name) for name in manifest["Layers"])


def _member(saved: tarfile.TarFile, name: str) -> IO[bytes]:
    member = saved.extractfile(name)
    assert member, name
    return member


def unwanted_in(image: str) -> list[str]:
    """Paths of installers and tests in an image."""
    listed = run(
        "-c",
        "find / -xdev \\( -name pip -o -name 'pip[-3]*' -o -name ensurepip -o -name setuptools "
        "-o -name wheel -o -name pytest -o -name moto -o -name tests \\) 2>/dev/null; true",
        image=image,
        options=("--entrypoint=sh", "--user=0"),
    )
    return [path for path in listed.stdout.split() if not path.startswith("/etc/pip.conf")]
