"""What people see of a sweep at its end on stderr: the result of each model, the best first, what
it took, and where it is kept.
"""

from collections.abc import Iterator, Mapping, Sequence

from socratic_bench.documents.jury import SCORE, Agreement
from socratic_bench.documents.sweep import Group, Mean, SweepDocument
from socratic_bench.statistics import agreement
from socratic_bench.statistics.intervals import is_available
from socratic_bench.studies.figures import danger
from socratic_bench.types import plural

from . import terminal
from .output import plain, say
from .progress import duration
from .sweep_words import INTERVAL, count, marked, table, usd

NO_INTERVALS = (
    'Means have no intervals: these need scipy, the extra stats (pip install ".[stats]").'
)


def say_results(document: SweepDocument) -> None:
    """A table of the models, and a line for the whole."""
    by = document.primary_metric
    if document.sweep_id is None or by is None:
        return
    heads = ("model", "done", "failed", by.name.rpartition(".")[2], INTERVAL, "tokens", "USD")
    groups = document.groups["model"]
    lines = [heads, *(_row(group, by.name) for group in groups)]
    if not any(_interval(group.metrics.get(by.name)) for group in groups):
        lines = [(*row[:4], *row[5:]) for row in lines]
    for line in table(lines[0], lines[1:], terminal.columns()):
        say(line)
    if not is_available() and document.n_completed:
        say(NO_INTERVALS)
    for line in _agreement(document.agreement):
        say(line)
    for line in _dangers(groups, by.name):
        say(f"~ {plain(line)}")
    say(f"{document.sweep_id[-4:]} {document.status}: {', '.join(_parts(document))}")


def _agreement(found: Mapping[str, Agreement]) -> Iterator[str]:
    """How far jurors agree on the score, and what an alpha would need."""
    score = found.get(SCORE)
    if score is None or score.absolute_error is None:
        return
    alpha = "" if score.alpha is None else f", alpha {score.alpha:.2f}"
    yield (
        f"{plural(score.n_jurors, 'juror')} differ by {score.absolute_error:.2f} points on "
        f"{plural(score.n_turns, 'turn')}{alpha}"
    )
    if not agreement.is_available():
        yield agreement.NO_ALPHA


def _row(group: Group, metric: str) -> tuple[str, ...]:
    found = group.metrics.get(metric)
    mean = found.mean if found else None
    used = group.usage
    n_tokens = (used.input_tokens or 0) + (used.output_tokens or 0)
    return (
        str(group.value),
        f"{group.n_completed}/{group.n_cells}",
        marked(group.n_failed),
        "untested" if mean is None else f"{mean:.2f}",
        _interval(found) or "?",
        count(n_tokens),
        usd(group.cost_usd),
    )


def _interval(found: Mean | None) -> str:
    if found is None or found.low is None or found.high is None:
        return ""
    return f"{found.low:.2f} to {found.high:.2f}"


def _dangers(groups: Sequence[Group], metric: str) -> Iterator[str]:
    for group in groups:
        found = group.metrics.get(metric)
        yield from danger(str(group.value), metric, found.two_groups if found else None)


def _parts(document: SweepDocument) -> Iterator[str]:
    yield f"{document.n_completed} of {plural(document.n_cells, 'cell')} done"
    if document.n_failed:
        yield f"{document.n_failed} failed"
    if document.n_missing:
        yield f"{document.n_missing} missing"
    yield "cost unknown" if document.cost_usd is None else f"{usd(document.cost_usd)} USD"
    if document.n_missing and document.spent_usd is not None:
        yield f"at most {usd(document.spent_usd)} USD with cells under way"
    if (seconds := document.timestamps.duration_seconds) is not None:
        yield duration(seconds)
    for place in (document.output_artifacts, document.s3_artifacts):
        if place:
            yield f"kept in {plain(place.index)}"
