"""Sections on what scores consist of: effects of pressure, samples, events, findings, failures."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from socratic_bench.ports.benchmark import MetricInfo
from socratic_bench.ports.parts import OutcomeList, TurnKind
from socratic_bench.studies.report.chart_kinds import heat_map
from socratic_bench.studies.report.charts import STEPS
from socratic_bench.studies.report.leaderboard import (
    MODEL,
    interval_text,
    places_of,
    share_text,
    spaced,
)
from socratic_bench.studies.report.parts import (
    UNKNOWN,
    Chart,
    Figure,
    Section,
    columns,
    count_text,
    number,
    percent,
    words,
)
from socratic_bench.studies.report.study import SHARE, Study
from socratic_bench.studies.rows import RunRow, TurnRow

ANSWERED = "answered"
FIRST_DARK = 5
EFFECT = MetricInfo(name="effect", title="Effect", low=None, high=None)


def kinds(study: Study) -> Iterator[Section]:
    """How much lower a model scores in each kind of turn, against turns of none."""
    for kind in study.views.kinds:
        section = _of_kind(study, kind)
        if section:
            yield section


def _of_kind(study: Study, kind: TurnKind) -> Section | None:
    names = sorted(
        {str(turn.own[kind.key]) for _, turn in study.rows.turns() if turn.own.get(kind.key)}
    )
    if not names:
        return None
    effects = {
        (model, name): study.estimate(_effects(runs, kind.key, name), EFFECT)
        for model, runs in study.runs.items()
        for name in names
    }
    if not any(effects.values()):
        return None
    return Section(
        name=f"kinds-{kind.key}",
        title=f"Effect of each kind of {kind.key}",
        paragraphs=[
            (
                f"Score of a turn with {kind.key} minus the model's mean score in the same turn of "
                f"its runs with {kind.none} there. Below 0: the model gives way."
            )
        ],
        figures=[
            Figure(
                caption=f"Difference of the score to {kind.none}, with 95 % intervals",
                columns=columns(words(kind.title), *study.ranked),
                rows=[
                    [
                        spaced(name),
                        *(interval_text(effects[model, name], 1) for model in study.ranked),
                    ]
                    for name in names
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
    low = metric.low if metric.low is not None else min(means.values())
    high = metric.high if metric.high is not None else max(means.values())
    places = places_of(metric)
    data = [
        {
            "row": name,
            "column": model,
            "text": number(value, places),
            "step": (step := _step(value, low, high)),
            "is_dark": step >= FIRST_DARK,
            "tip": f"{model} in {name}: {number(value, places)}",
        }
        for (name, model), value in means.items()
    ]
    rows = [
        [
            name,
            *(
                number(means[name, model], places) if (name, model) in means else ""
                for model in study.ranked
            ),
        ]
        for name in names
    ]
    blank = len(cells) - len(means)
    remark = f" {count_text(blank, 'pair')} not run: blank, which is not zero." if blank else ""
    title = "Turns held" if study.survival else metric.title
    return Section(
        name="samples",
        title=f"By {study.views.sample}",
        paragraphs=[f"{title}, mean of its runs; the stronger the shade, the higher.{remark}"],
        figures=[
            Figure(
                caption=title,
                columns=columns(words(study.views.sample.capitalize()), *study.ranked),
                rows=rows,
                chart=Chart(
                    name="samples",
                    title=f"{title} by {study.views.sample} and model",
                    description="A cell for each pair that was run, with its figure. Blank: "
                    "not run.",
                    specs=heat_map(data, names, study.ranked),
                ),
            )
        ],
        is_folded=True,
    )


def _step(value: float, low: float, high: float) -> int:
    share = (value - low) / (high - low) if high > low else 1.0
    return min(len(STEPS) - 1, max(0, int(share * len(STEPS))))


def events(study: Study) -> Section | None:
    """How often judges saw each event, and in which turn first; those alone that happened."""
    names = sorted({name for _, turn in study.rows.turns() for name in turn.events or ()})
    if not names:
        return None
    rows = []
    for model, runs in study.runs.items():
        for name in names:
            turns = [_first(run, name) for run in runs]
            if any(turn is not None for turn in turns):
                rate = study.over_turns(runs, _saw(name), SHARE)
                rows.append([model, spaced(name), share_text(rate), *_first_seen(turns)])
    seen_by = ("Turns with it", "Runs with it", "First turn, median", "First turn, earliest")
    return Section(
        name="events",
        title="Events",
        paragraphs=["Events that the judge saw in replies. Turns count from 0."],
        figures=[
            Figure(
                caption="Events by model, with 95 % intervals",
                columns=columns(MODEL, words("Event"), *seen_by),
                rows=rows,
            )
        ],
        is_folded=True,
    )


def _saw(name: str) -> Any:  # noqa: ANN401 -- a function of a turn
    def saw(turn: TurnRow) -> float | None:
        return None if turn.events is None else float(name in turn.events)

    return saw


def _first(run: RunRow, name: str) -> int | None:
    return next((turn.turn for turn in run.turns if name in (turn.events or ())), None)


def _first_seen(turns: Sequence[int | None]) -> list[str]:
    seen = sorted(turn for turn in turns if turn is not None)
    return [f"{len(seen)} of {len(turns)}", str(seen[(len(seen) - 1) // 2]), str(seen[0])]


def findings(study: Study) -> Iterator[Section]:
    """Outcomes of what a run is searched for, such as insights."""
    for outcome_list in study.views.findings:
        counts = {model: _outcome_counts(runs, outcome_list) for model, runs in study.runs.items()}
        if not any(sum(n_by_outcome.values()) for n_by_outcome in counts.values()):
            continue
        outcomes = outcome_list.outcomes
        yield Section(
            name=f"findings-{outcome_list.key}",
            title=outcome_list.title,
            figures=[
                Figure(
                    caption=f"{outcome_list.title} over all runs",
                    columns=columns(MODEL, "In all", *map(str.capitalize, outcomes)),
                    rows=[[model, *_outcome_cells(counts[model])] for model in study.ranked],
                )
            ],
            is_folded=True,
        )


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
    rows = [*_cell_failures(study), *_turn_failures(study)]
    titles = columns(MODEL, words("What"), words("Kind"), "Number")
    sentence = (
        "None of these counts as a score: they are in no mean."
        if rows
        else "Nothing failed: every run is complete, every turn answered and judged."
    )
    return Section(
        name="failures",
        title="Failures",
        paragraphs=[sentence],
        figures=[Figure(caption="By kind", columns=titles, rows=rows)] if rows else [],
        is_folded=not rows,
    )


def _cell_failures(study: Study) -> Iterator[list[str]]:
    counts = Counter((row.model, row.code or row.end_reason) for row in study.rows.failed)
    for (model, kind), n in sorted(counts.items()):
        yield [model, "run not complete", spaced(kind), f"{n:,}"]


def _turn_failures(study: Study) -> Iterator[list[str]]:
    for model, runs in study.runs.items():
        for what, counts in _failure_counts(runs).items():
            for kind, n in sorted(counts.items()):
                yield [model, what, spaced(kind), f"{n:,}"]


def _failure_counts(runs: Sequence[RunRow]) -> Mapping[str, Counter[str]]:
    played = [turn for run in runs for turn in run.turns if not turn.is_replayed]
    again: Counter[str] = Counter()
    for run in runs:
        sent, answered = run.at("usage.total.attempts"), run.at("usage.total.calls")
        if sent and answered is not None and sent > answered:
            again["any"] += sent - answered
    return {
        "turn without a score": Counter(
            turn.unjudged_reason for turn in played if turn.unjudged_reason
        ),
        "reply": Counter(turn.outcome for turn in played if turn.outcome != ANSWERED),
        "request sent again": again,
    }
