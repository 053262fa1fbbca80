"""What is in the image, and what is not."""

import re
import subprocess
import sys

import pytest

from socratic_bench.version import VERSION
from tests.image.engine import (
    BASE,
    REPOSITORY,
    RUNNER,
    build,
    clone,
    command,
    docker,
    inspect,
    own_layers,
    run,
    size_over_base_mb,
    unwanted_in,
)

pytestmark = pytest.mark.image

SIZE_LIMIT_MB = 8.5
PYTHON = ("--entrypoint=python", "--network=none")

# Runs the command and makes the SDK's clients, then lists modules without stored bytecode.
UNCOMPILED = """
import sys
from pathlib import Path
from socratic_runner.runner import run_command
run_command(sys.argv[1:])
import boto3
for service in ("s3", "sts", "sso", "sso-oidc", "bedrock", "service-quotas"):
    boto3.client(service, region_name="us-east-1")
specs = [vars(module).get("__spec__") for module in list(sys.modules.values())]
print([s.name for s in specs if s and s.cached and not Path(s.cached).exists()], file=sys.stderr)
"""


def test_size_over_the_base(tmp_path, record_testsuite_property, capsys):
    size_mb = size_over_base_mb(RUNNER, tmp_path)

    record_testsuite_property("size_over_base_mb", round(size_mb, 2))
    with capsys.disabled():
        print(f"\nsize over the base, compressed: {size_mb:.2f} MB (limit {SIZE_LIMIT_MB})")  # noqa: T201
    assert size_mb <= SIZE_LIMIT_MB


def test_no_installer_and_no_tests():
    assert unwanted_in(RUNNER) == []


def test_modules_that_no_run_needs_are_not_there():
    names = ["pip", "ensurepip", "setuptools", "pytest", "moto", "awscrt", "rich", "scipy"]
    program = f"from importlib.util import find_spec; print(*filter(find_spec, {names}))"

    done = run("-Ic", program, options=PYTHON)

    assert (done.code, done.stdout) == (0, "\n"), done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("--model=emulator.socratic-v1:0", "--prompt=Why?"),
        ("sweep", "--models=emulator.socratic-v1:0", "--scenarios=ai-ethics", "--output-dir=out"),
    ],
    ids=["a run", "a sweep"],
)
def test_everything_that_is_loaded_is_compiled(words):
    words = (*words, "--offline", "--turns=2", "--quiet")
    options = (*PYTHON, "--read-only", "--tmpfs=/work:mode=1777")

    done = run("-Ic", UNCOMPILED, *words, options=options)

    assert done.code == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "[]"


def test_configuration():
    config = inspect(RUNNER)["Config"]

    assert config["Entrypoint"] == ["python", "-I", "-m", "socratic_runner"]
    assert config["User"] == "10001:10001"
    assert "HOME=/home/runner" in config["Env"]
    assert config.get("ExposedPorts") is None
    assert not config["Cmd"]
    assert config["Labels"]["org.opencontainers.image.version"] == VERSION


def test_labels():
    """By plain build arguments, at no cost: every layer stays as it is."""
    tag = f"{RUNNER}-labels"
    build(tag, "--build-arg=VERSION=1.2.3", "--build-arg=REVISION=abc123")

    labels = inspect(tag)["Config"]["Labels"]
    docker("image", "rm", tag)
    assert {name.removeprefix("org.opencontainers.image."): labels[name] for name in labels} == {
        "title": "socratic-runner",
        "description": "Measures how long a language model that should tutor by questions keeps "
        "asking before it gives answers away",
        "version": "1.2.3",
        "revision": "abc123",
        "licenses": "MIT",
        "base.name": BASE,
    }


def test_build_from_nothing_gives_the_same_layers(tmp_path):
    """As the image under test, which was itself built at another time."""
    build(f"{RUNNER}-again", "--no-cache")
    again = own_layers(f"{RUNNER}-again", tmp_path)
    docker("image", "rm", f"{RUNNER}-again")

    assert again == own_layers(RUNNER, tmp_path)


