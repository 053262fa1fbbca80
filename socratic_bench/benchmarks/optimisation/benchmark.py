"""The benchmark: agents make repositories faster, and are measured against humans who did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from socratic_bench.benchmarks.optimisation.agent import SYSTEM, Limits
from socratic_bench.benchmarks.optimisation.commands import DOCUMENTS
from socratic_bench.benchmarks.optimisation.document import (
    PARTS,
    OptimisationSample,
    OptimisationTurn,
)
from socratic_bench.benchmarks.optimisation.item import play_item
from socratic_bench.benchmarks.optimisation.loading import Loaded, load_items
from socratic_bench.benchmarks.optimisation.outcomes import (
    METRICS,
    ItemResult,
    metrics_of,
    parts_of,
)
from socratic_bench.benchmarks.optimisation.preparing import ItemFolder, Workplace, item_text
from socratic_bench.benchmarks.optimisation.settings import Settings
from socratic_bench.benchmarks.optimisation.task import hash_of
from socratic_bench.benchmarks.optimisation.task_text import VERSION
from socratic_bench.benchmarks.optimisation.tools import FINISH, TOOLS
from socratic_bench.errors import Problem, UsageError
from socratic_bench.ports.benchmark import (
    Benchmark,
    Episode,
    EpisodeContext,
    EpisodeResult,
    Length,
    Metrics,
)
from socratic_bench.ports.parts import Caveat, Views
from socratic_bench.settings import CoreConfig, part_of
from socratic_bench.turns import Turn
from socratic_bench.types import CallKey, Message, Request, Role, ToolResult, ToolUse, plural

# Guesses for estimates: how many steps an agent takes, and what it says and reads in each.
EXPECTED_STEPS = 20
WORDS = "I look at the function that the workload calls and measure it. "
N_SENTENCES: Mapping[Length, int] = {"short": 1, "likely": 3, "long": 10}
READ = "A line of a file, or of what a command prints, as an agent reads it.\n" * 40

VIEWS = Views(
    sample="task",
    prompt="task text",
    said="task_text",
    facts=(
        Caveat(title="Agent", path="agent"),
        Caveat(title="Isolation", path="isolation"),
        Caveat(title="Planned items", path="n_planned"),
    ),
    has_patches=True,
    parts=parts_of,
    part="item",
)


class OptimisationBenchmark(Benchmark):
    """Can an agent make code faster, how far does it come against a human, and is it real?"""

    name = "optimisation"
    metrics = METRICS
    primary_metric = "success_rate"
    compared_metrics = ("speed_ratio", "correct", "improved", "overclaimed")
    conditions = (
        *("inputs.task_sha256", "inputs.plan_sha256", "inputs.text_sha256"),
        *("inputs.max_steps", "inputs.time_budget_minutes", "isolation"),
    )
    shorter = "plan fewer items ({from_plan}) or allow fewer steps ({max_steps})"
    parts = PARTS
    views = VIEWS
    documents: Mapping[str, type[Struct]] = DOCUMENTS

    def prepare(self, config: CoreConfig) -> OptimisationEpisode:
        """All items of a run. Raises `UsageError` with all mistakes in settings, task and plan."""
        settings = part_of(config, Settings)
        if settings.prompt is not None:
            text = "{prompt} is nothing that optimisation takes: leave it out."
            raise UsageError([Problem.of(text)])
        loaded = load_items(settings)
        specs = [item.spec for item in loaded.items]
        plan_sha256 = hash_of(loaded.plan)
        first = item_text(specs[0], ItemFolder(Path("/ITEM")))
        sample = OptimisationSample(
            id=f"{loaded.plan.task_id}-{plan_sha256[:12]}",
            label=f"{loaded.plan.task_id}, {plural(len(specs), 'item')}",
            prompt=first,
            n_items=len(specs),
            hashes={
                "task_sha256": loaded.task.sha256,
                "plan_sha256": plan_sha256,
                "text_sha256": sha256(f"{VERSION}\0{SYSTEM}".encode()).hexdigest(),
            },
            notices=_notices(loaded, settings),
            emulator_rows=loaded.emulator_rows,
            item_ids=tuple(spec.item_id for spec in specs),
            level=loaded.isolation.level,
            agent=loaded.agent_name,
            unmeasurable=frozenset(
                item.spec.item_id for item in loaded.items if not item.is_measurable
            ),
        )
        return OptimisationEpisode(opening=sample, settings=settings, loaded=loaded)

    def summarise(self, config: CoreConfig, turns: Sequence[Turn]) -> Metrics:
        del config
        return metrics_of([OptimisationTurn.of(turn).result for turn in turns])

    def falls_short(self, config: CoreConfig, turn: Turn) -> bool:
        del config
        return OptimisationTurn.of(turn).result.failure is not None

    def headline(self, metrics: Metrics) -> Sequence[str]:
        names = ("success_rate", "speed_ratio", "overclaimed")
        values = [(name, metrics.get(name)) for name in names]
        texts = [f"{name} {value:.3g}" for name, value in values if isinstance(value, float)]
        return texts or ["nothing was measured"]


class OptimisationEpisode(Episode, frozen=True, kw_only=True):
    """Has an agent work on each item, and evaluates what it leaves."""

    settings: Settings
    loaded: Loaded

    def play(self, context: EpisodeContext) -> EpisodeResult:
        context.play_items(self._play_item)
        return EpisodeResult(end_reason="max_turns")

    def _play_item(self, context: EpisodeContext, index: int) -> Turn:
        if context.run_id is None:
            return self._simulate(context, index)
        folder = self.loaded.folder / context.run_id
        place = Workplace(
            source=self.loaded.source,
            isolation=self.loaded.isolation,
            agent=self.loaded.agent,
            limits=self._limits,
            config=self.settings.generation,
            folder=folder,
        )
        venue = None if self.settings.prepare_only else self.loaded.venue(folder / "evaluation")
        return play_item(context, index, self.loaded.items[index], place, venue)

    def _simulate(self, context: EpisodeContext, index: int) -> Turn:
        """As many calls as an agent is expected to make; nothing is run."""
        spec = self.loaded.items[index].spec
        text = item_text(spec, ItemFolder(Path("/ITEM")))
        messages = [Message.user(text)]
        calls = []
        for step in range(min(EXPECTED_STEPS, self._limits.max_steps)):
            request = Request(
                messages=tuple(messages),
                system=SYSTEM,
                config=self.settings.generation,
                tools=TOOLS,
                is_cacheable_prefix=True,
            )
            key = CallKey(role="model", index=index, part=f"step {step}")
            calls.append(context.tested.complete(request, key))
            said = calls[-1].message.content
            uses = [block for block in said if isinstance(block, ToolUse)]
            if any(use.name == FINISH for use in uses):
                break
            expected = () if uses else (ToolUse(f"expected-{step}", "read_file", {"path": "file"}),)
            results = tuple(ToolResult(use.id, READ) for use in (*uses, *expected))
            messages += [Message("assistant", (*said, *expected)), Message("user", results)]
        result = ItemResult(
            item_id=spec.item_id, stop="finished", patch="empty", is_evaluated=False
        )
        return OptimisationTurn(
            index=index, prompt=text, reply=calls[-1], result=result, agent_calls=tuple(calls)
        )

    @property
    def _limits(self) -> Limits:
        """The smaller of what the settings and the agent's own entry allow."""
        agent = self.loaded.agent
        minutes = min(self.settings.time_budget_minutes, agent.time_budget_minutes)
        return Limits(
            max_steps=min(self.settings.max_steps, agent.args.max_steps),
            working_s=60 * minutes,
            max_tokens=self.settings.max_item_tokens,
        )

    def metrics_of_all(self, turns: Sequence[Turn]) -> Metrics:
        results = [OptimisationTurn.of(turn).result for turn in turns]
        unmeasurable = [item for item in self.loaded.items if not item.is_measurable]
        n_planned = len(self.loaded.items) - len(unmeasurable)
        if not n_planned or not any(result.is_evaluated for result in results):
            return {"success_rate_of_all": None}
        n_success = sum(result.is_success for result in results if result.is_measurable)
        return {"success_rate_of_all": n_success / n_planned}

    def expected_reply(self, role: Role, length: Length) -> str:
        del role
        return WORDS * N_SENTENCES[length]


BENCHMARK = OptimisationBenchmark()


def _notices(loaded: Loaded, settings: Settings) -> Sequence[str]:
    notices = []
    is_timed = any(item.spec.metric == "seconds" for item in loaded.items)
    if is_timed and settings.max_concurrency > 1 and len(loaded.items) > 1:
        notices.append("Agents work while patches of other items are timed, which adds noise.")
    if loaded.isolation.level == "none":
        notices.append("Commands of agents are not isolated: they can read and change all files.")
    lost = [item.spec.item_id for item in loaded.items if not item.is_measurable]
    if lost:
        notices.append(
            f"{plural(len(lost), 'item')} cannot be measured here, and counts for no agent: "
            f"{', '.join(lost[:5])}."
        )
    return notices
