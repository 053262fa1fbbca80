"""The benchmark: the items of a configuration, an episode that asks them, and its metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from socratic_bench.benchmarks.execution.answers import ExecutionTurn, read_turn
from socratic_bench.benchmarks.execution.dataset.document import DOCUMENTS
from socratic_bench.benchmarks.execution.dataset.reading import DataSet, read_problems
from socratic_bench.benchmarks.execution.document import PARTS, ExecutionSample
from socratic_bench.benchmarks.execution.items import (
    Item,
    make_items,
    prompt_of,
    prompts_sha256,
    system_prompt,
)
from socratic_bench.benchmarks.execution.metrics import (
    METRICS,
    metrics_by_problem,
    n_problems_by_metric,
    summarise,
)
from socratic_bench.benchmarks.execution.sampling import (
    sampling_notices,
    sampling_of,
    sampling_problems,
)
from socratic_bench.benchmarks.execution.settings import Settings
from socratic_bench.errors import Mistakes, Problem, UsageError
from socratic_bench.ports.benchmark import (
    Benchmark,
    Episode,
    EpisodeContext,
    EpisodeResult,
    Length,
    Metrics,
)
from socratic_bench.ports.parts import Caveat, MetricGroup, Views
from socratic_bench.settings import CoreConfig, part_of, read_system_prompt
from socratic_bench.turns import Turn
from socratic_bench.types import CallKey, Message, Request, Role, clean, plural

MAX_NAMES = 5
# A guess for estimates: how many sentences a model writes before its answer.
N_STEPS: dict[Length, int] = {"short": 10, "likely": 40, "long": 150}
STEP = "Then the loop goes on with its next value. "

VIEWS = Views(
    axes=("mc", "mr"),
    sample="data set",
    result="outcome",
    right="correct",
    expected="expected_output",
    groups=(
        MetricGroup(title="Prediction", metrics=("oc", "mc", "or", "mr", "oc_less_mc")),
        MetricGroup(title="Replies", metrics=("answered", "truncated")),
        MetricGroup(
            title="Choice", metrics=("preference", "choice_correct", "choice_oc", "choice_mc")
        ),
        MetricGroup(
            title="Order", metrics=("position_bias", "order_consistency", "control_position_bias")
        ),
    ),
    facts=(
        Caveat(title="Data set", path="dataset.place"),
        Caveat(title="Task", path="inputs.task"),
        Caveat(title="Reasoning", path="inputs.pred_reasoning"),
    ),
    parts=metrics_by_problem,
)


class ExecutionBenchmark(Benchmark):
    """Does a model execute code in its head, or recall programs that it has seen?"""

    name = "execution"
    metrics = METRICS
    primary_metric = "mc"
    compared_metrics = ("oc", "mr", "preference", "choice_correct")
    conditions = (
        *("inputs.dataset_sha256", "inputs.prompts_sha256", "inputs.task"),
        *("inputs.pred_generations", "inputs.pred_reasoning", "inputs.pred_skip_boolean"),
        *("inputs.choice_runs", "inputs.choice_reasoning", "inputs.choice_skip_boolean"),
    )
    shorter = (
        "ask fewer problems ({pred_num_problems}, {choice_num_problems}) or less often "
        "({pred_generations}, {choice_runs})"
    )
    parts = PARTS
    views = VIEWS
    documents: Mapping[str, type[Struct]] = DOCUMENTS

    def prepare(self, config: CoreConfig) -> ExecutionEpisode:
        """All calls of a run. Raises `UsageError` with all mistakes in settings, prompt, data."""
        settings = part_of(config, Settings)
        mistakes = Mistakes(sampling_problems(settings))
        if settings.prompt is not None:
            text = "{prompt} is nothing that execution asks: leave it out."
            mistakes.sentences.append(Problem.of(text))
        system: str | None = None
        data: DataSet | None = None
        items: tuple[Item, ...] = ()
        with mistakes:
            if settings.system_prompt_file:
                system = read_system_prompt(settings.system_prompt_file)
        with mistakes:
            data, items = _read_items(settings)
        if mistakes.sentences or data is None:
            raise mistakes.error()
        n_problems = len({item.problem.id for item in items})
        task = "prediction and choice" if settings.task == "both" else settings.task
        sample = ExecutionSample(
            id=f"{settings.task}-{data.sha256[:12]}",
            label=f"{task}, {plural(n_problems, 'problem')}, {plural(len(items), 'call')}",
            prompt=prompt_of(items[0]),
            n_items=len(items),
            n_parts=n_problems_by_metric(items),
            hashes={"dataset_sha256": data.sha256, "prompts_sha256": prompts_sha256()},
            notices=(*_dropped_notices(data), *sampling_notices(settings)),
            items=items,
            data=data,
        )
        return ExecutionEpisode(opening=sample, settings=settings, items=items, system=system)

    def summarise(self, config: CoreConfig, turns: Sequence[Turn]) -> Metrics:
        del config
        return summarise([ExecutionTurn.of(turn).item_outcome for turn in turns])

    def falls_short(self, config: CoreConfig, turn: Turn) -> bool:
        del config
        return ExecutionTurn.of(turn).result != "correct"

    def headline(self, metrics: Metrics) -> Sequence[str]:
        names = ("oc", "mc", "or", "mr", "preference", "position_bias")
        values = [f"{name} {metrics[name]:.3g}" for name in names if metrics[name] is not None]
        return values or ["no answer was readable"]


class ExecutionEpisode(Episode, frozen=True, kw_only=True):
    """Asks the items. `system` is the user's own prompt; `None`: that of the item's level."""

    settings: Settings
    items: tuple[Item, ...]
    system: str | None = None

    def play(self, context: EpisodeContext) -> EpisodeResult:
        context.play_items(self.ask)
        return EpisodeResult(end_reason="max_turns")

    def ask(self, context: EpisodeContext, index: int) -> Turn:
        item = self.items[index]
        prompt, sampling = clean(prompt_of(item)), sampling_of(self.settings, item)
        request = Request(
            messages=(Message.user(prompt),),
            system=self.system or system_prompt(item.level),
            config=sampling.config,
            temperature_if_taken=sampling.temperature_if_taken,
        )
        reply = context.tested.complete(request, CallKey(role="model", index=index))
        return ExecutionTurn(index=index, prompt=prompt, reply=reply, item=item)

    def measure(self, turns: Sequence[Turn], index: int) -> Turn:
        return read_turn(ExecutionTurn.of(turns[index]))

    def expected_reply(self, role: Role, length: Length) -> str:
        del role
        return STEP * N_STEPS[length] + "[ANSWER]\nassert call == [1, 2, 3]\n[/ANSWER]"


BENCHMARK = ExecutionBenchmark()


def _read_items(settings: Settings) -> tuple[DataSet, tuple[Item, ...]]:
    """The data set, and what is asked of it. Raises `UsageError`, also if that is nothing."""
    data = read_problems(
        settings.dataset,
        split=settings.split,
        include_missing_mutations=settings.include_missing_mutations,
    )
    if items := make_items(settings, data.problems):
        return data, items
    problem = Problem.of(
        "No problem is left to ask: {dataset} has {kept}, and those from {pred_start_index} and "
        "{choice_start_index} on are asked.",
        kept=plural(len(data.problems), "problem"),
    )
    raise UsageError([problem])


def _dropped_notices(data: DataSet) -> Sequence[str]:
    if not data.dropped:
        return ()
    names = ", ".join(data.dropped[:MAX_NAMES])
    more = f" and {len(data.dropped) - MAX_NAMES} more" if len(data.dropped) > MAX_NAMES else ""
    return (
        f"{plural(len(data.dropped), 'row')} without a mutated program: left out ({names}{more}).",
    )
