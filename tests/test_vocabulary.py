"""Outside its own rooms, nothing in the code knows the words of a benchmark."""

import ast
import re
from collections.abc import Iterable, Iterator

from socratic_bench.benchmarks.socratic.metrics_document import EVENTS
from socratic_bench.benchmarks.socratic.scenarios.loading import builtin_ids, load_builtin
from socratic_bench.benchmarks.socratic.student.pressure import KINDS
from tests.command import ROOT

# What stands for one benchmark alone. Of the Socratic one these are its actors, its rubric, its
# metrics, how its student pushes, and what it plays; of the other its data and its figures.
WORDS = {
    "socratic": {
        *("compliance", "compliant", "concession", "discipline", "disposition", "drift"),
        *("fidelity", "filler", "half_life", "insight", "insights", "lapse", "leading", "mrbench"),
        *("open question", "openings", "pressed", "pressure", "purity", "recovery_rate"),
        *("socratic", "stance", "student", "students", "substance"),
        *("tutor", "tutors", "violation", "voice", "voices"),
        *EVENTS,
        *(kind for kind in KINDS if kind != "demand"),  # Bedrock has inference on demand
        *(load_builtin(name).family for name in builtin_ids()),
    },
    "execution": {
        *("dataset", "execution", "mutant", "mutated", "mutation", "mutations"),
        *("order_consistency", "pass_at_1", "position_bias", "pred", "problem_id", "reversion"),
        *("reversions", "sandbox", "skip_boolean"),
    },
}
COMMANDS = {
    "socratic": ("cli/scenarios.py", "socratic_bench/studies/calibrate/labels.py"),
    "execution": ("cli/dataset.py",),
}
# The benchmarks' own rooms and commands, and what plays models for them.
ROOMS = {
    name: (*commands, f"socratic_bench/benchmarks/{name}/", "socratic_bench/emulator/models/")
    for name, commands in COMMANDS.items()
}
# The command and the package are named so.
NAMES = re.compile(r"socratic[-_](runner|bench)")
# By file, what is not moved: the lines that register the benchmark, and words that are documented.
ALLOWED = {
    "cli/commands.py": {
        *("dataset", ".dataset"),
        "verify programs of a data set, or make mutations of them",
        *("mrbench", "calibrate --mrbench FILE"),
    },
    "cli/calibrate.py": {
        *("mrbench", "--mrbench", "No labels: give --labels FILE or --mrbench FILE."),
        "published annotations of MRBench (V1, V2) or BEA 2025, by the rubric mrbench-8",
    },
    "socratic_bench/studies/calibrate/calibration.py": {
        *("mrbench", "socratic_bench.studies.calibrate.labels"),
        " labelled twice in the files of MRBench: the first label counts.",
    },
    "socratic_bench/benchmarks/__init__.py": {
        *("execution", "socratic_bench.benchmarks.execution"),
        *("socratic", "socratic_bench.benchmarks.socratic"),
    },
    # Made of the line above.
    "socratic_bench/benchmarks/run_config.py": {
        *("ExecutionSettings", "socratic_bench.benchmarks.execution.settings"),
        *("SocraticSettings", "socratic_bench.benchmarks.socratic.settings"),
    },
    # Keys that every document of these kinds has, null where another benchmark was run.
    "socratic_bench/documents/document.py": {
        *("compliance_rate", "half_life", "insights", "insights_unjudged_reason", "pressure"),
        *("purity", "student", "student_flags", "student_model", "student_prompt"),
        "substance",
    },
    "socratic_bench/documents/sweep.py": {
        (
            "scenarios that both played; openings where there is one scenario, problems for runs "
            "of many items"
        )
    },
    "socratic_bench/settings/core.py": {"socratic"},  # the default of --benchmark
    # An `end_reason`, which documents list among those of any run.
    "socratic_bench/errors.py": {"student_closed"},
    "socratic_bench/types.py": {"student_closed"},
    # Masked nowhere, since it stands in every document.
    "socratic_bench/redaction.py": {"socratic"},
}


def texts_with_words(source: str, benchmarks: Iterable[str] = WORDS) -> Iterator[str]:
    """Names and text in which a word of a benchmark stands, docstrings and comments aside."""
    words = sorted(set().union(*(WORDS[name] for name in benchmarks)))
    word = re.compile(rf"(?<![a-z])({'|'.join(map(re.escape, words))})(?![a-z])")
    for text in _texts(ast.parse(source)):
        spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", text)
        if word.search(NAMES.sub(" ", spaced.casefold())):
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
        name: set(texts_with_words(path.read_text(encoding="utf-8"), strangers))
        for name, path in names.items()
        if (strangers := [one for one, rooms in ROOMS.items() if not name.startswith(rooms)])
    }
    return {name: texts for name, texts in outside.items() if texts}


def test_a_benchmarks_words_stay_in_its_rooms() -> None:
    assert found() == ALLOWED
