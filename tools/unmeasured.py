# ruff: noqa: INP001, S603 - a script, not a package; what it starts is the project's own suite
"""`make unmeasured`: names the tests that the measuring of coverage can do without.

All tests are played under coverage, which takes a while. Then they are taken by what each one adds
for its CPU time, until nothing is added any more. Of the others the dear ones go into the list, as
whole files and functions where that can be.
"""

import base64
import json
import os
import resource
import sqlite3
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Generator, Mapping
from heapq import heapify, heappop, heappush
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "tests/unmeasured.txt"
DEAR_S = 0.4  # what costs less is not worth a line
COSTS = "UNMEASURED_COSTS"  # the file in which each test's CPU time is noted
COMMANDS = "COVERAGE_PROCESS_CONFIG"  # how coverage hands its settings down to commands
Arcs = set[tuple[int, int, int]]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """As a plugin: a test's commands are measured under its name, and its CPU time is noted."""
    settings = json.loads(base64.b64decode(os.environ[COMMANDS]))
    settings["context"] = item.nodeid
    os.environ[COMMANDS] = base64.b64encode(json.dumps(settings).encode()).decode()
    began_s = _cpu_s()
    played = yield
    with Path(os.environ[COSTS]).open("a") as file:
        file.write(f"{json.dumps([item.nodeid, _cpu_s() - began_s])}\n")
    return played


def _cpu_s() -> float:
    spent = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in spent)


def main() -> None:
    """Play everything but what the arguments leave out, and write the list."""
    with TemporaryDirectory() as folder:
        data, costs = Path(folder, ".coverage"), Path(folder, "costs")
        words = ["-n", "auto", "-q", "-p", "tools.unmeasured", "--cov", "--cov-report="]
        subprocess.run(
            [sys.executable, "-m", "pytest", *words, "--cov-context=test", *sys.argv[1:]],
            env={**os.environ, "PYTHONPATH": ".", "COVERAGE_FILE": str(data), COSTS: str(costs)},
            cwd=ROOT,
            check=True,
        )
        costs_s = dict(map(json.loads, costs.read_text().splitlines()))
        dear = left_out(costs_s, needed(costs_s, reached(data)))
    LIST.write_text("".join(f"--deselect={name}\n" for name in dear))


def reached(data: Path) -> Mapping[str, Arcs]:
    """What each test reaches; what importing reaches has the name ""."""
    found: dict[str, Arcs] = defaultdict(set)
    query = "select context, file_id, fromno, tono from arc join context on context_id = context.id"
    for context, *arc in sqlite3.connect(data).execute(query):
        test, _, phase = context.rpartition("|")
        found[test if phase in ("setup", "run", "teardown") else context].add(tuple(arc))
    return found


def needed(costs_s: Mapping[str, float], reached: Mapping[str, Arcs]) -> set[str]:
    """The tests that together reach everything; the one that adds most per second is the next."""
    covered = set(reached.get("", ()))
    kept: set[str] = set()
    queue = [(-float("inf"), test) for test in costs_s if test in reached]
    heapify(queue)
    while queue:
        _, test = heappop(queue)
        added = len(reached[test] - covered)
        rank = -added / (costs_s[test] + 0.05)
        if added and queue and rank > queue[0][0]:
            heappush(queue, (rank, test))
        elif added:
            covered |= reached[test]
            kept.add(test)
    return kept


def left_out(costs_s: Mapping[str, float], kept: Collection[str]) -> list[str]:
    """The dear ones among the others, by the widest names that take none of the kept along."""
    totals_s: Counter[str] = Counter()
    for test in costs_s.keys() - set(kept):
        names = (test.partition("::")[0], test.partition("[")[0])
        wide = (name for name in names if not any(each.startswith(name) for each in kept))
        totals_s[next(wide, test)] += costs_s[test]
    return sorted(name for name, total_s in totals_s.items() if total_s > DEAR_S)


if __name__ == "__main__":
    main()
