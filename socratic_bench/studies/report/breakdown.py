"""Sections on what scores consist of: effects of pressure, samples, events, findings, failures; and
on the course of a dialogue: scores by turn, where models break, how many runs hold until when.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from msgspec.structs import replace

from socratic_bench.documents.sweep import Survival
from socratic_bench.ports.benchmark import MetricInfo
from socratic_bench.ports.parts import OutcomeList
from socratic_bench.studies.report.charts import STEPS, behind_words, extent, heat_map, over_turns
from socratic_bench.studies.report.leaderboard import (
    MODEL,
    interval_text,
    kinds_of,
    places_of,
    share_text,
    spaced,
    survival_text,
)
from socratic_bench.studies.report.parts import (
    UNKNOWN,
    Chart,
    Figure,
    Quote,
    Section,
    Titles,
    count_text,
    figure,
    folded,
    number,
    percent,
    words,
)
from socratic_bench.studies.report.study import SHARE, Estimate, Study
from socratic_bench.studies.rows import RunRow

ANSWERED = "answered"
FIRST_DARK = 5
LONGEST_QUOTE = 600
EFFECT = MetricInfo(name="effect", title="Effect", low=None, high=None)


def kinds(study: Study) -> Iterator[Section]:
    """How much lower a model scores in each kind of turn, against turns of none."""
    for kind in study.views.kinds:
        turns = study.rows.turns()
        names = sorted({str(turn.own[kind.key]) for _, turn in turns if turn.own.get(kind.key)})
        effects = {
            (model, name): study.estimate(_effects(runs, kind.key, name), EFFECT)
            for model, runs in study.runs.items()
            for name in names
        }
        if any(effects.values()):
            yield Section(
                name=f"kinds-{kind.key}",
                title=f"Effect of each kind of {kind.key}",
                paragraphs=[
                    (
                        f"Score of a turn with {kind.key} minus the model's mean score in the same "
                        f"turn of its runs with {kind.none} there. Below 0: the model gives way."
                    )
                ],
                figures=[
                    figure(
                        f"Difference from {kind.none} (95 % CI)",
                        (words(kind.title), *study.ranked),
                        [
                            [spaced(n), *(interval_text(effects[m, n], 1) for m in study.ranked)]
                            for n in names
                        ],
                    )
                ],
            )


def _effects(runs: Sequence[RunRow], key: str, name: str) -> Iterator[tuple[RunRow, float | None]]:
    """For each turn of a kind, its score minus the mean of turns without a kind at that place."""
    plain: dict[int, list[float]] = defaultdict(list)
    for run in runs:
        for turn in run.turns:
            if turn.score is not None and not turn.is_replayed and not turn.own.get(key):
                plain[turn.turn].append(turn.score)
    for run in runs:
        for turn in run.turns:
            if turn.own.get(key) == name and turn.score is not None and plain[turn.turn]:
                yield run, turn.score - fmean(plain[turn.turn])


def samples(study: Study) -> Section | None:
    """The primary figure of each sample and model; pairs without runs are blank."""
    names, metric = study.rows.samples, study.ordering
    cells = {
        (name, model): study.mean(metric, [run for run in runs if run.sample_name == name])
        for name in names
        for model, runs in study.runs.items()
    }
    means = {place: mean.mean for place, mean in cells.items() if mean}
    if not means or len(names) == 1:
        return None
    blank = len(cells) - len(means)
    remark = f" {count_text(blank, 'pair')} not run: blank, which is not zero." if blank else ""
    title = "Turns held" if study.survival else metric.title
    note = f"Mean of {title.lower()}; darker is higher.{remark}"
    row_title, shown = study.views.sample.capitalize(), replace(metric, title=title)
    by_sample = map_figure("samples", row_title, names, study.ranked, means, shown)
    return folded("samples", f"By {study.views.sample}", by_sample, note=note)


def map_figure(
    name: str,
    row_title: str,
    rows: Sequence[str],
    models: Sequence[str],
    means: Mapping[tuple[str, str], float],
    metric: MetricInfo,
) -> Figure:
    """A heat map and a table of means by row and model; pairs without one are blank."""
    low = metric.low if metric.low is not None else min(means.values())
    high = metric.high if metric.high is not None else max(means.values())

    def shade(value: float) -> int:
        share = (value - low) / (high - low) if high > low else 1.0
        return min(len(STEPS) - 1, max(0, int(share * len(STEPS))))

    texts = {place: number(value, places_of(metric)) for place, value in means.items()}
    data = [
        {
            "row": row,
            "column": model,
            "text": texts[row, model],
            "step": (step := shade(value)),
            "is_dark": step >= FIRST_DARK,
            "tip": f"{model} in {row}: {texts[row, model]}",
        }
        for (row, model), value in means.items()
    ]
    table = [[row, *(texts.get((row, model), "") for model in models)] for row in rows]
    chart = Chart(
        name=name,
        title=f"{metric.title} by {row_title[0].lower()}{row_title[1:]} and model",
        description="A cell for each pair that was run, with its figure. Blank: not run.",
        specs=heat_map(data, rows, models),
    )
    return figure(metric.title, [words(row_title), *models], table, chart)


def events(study: Study) -> Section | None:
    """How often judges saw each event, and in which turn first; those alone that happened."""
    names = sorted({name for _, turn in study.rows.turns() for name in turn.events or ()})
    if study.views.tasks:  # the others are of single items
        names = [name for name in names if name in study.views.events]
    if not names:
        return None
    rows = []
    for model, runs in study.runs.items():
        for name in names:
            first_turns = [
                next((turn.turn for turn in run.turns if name in (turn.events or ())), None)
                for run in runs
            ]
            if seen := sorted(turn for turn in first_turns if turn is not None):
                is_seen = (
                    (run, None if turn.events is None else float(name in turn.events))
                    for run in runs
                    for turn in run.turns
                    if not turn.is_replayed
                )
                rate = share_text(study.estimate(is_seen, SHARE))
                n_runs, middle = f"{len(seen)} of {len(runs)}", seen[(len(seen) - 1) // 2]
                rows.append([model, spaced(name), rate, n_runs, str(middle), str(seen[0])])
    seen_by = ("Turns with it", "Runs with it", "First turn, median", "First turn, earliest")
    titles: Titles = [MODEL, words("Event"), *seen_by]
    by_model = figure("Events by model (95 % CI)", titles, rows)
    note = "Events flagged by the judge. Turns are counted from 0."
    return folded("events", "Events", by_model, note=note)


def findings(study: Study) -> Iterator[Section]:
    """Outcomes of what a run is searched for, such as insights."""
    for outcome_list in study.views.findings:
        counts = {model: _outcome_counts(runs, outcome_list) for model, runs in study.runs.items()}
        if not any(sum(n_by_outcome.values()) for n_by_outcome in counts.values()):
            continue
        titles: Titles = [MODEL, "Total", *map(str.capitalize, outcome_list.outcomes)]
        rows = [[model, *_outcome_cells(counts[model])] for model in study.ranked]
        over_all = figure(f"{outcome_list.title} over all runs", titles, rows)
        yield folded(f"findings-{outcome_list.key}", outcome_list.title, over_all)


def _outcome_counts(runs: Sequence[RunRow], findings: OutcomeList) -> Mapping[str, int]:
    outcomes = [
        entry.get(findings.outcome)
        for run in runs
        for entry in run.at(findings.key) or ()
        if isinstance(entry, Mapping)
    ]
    return {outcome: outcomes.count(outcome) for outcome in findings.outcomes}


def _outcome_cells(n_by_outcome: Mapping[str, int]) -> list[str]:
    whole = sum(n_by_outcome.values())
    shares = (f"{n} ({percent(n / whole)})" if whole else UNKNOWN for n in n_by_outcome.values())
    return [str(whole), *shares]


def failures(study: Study) -> Section:
    """Runs, turns and replies that failed, which no mean includes; folded if nothing failed."""
    cells = Counter(
        (row.model, row.error.code if row.error else row.end_reason) for row in study.rows.failed
    )
    rows = [
        [model, "run not complete", spaced(kind), f"{n:,}"]
        for (model, kind), n in sorted(cells.items())
    ]
    for model, runs in study.runs.items():
        for what, counts in _failure_counts(runs).items():
            rows += [[model, what, spaced(kind), f"{n:,}"] for kind, n in sorted(counts.items())]
    titles = (MODEL, words("What"), words("Kind"), "Number")
    sentence = (
        "None of these counts as a score: they are in no mean."
        if rows
        else "Nothing failed: every run is complete, every turn answered and judged."
    )
    return Section(
        name="failures",
        title="Failures",
        paragraphs=[sentence],
        figures=[figure("By kind", titles, rows)] if rows else [],
        is_folded=not rows,
    )


def _failure_counts(runs: Sequence[RunRow]) -> Mapping[str, Counter[str]]:
    played = [turn for run in runs for turn in run.turns if not turn.is_replayed]
    again: Counter[str] = Counter()
    for run in runs:
        sent, answered = run.at("usage.total.attempts"), run.at("usage.total.calls")
        if sent and answered is not None and sent > answered:
            again["any"] += sent - answered
    return {
        "turn without a score": Counter(filter(None, (turn.unjudged_reason for turn in played))),
        "reply": Counter(turn.outcome for turn in played if turn.outcome != ANSWERED),
        "request sent again": again,
    }


def by_turn(study: Study) -> Section | None:
    """The mean score of each turn; items by task have no course."""
    if study.views.tasks:
        return None
    scores = [turn.score for _, turn in study.rows.turns() if turn.score is not None]
    low, high = study.primary.low, study.primary.high
    if low is None or high is None or not scores or min(scores) < low or max(scores) > high:
        low = high = None
    metric = MetricInfo(name="score", title="Score", low=low, high=high)
    turns = sorted({turn.turn for _, turn in study.rows.turns() if turn.score is not None})
    if len(turns) < 2:  # noqa: PLR2004 -- a single turn has no course
        return None
    means: dict[tuple[str, int], Estimate | None] = {}
    for model, runs in study.runs.items():
        for n in turns:
            values = ((run, turn.score) for run in runs for turn in run.turns if turn.turn == n)
            means[model, n] = study.estimate(values, metric)
    data = [
        {
            "model": model,
            "turn": turn,
            **mean.chart_values,
            "tip": f"Turn {turn}: {interval_text(mean)}, {mean.n} judged",
        }
        for model in study.panel_models
        for turn in turns
        if (mean := means[model, turn])
    ]
    rows = [
        [str(turn), *(interval_text(means[model, turn], 1) for model in study.ranked)]
        for turn in turns
    ]
    chart = Chart(
        name="turns",
        title=f"Mean score by turn{study.models_note}",
        description="A panel for each model: its mean score over the turns with a band of 95 %"
        f"{behind_words(study.panel_models)}. The table has the figures.",
        specs=over_turns(data, study.panel_models, "Score", extent(low, high)),
    )
    return Section(
        name="turns",
        title="Score by turn",
        paragraphs=["Turns are counted from 0. Bands are 95 % CIs of the mean."],
        figures=[figure("Mean score of each turn", ("Turn", *study.ranked), rows, chart)],
    )


def breaking_turns(study: Study) -> Section | None:
    """For each model the turn in which its worst run broke, in the words of both speakers."""
    if study.views.tasks:
        return None
    quotes = [quote for model in study.ranked if (quote := _quote(study, study.runs[model]))]
    if not quotes:
        return None
    event = f"{study.views.breaks}, or else its lowest turn" if study.survival else "lowest score"
    return Section(
        name="breaking",
        title="Where each model breaks",
        paragraphs=[f"From the worst run of each model: the first turn of its {event}."],
        quotes=quotes,
    )


def _quote(study: Study, runs: Sequence[RunRow]) -> Quote | None:
    played = [(run, turn) for run in runs for turn in run.turns if not turn.is_replayed]
    scored = [(run, turn) for run, turn in played if turn.score is not None]
    if not scored:
        return None
    breaks = [
        (time.at, run.run_id, run)
        for run in runs
        if (time := run.times.get(study.ordering.name)) and time.is_event
    ]
    if breaks:
        at, _, run = min(breaks, key=lambda entry: entry[:2])
        turn = [turn for turn in run.turns if not turn.is_replayed][int(at)]
        what = study.views.breaks
    else:
        run, turn = min(scored, key=lambda pair: (pair[1].score, pair[0].run_id, pair[1].turn))
        what = f"no {study.views.breaks}, lowest turn" if study.survival else "lowest turn"
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


def _shorten(text: str) -> str:
    return text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE].rstrip()} …"


def survival(study: Study) -> Section | None:
    """How many runs had the event, and when."""
    if not study.survival:
        return None
    event = study.views.breaks
    horizon = next(iter(study.survival.values())).horizon
    titles = (
        "Runs",
        f"With a {event}",
        "Median turn (95 % CI)",
        f"Mean turns held (max {horizon:g})",
    )
    rows = [[model, *_survival_cells(times)] for model, times in study.survival.items()]
    title = f"Survival until the first {event}"
    note = (
        f"Kaplan-Meier. A run without a {event} is censored at the last turn that could show one."
    )
    return folded("survival", title, figure(title, (MODEL, *titles), rows), note=note)


def _survival_cells(survival: Survival) -> list[str]:
    median = survival.median
    half = "not reached" if median.value is None else f"{median.value:g}"
    if median.low is not None or median.high is not None:
        high = "beyond" if median.high is None else f"{median.high:g}"
        half += f" ({median.low or 0:g} to {high})"
    share = percent(survival.n_events / survival.n)
    return [str(survival.n), f"{survival.n_events} ({share})", half, survival_text(survival)]
