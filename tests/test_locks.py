"""Locked packages: each is pinned with hashes, and all locks can be installed together."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.command import ROOT

LOCKS = [*sorted(ROOT.glob("requirements*.txt")), ROOT / "docker/requirements-s3.txt"]
# A pin, perhaps with an extra, for some Pythons or platforms only, with its hashes.
PIN = re.compile(
    r"(?P<name>[a-z0-9-]+)(?:\[[a-z0-9, -]+\])?==(?P<version>[\w.]+)(?: ; (?P<marker>[^\\\n]+?))?"
    r"(?P<hashes>(?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n(?P<why>(?:    #.*\n)*)"
)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# inspect_ai needs an older botocore than the locks, and MLflow is as large as all else together.
UNLOCKED = {"inspect", "mlflow"}
EXTRAS = {
    name: packages
    for name, packages in PROJECT["optional-dependencies"].items()
    if name not in UNLOCKED
}


def pins(lock):
    """Each pin's versions by its name and marker."""
    return {(pin["name"], pin["marker"]): pin["version"] for pin in PIN.finditer(lock.read_text())}


def asked(file: Path):
    """The names of the packages that a file asks for."""
    lines = (line.split("#")[0].strip() for line in file.read_text().splitlines())
    return {re.split(r"[\[=<>~ ]", line)[0] for line in lines if line and line[0] != "-"}


def named(requirements):
    return {re.split(r"[\[=<>~ ]", one)[0] for one in requirements}


def test_there_is_a_lock_for_the_program_for_each_extra_and_for_the_tests():
    names = {lock.stem.removeprefix("requirements").removeprefix("-") for lock in LOCKS}

    assert names == {"", "dev", "s3", *EXTRAS}


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_a_lock_holds_pins_with_hashes_and_nothing_else(lock):
    """So no index, path or option of the machine on which it was made stands in it."""
    assert PIN.sub("", lock.read_text()) == ""
    assert asked(lock.with_suffix(".in")) <= {name for name, _ in pins(lock)}


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_locks_agree_on_the_packages_that_they_share(lock):
    others = [other for other in LOCKS if other != lock]
    mine = pins(lock)

    versions = {}
    for (name, _), version in mine.items():
        versions.setdefault(name, set()).add(version)
    for other in others:
        differing = {
            (name, version, other.name)
            for (name, _), version in pins(other).items()
            if name in versions and version not in versions[name]
        }
        assert differing == set()


def test_what_is_locked_is_what_the_package_asks_for():
    files = {"": ROOT / "requirements.in"}
    files |= {name: ROOT / f"requirements-{name}.in" for name in EXTRAS}
    wanted = {"": PROJECT["dependencies"], **EXTRAS}

    assert {name: asked(file) for name, file in files.items()} == {
        name: named(requirements) for name, requirements in wanted.items()
    }
