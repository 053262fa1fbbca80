"""How the code is kept: what import-linter and ruff do not look at."""

import ast
import re
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path

import grimp

from tests.command import ROOT

SOURCES = [path for room in ("cli", "socratic_bench") for path in (ROOT / room).rglob("*.py")]


def test_no_module_imports_itself_in_a_circle():
    # Without a cache, which would be kept where the tests are, and that may be read-only.
    graph = grimp.build_graph("cli", "socratic_bench", cache_dir=None)
    imported = {one: graph.find_modules_directly_imported_by(one) for one in graph.modules}

    TopologicalSorter(imported).prepare()  # raises CycleError, which names the circle


# What writes help, or tells in documents and schemas what a field is.
ABOUT = {"Setting", "Switch", "doc"} | {
    *("_setting", "_dialogue", "_judging", "_output", "_service", "_tested")
}
HELP = re.compile(r"socratic-runner( [a-z]+)? --help")
# Where else a flag may be named, and why.
FLAGS = {
    ("socratic_bench/models/bedrock/provider.py", "--profile"): "of the aws command",
    ("socratic_bench/storage/s3.py", "--region"): "of the aws command",
    # The command that started the endpoint is not there when it answers.
    ("socratic_bench/emulator/service.py", "--allowed-host"): "an answer to another program",
    ("socratic_bench/emulator/models/agent.py", "--short"): "of git",
    ("socratic_bench/emulator/models/agent.py", "--whitespace"): "of git",
    # In other words a run that is gone on with would tell it twice.
    (
        "socratic_bench/benchmarks/socratic/benchmark.py",
        "--pressure",
    ): "a notice, which is stored with its run",
    (
        "socratic_bench/models/bedrock/module.py",
        "--thinking-budget-tokens",
    ): "a notice, which is stored with its run",
}


def test_the_library_names_settings_and_no_flags():
    """The command puts the flags in. Help is the command's own, in whatever words it is named. The
    dashboard writes command lines, and the benchmark optimisation those of git and unshare.
    """
    apart = ROOT / "socratic_bench" / "benchmarks" / "optimisation"
    named = {
        (name_of(path), flag)
        for path in (ROOT / "socratic_bench").rglob("*.py")
        if path.parent.name != "dashboard"
        if path not in [apart / f"{name}.py" for name in ("repository", "isolation", "evidence")]
        for text in texts_of(path)
        for flag in re.findall(r"(?<![\w-])--[a-z][\w-]*", HELP.sub("", text))
    }

    assert named == {*FLAGS}


def texts_of(path: Path) -> list[str]:
    """What a module says, apart from its docstrings and from what tells of settings and fields."""
    nodes = [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    alone = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    about = [
        node
        for node in nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ABOUT
    ]
    alone |= {id(inner) for node in about for inner in ast.walk(node)}
    constants = [node for node in nodes if isinstance(node, ast.Constant) and id(node) not in alone]
    return [node.value for node in constants if isinstance(node.value, str)]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_the_help_of_a_flag_is_written_once():
    """Commands that have a flag of others take its words from where they stand."""
    modules = [ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "cli").rglob("*.py")]
    rows = (ROOT / "cli" / "flags.tsv").read_text(encoding="utf-8").splitlines()
    of_settings = {text for row in rows if (text := row.split("\t")[4])}
    told = [
        keyword.value.value
        for module in modules
        for node in ast.walk(module)
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "help" and isinstance(keyword.value, ast.Constant)
    ]

    assert [text for text, n in Counter([*told, *of_settings]).items() if n > 1] == []
