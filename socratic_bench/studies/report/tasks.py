"""Sections on items by task: which model to take, figures, a heat map, failures, regions."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.ports.parts import TaskView
from socratic_bench.studies.report.breakdown import map_figure
from socratic_bench.studies.report.leaderboard import MODEL, share_text, spaced
from socratic_bench.studies.report.parts import (
    UNKNOWN,
    Section,
    between,
    count_text,
    figure,
    folded,
    listed,
    number,
    percent,
    usd,
    words,
)
from socratic_bench.studies.report.study import SHARE, Estimate, Study
from socratic_bench.studies.rows import RunRow, TurnRow

TASK = words("Task")
RATE = replace(SHARE, title="Success rate")


class TaskFigures(Struct, frozen=True, kw_only=True):
    """A model in one task; times in seconds, cost in USD a reply, `passes` a dollar."""

    success: Estimate | None
    latency_s: float | None
    ttft_s: float | None
    tokens_per_s: float | None
    cost_usd: float | None
    n: int

    @property
    def passes(self) -> float | None:
        if self.success is None or not self.cost_usd:
            return None
        return self.success.mean / self.cost_usd


Grid = Mapping[str, Mapping[str, TaskFigures]]  # by task and model


def tasks(study: Study) -> Iterator[Section]:
    """All sections by task; nothing for a benchmark without tasks."""
    view = study.views.tasks
    if view is None:
        return
    grid = _grid(study, view)
    yield _recommendations(grid)
    yield _table(grid)
    if any(cell.success for by_model in grid.values() for cell in by_model.values()):
        yield _heat_map(study, grid)
        yield _failures(study, view)
    yield from _regions(study, view)
    yield from _optimisation(study)


def _optimisation(study: Study) -> Iterator[Section]:
    """What optimised prompts have changed, where some were asked for."""
    rows = [
        [
            model,
            f"{entry['optimized']} of {entry['optimized'] + sum(entry['refused'].values())}",
            *(f"{entry[name]:,}" for name in ("pairs", "better", "worse")),
            number(entry["difference"]),
            between(entry["low"], entry["high"]),
        ]
        for model, runs in study.runs.items()
        for run in runs
        if (entry := run.at("optimization"))
    ]
    if rows:
        titles = ("Prompts", "Pairs", "Better", "Worse", "Difference", "95 % CI")
        yield Section(
            name="optimisation",
            title="Optimised prompts",
            paragraphs=["The success rate with optimised prompts minus that with the original."],
            figures=[figure("By run", [MODEL, *titles], rows)],
        )


def _grid(study: Study, view: TaskView) -> Grid:
    names = dict.fromkeys(str(turn.own[view.task]) for _, turn in study.rows.turns())
    return {
        task: {
            model: cell
            for model, runs in study.runs_by_variant.items()
            if (cell := _figures(study, view, runs, task))
        }
        for task in names
    }


def _figures(
    study: Study, view: TaskView, runs: Sequence[RunRow], task: str | None = None
) -> TaskFigures | None:
    """The figures over the turns of runs, in one task or in all."""
    turns = [
        turn for run in runs for turn in run.turns if task is None or turn.own[view.task] == task
    ]
    if not turns:
        return None
    entries = [
        entry
        for run in runs
        for entry in run.at(view.costs) or ()
        if task in (None, entry[view.task])
    ]
    priced = [(entry["cost_usd"], entry["n"]) for entry in entries]
    is_priced = bool(priced) and all(cost is not None for cost, _ in priced)
    n_priced = sum(n for _, n in priced)
    return TaskFigures(
        success=study.pass_rate(runs, task),
        latency_s=_mean(turns, lambda turn: turn.latency_ms, 1000),
        ttft_s=_mean(turns, lambda turn: turn.ttft_ms, 1000),
        tokens_per_s=_mean(turns, lambda turn: turn.output_tokens_per_s),
        cost_usd=sum(cost * n for cost, n in priced) / n_priced if is_priced else None,
        n=len(turns),
    )


def _mean(
    turns: Sequence[TurnRow], read: Callable[[TurnRow], float | None], per: float = 1
) -> float | None:
    values = [value for turn in turns if (value := read(turn))]
    return sum(values) / len(values) / per if values else None


# By what is best: the value that is compared, and the figure that is shown. No rate of 0 is best.
_CHOICES: Sequence[tuple[Callable[[TaskFigures], float | None], Callable[[TaskFigures], str]]] = (
    (
        lambda cell: (cell.success.mean or None) if cell.success else None,
        lambda cell: share_text(cell.success),
    ),
    (
        lambda cell: -cell.latency_s if cell.latency_s else None,
        lambda cell: f"{number(cell.latency_s)} s",
    ),
    (lambda cell: cell.passes or None, lambda cell: number(cell.passes, 0)),
)
_CHOSEN = ("Best", "Success", "Fastest", "Last byte", "Best value", "Passes a dollar")
_BEST = (
    "Best is the highest success rate, fastest the shortest mean time to the last byte, and best "
    "value the most passes for a dollar. A model of the same figure stands beside it. Intervals in "
    "the table by task tell which differences are more than chance."
)


def _recommendations(grid: Grid) -> Section:
    rows = [
        [task, *(text for choice in _CHOICES for text in _best(by_model, *choice))]
        for task, by_model in grid.items()
    ]
    return Section(
        name="recommendations",
        title="Which model for which task",
        paragraphs=[_BEST],
        figures=[figure("By task", [TASK, *map(words, _CHOSEN)], rows)],
    )


def _best(
    by_model: Mapping[str, TaskFigures],
    read: Callable[[TaskFigures], float | None],
    text: Callable[[TaskFigures], str],
) -> list[str]:
    """The models with the highest value, and their figure."""
    values = {model: value for model, cell in by_model.items() if (value := read(cell)) is not None}
    models = [model for model, value in values.items() if value == max(values.values())]
    return [listed(models), text(by_model[models[0]])] if models else [UNKNOWN, UNKNOWN]


_TITLES = (
    *("Success", "Replies", "Last byte, s", "First content, s"),
    *("Tokens a second", "USD a reply", "Passes a dollar"),
)


def _cells(cell: TaskFigures) -> list[str]:
    times = (number(cell.latency_s), number(cell.ttft_s), number(cell.tokens_per_s, 0))
    return [
        *(share_text(cell.success), f"{cell.n:,}", *times),
        *(usd(cell.cost_usd), number(cell.passes, 0)),
    ]


def _table(grid: Grid) -> Section:
    rows = [
        [task, model, *_cells(cell)]
        for task, by_model in grid.items()
        for model, cell in by_model.items()
    ]
    caption = "Means; success with 95 % CI, clustered by item"
    return folded("tasks", "By task", figure(caption, [TASK, MODEL, *_TITLES], rows))


def _heat_map(study: Study, grid: Grid) -> Section:
    means = {
        (task, model): cell.success.mean
        for task, by_model in grid.items()
        for model, cell in by_model.items()
        if cell.success
    }
    return Section(
        name="task-map",
        title="Models by tasks",
        paragraphs=["Success rate; darker is higher. Blank: not run."],
        figures=[map_figure("task-map", "Task", [*grid], [*study.runs_by_variant], means, RATE)],
    )


def _failures(study: Study, view: TaskView) -> Section:
    """By which dimensions, criteria and checks items failed."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    totals: Counter[str] = Counter()
    models = [*study.runs_by_variant]
    for model, runs in study.runs_by_variant.items():
        for run in runs:
            for turn in run.turns:
                result = str(turn.own[view.result])
                totals[model] += result in view.results
                counts["" if result == view.passed else result][model] += result in view.others
                faults = turn.own[view.faults] if result in view.results else ()
                for name in faults if isinstance(faults, list) else ():
                    counts[str(name)][model] += 1
    names = sorted(name for name in counts if name and any(counts[name].values()))
    rows = [
        [spaced(name), *(_count_cell(counts[name][model], totals[model]) for model in models)]
        for name in names
    ]
    name, title = "task-failures", "Why items failed"
    if not rows:
        return folded(name, title, note="No item failed.")
    note = (
        "An item may fail by several. What is unprocessed was lost to infrastructure or to a "
        "judge: it is in no rate."
    )
    by_model = figure("Items by dimension and check", [words("Failed by"), *models], rows)
    return Section(name=name, title=title, paragraphs=[note], figures=[by_model])


