"""Sections on the course of a dialogue: scores by turn, the turns in which models break, and how
many runs hold until when.
"""

from collections.abc import Mapping, Sequence

from socratic_bench.documents.sweep import Survival
from socratic_bench.ports.benchmark import MetricInfo
from socratic_bench.studies.report.chart_kinds import behind_words, over_turns
from socratic_bench.studies.report.charts import extent
from socratic_bench.studies.report.leaderboard import MODEL, interval_text, kinds_of, survival_text
from socratic_bench.studies.report.parts import (
    Chart,
    Figure,
    Quote,
    Section,
    columns,
    number,
    percent,
)
from socratic_bench.studies.report.study import Estimate, Study, score_metric
from socratic_bench.studies.rows import RunRow, TurnRow

LONGEST_QUOTE = 600


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
                        data, study.panel_models, "Score", extent(metric.low, metric.high)
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


def breaking_turns(study: Study) -> Section | None:
    """For each model the turn in which its worst run broke, in the words of both speakers."""
    quotes = [quote for model in study.ranked if (quote := _quote(study, study.runs[model]))]
    if not quotes:
        return None
    return Section(
        name="breaking",
        title="Where each model breaks",
        paragraphs=[f"From the worst run of each model: the first turn of its {_event(study)}."],
        quotes=quotes,
    )


def _event(study: Study) -> str:
    return f"{study.views.breaks}, or else its lowest turn" if study.survival else "lowest score"


def _quote(study: Study, runs: Sequence[RunRow]) -> Quote | None:
    scored = [(run, turn) for run in runs for turn in run.turns if _is_scored(turn)]
    if not scored:
        return None
    breaks = [
        (time.at, run)
        for run in runs
        if (time := run.times.get(study.ordering.name)) and time.is_event
    ]
    if breaks:
        at, run = min(breaks, key=lambda pair: (pair[0], pair[1].run_id))
        played = [turn for turn in run.turns if not turn.is_replayed]
        turn, what = played[int(at)], study.views.breaks
    else:
        run, turn = min(scored, key=lambda pair: (pair[1].score, pair[0].run_id, pair[1].turn))
        what = "lowest turn"
    score = "no score" if turn.score is None else f"score {number(turn.score, 1)}"
    return Quote(
        model=run.model,
        run_id=run.run_id,
        turn=turn.turn,
        title=f"{run.sample_name}, turn {turn.turn}: {what}, {score}",
        kind=", ".join(kinds_of(turn, study)) or None,
        prompt=_shorten(turn.said or ""),
        reply=_shorten(turn.reply),
    )


def _is_scored(turn: TurnRow) -> bool:
    return turn.score is not None and not turn.is_replayed


def _shorten(text: str) -> str:
    return text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE].rstrip()} …"


def survival(study: Study) -> Section | None:
    """How many runs had the event, and when."""
    if not study.survival:
        return None
    event = study.views.breaks
    horizon = next(iter(study.survival.values())).horizon
    titles = ("Runs", f"With a {event}", "Half by turn (95 %)", f"Mean turns held of {horizon:g}")
    return Section(
        name="survival",
        title=f"Runs until the first {event}",
        paragraphs=[
            f"Kaplan-Meier: a run without a {event} counts until the last turn that could show one."
        ],
        figures=[
            Figure(
                caption=f"Runs until the first {event}",
                columns=columns(MODEL, *titles),
                rows=[[model, *_survival_cells(row)] for model, row in study.survival.items()],
            )
        ],
        is_folded=True,
    )


def _survival_cells(survival: Survival) -> list[str]:
    median = survival.median
    half = "not reached" if median.value is None else f"{median.value:g}"
    if median.low is not None or median.high is not None:
        high = "beyond" if median.high is None else f"{median.high:g}"
        half += f" ({median.low or 0:g} to {high})"
    share = percent(survival.n_events / survival.n)
    held = survival_text(survival)
    return [str(survival.n), f"{survival.n_events} ({share})", half, held]
