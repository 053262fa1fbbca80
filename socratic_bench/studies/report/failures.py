"""What went wrong, by kind: cells that failed, turns without a score, replies that are none."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from socratic_bench.studies.report.breakdown import spaced
from socratic_bench.studies.report.leaderboard import MODEL
from socratic_bench.studies.report.parts import Figure, Section, columns, words
from socratic_bench.studies.report.rows import RunRow
from socratic_bench.studies.report.study import Study

ANSWERED = "answered"


def failures(study: Study) -> Section:
    """What failed counts in no mean, so it is told here; also that nothing did."""
    rows = [*_cells(study), *_turns(study)]
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


def _cells(study: Study) -> Iterator[list[str]]:
    counts = Counter((one.model, one.code or one.end_reason) for one in study.rows.failed)
    for (model, kind), n in sorted(counts.items()):
        yield [model, "run not complete", spaced(kind), f"{n:,}"]


def _turns(study: Study) -> Iterator[list[str]]:
    for model, runs in study.runs.items():
        for what, counts in _counts(runs).items():
            for kind, n in sorted(counts.items()):
                yield [model, what, spaced(kind), f"{n:,}"]


def _counts(runs: Sequence[RunRow]) -> Mapping[str, Counter[str]]:
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
