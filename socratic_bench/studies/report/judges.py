"""Sections on judges: agreement in a jury, leans of jurors, and figures corrected by people's
labels.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from math import inf

from socratic_bench.documents.calibration import CorrectedFigures, ThreeWays
from socratic_bench.ports.benchmark import MetricInfo
from socratic_bench.statistics.agreement import absolute_error, is_available, ordinal_alpha
from socratic_bench.statistics.intervals import Jackknifed, jackknifed
from socratic_bench.studies.report.leaderboard import interval_text, spaced
from socratic_bench.studies.report.parts import (
    Figure,
    Section,
    figure,
    folded,
    percent,
    with_limits,
    words,
)
from socratic_bench.studies.report.study import Study
from socratic_bench.studies.rows import RunRow, TurnRow

LEAN = MetricInfo(name="lean", title="Points over the jury's mean", low=None, high=None)
WHOLE = "score"
FEWEST = 2


def jury(study: Study) -> Section | None:
    """Leans and agreement of jurors, if several judges scored the same turns."""
    turns = [
        (run, turn)
        for run, turn in study.rows.turns()
        if sum(verdict.score is not None for verdict in turn.verdicts) >= FEWEST
    ]
    if not turns:
        return None
    jurors = [*dict.fromkeys(verdict.juror for _, turn in turns for verdict in turn.verdicts)]
    figures = _leans(study, jurors, turns), _agreement(study, jurors, turns)
    note = f"{len(jurors)} jurors scored the same {len(turns):,} turns."
    return folded("jury", "Jury", *figures, note=note)


def _leans(study: Study, jurors: Sequence[str], turns: Sequence[tuple[RunRow, TurnRow]]) -> Figure:
    leans = {
        juror: study.estimate(((run, _lean(turn, juror)) for run, turn in turns), LEAN)
        for juror in jurors
    }
    verdicts = [verdict for _, turn in turns for verdict in turn.verdicts]
    n_asked = Counter(verdict.juror for verdict in verdicts)
    n_scores = Counter(verdict.juror for verdict in verdicts if verdict.score is not None)
    rows = [
        [
            juror,
            interval_text(leans[juror]),
            f"{lean.n:,}" if (lean := leans[juror]) else "0",
            percent(n_scores[juror] / n_asked[juror]),
        ]
        for juror in jurors
    ]
    titles = (words("Juror"), LEAN.title, "Turns", "Gave a verdict")
    return figure("Lean of each juror, with 95 %", titles, rows)


def _lean(turn: TurnRow, juror: str) -> float | None:
    scores = {
        verdict.juror: verdict.score for verdict in turn.verdicts if verdict.score is not None
    }
    if juror not in scores or len(scores) < FEWEST:
        return None
    return scores[juror] - sum(scores.values()) / len(scores)


def _agreement(
    study: Study, jurors: Sequence[str], turns: Sequence[tuple[RunRow, TurnRow]]
) -> Figure:
    rows = []
    for name in (*dict.fromkeys(name for _, turn in turns for name in turn.scores), WHOLE):
        clusters: dict[Hashable, list[list[float | None]]] = {}
        for run, turn in turns:
            given = {
                verdict.juror: verdict.score if name == WHOLE else verdict.scores.get(name)
                for verdict in reversed(turn.verdicts)
            }
            ratings = [given.get(juror) for juror in jurors]
            clusters.setdefault(study.design.cluster(run), []).append(ratings)
        units = [*clusters.values()]
        alpha = None
        if is_available():
            alpha = jackknifed(units, lambda rows: ordinal_alpha([*zip(*rows, strict=True)]))
        distance = jackknifed(units, lambda rows: absolute_error([*zip(*rows, strict=True)]))
        rows.append([spaced(name), _jackknifed_text(alpha, 1), _jackknifed_text(distance)])
    titles = ("Krippendorff's alpha, ordinal", "Mean distance of two jurors, points")
    caption = "Agreement (95 % CI): 1 is perfect, 0 is chance"
    return figure(caption, (words("Score"), *titles), rows)


def _jackknifed_text(figure: Jackknifed | None, most: float = inf) -> str:
    """The figure with its interval, which one sample does not have, nor samples that are alike."""
    interval = figure.interval(0 if most == inf else -1, most) if figure and figure.error else None
    low, high = (interval.low, interval.high) if interval else (None, None)
    return with_limits(figure.value if figure else None, low, high)


def labels_section(corrected: CorrectedFigures | None) -> Section | None:
    """Differences of pairs, then figures of models: as judged, corrected, and by labels."""
    if corrected is None:
        return None
    titles = ("As judged", "Corrected", "By people's labels")
    pairs = [
        [f"{pair.first} minus {pair.second}", spaced(name), *_cells(difference)]
        for pair in corrected.pairs
        for name, difference in pair.differences.items()
    ]
    models = [
        [model.name, spaced(name), *_cells(figure)]
        for model in corrected.models
        for name, figure in model.figures.items()
    ]
    return Section(
        name="labels",
        title="Corrected by people's labels",
        paragraphs=[f"By people's labels of {corrected.n_labels:,} turns."],
        figures=[
            figure(caption, (words(head), words("Figure"), *titles, words("Note")), rows)
            for caption, head, rows in (
                ("Differences between models (95 % CI)", "Models", pairs),
                ("Figures of models (95 % CI)", "Model", models),
            )
            if rows
        ],
    )


def _cells(figure: ThreeWays) -> list[str]:
    ways = (figure.as_judged, figure.corrected, figure.of_labels)
    texts = [with_limits(way.value, way.low, way.high) for way in ways]
    return [*texts, figure.corrected.reason or ""]
