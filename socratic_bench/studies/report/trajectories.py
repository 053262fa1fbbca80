"""Sections on the course of a dialogue: scores by turn, survival, hazards, and the first turn
against later ones.
"""

from collections.abc import Iterator, Mapping, Sequence

from socratic_bench.ports.benchmark import MetricInfo
from socratic_bench.studies.report.breakdown import share_text
from socratic_bench.studies.report.chart_kinds import behind_words, over_turns
from socratic_bench.studies.report.charts import extent, intervals
from socratic_bench.studies.report.leaderboard import MODEL, chart_point, interval_text
from socratic_bench.studies.report.parts import (
    Chart,
    Figure,
    Section,
    columns,
    listed,
    number,
    percent,
)
from socratic_bench.studies.report.study import SHARE, Endurance, Estimate, Study, score_metric
from socratic_bench.studies.rows import RunRow, TurnRow

FIRST, LATER = "First turn", "Later turns"


def by_turn(study: Study) -> Section | None:
    """The mean score of each turn."""
    metric = score_metric(study)
    means = {model: _by_turn(study, runs, metric) for model, runs in study.runs.items()}
    turns = sorted({turn for model_means in means.values() for turn in model_means})
    if len(turns) < 2:  # noqa: PLR2004 -- a single turn has no course
        return None
    data = [
        {
            "model": model,
            "turn": turn,
            **mean.chart_values,
            "tip": f"Turn {turn}: {interval_text(mean)}, {mean.n} judged",
        }
        for model in study.panel_models
        for turn, mean in means[model].items()
    ]
    rows = [
        [str(turn), *(interval_text(means[model].get(turn), 1) for model in study.ranked)]
        for turn in turns
    ]
    return Section(
        name="turns",
        title="Score by turn",
        paragraphs=["Turns are counted from 0. Bands are 95 % intervals of the mean."],
        figures=[
            Figure(
                caption="Mean score of each turn",
                columns=columns("Turn", *study.ranked),
                rows=rows,
                chart=Chart(
                    name="turns",
                    title=f"Mean score by turn{study.models_note}",
                    description="A panel for each model: its mean score over the turns with a band "
                    f"of 95 %{behind_words(study.panel_models)}. The table has the figures.",
                    specs=over_turns(
                        data,
                        study.panel_models,
                        "Score",
                        extent(metric.low, metric.high),
                        steps=False,
                    ),
                ),
            )
        ],
    )


def _by_turn(study: Study, runs: Sequence[RunRow], metric: MetricInfo) -> Mapping[int, Estimate]:
    scores: dict[int, list[tuple[RunRow, float | None]]] = {}
    for run in runs:
        for turn in run.turns:
            if turn.score is not None:
                scores.setdefault(turn.turn, []).append((run, turn.score))
    means = {turn: study.estimate(values, metric) for turn, values in sorted(scores.items())}
    return {turn: mean for turn, mean in means.items() if mean}


def survival(study: Study, endurances: Mapping[str, Endurance]) -> Section | None:
    """The share of runs without the event, by turn."""
    if not endurances:
        return None
    event, models = (
        study.views.breaks,
        [model for model in study.panel_models if model in endurances],
    )
    data = [
        {
            "model": model,
            "turn": at,
            "value": share,
            "low": None,
            "high": None,
            "tip": f"{percent(share)} of runs had no {event} before turn {at:g}",
        }
        for model in models
        for at, share in _corners(endurances[model])
    ]
    titles = ("Runs", f"With a {event}", "Without (95 %)", "Half by turn (95 %)")
    hazards = _hazards(study)
    return Section(
        name="survival",
        title=f"Until the first {event}",
        paragraphs=[f"By Kaplan and Meier: a run without a {event} counts until its end."],
        figures=[
            Figure(
                caption=f"Runs until the first {event}",
                columns=columns(MODEL, *titles, "Mean turns held (95 %)"),
                rows=[
                    [model, *_survival_cells(endurance)] for model, endurance in endurances.items()
                ],
                chart=Chart(
                    name="survival",
                    title=f"Share of runs without a {event}{study.models_note}",
                    description="A panel for each model: the share of its runs that go on without "
                    f"one, falling in steps{behind_words(models)}. The table has the "
                    "figures.",
                    specs=over_turns(data, models, "Share of runs", extent(0, 1), steps=True),
                ),
            ),
            *([hazards] if hazards else []),
        ],
    )


