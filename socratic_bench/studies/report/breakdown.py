"""Sections on what scores consist of: kinds of turns, events, findings and failures."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from socratic_bench.ports.parts import OutcomeList, TurnKind
from socratic_bench.studies.report.chart_kinds import shares
from socratic_bench.studies.report.charts import DARK_STEPS, extent, intervals
from socratic_bench.studies.report.leaderboard import MODEL, chart_point, interval_text
from socratic_bench.studies.report.parts import (
    UNKNOWN,
    Chart,
    Figure,
    Section,
    columns,
    percent,
    words,
)
from socratic_bench.studies.report.study import SHARE, Estimate, Study, score_metric
from socratic_bench.studies.rows import RunRow, TurnRow

ANSWERED = "answered"


def spaced(name: str) -> str:
    return name.replace("_", " ")


def share_text(share: Estimate | None) -> str:
    """A share with its interval."""
    if share is None:
        return UNKNOWN
    text = percent(share.mean)
    return text if share.low is None else f"{text} ({percent(share.low)} to {percent(share.high)})"


def kinds(study: Study) -> Iterator[Section]:
    """Mean scores of each kind of turn, a section for each classification of the benchmark."""
    for kind in study.views.kinds:
        section = _of_kind(study, kind)
        if section:
            yield section


def _of_kind(study: Study, kind: TurnKind) -> Section | None:
    kinds = {str(turn.own[kind.key]) for _, turn in study.rows.turns() if turn.own.get(kind.key)}
    if not kinds:
        return None
    metric = score_metric(study)
    names = [None, *sorted(kinds)]
    means = {
        (model, name): study.over_turns(runs, _score_in(kind.key, name), metric)
        for model, runs in study.runs.items()
        for name in names
    }
    titles = {name: spaced(name) if name else kind.none for name in names}
    data = [
        chart_point(
            titles[name], model, mean, f"{interval_text(mean, 1)}, {mean.n} turns", panel=model
        )
        for (model, name), mean in means.items()
        if mean and model in study.panel_models
    ]
    rows = [
        [titles[name], *(interval_text(means[model, name], 1) for model in study.ranked)]
        for name in names
    ]
    return Section(
        name=f"kinds-{kind.key}",
        title=kind.title,
        paragraphs=[f"The mean score of turns of each kind, beside turns with {kind.none}."],
        figures=[
            Figure(
                caption="Mean score with 95 % intervals",
                columns=columns(words(kind.title), *study.ranked),
                rows=rows,
                chart=Chart(
                    name=f"kinds-{kind.key}",
                    title=f"Mean score by kind of turn: {kind.title.lower()}{study.models_note}",
                    description="For each model, the mean score of turns of each kind with 95 % "
                    "intervals. The table has the figures.",
                    specs=intervals(data, study.ranked, "Score", extent(metric.low, metric.high)),
                ),
            )
        ],
    )


def _score_in(key: str, name: str | None) -> Any:  # noqa: ANN401 -- a function of a turn
    def score(turn: TurnRow) -> float | None:
        return turn.score if (turn.own.get(key) or None) == name else None

    return score


def events(study: Study) -> Section | None:
    """How often judges saw each event, and in which turn first."""
    turn_events = [turn.events for _, turn in study.rows.turns() if turn.events is not None]
    seen = sorted({name for event_names in turn_events for name in event_names})
    names = [*dict.fromkeys((*study.views.events, *seen))]
    if not names or not turn_events:
        return None
    rates = {
        (model, name): study.over_turns(runs, _saw(name), SHARE)
        for model, runs in study.runs.items()
        for name in names
    }
    firsts = {
        (model, name): [_first(run, name) for run in runs]
        for model, runs in study.runs.items()
        for name in names
    }
    data = [
        chart_point(spaced(name), model, rate, f"{share_text(rate)} of turns", panel=model)
        for (model, name), rate in rates.items()
        if rate and model in study.panel_models
    ]
    rows = [
        [model, spaced(name), share_text(rates[model, name]), *_first_seen(firsts[model, name])]
        for model in study.ranked
        for name in names
    ]
    seen_by = ("Turns with it", "Runs with it", "First turn, median", "First turn, earliest")
    return Section(
        name="events",
        title="Events",
        paragraphs=["What judges saw in replies, whatever these scored. Turns count from 0."],
        figures=[
            Figure(
                caption="Events by model, with 95 %",
                columns=columns(MODEL, words("Event"), *seen_by),
                rows=rows,
                chart=Chart(
                    name="events",
                    title=f"Share of judged turns with each event{study.models_note}",
                    description="For each model and event, the share of judged turns in which it "
                    "was seen, with 95 % intervals. The table has the figures.",
                    specs=intervals(data, study.ranked, "Share of turns", extent(0, 1)),
                ),
            )
        ],
    )


def _saw(name: str) -> Any:  # noqa: ANN401 -- a function of a turn
    def saw(turn: TurnRow) -> float | None:
        return None if turn.events is None else float(name in turn.events)

    return saw


def _first(run: RunRow, name: str) -> int | None:
    return next((turn.turn for turn in run.turns if name in (turn.events or ())), None)


def _first_seen(turns: Sequence[int | None]) -> list[str]:
    seen = sorted(turn for turn in turns if turn is not None)
    if not seen:
        return [f"0 of {len(turns)}", UNKNOWN, UNKNOWN]
    return [f"{len(seen)} of {len(turns)}", str(seen[(len(seen) - 1) // 2]), str(seen[0])]


def findings(study: Study) -> Iterator[Section]:
    """Outcomes of what a run is searched for, such as insights."""
    for outcome_list in study.views.findings:
        counts = {model: _outcome_counts(runs, outcome_list) for model, runs in study.runs.items()}
        if any(sum(n_by_outcome.values()) for n_by_outcome in counts.values()):
            yield _findings_section(study, outcome_list, counts)


def _outcome_counts(runs: Sequence[RunRow], findings: OutcomeList) -> Mapping[str, int]:
    outcomes = [
        entry.get(findings.outcome)
        for run in runs
        for entry in run.at(findings.key) or ()
        if isinstance(entry, Mapping)
    ]
    return {outcome: outcomes.count(outcome) for outcome in findings.outcomes}


def _findings_section(
    study: Study, findings: OutcomeList, counts: Mapping[str, Mapping[str, int]]
) -> Section:
    data = [bar for model, n_by_outcome in counts.items() for bar in _bars(model, n_by_outcome)]
    rows = [
        [
            model,
            str(sum(n_by_outcome.values())),
            *(
                f"{n} ({percent(n / sum(n_by_outcome.values()))})"
                if sum(n_by_outcome.values())
                else UNKNOWN
                for n in n_by_outcome.values()
            ),
        ]
        for model, n_by_outcome in counts.items()
    ]
    return Section(
        name=f"findings-{findings.key}",
        title=findings.title,
        figures=[
            Figure(
                caption=f"{findings.title} over all runs",
                columns=columns(MODEL, "In all", *map(str.capitalize, findings.outcomes)),
                rows=rows,
                chart=Chart(
                    name=f"findings-{findings.key}",
                    title=f"{findings.title}: what became of them",
                    description=f"For each model, the shares of {findings.title.lower()} by what "
                    "became of them. The table has the figures.",
                    specs=shares(data, study.ranked, findings.outcomes),
                ),
            )
        ],
    )


def _bars(model: str, counts: Mapping[str, int]) -> Iterator[Mapping[str, Any]]:
    whole, at = sum(counts.values()), 0.0
    for n, (outcome, count) in enumerate(counts.items()):
        if count:
            share = count / whole
            yield {
                "row": model,
                "part": outcome,
                "begin": at,
                "end": at + share,
                "middle": at + share / 2,
                "is_dark": n in DARK_STEPS,
                "tip": f"{model}: {outcome} {count} of {whole} ({percent(share)})",
            }
            at += share


def failures(study: Study) -> Section:
    """Runs, turns and replies that failed, which no mean includes. It is shown even if nothing
    failed.
    """
    rows = [*_cell_failures(study), *_turn_failures(study)]
    if not rows:
        sentence = "Nothing failed: all was played to its end, answered and judged."
        return Section(name="failures", title="Failures", paragraphs=[sentence])
    titles = columns(MODEL, words("What"), words("Kind"), "Number")
    return Section(
        name="failures",
        title="Failures",
        paragraphs=["None of these counts as a score: they are in no mean above."],
        figures=[Figure(caption="By kind", columns=titles, rows=rows)],
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
