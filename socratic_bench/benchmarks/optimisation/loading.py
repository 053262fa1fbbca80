"""Reads and checks all that a run needs, before anything is paid; all mistakes at once."""

import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from socratic_bench.benchmarks.optimisation.evaluating import Venue
from socratic_bench.benchmarks.optimisation.isolation import Isolation, make_isolation
from socratic_bench.benchmarks.optimisation.item import Item
from socratic_bench.benchmarks.optimisation.plan import Plan, make_plan, read_plan, resolve
from socratic_bench.benchmarks.optimisation.preparing import folder_of, item_text
from socratic_bench.benchmarks.optimisation.repository import Source, Workbench
from socratic_bench.benchmarks.optimisation.settings import Settings
from socratic_bench.benchmarks.optimisation.task import (
    Agent,
    BenchConfig,
    ItemSpec,
    TaskFile,
    read_bench_config,
    read_task,
    require_extra,
)
from socratic_bench.benchmarks.optimisation.task_text import HumanPatch, leaks
from socratic_bench.benchmarks.optimisation.validating import Certificate, read_certificate
from socratic_bench.errors import Mistakes, Problem, UsageError

WORK_FOLDER = "optimisation-work"
KEY_FILE = "inputs.key"
_SCHEME = re.compile(r"\w+://|[\w.-]+@[\w.-]+:")
_SHELL_WORDS = set("|&;<>()$`\\\"'*?[#~=%")


class Loaded(Struct, frozen=True, kw_only=True):
    """A task with its plan, repository and agent. `items` is empty if they were not asked for."""

    task: TaskFile
    plan: Plan
    config: BenchConfig
    source: Source
    agent: Agent
    agent_name: str
    isolation: Isolation
    folder: Path
    certificate: Certificate | None = None
    items: tuple[Item, ...] = ()

    @property
    def emulator_rows(self) -> Sequence[Mapping[str, Any]]:
        """What scripted agents of the emulator know of the task, beside its file."""
        path = self.task.folder / "emulator.json"
        rows: list[dict[str, Any]] = json.loads(path.read_text("utf-8")) if path.exists() else []
        return rows

    def venue(self, folder: Path) -> Venue:
        """Where patches are evaluated. The inputs of workloads follow from a key that no agent can
        see, and that lasts as long as the folder.
        """
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / KEY_FILE
        if not path.exists():
            path.write_text(os.urandom(16).hex(), encoding="ascii")
        return Venue(
            source=self.source,
            isolation=self.isolation,
            folder=folder,
            key=path.read_text(encoding="ascii"),
        )


def load_task(settings: Settings, *, has_plan: bool = True) -> Loaded:
    """The task, its plan, and how commands are isolated. Raises `UsageError`."""
    require_extra()
    if settings.task_file is None:
        raise UsageError([Problem.of("{task_file} is missing: it says what is to be made faster.")])
    mistakes = Mistakes()
    task, config, name = None, BenchConfig(), settings.agent or ""
    agent = Agent(builtin=True)
    with mistakes:
        task = read_task(settings.task_file)
    with mistakes:
        config = read_bench_config(settings.bench_cfg or "")
        agent = config.agent(name)
    if task is None or mistakes.sentences:
        raise mistakes.error()
    folder = _work_folder(settings, config)
    place = task.task.repo.url
    if not _SCHEME.match(place):
        place = str(task.folder / place)
    source = Source(place, folder / "cache")
    plan = None if has_plan else Plan(repo=place, task_id=task.task.id, items=())
    with mistakes:
        if settings.from_plan or has_plan:
            plan = _plan(settings, task, source)
    isolation = None
    with mistakes:
        isolation = _isolation(
            settings.bench_cfg or "",
            settings.isolation,
            (str(source.git_dir), place, str(folder), str(task.folder)),
            tuple(sorted(task.task.environment.items())),
        )
    if plan is None or isolation is None:
        raise mistakes.error()
    return Loaded(
        task=task,
        plan=plan,
        config=config,
        source=source,
        agent=agent,
        agent_name=name or str(config.agents.get("default", "builtin")),
        isolation=isolation,
        folder=folder,
    )