def _corners(endurance: Endurance) -> Iterator[tuple[float, float]]:
    yield 0.0, 1.0
    for step in endurance.steps:
        yield step.at, step.share
    yield endurance.horizon, endurance.steps[-1].share if endurance.steps else 1.0


def _hazards(study: Study) -> Figure | None:
    """The probability of each event in a turn in which it could occur."""
    names = [*dict.fromkeys(name for run in study.rows.runs for name in run.exposures)]
    rates = {
        (model, name): study.estimate(
            ((run, risk) for run in runs for risk in _risks(run, name)), SHARE
        )
        for model, runs in study.runs.items()
        for name in names
    }
    data = [
        {
            "row": model,
            "model": model,
            "panel": name.capitalize(),
            **rate.chart_values,
            "tip": f"{model}, {name}: {share_text(rate)} of {rate.n} turns",
        }
        for (model, name), rate in rates.items()
        if rate
    ]
    if not data:
        return None
    return Figure(
        caption="Probability in each turn in which it could come (95 %)",
        columns=columns(MODEL, *(f"{name.capitalize()}, a turn" for name in names)),
        rows=[
            [model, *(share_text(rates[model, name]) for name in names)] for model in study.ranked
        ],
        chart=Chart(
            name="hazards",
            title=f"Hazard of {listed(names)}",
            description="For each event and model, how likely it is in a turn, with 95 % "
            "intervals. The table has the figures.",
            specs=intervals(data, study.ranked, "Probability in a turn", extent(0, 1)),
        ),
    )


def _risks(run: RunRow, name: str) -> Iterator[float]:
    """For each turn in which an event could occur, whether it occurred."""
    exposure = run.exposures.get(name)
    for n in range(len(exposure.turns)) if exposure else ():
        yield float(exposure.is_event and n == len(exposure.turns) - 1) if exposure else 0.0


def _survival_cells(endurance: Endurance) -> list[str]:
    half = "not reached" if endurance.median is None else f"{endurance.median:g}"
    limits = endurance.median_limits
    if limits.low is not None or limits.high is not None:
        high = "beyond" if limits.high is None else f"{limits.high:g}"
        half += f" ({limits.low or 0:g} to {high})"
    return [
        str(endurance.n),
        str(endurance.n_events),
        share_text(endurance.without),
        half,
        interval_text(endurance.turns_held, 1),
    ]


def single_and_many(study: Study) -> Section | None:
    """What a test of a single turn would show, beside later turns."""
    metric = score_metric(study)

    def first(turn: TurnRow) -> float | None:
        return turn.score if turn.turn == 0 else None

    def later(turn: TurnRow) -> float | None:
        return turn.score if turn.turn > 0 else None

    means = {
        model: (study.over_turns(runs, first, metric), study.over_turns(runs, later, metric))
        for model, runs in study.runs.items()
    }
    known_means = {
        model: (first_mean, other)
        for model, (first_mean, other) in means.items()
        if first_mean and other
    }
    if not known_means:
        return None
    data = [
        chart_point(row, model, mean, interval_text(mean, 1), panel=model)
        for model in study.panel_models
        for row, mean in zip((FIRST, LATER), known_means.get(model, ()), strict=False)
    ]
    rows = [
        [
            model,
            interval_text(first_mean, 1),
            interval_text(other, 1),
            number(other.mean - first_mean.mean, 1),
        ]
        for model, (first_mean, other) in known_means.items()
    ]
    return Section(
        name="single",
        title="One turn against many",
        paragraphs=["What a test of a single turn would have told, beside the turns after it."],
        figures=[
            Figure(
                caption="Mean score with 95 % intervals",
                columns=columns(MODEL, FIRST, LATER, "Change"),
                rows=rows,
                chart=Chart(
                    name="single",
                    title=f"Mean score of the first turn and of later ones{study.models_note}",
                    description="For each model, the first turn above the later ones, with 95 % "
                    "intervals. The table has the figures.",
                    specs=intervals(data, study.ranked, "Score", extent(metric.low, metric.high)),
                ),
            )
        ],
    )
