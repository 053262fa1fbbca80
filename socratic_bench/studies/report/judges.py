"""Sections on judges: agreement in a jury, leans of jurors, and figures corrected by people's
labels.
"""

from collections.abc import Iterator, Mapping, Sequence

from socratic_bench.documents.calibration import Corrected, CorrectionDocument, Estimated
from socratic_bench.ports.benchmark import MetricInfo
from socratic_bench.statistics.agreement import absolute_error, is_available, ordinal_alpha
from socratic_bench.studies.report.breakdown import spaced
from socratic_bench.studies.report.charts import intervals
from socratic_bench.studies.report.leaderboard import MODEL, chart_point, interval_text
from socratic_bench.studies.report.parts import (
    UNKNOWN,
    Chart,
    Figure,
    Section,
    between,
    columns,
    number,
    percent,
    words,
)
from socratic_bench.studies.report.study import Estimate, Study
from socratic_bench.studies.rows import RunRow, TurnRow, VerdictRow

LEAN = MetricInfo(name="lean", title="Points over the jury's mean", low=None, high=None)
WHOLE = "score"
FEWEST = 2


def jury(study: Study) -> Section | None:
    """Leans and agreement of jurors, if several judges scored the same turns."""
    turns = [(run, turn) for run, turn in study.rows.turns() if _n_scores(turn) >= FEWEST]
    if not turns:
        return None
    jurors = [*dict.fromkeys(verdict.juror for _, turn in turns for verdict in turn.verdicts)]
    return Section(
        name="jury",
        title="Jury",
        paragraphs=[f"{len(jurors)} jurors scored the same {len(turns):,} turns."],
        figures=[_leans(study, jurors, turns), _agreement(jurors, [turn for _, turn in turns])],
    )


def _n_scores(turn: TurnRow) -> int:
    return sum(verdict.score is not None for verdict in turn.verdicts)


def _leans(study: Study, jurors: Sequence[str], turns: Sequence[tuple[RunRow, TurnRow]]) -> Figure:
    leans = {
        juror: study.estimate(((run, _lean(turn, juror)) for run, turn in turns), LEAN)
        for juror in jurors
    }
    rows = [
        [
            juror,
            interval_text(leans[juror]),
            f"{lean.n:,}" if (lean := leans[juror]) else "0",
            _verdict_rate(juror, [turn for _, turn in turns]),
        ]
        for juror in jurors
    ]
    data = [
        chart_point(juror, juror, lean, f"{interval_text(lean)} points over the jury's mean")
        for juror, lean in leans.items()
        if lean
    ]
    return Figure(
        caption="Lean of each juror, with 95 %",
        columns=columns(words("Juror"), LEAN.title, "Turns", "Gave a verdict"),
        rows=rows,
        chart=Chart(
            name="jury",
            title="Lean of each juror, in points of the score",
            description="For each juror, how many points more than the jury's mean it gives, with "
            "95 % intervals. The table has the figures.",
            specs=intervals(data, jurors, LEAN.title, {"zero": True, "nice": True}),
        ),
    )


def _lean(turn: TurnRow, juror: str) -> float | None:
    scores = {
        verdict.juror: verdict.score for verdict in turn.verdicts if verdict.score is not None
    }
    if juror not in scores or len(scores) < FEWEST:
        return None
    return scores[juror] - sum(scores.values()) / len(scores)


def _verdict_rate(juror: str, turns: Sequence[TurnRow]) -> str:
    verdicts = [verdict for turn in turns for verdict in turn.verdicts if verdict.juror == juror]
    return (
        percent(sum(verdict.score is not None for verdict in verdicts) / len(verdicts))
        if verdicts
        else UNKNOWN
    )


def _agreement(jurors: Sequence[str], turns: Sequence[TurnRow]) -> Figure:
    names = [*dict.fromkeys(name for turn in turns for name in turn.scores)]
    rows = []
    for name in (*names, WHOLE):
        ratings = [[_rating(turn, juror, name) for turn in turns] for juror in jurors]
        alpha = ordinal_alpha(ratings) if is_available() else None
        rows.append([spaced(name), number(alpha), number(absolute_error(ratings))])
    titles = ("Krippendorff's alpha, ordinal", "Mean distance of two jurors, points")
    return Figure(
        caption="Agreement: 1 is full, 0 that of chance",
        columns=columns(words("Score"), *titles),
        rows=rows,
    )


def _rating(turn: TurnRow, juror: str, name: str) -> float | None:
    verdict: VerdictRow | None = next((row for row in turn.verdicts if row.juror == juror), None)
    if verdict is None:
        return None
    return verdict.score if name == WHOLE else verdict.scores.get(name)


def labels_section(correction: CorrectionDocument | None, order: Sequence[str]) -> Section | None:
    """Figures as judged, corrected, and by people's labels, side by side."""
    if correction is None:
        return None
    models = sorted(
        correction.models, key=lambda corrected_model: order.index(corrected_model.model)
    )
    rows = [
        [
            corrected_model.model,
            spaced(name),
            _estimated(figure.as_judged),
            _estimated(figure.corrected),
            _estimated(figure.of_labels),
            _note(figure.corrected),
        ]
        for corrected_model in models
        for name, figure in corrected_model.figures.items()
    ]
    ways = ("As judged", "Corrected", "By people's labels")
    data = [
        bar
        for corrected_model in models
        for name, figure in corrected_model.figures.items()
        for bar in _bars(
            corrected_model.model,
            name,
            {
                "as judged": figure.as_judged,
                "corrected": figure.corrected,
                "people's labels": figure.of_labels,
            },
        )
    ]
    return Section(
        name="labels",
        title="Judged, corrected, labelled",
        paragraphs=[f"By people's labels of {correction.n_labels:,} turns."],
        figures=[
            Figure(
                caption="Three ways, with 95 %",
                columns=columns(MODEL, words("Figure"), *ways, words("Note")),
                rows=rows,
                chart=Chart(
                    name="labels",
                    title="Each figure as judged, corrected and by people's labels",
                    description="For each figure and model three points with 95 % intervals. The "
                    "table has the figures.",
                    specs=intervals(data, order, "Value", {"zero": True, "nice": True}),
                )
                if data
                else None,
            )
        ],
    )


def _estimated(estimated: Estimated | Corrected) -> str:
    text = number(estimated.value)
    return text if estimated.low is None else f"{text} ({between(estimated.low, estimated.high)})"


def _note(corrected: Corrected) -> str:
    return "; ".join(map(spaced, filter(None, (*corrected.flags, corrected.reason))))


def _bars(
    model: str, name: str, three: Mapping[str, Estimated | Corrected]
) -> Iterator[Mapping[str, object]]:
    for way, estimated in three.items():
        if estimated.value is not None:
            estimate = Estimate(
                mean=estimated.value, low=estimated.low, high=estimated.high, n=0, n_clusters=0
            )
            tip = f"{spaced(name)} {way} {_estimated(estimated)}"
            yield chart_point(way, model, estimate, tip, panel=f"{model}: {spaced(name)}")
