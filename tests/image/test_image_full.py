"""The target `full`: the same command, with what the extras need."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from tests.image.engine import (
    BASE,
    HARDENED,
    REPOSITORY,
    RUNNER,
    build,
    docker,
    inspect,
    layers,
    run,
    size_over_base_mb,
    unwanted_in,
)

pytestmark = pytest.mark.image

SIZE_LIMIT_MB = 150
FULL = f"{RUNNER}-full"
PYTHON = ("--entrypoint=python", "--network=none", *HARDENED)
OFFLINE = ("--offline", "--model=emulator.socratic-v1:0", "--prompt=Why?", "--turns=2", "--quiet")
SWEEP = (
    *("sweep", "--offline", "--models", "emulator.socratic-v1:0", "emulator.lecturer-v1:0"),
    *("--scenarios", "career-change", "--turns", "2", "--output-dir", "out"),
)
# What the live display loads, and which of it was compiled on the spot.
LOADED = """
import sys
from pathlib import Path
import rich.live, rich.table
specs = [vars(module).get("__spec__") for module in list(sys.modules.values())]
print([s.name for s in specs if s and s.cached and not Path(s.cached).exists()])
"""


@pytest.fixture(scope="module", autouse=True)
def _full() -> Iterator[None]:
    build(FULL, "--target=full")
    yield
    docker("image", "rm", FULL)


def test_size_over_the_base(tmp_path, record_testsuite_property, capsys):
    size_mb = size_over_base_mb(FULL, tmp_path)

    record_testsuite_property("full_size_over_base_mb", round(size_mb, 2))
    with capsys.disabled():
        print(f"\nfull, over the base, compressed: {size_mb:.2f} MB (limit {SIZE_LIMIT_MB})")  # noqa: T201
    assert size_mb <= SIZE_LIMIT_MB


def test_it_is_the_plain_image_and_one_layer_more():
    assert layers(FULL)[:-1] == layers(RUNNER)
    assert _config(FULL) == _config(RUNNER)


def _config(image: str) -> dict[str, Any]:
    """What is set in it. The documents' commands, which other tests play, name no revision."""
    config: dict[str, Any] = inspect(image)["Config"]
    labels = {k: v for k, v in config["Labels"].items() if not k.endswith(".revision")}
    return {**config, "Labels": labels}


def test_it_plays_a_run():
    done = run(*OFFLINE, image=FULL, options=("--network=none", *HARDENED))

    assert (done.code, done.document["status"]) == (0, "completed")


@pytest.mark.parametrize(("image", "is_redrawn"), [(FULL, True), (RUNNER, False)])
def test_a_sweep_at_a_terminal_is_a_table_in_one_and_a_line_in_the_other(image, is_redrawn):
    options = ("--tty", "--tmpfs=/work:mode=1777", "--network=none", *HARDENED)

    done = run(*SWEEP, image=image, options=options)

    assert done.code == 0, done.stdout
    assert ("\x1b[1A" in done.stdout) is is_redrawn
    assert "2 of 2 cells done" in done.stdout


def test_what_the_display_needs_is_there_and_compiled():
    done = run("-Ic", LOADED, image=FULL, options=PYTHON)

    assert done.stdout == "[]\n", done.stderr


def test_the_plain_image_has_none_of_it():
    done = run("-Ic", "import rich", options=PYTHON)

    assert "ModuleNotFoundError" in done.stderr


def test_no_installer_and_no_tests():
    assert unwanted_in(FULL) == []


def test_build_from_nothing_gives_the_same_layers():
    build(f"{FULL}-again", "--target=full", "--no-cache")
    made = layers(f"{FULL}-again")
    docker("image", "rm", f"{FULL}-again")

    # The layer over the base only deletes, at the time that the engine has then.
    first = len(layers(BASE)) + 1
    assert made[first:] == layers(FULL)[first:]


def test_an_extra_that_there_is_not_stops_the_build():
    with pytest.raises(AssertionError, match="There is no extra 'misspelt'"):
        build(f"{FULL}-never", "--target=full", "--build-arg=EXTRAS=ui misspelt")


def test_extras_that_share_a_package_are_installed_together(tmp_path):
    context = tmp_path / "context"
    for name in ("cli", "docker", "socratic_bench"):
        shutil.copytree(REPOSITORY / name, context / name)
    for path in (REPOSITORY / "Dockerfile", *REPOSITORY.glob("requirements*.txt")):
        shutil.copy2(path, context)
    shutil.copy2(context / "requirements-ui.txt", context / "requirements-other.txt")

    build(f"{FULL}-two", "--target=extras", "--build-arg=EXTRAS=ui other", context=context)

    docker("image", "rm", f"{FULL}-two")
