"""A small repository before and after a human's speed-up, and what an agent needs to work on it."""

import subprocess
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from socratic_bench.benchmarks.optimisation.agent import Limits
from socratic_bench.benchmarks.optimisation.isolation import make_isolation
from socratic_bench.benchmarks.optimisation.preparing import Workplace
from socratic_bench.benchmarks.optimisation.repository import Source
from socratic_bench.benchmarks.optimisation.task import Agent, BenchConfig, ItemSpec, Workload
from socratic_bench.errors import BenchError
from socratic_bench.generation import GenerateConfig
from socratic_bench.types import (
    Attempt,
    CallKey,
    Completion,
    Message,
    Request,
    ToolUse,
    Usage,
)

SLOW = """\
def distinct(words):
    seen = []
    for word in words:
        if word not in seen:
            seen.append(word)
    return len(seen)
"""
FAST = "def distinct(words):\n    return len(set(words))\n"
PROBLEM = "Counting the distinct words of a text takes quadratic time."
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def make_repository(folder: Path) -> tuple[str, str]:
    """The commits before and after; returns their ids."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.email", "human@example.org")
    git(folder, "config", "user.name", "Human")
    shas = []
    for text, message in ((SLOW, "Count words"), (FAST, "Count distinct words by a set")):
        (folder / "words.py").write_text(text)
        git(folder, "add", ".")
        git(folder, "commit", "-q", "-m", message)
        shas.append(git(folder, "rev-parse", "HEAD"))
    return shas[0], shas[1]


def item_of(folder: Path, **changes: Any) -> ItemSpec:
    pre, human = make_repository(folder)
    values: dict[str, Any] = {
        "item_id": "words_000",
        "human": human,
        "pre": pre,
        "problem": PROBLEM,
        "setup_cmds": (),
        "test_cmd": "python3 -m pytest --junitxml={junit}",
        "expected_tests": (),
        "workloads": (Workload(id="count", command="python3 w.py {seed} {size}"),),
        "protected_paths": (),
        "target_files": (),
        "strict_targets": False,
        "constraints": (),
        "min_effect": 0.05,
        "timeout_s": 60.0,
        "metric": "operations",
        "folder": str(folder.parent),
    }
    return ItemSpec(**values | changes)


def workplace(folder: Path, source: Path, *, cli: str = "", **limits: Any) -> Workplace:
    isolation = make_isolation(
        BenchConfig(), "auto", hidden=(str(source),), environment={"PATH": "/usr/bin:/bin"}
    )
    return Workplace(
        source=Source(str(source), folder / "cache"),
        isolation=isolation,
        agent=Agent(cli=cli, builtin=not cli),
        limits=Limits(**{"max_steps": 20, "working_s": 60.0} | limits),
        config=GenerateConfig(max_tokens=4096),
        folder=folder / "work",
    )


def call(name: str, identity: str = "", /, **arguments: Any) -> Message:
    return Message("assistant", (ToolUse(identity or name, name, arguments),))


FINISH = call("finish", expected_speedup=2.0, cause="a set instead of a list")


def completion(message: Message) -> Completion:
    attempt = Attempt(
        started_at=NOW, duration_ms=1.0, wait_ms=0.0, error=None, may_have_been_billed=True
    )
    return Completion(
        message=message,
        stop_reason="tool_use",
        usage=Usage(input_tokens=10, output_tokens=5),
        latency_ms=1.0,
        service_latency_ms=None,
        attempts=(attempt,),
        request_id=None,
        finished_at=NOW,
    )


class JournalledModel(Struct):
    """Answers by a script, and the same key with the same answer, as a journal does."""

    script: Sequence[Message | BenchError | Callable[[Request], Message]]
    answers: dict[CallKey, Completion] = {}
    requests: list[Request] = []
    model_id: str = "scripted"

    def complete(self, request: Request, key: CallKey) -> Completion:
        if key not in self.answers:
            step = self.script[len(self.answers)]
            if isinstance(step, BenchError):
                raise step
            self.requests.append(request)
            message = step if isinstance(step, Message) else step(request)
            self.answers[key] = completion(message)
        return self.answers[key]


class Context(Struct):
    """See `EpisodeContext`; what an item needs of it."""

    tested: JournalledModel
    run_id: str | None = "run-1"
    stored: dict[str, bytes] = {}
    ending: BenchError | None = None

    def watched(self, listener: Callable[[Any], None]) -> JournalledModel:
        return self.tested

    def check(self) -> None:
        if self.ending:
            raise self.ending

    def store(self, name: str, body: bytes) -> None:
        self.stored[name] = body
