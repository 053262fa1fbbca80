"""What people see of a sweep at its end on stderr: the result of each model, the best first, what
it took, and where it is kept.
"""

from collections.abc import Iterator

from socratic_bench.documents.sweep import Group, SweepDocument
from socratic_bench.types import counted

from . import terminal
from .closing import duration
from .output import plain, say
from .sweep_words import count, marked, table, usd


def say_results(document: SweepDocument) -> None:
    """A table of the models, and a line for the whole."""
    by = document.primary_metric
    if document.sweep_id is None or by is None:
        return
    heads = ("model", "done", "failed", by.name.rpartition(".")[2], "tokens", "USD")
    rows = [_row(group, by.name) for group in document.groups["model"]]
    for line in table(heads, rows, terminal.columns()):
        say(line)
    say(f"{document.sweep_id[-4:]} {document.status}: {', '.join(_parts(document))}")


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
        count(n_tokens),
        usd(group.cost_usd),
    )


def _parts(document: SweepDocument) -> Iterator[str]:
    cells = counted(document.n_cells, "cell")
    yield f"{document.n_completed} of {cells} done"
    if document.n_failed:
        yield f"{document.n_failed} failed"
    if document.n_missing:
        yield f"{document.n_missing} missing"
    yield "cost unknown" if document.cost_usd is None else f"{usd(document.cost_usd)} USD"
    seconds = document.timestamps.duration_seconds
    if seconds is not None:
        yield duration(seconds)
    for place in (document.output_artifacts, document.s3_artifacts):
        if place:
            yield f"kept in {plain(place.index)}"
