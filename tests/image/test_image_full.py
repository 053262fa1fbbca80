"""The target `full`: the same command, with what the extras need."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from tests.image.engine import (
    HARDENED,
    REPOSITORY,
    RUNNER,
    build,
    docker,
    inspect,
    own_layers,
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
    *(
        "--scenarios",
        "career-change",
        "ai-ethics",
        "--turns",
        "4",
        "--seed",
        "7",
        "--output-dir",
        "out",
    ),
)
# What the live display, intervals and agreement load, and which of it was compiled on the spot.
LOADED = """
import sys
from pathlib import Path
import rich.live, rich.table, krippendorff, numpy, scipy.special
specs = [vars(module).get("__spec__") for module in list(sys.modules.values())]
print([s.name for s in specs if s and s.cached and not Path(s.cached).exists()])
"""
# A sweep and its report, in one container; the document of the report is printed.
REPORTED = """
import subprocess, sys
command = (sys.executable, "-I", "-m", "socratic_runner")
sweep = (
    *("sweep", "--offline", "--models", "emulator.socratic-v1:0", "emulator.lecturer-v1:0"),
    *("--scenarios", "career-change", "ai-ethics", "--turns", "2", "--output-dir", "out", "-q"),
)
subprocess.run([*command, *sweep], check=True, stdout=subprocess.DEVNULL)
forms = (
    *("--html", "report.html", "--markdown", "report.md", "--csv", "rows", "--parquet", "rows"),
    *("--png", "charts", "--svg", "charts"),
)
subprocess.run([*command, "report", "out", *forms, "-q"], check=True)
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


def test_it_is_the_plain_image_and_one_layer_more(tmp_path):
    assert own_layers(FULL, tmp_path)[:-1] == own_layers(RUNNER, tmp_path)
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
    assert "4 of 4 cells done" in done.stdout


def test_intervals_of_a_sweep_and_of_a_comparison_are_there_in_one_and_not_in_the_other(tmp_path):
    tmp_path.chmod(0o777)
    options = (f"--volume={tmp_path}:/work", "--network=none", *HARDENED)
    swept = run(*SWEEP, "--quiet", image=FULL, options=options)
    # Files of another user's cannot be removed by the test's own.
    compared, bare = (
        run("compare", "out", "--quiet", image=image, options=options) for image in (FULL, RUNNER)
    )
    run("-c", "rm -r /work/out", image=FULL, options=(*options, "--entrypoint=sh"))

    assert (swept.code, compared.code, bare.code) == (0, 0, 0), compared.stderr
    for group in swept.document["groups"]["model"]:
        found = group["metrics"]["overall_score"]
        assert found["low"] <= found["mean"] <= found["high"]
    (pair,), (without,) = compared.document["pairs"], bare.document["pairs"]
    found, plain = (one["differences"]["overall_score"] for one in (pair, without))
    assert found["low"] <= found["mean"] <= found["high"]
    assert 0 < found["p"] <= found["p_holm"] <= 1
    assert (plain["mean"], plain["low"], plain["p"]) == (found["mean"], None, None)


def test_what_the_extras_need_is_there_and_compiled():
    done = run("-Ic", LOADED, image=FULL, options=PYTHON)

    assert done.stdout == "[]\n", done.stderr


def test_a_report_is_made_read_only_and_without_a_network():
    options = ("--tmpfs=/work:mode=1777", *PYTHON)

    done = run("-Ic", REPORTED, image=FULL, options=options)

    assert done.code == 0, done.stderr
    assert (done.document["kind"], done.document["n_runs"]) == ("report", 4)
    assert done.document["files"][0]["bytes"] > 50_000
    forms = {one["form"] for one in done.document["files"]}
    assert forms == {"html", "markdown", "csv", "parquet", "png", "svg"}


def test_the_plain_image_has_none_of_it():
    done = run("-Ic", "import rich", options=PYTHON)

    assert "ModuleNotFoundError" in done.stderr


def test_no_installer_and_no_tests():
    assert unwanted_in(FULL) == []


def test_build_from_nothing_gives_the_same_layers(tmp_path):
    build(f"{FULL}-again", "--target=full", "--no-cache")
    made = own_layers(f"{FULL}-again", tmp_path)
    docker("image", "rm", f"{FULL}-again")

    assert made == own_layers(FULL, tmp_path)


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
