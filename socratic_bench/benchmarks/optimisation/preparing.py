"""One item before it is measured: a clean export, the agent's work in it, and its patch.

Everything is in a folder of the item, from which a later process goes on; the agent itself has the
folder `workspace` in it, and nothing else.
"""

import os
import shlex
import shutil
import stat
import sys
import time
from collections.abc import Mapping
from math import inf
from pathlib import Path

import msgspec
from msgspec import Struct

from socratic_bench.benchmarks.optimisation.agent import (
    AgentResult,
    BuiltInAgent,
    Limits,
    StepRecord,
)
from socratic_bench.benchmarks.optimisation.conversation import Conversation, LineLog
from socratic_bench.benchmarks.optimisation.converse_wire import read_request
from socratic_bench.benchmarks.optimisation.external import ExternalAgent, ServedCall
from socratic_bench.benchmarks.optimisation.isolation import CommandResult, Isolation
from socratic_bench.benchmarks.optimisation.outcomes import PatchStatus
from socratic_bench.benchmarks.optimisation.repository import Source, Workbench, matches
from socratic_bench.benchmarks.optimisation.task import Agent, ItemSpec
from socratic_bench.benchmarks.optimisation.task_text import TaskFacts, task_text
from socratic_bench.benchmarks.optimisation.tools import Toolbox
from socratic_bench.benchmarks.optimisation.work_clock import WorkClock
from socratic_bench.errors import BenchError
from socratic_bench.generation import GenerateConfig
from socratic_bench.ports.benchmark import EpisodeContext
from socratic_bench.types import Completion, Request

JUNIT = "/tmp/junit.xml"  # noqa: S108 -- in the agent's own /tmp
MAX_READ_BYTES = 20 * 2**20
FORWARDER = Path(__file__).with_name("forwarder.py")
# Why an agent stopped, by how a run would end by its error.
_STOPS = {
    "credentials": "credentials_expired",
    "access": "access_denied",
    "unavailable": "throttled",
    "budget": "budget",
    "interrupted": "interrupted",
    "deadline": "interrupted",
}


class Workplace(Struct, frozen=True, kw_only=True):
    """What the items of a run have in common: repository, isolation, agent and its limits."""

    source: Source
    isolation: Isolation
    agent: Agent
    limits: Limits
    config: GenerateConfig
    folder: Path


class Prepared(Struct, frozen=True, kw_only=True):
    """What an agent has left: how it ended, its patch, and all its calls. `changed` are the files
    of the patch, `outside` those of them that the task does not allow.
    """

    result: AgentResult
    status: PatchStatus
    patch: bytes
    changed: tuple[str, ...]
    outside: tuple[str, ...]
    skipped: tuple[str, ...]
    text: str
    calls: tuple[Completion, ...]


class _Ended(Struct, frozen=True, kw_only=True):
    """What is stored once the agent has ended: the item is not played again."""

    result: AgentResult
    changed: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()


