"""A small git repository whose humans made it faster, with task, commits and workloads.

`python -m tests.optimisation_fixtures FOLDER` writes it, timed by the clock.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

PARTS = Path(__file__).parent / "optimisation"
NAMES = ("match", "clean", "distance", "render")
PROBLEMS = {
    "match": "Comparing two long lists of words takes far too long.",
    "clean": "Masking words in many lines takes far too long.",
    "distance": "Counting the ways to split a text takes far too long for texts of medium length.",
    "render": "Numbering many rows takes far too long.",
}
# Sizes of inputs whose operations are counted, and of such as are timed.
SIZES = {
    "operations": {"match": 60, "clean": 4, "distance": 9, "render": 60},
    "seconds": {"match": 1500, "clean": 300, "distance": 20, "render": 2500},
}
_COMMIT = ("-c", "user.name=A Human", "-c", "user.email=human@example.org", "commit", "-q")


class Fixture(NamedTuple):
    """Where the parts of a fixture are. `humans` are commits by item's name, in order."""

    folder: Path
    repo: Path
    task: Path
    commits: Path
    humans: dict[str, str]


def patch(name: str) -> bytes:
    """A patch such as `match.human`."""
    return (PARTS / "patches" / f"{name}.patch").read_bytes()


def make_fixture(
    folder: Path, names=NAMES, *, n_copies=1, metric="operations", visible=True, **task
) -> Fixture:
    """Write the repository and the files beside it; `n_copies` of each human commit."""
    repo = folder / "library"
    shutil.copytree(PARTS / "library", repo, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(PARTS / "workloads", folder / "workloads",
                    ignore=shutil.ignore_patterns("__pycache__"))  # fmt: skip
    git(repo, "init", "-q", "-b", "main")
    _commit(repo, "A library of text functions")
    git(repo, "tag", "v1.0")
    start = git(repo, "rev-parse", "HEAD")
    humans = {}
    for copy in range(n_copies):
        if copy:
            git(repo, "checkout", "-q", start, "--", ".")
            _commit(repo, f"Start again ({copy})")
        for name in names:
            git(repo, "apply", "-", given=patch(f"{name}.human"))
            _commit(repo, f"Speed up {name} ({copy})")
            humans[f"{name}{copy or ''}"] = git(repo, "rev-parse", "HEAD")
    items = {sha: _item(label.rstrip("0123456789"), metric, visible=visible)
             for label, sha in humans.items()}  # fmt: skip
    path, commits = folder / "task.yaml", folder / "commits.txt"
    path.write_text(json.dumps({
        "id": "textkit",
        "name": "Text functions",
        "repo": {"url": str(repo)},
        "scoring": {"primary": metric},
        "test_cmd": "python3 tests/run.py {junit}",
        "protected_paths": ["tests"],
        "timeout_minutes": 1,
        "items": items,
        **task,
    }, indent=1))  # fmt: skip
    commits.write_text("".join(f"{sha} | 2026-01-01 | {name}\n" for name, sha in humans.items()))
    return Fixture(folder, repo, path, commits, humans)


def _item(name, metric, *, visible):
    count = " --count" if metric == "operations" else ""
    common = {
        "command": f"python3 {{task}}/workloads/{name}.py {{seed}} {{size}}{count}",
        "files": ["workloads/workload.py", f"workloads/{name}.py"],
    }
    size = SIZES[metric][name]
    workloads = [{"id": name, "size": size, **common}] if visible else []
    hidden = {"id": f"{name}-hidden", "size": size * 5 // 4, "hidden": True, **common}
    return {"problem": PROBLEMS[name], "workloads": [*workloads, hidden]}


def git(repo: Path, *words: str, given: bytes = b"") -> str:
    result = subprocess.run(["git", "-C", repo, *words], input=given, check=True,
                            capture_output=True)  # fmt: skip
    return result.stdout.decode().strip()


def _commit(repo: Path, message: str) -> None:
    git(repo, "add", "-A")
    git(repo, *_COMMIT, "-m", message)


if __name__ == "__main__":
    make_fixture(Path(sys.argv[1]), metric="seconds")
