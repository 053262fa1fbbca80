"""The target `full`: the same command, with what the extras need."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.image.engine import (
    HARDENED,
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
MODELS = ("emulator.socratic-v1:0", "emulator.lecturer-v1:0")
SWEEP = (
    *("sweep", "--offline", "--models", *MODELS, "--scenarios", "career-change", "ai-ethics"),
    *("--turns=4", "--seed=7", "--output-dir=out"),
)
# Loads what the live display, intervals and agreement need; lists modules without stored bytecode.
LOADED = """
import sys
from pathlib import Path
import rich.live, rich.table, krippendorff, numpy, scipy.special
specs = [vars(module).get("__spec__") for module in list(sys.modules.values())]
print([s.name for s in specs if s and s.cached and not Path(s.cached).exists()])
"""
REPORT = (
    *("report", "out", "--html=report.html", "--markdown=report.md", "--csv=rows"),
    *("--parquet=rows", "--png=charts", "--svg=charts"),
)


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
    """An image's settings. The documented commands, which other tests run, name no revision."""
    config: dict[str, Any] = inspect(image)["Config"]
    labels = {k: v for k, v in config["Labels"].items() if not k.endswith(".revision")}
    return {**config, "Labels": labels}


@pytest.mark.parametrize(("image", "is_redrawn"), [(FULL, True), (RUNNER, False)])
def test_display_of_a_sweep_at_a_terminal(image, is_redrawn):
    options = ("--tty", "--tmpfs=/work:mode=1777", "--network=none", *HARDENED)

    done = run(*SWEEP, image=image, options=options)

    assert done.code == 0, done.stdout
    assert ("\x1b[1A" in done.stdout) is is_redrawn
    assert "4 of 4 runs done" in done.stdout


@pytest.fixture(scope="module")
def stored_sweep(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[list[str], Any]]:
    """The options with which /work has a sweep's runs, and the sweep's document."""
    folder = tmp_path_factory.mktemp("work")
    folder.chmod(0o777)
    options = [f"--volume={folder}:/work", "--network=none", *HARDENED]
    sweep = run(*SWEEP, "--quiet", image=FULL, options=options)
    assert sweep.code == 0, sweep.stderr
    yield options, sweep.document
    # The files belong to the image's user.
    run("-c", "rm -r /work/*", image=FULL, options=(*options, "--entrypoint=sh"))


def test_intervals_need_the_extra(stored_sweep):
    options, sweep = stored_sweep

    full, plain = (
        run("compare", "out", "--quiet", image=image, options=options) for image in (FULL, RUNNER)
    )

    assert (full.code, plain.code) == (0, 0), full.stderr + plain.stderr
    for group in sweep["groups"]["model"]:
        score = group["metrics"]["overall_score"]
        assert score["low"] <= score["mean"] <= score["high"]
    difference, without_interval = (
        ended.document["pairs"][0]["differences"]["overall_score"] for ended in (full, plain)
    )
    assert difference["low"] <= difference["mean"] <= difference["high"]
    assert without_interval["mean"] == difference["mean"]
    assert without_interval["low"] is None


def test_report_is_made_read_only_and_without_a_network(stored_sweep):
    options, _ = stored_sweep

    report = run(*REPORT, "--quiet", image=FULL, options=options)

    assert report.code == 0, report.stderr
    assert (report.document["kind"], report.document["n_runs"]) == ("report", 4)
    (page,) = (file for file in report.document["files"] if file["path"].endswith(".html"))
    assert page["bytes"] > 50_000
    forms = {file["form"] for file in report.document["files"]}
    assert forms == {"html", "markdown", "csv", "parquet", "png", "svg"}


def test_what_the_extras_need_is_there_and_compiled():
    done = run("-Ic", LOADED, image=FULL, options=PYTHON)

    assert done.stdout == "[]\n", done.stderr


def test_no_installer_and_no_tests():
    assert unwanted_in(FULL) == []


def test_build_from_nothing_gives_the_same_layers(tmp_path):
    build(f"{FULL}-again", "--target=full", "--no-cache")
    again = own_layers(f"{FULL}-again", tmp_path)
    docker("image", "rm", f"{FULL}-again")

    assert again == own_layers(FULL, tmp_path)


def test_unknown_extra_stops_the_build():
    with pytest.raises(AssertionError, match="requirements-misspelt"):
        build(f"{FULL}-never", "--target=full", "--build-arg=EXTRAS=ui misspelt")
