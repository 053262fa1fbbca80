"""What `pip install` leaves: nothing under a name that another project may have."""

import json
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.command import OFFLINE, ROOT, environment

pytestmark = pytest.mark.torture  # it builds a wheel and an environment

BUILD = ("-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index")
LIBRARIES = next(folder for folder in sys.path if folder.endswith("site-packages"))


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """An environment of its own with the wheel; its libraries are those of the tests."""
    folder = tmp_path_factory.mktemp("installed")
    source = folder / "source"
    for name in _of_the_project():
        if (ROOT / name).is_file() and name.split("/")[0] not in ("tests", "docs", "bench"):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    _run(sys.executable, *BUILD, "--wheel-dir", str(folder), str(source))
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    (wheel,) = folder.glob("*.whl")
    packages = Path(_run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"))
    into = ("--quiet", "--no-deps", "--no-index", "--no-compile", str(wheel))
    _run(sys.executable, "-m", "pip", "--python", str(python), "install", *into)
    names = {path.name for path in packages.iterdir()}
    (packages / "libraries.pth").write_text(LIBRARIES)
    return python.parent, names


def _of_the_project():
    """Its files, as git lists them; where there is no clone, as in an image, all of them."""
    if not (ROOT / ".git").exists():
        return [str(path.relative_to(ROOT)) for path in ROOT.glob("[!.]*/**/*")] + [
            path.name for path in ROOT.glob("[!.]*")
        ]
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    return filter(None, files.split("\0"))


def _run(*words):
    done = subprocess.run(
        [*map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        env={**environment(), "PYTHONPATH": ""},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_wheel_takes_no_name_but_the_project_s(installed):
    _, names = installed

    assert {name for name in names if "dist-info" not in name} == {
        "socratic_runner",
        "socratic_bench",
    }


@pytest.mark.parametrize("entry", [("socratic-runner",), ("python", "-m", "socratic_runner")])
def test_what_is_installed_plays_a_run(entry, installed):
    folder, _ = installed
    command, *words = entry

    document = json.loads(_run(folder / command, *words, *OFFLINE, "--turns", "1"))
    scenarios = json.loads(_run(folder / command, *words, "scenarios"))

    assert (document["status"], document["n_turns"]) == ("completed", 1)
    assert "career-change" in [one["id"] for one in scenarios["scenarios"]]