class ItemFolder(Struct, frozen=True):
    """The files of one item, by the names of the original pipeline."""

    path: Path

    @property
    def workspace(self) -> Path:
        return self.path / "workspace"

    @property
    def tree(self) -> Path:
        return self.workspace / "repo"

    def write(self, name: str, body: bytes) -> None:
        """Write a file whole, or not at all."""
        part = self.path / f".{name}.part"
        with part.open("wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        part.replace(self.path / name)

    def read(self, name: str) -> bytes | None:
        path = self.path / name
        return path.read_bytes() if path.is_file() else None

    def read_of_agent(self, name: str) -> bytes:
        """A file that the agent may have written, cut at a bound; links are not followed."""
        try:
            descriptor = os.open(self.workspace / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return b""
        with os.fdopen(descriptor, "rb") as file:
            is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
            return file.read(MAX_READ_BYTES) if is_file else b""


def folder_of(run_folder: Path, index: int) -> ItemFolder:
    """The folder of an item. Its name tells nothing, unlike the item's id, which has the human's
    commit in it: agents see the path of their work tree.
    """
    return ItemFolder(run_folder / f"item-{index:03}")


def item_text(spec: ItemSpec, folder: ItemFolder) -> str:
    """The text that the agent of this item gets."""
    visible = [workload for workload in spec.workloads if not workload.hidden]
    places = {"task": str(folder.workspace / "task"), "seed": "1"}
    commands = [
        "echo go | " + _filled(workload.command, {**places, "size": str(workload.size)})
        for workload in visible
    ]
    facts = TaskFacts(
        workspace=str(folder.tree),
        problem=spec.problem,
        test_command=_filled(spec.test_cmd, {"junit": JUNIT}),
        workload_commands=commands,
        constraints=spec.constraints,
        targets=spec.target_files if spec.strict_targets else (),
    )
    return task_text(facts)


def prepare_item(context: EpisodeContext, index: int, spec: ItemSpec, place: Workplace) -> Prepared:
    """Have the agent work on an item, or go on with it, and capture what it leaves.

    Raises what ends the run, or loses the item; its folder then says how far it came.
    """
    folder = folder_of(place.folder, index)
    folder.path.mkdir(parents=True, exist_ok=True)
    clock = WorkClock(time.monotonic)
    work = _Work(
        context=context,
        spec=spec,
        place=place,
        folder=folder,
        bench=Workbench(folder.path / "snapshots.git", place.source.git_dir),
        clock=clock,
        conversation=Conversation(context.watched(clock.on_call), index),
        text=item_text(spec, folder),
    )
    stored = folder.read("ended.json")
    if stored is None:
        ended = work.play()
    else:
        ended = msgspec.json.decode(stored, type=_Ended)
        work.count_calls(ended.result.n_steps)
    patch = folder.read("model_patch.diff") or b""
    outside = tuple(
        name
        for name in ended.changed
        if spec.strict_targets and not matches(name, spec.target_files)
    )
    return Prepared(
        result=ended.result,
        status="target_violation" if outside else "patched" if patch else "empty",
        patch=patch,
        changed=ended.changed,
        outside=outside,
        skipped=ended.skipped,
        text=work.text,
        calls=tuple(work.conversation.calls),
    )


class _Work(Struct, frozen=True, kw_only=True):
    """The work of an agent on one item."""

    context: EpisodeContext
    spec: ItemSpec
    place: Workplace
    folder: ItemFolder
    bench: Workbench
    clock: WorkClock
    conversation: Conversation
    text: str

    def play(self) -> _Ended:
        """Let the agent work to its end, and capture its patch, whatever has stopped it."""
        self.folder.write("task.txt", self.text.encode())
        try:
            base = self._base()
            if base is None:
                result = AgentResult(stop="setup_failed", message="A set-up command failed.")
                return self._end(_Ended(result=result))
            result = self._built_in(base) if self.place.agent.builtin else self._external()
        except BenchError as error:
            stop = _STOPS.get(error.end_reason, "model_error")
            self._note("error", stop=stop, message=error.message)
            raise
        capture = self.bench.capture(self.folder.tree, base)
        self.folder.write("model_patch.diff", capture.patch)
        return self._end(_Ended(result=result, changed=capture.changed, skipped=capture.skipped))

    def count_calls(self, n_calls: int) -> None:
        """Count the calls of an agent that has ended; all are answered from the journal."""
        if not self.place.agent.builtin:
            self.conversation.count_earlier(self._earlier_calls())
        elif n_calls:
            limits = Limits(max_steps=n_calls, working_s=inf)
            self._new_agent("", limits, is_restored=True).play(self.text, self.place.config)

    def _base(self) -> str | None:
        """The tree that the agent begins with; `None` if it cannot be set up. An external agent
        begins anew in each process.
        """
        stored = self.folder.read("base.txt")
        if stored is not None and self.place.agent.builtin:
            return stored.decode()
        shutil.rmtree(self.folder.workspace, ignore_errors=True)
        self.folder.workspace.mkdir(parents=True)
        tree = self.bench.tree_of(self.spec.pre)
        self.bench.export(tree, self.folder.tree)
        self.bench.begin_history(self.folder.tree, self.place.source.version_tag(self.spec.pre))
        self._copy_workloads()
        for command in self.spec.setup_cmds:
            result = self._run(command, self.spec.timeout_s)
            if result.exit_code or result.stopped:
                self.folder.write("agent_stderr.txt", result.stderr.encode())
                return None
        base, _ = self.bench.snapshot(self.folder.tree, tree)
        self.folder.write("base.txt", base.encode())
        self._note("running")
        return base

    def _copy_workloads(self) -> None:
        """The files of the workloads that agents may see."""
        target = self.folder.workspace / "task"
        for workload in self.spec.workloads:
            for name in workload.files if not workload.hidden else ():
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(Path(self.spec.folder) / name, target / name)

    def _built_in(self, base: str) -> AgentResult:
        agent = self._new_agent(base, self.place.limits, is_restored=False)
        return agent.play(self.text, self.place.config)

    def _new_agent(self, base: str, limits: Limits, *, is_restored: bool) -> BuiltInAgent:
        return BuiltInAgent(
            conversation=self.conversation,
            toolbox=Toolbox(
                self.folder.tree, self._run, lambda: limits.working_s - self.clock.worked_s
            ),
            snapshots=TreeStates(self.bench, self.folder.tree, base),
            base=base,
            log=LineLog(self.folder.path / "steps.jsonl", StepRecord),
            clock=self.clock,
            limits=limits,
            is_restored=is_restored,
        )

    def _external(self) -> AgentResult:
        earlier = self._earlier_calls()
        workspace = self.folder.workspace
        places = {
            "task_file": str(workspace / "task.txt"),
            "workdir": str(self.folder.tree),
            "patch_path": str(workspace / "patch.diff"),
            "trajectory_path": str(workspace / "trajectory.json"),
        }
        (workspace / "task.txt").write_text(self.text, encoding="utf-8")
        shutil.copyfile(FORWARDER, workspace / FORWARDER.name)
        is_container = self.place.isolation.level == "container"
        python = "python3" if is_container else os.path.realpath(sys.executable)
        socket = workspace / "model.sock"
        words = [python, "-I", "-S", str(workspace / FORWARDER.name), str(socket)]
        command = shlex.join([*words, _filled(self.place.agent.cli, places)])
        log = LineLog(self.folder.path / f"calls-{len(earlier) + 1}.jsonl", ServedCall)
        log.rewrite(())
        agent = ExternalAgent(
            conversation=self.conversation,
            isolation=self.place.isolation,
            workspace=workspace,
            check=self.context.check,
            log=log,
            clock=self.clock,
            limits=self.place.limits,
        )
        with (
            (self.folder.path / "agent_stdout.txt").open("wb") as out,
            (self.folder.path / "agent_stderr.txt").open("wb") as errors,
        ):
            result = agent.play(command, self.place.config, socket, (out, errors))
        self.folder.write("trajectory.json", self.folder.read_of_agent("trajectory.json"))
        self.conversation.count_earlier(earlier)
        return result

    def _earlier_calls(self) -> list[list[Request]]:
        """The answered requests of each attempt of an external agent."""
        logs = sorted(self.folder.path.glob("calls-*.jsonl"))
        return [
            [read_request(call.body, self.place.config) for call in LineLog(log, ServedCall).read()]
            for log in logs
        ]

    def _run(self, command: str, timeout_s: float) -> CommandResult:
        return self.place.isolation.run(
            command,
            self.folder.workspace,
            timeout_s=timeout_s,
            should_stop=self.context.check,
        )

    def _end(self, ended: _Ended) -> _Ended:
        self.folder.write("ended.json", msgspec.json.encode(ended))
        return ended

    def _note(self, status: str, **facts: str) -> None:
        """The item's journal, by the words of the original pipeline."""
        entry = {"item_id": self.spec.item_id, "status": status, **facts}
        self.folder.write("journal.json", msgspec.json.encode(entry))


class TreeStates(Struct, frozen=True):
    """States of a work tree, in the harness's own git directory."""

    bench: Workbench
    folder: Path
    base: str

    def snapshot(self) -> str:
        """Keep the tree as it is now; returns the state's id."""
        return self.bench.snapshot(self.folder, self.base)[0]

    def restore(self, state: str) -> None:
        """Bring the tree back to a state; what the ignore rules name stays as it is."""
        now = self.snapshot()
        if now == state:
            return
        for name in self.bench.changed(state, now):
            path = self.folder / name
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        self.bench.export(state, self.folder)


def _filled(command: str, places: Mapping[str, str]) -> str:
    """A command with its placeholders; other braces stay."""
    for name, value in places.items():
        command = command.replace(f"{{{name}}}", value)
    return command