def test_changed_hash_stops_the_build(tmp_path):
    context = clone(tmp_path / "context")
    pinned = context / "requirements.txt"
    pinned.write_text(re.sub("sha256:[0-9a-f]+", f"sha256:{'0' * 64}", pinned.read_text()))

    with pytest.raises(AssertionError, match="DO NOT MATCH THE HASHES"):
        build(f"{RUNNER}-never", "--target=packages", context=context)


def test_a_change_of_code_installs_nothing_anew(tmp_path):
    context = clone(tmp_path / "context")
    build(f"{RUNNER}-changed", context=context)
    before = own_layers(f"{RUNNER}-changed", tmp_path)
    with (context / "cli/runner.py").open("a") as source:
        source.write("# changed\n")

    log = build(f"{RUNNER}-changed", context=context)

    after = own_layers(f"{RUNNER}-changed", tmp_path)
    docker("image", "rm", f"{RUNNER}-changed")
    # The log names each step as "#7 [packages 4/6] RUN ...", and "#7 CACHED" where it was not run.
    (install,) = re.findall(r"^(#\d+) \[packages .*RUN python -m pip install", log, re.MULTILINE)
    assert f"{install} CACHED" in log
    assert sum(old != new for old, new in zip(before, after, strict=True)) == 1


def test_context_takes_neither_secrets_nor_modes_of_the_host(tmp_path):
    """Files of the host that lie about, and a clone that was made under `umask 077`."""
    context = clone(tmp_path / "context")
    planted = [".env.py", "x/.aws/credentials", "pip.conf", "id_rsa", "notes.py~"]
    for name in planted:
        for folder in (".", "cli", "tests"):
            (context / folder / name).parent.mkdir(parents=True, exist_ok=True)
            (context / folder / name).write_text("LEFT-ON-THE-HOST")
    subprocess.run(["chmod", "-R", "go-rwx", context], check=True)
    tag = f"{RUNNER}-tests"

    build(tag, "--target=tests", context=context)

    # Bytecode is compiled from these files.
    words = ("-rl", "--exclude=*.pyc", "LEFT-ON-THE-HOST", "/src")
    matches = run(*words, image=tag, options=("--entrypoint=grep",))
    assert matches.stdout.split() == ["/src/tests/image/test_image_contents.py"]
    listed = run("-A", "/src", image=tag, options=("--entrypoint=ls",)).stdout.split()
    assert {"cli", "tests", "pyproject.toml"} <= set(listed)
    assert not [name for name in listed if name.startswith(".")]
    collected = run(
        "-q", "--collect-only", "tests/test_docs.py", image=tag, options=("--network=none",)
    )
    assert collected.code == 0, collected.stdout + collected.stderr

    build(f"{tag}-s3", "--target=s3", context=context)

    words = ("-c", "open('/build/bucket.py').read()")
    read_file = run(*words, image=f"{tag}-s3", options=("--entrypoint=python",))
    assert read_file.code == 0, read_file.stderr


def test_every_package_has_a_wheel_for_arm64(tmp_path):
    """The image of the other architecture is built from the same file, and compiles nothing."""
    names = ("manylinux2014", "manylinux_2_17", "manylinux_2_28")
    platforms = [f"--platform={name}_aarch64" for name in names]
    words = ["--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes"]
    locks = {*REPOSITORY.glob("requirements*.txt")} - {REPOSITORY / "requirements-dev.txt"}
    words += [*(f"-r{lock.name}" for lock in sorted(locks)), "--python-version=3.12"]

    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", *words, *platforms, "-d", tmp_path],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    wheels = {path.name for path in tmp_path.iterdir()}
    assert all("none-any" in name or "aarch64" in name for name in wheels)


def test_make_leaves_nothing_behind(tmp_path):
    """Neither stages nor the image that had the name before."""
    context = clone(tmp_path / "context")
    words = ("make", "image", "IMAGE=socratic-make-test", f"BASE_IMAGE={BASE}")
    nameless = ("images", "-q", "-f", "dangling=true")
    before = {*docker(*nameless).split()}
    for number in range(2):
        with (context / "cli/__init__.py").open("a") as source:
            source.write(f"# {number}\n")
        done = command(words, folder=context)
        assert done.code == 0, done.stderr
    after = {*docker(*nameless).split()}
    docker("image", "rm", "socratic-make-test")

    assert after <= before