def load_items(settings: Settings) -> Loaded:
    """All that a run needs: also the items, whose texts tell nothing of the human's patch."""
    mistakes = Mistakes()
    loaded = None
    with mistakes:
        loaded = load_task(settings)
    with mistakes:  # an agent is named that does not exist, even if the task is wrong, too
        config = read_bench_config(settings.bench_cfg or "")
        mistakes.sentences += _agent_problems(config.agent(settings.agent or ""))
    if loaded is None:
        raise mistakes.error()
    certificate = None
    with mistakes:
        certificate = _certificate(settings, loaded)
    specs = [loaded.task.item(item.item_id, item.human, item.pre) for item in loaded.plan.items]
    for spec in specs:
        mistakes.sentences += _leak_problems(spec, loaded)
    if mistakes.sentences:
        raise mistakes.error()
    items = tuple(_item(spec, certificate) for spec in specs)
    return Loaded(
        **{name: getattr(loaded, name) for name in loaded.__struct_fields__}
        | {"certificate": certificate, "items": items}
    )


def _plan(settings: Settings, task: TaskFile, source: Source) -> Plan:
    if settings.from_plan:
        plan = resolve(read_plan(settings.from_plan), source)
    else:
        plan = make_plan(task, source)
    mistakes = [
        f"{item.item_id} has no workloads: give some in the task, or in items."
        for item in plan.items
        if not task.item(item.item_id, item.human, item.pre).workloads
    ]
    if mistakes:
        raise UsageError(mistakes)
    return plan


def _certificate(settings: Settings, loaded: Loaded) -> Certificate | None:
    if settings.certificate:
        return read_certificate(
            settings.certificate, loaded.task, loaded.plan, loaded.config, loaded.isolation.level
        )
    if settings.prepare_only:
        return None
    raise UsageError(
        [Problem.of("{certificate} is missing: without it nobody knows what can be measured.")],
        hint="Make it: socratic-runner optimisation validate.",
    )


def _item(spec: ItemSpec, certificate: Certificate | None) -> Item:
    if certificate is None:
        return Item(spec=spec, expected_tests=spec.expected_tests)
    of_item = certificate.item(spec.item_id)
    return Item(
        spec=spec,
        expected_tests=of_item.expected_tests,
        human=of_item.human,
        is_measurable=of_item.status == "measurable",
    )


def _agent_problems(agent: Agent) -> Iterator[str]:
    """Whether the first word of an agent's command is a program, where that can be told."""
    if not agent.cli:
        return
    try:
        words = shlex.split(agent.cli)
    except ValueError as error:
        yield f"The agent's command cannot be read: {error}."
        return
    program = words[0] if words else ""
    if not program or not (_SHELL_WORDS & {*program} or shutil.which(program)):
        yield f"The agent's command {program!r} is no program here."


def _leak_problems(spec: ItemSpec, loaded: Loaded) -> Iterator[str]:
    commit = loaded.source.find(spec.human)
    place = loaded.folder / "plan" / spec.item_id
    place.mkdir(parents=True, exist_ok=True)
    bench = Workbench(place / "plan.git", loaded.source.git_dir)
    pre, human = bench.tree_of(spec.pre), bench.tree_of(spec.human)
    patch = HumanPatch(
        sha=spec.human,
        message=commit.message if commit else "",
        diff=bench.diff(pre, human).decode("utf-8", "replace"),
        files=bench.changed(pre, human),
    )
    declared = spec.target_files if spec.strict_targets else ()
    text = item_text(spec, folder_of(loaded.folder / "RUN", 0))
    for leak in leaks(text, patch, declared):
        yield f"{spec.item_id}: {leak}"


def _work_folder(settings: Settings, config: BenchConfig) -> Path:
    if settings.work_dir or config.paths.work:
        return Path(settings.work_dir or config.paths.work).absolute()
    return Path(settings.output_dir or ".").absolute() / WORK_FOLDER


@cache
def _isolation(
    bench_cfg: str, level: str, hidden: tuple[str, ...], variables: tuple[tuple[str, str], ...]
) -> Isolation:
    """Tried once in a process, which takes a moment."""
    config = read_bench_config(bench_cfg)
    return make_isolation(config, level, hidden=hidden, environment=dict(variables))
