"""What people see of runs that were judged again, on stderr."""

from collections.abc import Iterator

from socratic_bench.documents.comparison import Changed, Figure, JudgingsDocument, JudgingsDryRun
from socratic_bench.types import plural

from .output import plain, say

PLACES = 3


def say_judgings(document: JudgingsDocument) -> None:
    """By dimension how verdicts differ, then the figures of both."""
    for line in _lines(document):
        say(line)


def say_forecast(document: JudgingsDryRun) -> None:
    """A line for each juror, and one for all."""
    for one in document.jurors:
        calls = plural(one.usage.calls, "call")
        say(plain(f"{one.model}: {calls}, {_usd(one.cost_usd)}"))
    low, high = _usd(document.low_usd), _usd(document.high_usd)
    of = f"{plural(document.n_turns, 'turn')} of {plural(document.n_runs, 'run')}"
    say(f"expected {_usd(document.cost_usd)} ({low} to {high}) for {of}; no model was called")


def _lines(document: JudgingsDocument) -> Iterator[str]:
    yield _row(("", "turns", "first", "now", "difference", "abs. error", "alpha"))
    for name, one in document.dimensions.items():
        yield _row((name, *_changed(one)))
    yield _row(("figure", "runs", "first", "now"))
    for name, figure in document.figures.items():
        if figure.n_runs and "." not in name:
            yield _row((name, *_figure(figure)))
    missing = document.n_runs - document.n_judged_runs
    left = f", {plural(missing, 'run')} not to the end" if missing else ""
    yield (
        f"{plural(document.n_judged_runs, 'run')} judged as {plain(document.name)}{left}, "
        f"{_usd(document.cost_usd)}"
    )


def _changed(one: Changed) -> Iterator[str]:
    yield str(one.n_turns)
    for value in (one.first, one.second, one.mean_difference, one.absolute_error, one.alpha):
        yield _number(value)


def _figure(one: Figure) -> Iterator[str]:
    yield str(one.n_runs)
    yield _number(one.first)
    yield _number(one.second)


def _row(cells: tuple[str, ...]) -> str:
    first, *others = cells
    return f"{plain(first):22s}" + "".join(f"{cell:>12s}" for cell in others)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.{PLACES}f}"


def _usd(value: float | None) -> str:
    return "USD unknown" if value is None else f"{value:.4f} USD"
