"""How the code is kept: what import-linter and ruff do not look at."""

import ast
import re
from graphlib import TopologicalSorter
from pathlib import Path

import grimp

from socratic_bench.providers.bedrock.kinds import ERROR_KINDS
from tests.command import ROOT

MOST_LINES = 300


def test_no_module_imports_itself_in_a_circle_imports_within_functions_included():
    graph = grimp.build_graph("cli", "socratic_bench", exclude_type_checking_imports=True)
    imported = {one: graph.find_modules_directly_imported_by(one) for one in graph.modules}

    TopologicalSorter(imported).prepare()  # raises CycleError, which names the circle


def test_no_module_is_longer_than_a_reader_can_hold():
    sources = [path for room in ("cli", "socratic_bench") for path in (ROOT / room).rglob("*.py")]

    assert [name_of(path) for path in sources if n_lines(path) > MOST_LINES] == []


def test_what_is_called_and_run_names_settings_and_no_flags():
    """The command puts the flags in. Help is the command's own, in whatever words it is named."""
    rooms = [
        ROOT / "socratic_bench" / room for room in ("calling", "runner", "judging", "forecast")
    ]
    named = [
        (name_of(path), text)
        for room in rooms
        for path in room.rglob("*.py")
        for text in texts_of(path)
        if re.search(r"(?<!\w)--[a-z]", text.replace("socratic-runner --help", ""))
    ]

    assert named == []
    assert [row.hint for row in ERROR_KINDS.values() if "--" in row.hint] == []


def texts_of(path: Path) -> list[str]:
    """What a module says, its docstrings apart."""
    nodes = [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    alone = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    constants = [node for node in nodes if isinstance(node, ast.Constant) and id(node) not in alone]
    return [node.value for node in constants if isinstance(node.value, str)]


def n_lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))
