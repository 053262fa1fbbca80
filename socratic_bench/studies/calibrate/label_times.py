"""Times to an event, as judged and by labels: these only where whole dialogues are labelled."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from socratic_bench.documents.calibration import Times
from socratic_bench.documents.sweep import Survival
from socratic_bench.statistics import intervals
from socratic_bench.statistics.ppi import FEWEST_CLUSTERS
from socratic_bench.statistics.survival import Time
from socratic_bench.studies.calibrate.judged_runs import JudgedRun
from socratic_bench.studies.calibrate.quantity import TOTAL
from socratic_bench.studies.calibrate.readings import score_of
from socratic_bench.studies.labels.turns import LabelledTurn
from socratic_bench.studies.times import longest, survival_of
from socratic_bench.turns import Rubric
from socratic_bench.types import plural

TimesOf = Callable[[Mapping[str, Any], Sequence[float]], Mapping[str, Time]]
Found = Mapping[str, list[list[Time]]]


def times(
    runs: Sequence[JudgedRun],
    turns: Mapping[tuple[str, int], LabelledTurn],
    rubric: Rubric,
    times_of: TimesOf,
) -> dict[str, Times]:
    """By name, of the runs of one model."""
    judged: list[Mapping[str, Time]] = []
    labelled: list[Mapping[str, Time]] = []
    chances: set[float | None] = set()
    for run in runs:
        said = [turn for turn in run.turns if turn.score is not None]
        if not said:
            continue
        judged.append(times_of(run.document, [turn.points[TOTAL] for turn in said]))
        found = [turns.get((run.run_id, turn.turn)) for turn in said]
        scores = [score_of(one, TOTAL, rubric) for one in found if one]
        known = [score for score in scores if score is not None]
        if len(known) == len(said):
            labelled.append(times_of(run.document, known))
            chances |= {one.probability for one in found if one}
    names = judged[0] if judged else ()
    return {name: _told(name, judged, labelled, chances) for name in names}


def _told(
    name: str,
    judged: Sequence[Mapping[str, Time]],
    labelled: Sequence[Mapping[str, Time]],
    chances: set[float | None],
) -> Times:
    reason = _too_few(len(labelled), len(judged)) or _unlike(chances)
    return Times(
        judge_mean=_survival(name, judged),
        label_mean=None if reason else _survival(name, labelled),
        n_whole=len(labelled),
        reason=reason,
    )


def _too_few(n_labelled: int, n_judged: int) -> str | None:
    if n_labelled >= FEWEST_CLUSTERS:
        return None
    return (
        f"{n_labelled} of {plural(n_judged, 'dialogue')} of this model are labelled whole: "
        f"it takes {FEWEST_CLUSTERS}."
    )


def _unlike(chances: set[float | None]) -> str | None:
    if len(chances) > 1 or None in chances:
        return "Dialogues were not all drawn with the same known probability."
    return None


def _survival(name: str, found: Sequence[Mapping[str, Time]]) -> Survival:
    clusters = [[one[name]] for one in found]
    return survival_of(clusters, longest(clusters), has_limits=intervals.is_available())
