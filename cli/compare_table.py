"""What people see of a comparison on stderr: means, then differences pair by pair."""

from collections.abc import Iterator, Mapping

from socratic_bench.documents.comparison import (
    ComparedMean,
    ComparedPair,
    ComparisonDocument,
    Difference,
)
from socratic_bench.types import counted

from . import terminal
from .output import plain, say
from .sweep_words import table

INTERVAL, RUNS, P, SEEN = "95 %", "runs", "p (Holm)", "could see"
LEFT_OUT = (SEEN, P, INTERVAL, RUNS)


def say_comparison(document: ComparisonDocument) -> None:
    """Everything but the scores turn by turn."""
    by = document.primary_metric.name
    rows = [(one.name, str(one.n_runs), *_mean(one.metrics[by])) for one in document.contenders]
    for line in table(("model", RUNS, by, INTERVAL), rows, terminal.columns(), LEFT_OUT):
        say(line)
    for pair in document.pairs:
        _say_pair(pair)
    for line in _closing(document):
        say(plain(line))


def _mean(one: ComparedMean) -> tuple[str, str]:
    return _number(one.mean), _interval(one.low, one.high)


def _say_pair(pair: ComparedPair) -> None:
    say("")
    say(f"{plain(pair.first)} less {plain(pair.second)}: {', '.join(_about(pair))}")
    heads = ("metric", "less", INTERVAL, P, SEEN)
    rows = [(name, *_difference(one)) for name, one in pair.differences.items()]
    for line in table(heads, rows, terminal.columns(), LEFT_OUT):
        say(line)


def _about(pair: ComparedPair) -> Iterator[str]:
    yield f"{counted(pair.n_pairs, 'pair')} by {pair.paired_by}"
    if pair.n_unpaired:
        yield f"{counted(pair.n_unpaired, 'run')} without one"


def _difference(one: Difference) -> tuple[str, str, str, str]:
    p = "?" if one.p_holm is None else f"{one.p_holm:.3f}"
    return _number(one.mean), _interval(one.low, one.high), p, _number(one.detectable)


def _interval(low: float | None, high: float | None) -> str:
    return "?" if low is None or high is None else f"{low:.2f} to {high:.2f}"


def _number(value: float | None) -> str:
    return "?" if value is None else f"{value:.2f}"


def _closing(document: ComparisonDocument) -> Iterator[str]:
    metric = document.primary_metric.name
    for first, second in document.tied or ():
        yield f"{first} and {second} cannot be told apart by {metric}."
    for one in document.conditions:
        yield f"~ {one.name} differs: {_values(one.values)}"
    for notice in document.notices:
        yield f"~ {notice}"


def _values(values: Mapping[str, list[bool | float | str | None]]) -> str:
    return "; ".join(
        f"{', '.join(map(str, some)) or 'none'} of {name}" for name, some in values.items()
    )
