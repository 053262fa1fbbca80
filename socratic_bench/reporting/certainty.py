"""How sure the primary metric is: what its scatter is made of, and what would narrow it."""

from collections.abc import Sequence

from socratic_bench.documents.estimates import Mean
from socratic_bench.reporting.board import MODEL
from socratic_bench.reporting.parts import UNKNOWN, Figure, columns, number
from socratic_bench.reporting.study import Study

PLACES = 3


def certainty(study: Study) -> Figure | None:
    """`None` where it has no interval, and where its values are of items, of which more runs narrow
    nothing.
    """
    found = {model: study.whole(model) for model in study.ranked}
    if study.is_of_parts or all(one.low is None for one in found.values()):
        return None
    titles = (
        "Runs",
        study.clusters.capitalize(),
        f"Variance between {study.clusters}",
        "Variance between repeats",
        "Variance of the judge",
        "Further runs that would halve the interval",
    )
    return Figure(
        caption=f"What the interval of the {study.primary.title.lower()} rests on",
        columns=columns(MODEL, *titles),
        rows=[[model, *_row(one)] for model, one in found.items()],
    )


def _row(found: Mean) -> Sequence[str]:
    parts = found.variance
    variances = (parts.sample, parts.repeat, parts.judge) if parts else (None, None, None)
    further = found.runs_to_halve
    return [
        str(found.n),
        str(found.n_clusters),
        *(number(one, PLACES) for one in variances),
        UNKNOWN if further is None else str(further),
    ]
