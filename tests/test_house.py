"""How the code is kept: what import-linter and ruff do not look at."""

from graphlib import TopologicalSorter
from pathlib import Path

import grimp

from tests.command import ROOT

MOST_LINES = 300


def test_no_module_imports_itself_in_a_circle_imports_within_functions_included():
    graph = grimp.build_graph("cli", "socratic_bench", exclude_type_checking_imports=True)
    imported = {one: graph.find_modules_directly_imported_by(one) for one in graph.modules}

    TopologicalSorter(imported).prepare()  # raises CycleError, which names the circle


def test_no_module_is_longer_than_a_reader_can_hold():
    sources = [path for room in ("cli", "socratic_bench") for path in (ROOT / room).rglob("*.py")]

    assert [name_of(path) for path in sources if n_lines(path) > MOST_LINES] == []


def n_lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))
