"""Outside its own rooms, nothing in the code knows the words of a benchmark."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from socratic_bench.benchmarks.socratic.scenarios.loading import builtin_ids, load_builtin
from socratic_bench.benchmarks.socratic.students.pressure import KINDS
from tests.command import ROOT

# What stands for the Socratic benchmark alone: its actors, its rubric, its metrics, how its student
# pushes, and what it plays.
WORDS = {
    *(
        "compliance",
        "compliant",
        "concession",
        "drift",
        "fidelity",
        "half_life",
        "insight",
        "insights",
        "lapse",
        "leading",
    ),
    *("openings", "pressed", "pressure", "purity", "scenario", "scenarios", "socratic", "student"),
    *("students", "substance", "tutor", "tutors", "violation"),
    *(kind for kind in KINDS if kind != "demand"),  # Bedrock has inference on demand
    *(load_builtin(name).family for name in builtin_ids()),
}
# The benchmark's own rooms, and what plays models for it.
ROOMS = (
    "cli/socratic",
    "socratic_bench/benchmarks/socratic",
    "socratic_bench/emulator/models",
)
# The command and the package are named so.
NAMES = re.compile(r"socratic[-_](runner|bench)")
WORD = re.compile(rf"(?<![a-z])({'|'.join(map(re.escape, sorted(WORDS)))})(?![a-z])")
# By file, what is not moved: the lines that register the benchmark, and words that are documented.
ALLOWED = {
    "cli/commands.py": {
        *("scenarios", ".socratic.scenarios", "list the built-in scenarios"),
        ".socratic.mrbench",
    },
    "socratic_bench/benchmarks/__init__.py": {
        "socratic",
        "socratic_bench.benchmarks.socratic",
    },
    # Made of the line above.
    "socratic_bench/benchmarks/run_config.py": {
        "socratic_bench.benchmarks.socratic.settings",
        "SocraticSettings",
    },
    "socratic_bench/settings/core.py": {"socratic"},  # the default of --benchmark
    # An `end_reason`, which documents list among those of any run.
    "socratic_bench/errors.py": {"student_closed"},
    "socratic_bench/types.py": {"student_closed"},
    # Masked nowhere, since it stands in every document.
    "socratic_bench/redaction/forms.py": {"socratic"},
}


def texts_with_words(source: str) -> Iterator[str]:
    """Names and text in which a word of the list stands, docstrings and comments aside."""
    for text in _texts(ast.parse(source)):
        spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", text)
        if WORD.search(NAMES.sub(" ", spaced.casefold())):
            yield text


def _texts(tree: ast.AST) -> Iterator[str]:
    docstrings = {id(node) for node in _docstrings(tree)}
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and id(node) not in docstrings:
            yield text
        for name in ("id", "attr", "arg", "name", "asname", "module"):
            found = getattr(node, name, None)
            if isinstance(found, str):
                yield found


def _docstrings(tree: ast.AST) -> Iterator[ast.AST]:
    """Also those of fields and constants: a text that stands alone is one for readers."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


def found() -> dict[str, set[str]]:
    """The texts in question, by the file that they stand in."""
    paths = [path for room in ("cli", "socratic_bench") for path in (ROOT / room).rglob("*.py")]
    names = {path.relative_to(ROOT).as_posix(): path for path in sorted(paths)}
    outside = {
        name: set(texts_with_words(path.read_text(encoding="utf-8")))
        for name, path in names.items()
        if not name.startswith(tuple(f"{room}/" for room in ROOMS))
    }
    return {name: texts for name, texts in outside.items() if texts}


def test_a_benchmarks_words_stay_in_its_rooms() -> None:
    assert found() == ALLOWED


def test_each_word_is_one_of_the_benchmark() -> None:
    """A word that nobody uses would look for nothing."""
    own = " ".join(
        path.read_text() for room in ROOMS for path in (ROOT / room).rglob("*") if _is_text(path)
    ).casefold()
    assert sorted(word for word in WORDS if word not in own) == []


def _is_text(path: Path) -> bool:
    return path.suffix in {".py", ".toml", ".json", ".md"}


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("half_life = 3", {"half_life"}),
        ("class SocraticThing: ...", {"SocraticThing"}),
        ("x = f'no {y} for the tutor'", {" for the tutor"}),
        ("x.student_flags", {"student_flags"}),
        ("def f(*, pressure): ...", {"pressure"}),
        (
            "from socratic_bench.benchmarks.socratic import Y",
            {"socratic_bench.benchmarks.socratic"},
        ),
        ('"""The tutor."""\nx = 1  # a student', set()),
        ("import socratic_bench.types\nprog = 'socratic-runner'", set()),
        ("x = 'misleading, leaded'", set()),
    ],
)
def test_the_search_finds_names_and_text(source: str, texts: set[str]) -> None:
    assert set(texts_with_words(source)) == texts
