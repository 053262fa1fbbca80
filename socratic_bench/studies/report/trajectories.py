"""How a dialogue goes: score by turn, survival, hazards, and one turn against many."""

from collections.abc import Iterator, Mapping, Sequence

from socratic_bench.ports.benchmark import MetricInfo
from socratic_bench.studies.report.breakdown import shared
from socratic_bench.studies.report.chart_kinds import behind_words, over_turns
from socratic_bench.studies.report.charts import extent, intervals
from socratic_bench.studies.report.leaderboard import MODEL, mark, shown
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


def by_turn(study: Study) -> Section | None:
    """The mean score of each turn."""
    metric = score_metric(study)
    found = {model: _by_turn(study, runs, metric) for model, runs in study.runs.items()}
    turns = sorted({turn for some in found.values() for turn in some})
    if len(turns) < 2:  # noqa: PLR2004 -- a single turn has no course
        return None
    data = [
        {
            "model": model,
            "turn": turn,
            **one.drawn,
            "tip": f"Turn {turn}: {shown(one)}, {one.n} judged",
        }
        for model in study.drawn
        for turn, one in found[model].items()
    ]
    rows = [
        [str(turn), *(shown(found[model].get(turn), 1) for model in study.ranked)] for turn in turns
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
                    title=f"Mean score by turn{study.drawn_words}",
                    description="A panel for each model: its mean score over the turns with a band "
                    f"of 95 %{behind_words(study.drawn)}. The table has the figures.",
                    specs=over_turns(
                        data, study.drawn, "Score", extent(metric.low, metric.high), steps=False
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
    found = {turn: study.estimate(some, metric) for turn, some in sorted(scores.items())}
    return {turn: one for turn, one in found.items() if one}


def survival(study: Study, endurances: Mapping[str, Endurance]) -> Section | None:
    """The share of runs that go on without the event."""
    if not endurances:
        return None
    event, drawn = study.views.breaks, [one for one in study.drawn if one in endurances]
    data = [
        {
            "model": model,
            "turn": at,
            "value": share,
            "low": None,
            "high": None,
            "tip": f"{percent(share)} of runs had no {event} before turn {at:g}",
        }
        for model in drawn
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
                rows=[[model, *_survived(one)] for model, one in endurances.items()],
                chart=Chart(
                    name="survival",
                    title=f"Share of runs without a {event}{study.drawn_words}",
                    description="A panel for each model: the share of its runs that go on without "
                    f"one, falling in steps{behind_words(drawn)}. The table has the "
                    "figures.",
                    specs=over_turns(data, drawn, "Share of runs", extent(0, 1), steps=True),
                ),
            ),
            *([hazards] if hazards else []),
        ],
    )


def _corners(one: Endurance) -> Iterator[tuple[float, float]]:
    yield 0.0, 1.0
    for step in one.steps:
        yield step.at, step.share
    yield one.horizon, one.steps[-1].share if one.steps else 1.0


def _survived(one: Endurance) -> list[str]:
    half = "not reached" if one.median is None else f"{one.median:g}"
    limits = one.median_limits
    if limits.low is not None or limits.high is not None:
        high = "beyond" if limits.high is None else f"{limits.high:g}"
        half += f" ({limits.low or 0:g} to {high})"
    return [str(one.n), str(one.n_events), shared(one.without), half, shown(one.held, 1)]


def _hazards(study: Study) -> Figure | None:
    """How likely each event is in a turn in which it could come."""
    names = [*dict.fromkeys(name for run in study.rows.runs for name in run.exposures)]
    found = {
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
            **one.drawn,
            "tip": f"{model}, {name}: {shared(one)} of {one.n} turns",
        }
        for (model, name), one in found.items()
        if one
    ]
    if not data:
        return None
    return Figure(
        caption="Probability in each turn in which it could come (95 %)",
        columns=columns(MODEL, *(f"{name.capitalize()}, a turn" for name in names)),
        rows=[[model, *(shared(found[model, name]) for name in names)] for model in study.ranked],
        chart=Chart(
            name="hazards",
            title=f"Hazard of {listed(names)}",
            description="For each event and model, how likely it is in a turn, with 95 % "
            "intervals. The table has the figures.",
            specs=intervals(data, study.ranked, "Probability in a turn", extent(0, 1)),
        ),
    )


def _risks(run: RunRow, name: str) -> Iterator[float]:
    """Of each turn in which an event could come, whether it came."""
    exposure = run.exposures.get(name)
    for n in range(len(exposure.turns)) if exposure else ():
        yield float(exposure.is_event and n == len(exposure.turns) - 1) if exposure else 0.0


FIRST, LATER = "First turn", "Later turns"


def single_and_many(study: Study) -> Section | None:
    """What a test of one turn would have told, and what the turns after it tell."""
    metric = score_metric(study)

    def first(turn: TurnRow) -> float | None:
        return turn.score if turn.turn == 0 else None

    def later(turn: TurnRow) -> float | None:
        return turn.score if turn.turn > 0 else None

    found = {
        model: (study.over_turns(runs, first, metric), study.over_turns(runs, later, metric))
        for model, runs in study.runs.items()
    }
    known = {model: (one, other) for model, (one, other) in found.items() if one and other}
    if not known:
        return None
    data = [
        mark(row, model, one, shown(one, 1), panel=model)
        for model in study.drawn
        for row, one in zip((FIRST, LATER), known.get(model, ()), strict=False)
    ]
    rows = [
        [model, shown(one, 1), shown(other, 1), number(other.mean - one.mean, 1)]
        for model, (one, other) in known.items()
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
                    title=f"Mean score of the first turn and of later ones{study.drawn_words}",
                    description="For each model, the first turn above the later ones, with 95 % "
                    "intervals. The table has the figures.",
                    specs=intervals(data, study.ranked, "Score", extent(metric.low, metric.high)),
                ),
            )
        ],
    )
