"""The task and bench files of users: what is to be made faster, how it is measured, by which agent.

Both are YAML or TOML. Their keys are those of the public original, with the workloads beside them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, TypeVar

from msgspec import Struct, ValidationError, field, to_builtins
from msgspec.json import encode

from socratic_bench.concurrency import convert
from socratic_bench.errors import Mistakes, UsageError
from socratic_bench.settings import read_bounded
from socratic_bench.settings.files import UnreadableTomlError, parse_toml

MIN_EFFECT = 0.05
_EXTRA = ("psutil", "unidiff", "yaml")
_ID = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,80}"
_PLACEHOLDERS = {"seed", "size", "task"}
T = TypeVar("T")


class Workload(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is timed: a command with `{seed}` and `{size}`, and its files beside the task file.

    The command prints `ready`, reads a line, works, and prints `done CHECKSUM` (see
    docs/optimisation.md). `{task}` is the folder with its files. Agents do not see hidden ones.
    """

    id: str
    command: str
    files: tuple[str, ...] = ()
    size: int = 1000
    hidden: bool = False


class ItemFields(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an item may set for itself, instead of what the task says."""

    problem: str | None = None
    setup_cmds: tuple[str, ...] | None = None
    test_cmd: str | None = None
    expected_tests: tuple[str, ...] | None = None
    workloads: tuple[Workload, ...] | None = None
    protected_paths: tuple[str, ...] | None = None
    target_files: tuple[str, ...] | None = None
    min_effect: float | None = None


class Pair(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A human's commit, and the one before it: by name, or as a parent's number from 1."""

    human: str
    pre: str = ""
    pre_parent_index: int = 1


class SourceRepository(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the repository is, a path or URL, and the commits of the task."""

    url: str = ""
    human_commit: str = ""
    pre_commit: str = ""
    pairs: tuple[Pair, ...] = ()

    @property
    def all_pairs(self) -> tuple[Pair, ...]:
        single = Pair(human=self.human_commit, pre=self.pre_commit)
        return (*((single,) if self.human_commit else ()), *self.pairs)


class Contract(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an agent may change. With `strict_targets`, other files make a `target_violation`."""

    strict_targets: bool = False
    target_files: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()


class Scoring(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is measured: seconds by the harness's clock, or operations that workloads count."""

    primary: Literal["seconds", "operations"] = "seconds"


class Task(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A task file. `items` has what single items set for themselves, by the human's commit."""

    id: str
    name: str = ""
    description: str = ""
    repo: SourceRepository = SourceRepository()
    optimization_contract: Contract = Contract()
    metrics: tuple[str, ...] = ()
    scoring: Scoring = Scoring()
    problem: str = ""
    setup_cmds: tuple[str, ...] = ()
    test_cmd: str = ""
    expected_tests: tuple[str, ...] = ()
    workloads: tuple[Workload, ...] = ()
    protected_paths: tuple[str, ...] = ()
    min_effect: float = MIN_EFFECT
    timeout_minutes: float = 30.0
    environment: Mapping[str, str] = {}
    items: Mapping[str, ItemFields] = {}


class ItemSpec(Struct, frozen=True, kw_only=True):
    """All that is known of one item before an agent runs: the task's fields, or its own."""

    item_id: str
    human: str
    pre: str
    problem: str
    setup_cmds: tuple[str, ...]
    test_cmd: str
    expected_tests: tuple[str, ...]
    workloads: tuple[Workload, ...]
    protected_paths: tuple[str, ...]
    target_files: tuple[str, ...]
    strict_targets: bool
    constraints: tuple[str, ...]
    min_effect: float
    timeout_s: float
    metric: Literal["seconds", "operations"]
    folder: str  # of the task file, in which the workloads' files are

    @property
    def deciding(self) -> tuple[Workload, ...]:
        """The workloads that decide: the hidden ones, or all if none is hidden."""
        hidden = tuple(workload for workload in self.workloads if workload.hidden)
        return hidden or self.workloads


class TaskFile(Struct, frozen=True, kw_only=True):
    """A task, the folder of its file, and a hash of all that it is made of."""

    task: Task
    folder: Path
    sha256: str

    def item(self, item_id: str, human: str, pre: str) -> ItemSpec:
        """The task's fields for one item, with what the item sets for itself."""
        task, contract = self.task, self.task.optimization_contract
        names = [name for name in task.items if human.startswith(name)]
        own = to_builtins(task.items[names[0]]) if names else {}
        values = {
            "problem": task.problem or task.description,
            "setup_cmds": task.setup_cmds,
            "test_cmd": task.test_cmd,
            "expected_tests": task.expected_tests,
            "workloads": to_builtins(task.workloads),
            "protected_paths": task.protected_paths,
            "target_files": contract.target_files,
            "min_effect": task.min_effect,
            **{name: value for name, value in own.items() if value is not None},
        }
        return convert(
            {
                **values,
                "item_id": item_id,
                "human": human,
                "pre": pre,
                "strict_targets": contract.strict_targets,
                "constraints": contract.constraints,
                "timeout_s": 60 * task.timeout_minutes,
                "metric": task.scoring.primary,
                "folder": str(self.folder),
            },
            ItemSpec,
        )


class Container(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a container engine runs a command, as `docker run ... {workdir} ... {command}`.

    `stop` ends the container `{name}`. The network is off unless the template says otherwise.
    """

    command: str = ""
    stop: str = ""
    cpus: int | None = None
    memory_mb: int | None = None


class Paths(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Folders that commands may read although they lie in hidden ones; where items are played."""

    visible: tuple[str, ...] = ()
    work: str = ""


class AgentArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of an agent beside its time."""

    max_steps: int = 120


class Agent(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An agent: the built-in loop, or a command with `{task_file} {workdir} {patch_path}
    {trajectory_path}`.
    """

    cli: str = ""
    builtin: bool = False
    args: AgentArguments = AgentArguments()
    time_budget_minutes: float = 120.0


class BenchConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A bench file: how commands are run, and by which agent: `agents.default` names one."""

    container: Container = Container()
    paths: Paths = Paths()
    agents: Mapping[str, str | Agent] = field(default_factory=dict)

    def agent(self, name: str = "") -> Agent:
        """The agent of that name, or the default one, which is the built-in loop."""
        name = name or str(self.agents.get("default", "builtin"))
        agent = self.agents.get(name, Agent(builtin=True) if name == "builtin" else None)
        if isinstance(agent, Agent):
            return agent
        names = [key for key, value in self.agents.items() if isinstance(value, Agent)]
        raise UsageError([f"No agent {name!r} in the bench config: there is {names or 'none'}."])


def require_extra() -> None:
    """Raise `UsageError` if a package of the extra is missing."""
    if missing := [name for name in _EXTRA if find_spec(name) is None]:
        raise UsageError(
            [f"The benchmark optimisation needs {', '.join(missing)}."],
            hint="pip install 'socratic-runner[optimisation]', or its image (docs/docker.md).",
        )


def read_task(path: str) -> TaskFile:
    """Read and check a task file. Raises `UsageError` with every mistake."""
    content, values = _read_table(path)
    task = _convert(path, values, Task)
    folder = Path(path).resolve().parent
    digest = sha256(content)
    mistakes = Mistakes(f"{path}: {mistake}" for mistake in _task_mistakes(task))
    every = [task.workloads, *(item.workloads or () for item in task.items.values())]
    for name in sorted({name for group in every for load in group for name in load.files}):
        try:
            digest.update(name.encode() + b"\0" + read_bounded(folder / name))
        except OSError as error:
            mistakes.sentences.append(f"{path}: the workload file {name}: {error.strerror}.")
    if mistakes.sentences:
        raise mistakes.error()
    return TaskFile(task=task, folder=folder, sha256=digest.hexdigest())


def read_bench_config(path: str) -> BenchConfig:
    """Read a bench file; without a path, the defaults. Raises `UsageError`."""
    if not path:
        return BenchConfig()
    config = _convert(path, _read_table(path)[1], BenchConfig)
    mistakes: list[str] = []
    for name, agent in config.agents.items():
        if isinstance(agent, Agent) and agent.builtin == bool(agent.cli):
            mistakes.append(f"{path}: agents.{name} needs either cli or builtin: true.")
    if mistakes:
        raise UsageError(mistakes)
    config.agent()
    return config


def hash_of(value: object) -> str:
    """A hash of a value that JSON can hold."""
    return sha256(encode(value, order="sorted")).hexdigest()


def _task_mistakes(task: Task) -> Iterator[str]:
    if not re.fullmatch(_ID, task.id):
        yield f"the id {task.id!r} must be letters, digits, '_', '.' and '-'."
    yield from _workload_mistakes("workloads", task.workloads)
    for name, item in task.items.items():
        yield from _workload_mistakes(f"items.{name}.workloads", item.workloads or ())
        if not (item.workloads or task.workloads):
            yield f"items.{name} has no workloads."
    commands = {"test_cmd": task.test_cmd} | {
        f"items.{name}.test_cmd": item.test_cmd for name, item in task.items.items()
        if item.test_cmd is not None
    }  # fmt: skip
    for place, command in commands.items():
        if "{junit}" not in command:
            yield f"{place} needs {{junit}}, the path of the JUnit file that it writes."
    if not (task.workloads or task.items):
        yield "there are no workloads: nothing could be measured."
    if not 0 < task.min_effect < 1:
        yield f"min_effect is {task.min_effect}, but must be between 0 and 1."


def _workload_mistakes(place: str, workloads: Sequence[Workload]) -> Iterator[str]:
    ids = [workload.id for workload in workloads]
    for workload in workloads:
        if not re.fullmatch(_ID, workload.id) or ids.count(workload.id) > 1:
            yield f"{place}: the id {workload.id!r} is no plain word, or is there twice."
        used = set(re.findall(r"\{(\w+)\}", workload.command))
        if "seed" not in used or used - _PLACEHOLDERS:
            yield (
                f"{place}: the command of {workload.id} needs {{seed}}, and may have {{size}} and "
                "{task} besides."
            )
        if any(Path(name).is_absolute() or ".." in Path(name).parts for name in workload.files):
            yield f"{place}: files of {workload.id} must be in the folder of the task file."


def _read_table(path: str) -> tuple[bytes, Mapping[str, Any]]:
    try:
        content = read_bounded(path)
    except OSError as error:
        raise UsageError([f"{path} cannot be read: {error.strerror}."]) from error
    if Path(path).suffix == ".toml":
        try:
            return content, parse_toml(content)
        except UnreadableTomlError as error:
            raise UsageError([f"{path}: {error}."]) from error
    require_extra()
    import yaml  # of the extra `optimisation`

    try:
        values = yaml.safe_load(content)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UsageError([f"{path}: not valid YAML: {' '.join(str(error).split())}."]) from error
    if not isinstance(values, dict):
        raise UsageError([f"{path}: it is no table of keys."])
    return content, values


def _convert(path: str, values: Mapping[str, Any], kind: type[T]) -> T:
    try:
        return convert(values, kind)
    except ValidationError as error:
        raise UsageError([f"{path}: {error}."]) from error
