"""How far judges agree, how each leans, and what people's labels make of their figures."""

from collections.abc import Iterator, Mapping, Sequence

from socratic_bench.documents.calibration import Corrected, CorrectionDocument, Estimated
from socratic_bench.ports.benchmark import MetricInfo
from socratic_bench.statistics.agreement import absolute_error, is_available, ordinal_alpha
from socratic_bench.studies.report.breakdown import spaced
from socratic_bench.studies.report.charts import intervals
from socratic_bench.studies.report.leaderboard import MODEL, mark, shown
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
    """Only where several judges scored the same turns."""
    turns = [(run, turn) for run, turn in study.rows.turns() if _n_scores(turn) >= FEWEST]
    if not turns:
        return None
    jurors = [*dict.fromkeys(one.juror for _, turn in turns for one in turn.verdicts)]
    return Section(
        name="jury",
        title="Jury",
        paragraphs=[f"{len(jurors)} jurors scored the same {len(turns):,} turns."],
        figures=[_leans(study, jurors, turns), _agreement(jurors, [turn for _, turn in turns])],
    )


def _n_scores(turn: TurnRow) -> int:
    return sum(one.score is not None for one in turn.verdicts)


def _leans(study: Study, jurors: Sequence[str], turns: Sequence[tuple[RunRow, TurnRow]]) -> Figure:
    found = {
        juror: study.estimate(((run, _lean(turn, juror)) for run, turn in turns), LEAN)
        for juror in jurors
    }
    rows = [
        [
            juror,
            shown(found[juror]),
            f"{one.n:,}" if (one := found[juror]) else "0",
            _given(juror, [turn for _, turn in turns]),
        ]
        for juror in jurors
    ]
    data = [
        mark(juror, juror, one, f"{shown(one)} points over the jury's mean")
        for juror, one in found.items()
        if one
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
    known = {one.juror: one.score for one in turn.verdicts if one.score is not None}
    if juror not in known or len(known) < FEWEST:
        return None
    return known[juror] - sum(known.values()) / len(known)


def _given(juror: str, turns: Sequence[TurnRow]) -> str:
    asked = [one for turn in turns for one in turn.verdicts if one.juror == juror]
    return percent(sum(one.score is not None for one in asked) / len(asked)) if asked else UNKNOWN


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
    found: VerdictRow | None = next((one for one in turn.verdicts if one.juror == juror), None)
    if found is None:
        return None
    return found.score if name == WHOLE else found.scores.get(name)


def labelled(correction: CorrectionDocument | None, order: Sequence[str]) -> Section | None:
    """Figures as judged, corrected, and of people's labels, side by side."""
    if correction is None:
        return None
    models = sorted(correction.models, key=lambda one: order.index(one.model))
    rows = [
        [
            one.model,
            spaced(name),
            _estimated(figure.as_judged),
            _estimated(figure.corrected),
            _estimated(figure.of_labels),
            _note(figure.corrected),
        ]
        for one in models
        for name, figure in one.figures.items()
    ]
    ways = ("As judged", "Corrected", "By people's labels")
    data = [
        bar
        for one in models
        for name, figure in one.figures.items()
        for bar in _bars(
            one.model,
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


def _note(one: Corrected) -> str:
    return "; ".join(map(spaced, filter(None, (*one.flags, one.reason))))


def _estimated(one: Estimated | Corrected) -> str:
    told = number(one.value)
    return told if one.low is None else f"{told} ({between(one.low, one.high)})"


def _bars(
    model: str, name: str, three: Mapping[str, Estimated | Corrected]
) -> Iterator[Mapping[str, object]]:
    for way, one in three.items():
        if one.value is not None:
            found = Estimate(mean=one.value, low=one.low, high=one.high, n=0, n_clusters=0)
            told = f"{spaced(name)} {way} {_estimated(one)}"
            yield mark(way, model, found, told, panel=f"{model}: {spaced(name)}")
