"""What scores are made of: kinds of turns, events, and findings."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from socratic_bench.ports.parts import OutcomeList, TurnKind
from socratic_bench.studies.report.chart_kinds import shares
from socratic_bench.studies.report.charts import DARK_STEPS, extent, intervals
from socratic_bench.studies.report.leaderboard import MODEL, mark, shown
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

# What went wrong, by kind: cells that failed, turns without a score, replies that are none.

ANSWERED = "answered"


def spaced(name: str) -> str:
    return name.replace("_", " ")


def shared(found: Estimate | None) -> str:
    """A share with its interval."""
    if found is None:
        return UNKNOWN
    told = percent(found.mean)
    return told if found.low is None else f"{told} ({percent(found.low)} to {percent(found.high)})"


def kinds(study: Study) -> Iterator[Section]:
    """What each kind of turn did to the score."""
    for kind in study.views.kinds:
        found = _of_kind(study, kind)
        if found:
            yield found


def _of_kind(study: Study, kind: TurnKind) -> Section | None:
    known = {str(turn.own[kind.key]) for _, turn in study.rows.turns() if turn.own.get(kind.key)}
    if not known:
        return None
    metric = score_metric(study)
    names = [None, *sorted(known)]
    found = {
        (model, name): study.over_turns(runs, _score_in(kind.key, name), metric)
        for model, runs in study.runs.items()
        for name in names
    }
    titles = {name: spaced(name) if name else kind.none for name in names}
    data = [
        mark(titles[name], model, one, f"{shown(one, 1)}, {one.n} turns", panel=model)
        for (model, name), one in found.items()
        if one and model in study.drawn
    ]
    rows = [
        [titles[name], *(shown(found[model, name], 1) for model in study.ranked)] for name in names
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
                    title=f"Mean score by kind of turn: {kind.title.lower()}{study.drawn_words}",
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
    """How often judges saw each event, and when first."""
    told = [turn.events for _, turn in study.rows.turns() if turn.events is not None]
    seen = sorted({name for some in told for name in some})
    names = [*dict.fromkeys((*study.views.events, *seen))]
    if not names or not told:
        return None
    found = {
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
        mark(spaced(name), model, one, f"{shared(one)} of turns", panel=model)
        for (model, name), one in found.items()
        if one and model in study.drawn
    ]
    rows = [
        [model, spaced(name), shared(found[model, name]), *_first_seen(firsts[model, name])]
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
                    title=f"Share of judged turns with each event{study.drawn_words}",
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
    known = sorted(turn for turn in turns if turn is not None)
    if not known:
        return [f"0 of {len(turns)}", UNKNOWN, UNKNOWN]
    return [f"{len(known)} of {len(turns)}", str(known[(len(known) - 1) // 2]), str(known[0])]


def findings(study: Study) -> Iterator[Section]:
    """What became of what runs were looked through for."""
    for one in study.views.findings:
        counts = {model: _outcome_counts(runs, one) for model, runs in study.runs.items()}
        if any(sum(some.values()) for some in counts.values()):
            yield _found(study, one, counts)


def _outcome_counts(runs: Sequence[RunRow], findings: OutcomeList) -> Mapping[str, int]:
    found = [
        entry.get(findings.outcome)
        for run in runs
        for entry in run.at(findings.key) or ()
        if isinstance(entry, Mapping)
    ]
    return {outcome: found.count(outcome) for outcome in findings.outcomes}


def _found(study: Study, one: OutcomeList, counts: Mapping[str, Mapping[str, int]]) -> Section:
    data = [bar for model, some in counts.items() for bar in _bars(model, some)]
    rows = [
        [
            model,
            str(sum(some.values())),
            *(
                f"{n} ({percent(n / sum(some.values()))})" if sum(some.values()) else UNKNOWN
                for n in some.values()
            ),
        ]
        for model, some in counts.items()
    ]
    return Section(
        name=f"findings-{one.key}",
        title=one.title,
        figures=[
            Figure(
                caption=f"{one.title} over all runs",
                columns=columns(MODEL, "In all", *map(str.capitalize, one.outcomes)),
                rows=rows,
                chart=Chart(
                    name=f"findings-{one.key}",
                    title=f"{one.title}: what became of them",
                    description=f"For each model, the shares of {one.title.lower()} by what became "
                    "of them. The table has the figures.",
                    specs=shares(data, study.ranked, one.outcomes),
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
    """What failed counts in no mean, so it is told here; also that nothing did."""
    rows = [*_failed_cells(study), *_failed_turns(study)]
    if not rows:
        told = "Nothing failed: all was played to its end, answered and judged."
        return Section(name="failures", title="Failures", paragraphs=[told])
    titles = columns(MODEL, words("What"), words("Kind"), "Number")
    return Section(
        name="failures",
        title="Failures",
        paragraphs=["None of these counts as a score: they are in no mean above."],
        figures=[Figure(caption="By kind", columns=titles, rows=rows)],
    )


def _failed_cells(study: Study) -> Iterator[list[str]]:
    counts = Counter((one.model, one.code or one.end_reason) for one in study.rows.failed)
    for (model, kind), n in sorted(counts.items()):
        yield [model, "run not complete", spaced(kind), f"{n:,}"]


def _failed_turns(study: Study) -> Iterator[list[str]]:
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