def _count_cell(n: int, of: int) -> str:
    return f"{n:,} ({percent(n / of)})" if n and of else f"{n:,}"


def _regions(study: Study, view: TaskView) -> Iterator[Section]:
    """Figures by region, where runs were played in several."""
    by_region: dict[tuple[str, str], list[RunRow]] = defaultdict(list)
    for model, runs in study.runs_by_variant.items():
        for run in runs:
            by_region[str(run.at("inputs.region")), model].append(run)
    if len({region for region, _ in by_region}) < 2:  # noqa: PLR2004
        return
    rows = []
    for (region, model), runs in sorted(by_region.items()):
        cell = _figures(study, view, runs)
        sent, answered = (
            sum(run.at(f"usage.total.{name}") or 0 for run in runs)
            for name in ("attempts", "calls")
        )
        if cell:
            # Of a run that asks in several ways it is not known in which one.
            sent_again = f"{sent - answered:,}" if model in study.runs else UNKNOWN
            rows.append([region, model, *_cells(cell), sent_again])
    yield Section(
        name="regions",
        title="Regions",
        paragraphs=[f"The same items in {count_text(len({row[0] for row in rows}), 'region')}."],
        figures=[
            figure("By region and model", [words("Region"), MODEL, *_TITLES, "Sent again"], rows)
        ],
    )
