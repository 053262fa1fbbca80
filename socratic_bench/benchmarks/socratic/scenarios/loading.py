"""Reads scenarios: the built-in ones by id, family or opening, a user's own by path."""

import hashlib
import os
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from socratic_bench.benchmarks.socratic.scenarios.fields import find_problems
from socratic_bench.benchmarks.socratic.scenarios.scenario import (
    CUSTOM,
    FAMILIES,
    Scenario,
    as_table,
    flatten,
    normal,
)
from socratic_bench.concurrency import convert
from socratic_bench.errors import Problem, UsageError
from socratic_bench.settings import read_bounded
from socratic_bench.settings.files import UnreadableTomlError, parse_toml

DATA = Path(__file__).with_name("data")
ALL = "all"
FAMILY = "family:"
_MOST_SUGGESTED = 3
# Comparing takes quadratic time, and no name is longer.
_LONGEST_NAME = 100


@cache
def builtin_ids() -> tuple[str, ...]:
    """The ids of the scenarios in the package, sorted, `custom` among them."""
    names = os.listdir(DATA)  # noqa: PTH208 -- a tenth of the time
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


@cache
def load_builtin(name: str) -> Scenario:
    """A built-in scenario. Raises `UsageError` with similar names if there is none of this id."""
    ids = builtin_ids()
    if name in ids:
        return _load_trusted(DATA / f"{name}.toml")
    near = get_close_matches(name, ids, n=_MOST_SUGGESTED)
    meant = f"; did you mean {', '.join(near)}?" if near else "."
    raise UsageError([f"No scenario {name!r}{meant} There is {', '.join(ids)}."])


def load_file(path: Path | str) -> Scenario:
    """A scenario from a file. Raises `UsageError` with everything that is wrong with it."""
    path = Path(path)
    content = _content(path)
    try:
        table = parse_toml(content)
    except UnreadableTomlError as error:
        raise UsageError([_mistake(path, str(error))]) from error
    if problems := find_problems(table):
        raise UsageError([_mistake(path, problem) for problem in problems])
    return _build(table, content)


def find_by_opening(prompt: str) -> Scenario | None:
    """The built-in scenario that has this opening, white space and case aside."""
    wanted = normal(prompt)
    if not wanted:
        return None
    for path in sorted(DATA.glob("*.toml")):
        # Parsing costs ten times as much as reading, so only files that can match are parsed.
        # The openings stand above the first table.
        head = path.read_text(encoding="utf-8").partition("\n[")[0]
        if wanted in normal(head.replace('\\"', '"')):
            scenario = _load_trusted(path)
            if wanted in map(normal, scenario.openings):
                return scenario
    return None


def scenarios_of(word: str) -> tuple[str, ...]:
    """The ids that a word stands for: `all`, `family:NAME`, or the id of one scenario.

    The scenario for any prompt is only meant by its own id. Raises `UsageError` for another word.
    """
    subjects = tuple(name for name in builtin_ids() if name != CUSTOM)
    if word == ALL:
        return subjects
    if word.startswith(FAMILY):
        family = word.removeprefix(FAMILY)
        if family not in FAMILIES:
            raise _unknown("family", family, FAMILIES)
        return tuple(name for name in subjects if load_builtin(name).family == family)
    if word not in builtin_ids():
        raise _unknown("scenario", word, builtin_ids())
    return (word,)


def _mistake(path: Path, mistake: str) -> Problem:
    return Problem("{mistake}", (("name", path.name), ("mistake", mistake)), "{name}")


def _content(path: Path) -> bytes:
    try:
        return read_bounded(path)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UsageError([_mistake(path, f"cannot be read: {reason}")]) from error


def _load_trusted(path: Path) -> Scenario:
    """Read a file of the package without checking it: tests do that."""
    content = path.read_bytes()
    return _build(tomllib.loads(content.decode()), content)


def _build(table: Mapping[str, object], content: bytes) -> Scenario:
    values = {
        name.removeprefix("student."): _clean(value) for name, value in flatten(table).items()
    }
    insights = values["draws_out"]
    assert isinstance(insights, list)  # noqa: S101 -- checked before
    insights = [as_table(insight) for insight in insights]
    sha256 = hashlib.sha256(content).hexdigest()
    return convert({**values, "draws_out": insights, "sha256": sha256}, Scenario)


def _clean(value: object) -> object:
    """Strip the white space at the ends of texts."""
    if isinstance(value, dict):
        return {name: _clean(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return value.strip() if isinstance(value, str) else value


def _unknown(what: str, name: str, names: tuple[str, ...]) -> UsageError:
    near = get_close_matches(name[:_LONGEST_NAME], names, n=_MOST_SUGGESTED)
    meant = f"; did you mean {' or '.join(near)}?" if near else f". There is {', '.join(names)}."
    text = "{scenarios}: no {what} is called {name!r}{meant}"
    return UsageError([Problem.of(text, what=what, name=name, meant=meant)])
