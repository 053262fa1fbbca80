"""What people see of a comparison on stderr: models, then differences pair by pair."""

from collections.abc import Collection, Iterator, Sequence

from socratic_bench.documents.comparison import (
    ComparedPair,
    ComparisonDocument,
    Contender,
    Difference,
    FigureDifference,
)
from socratic_bench.documents.sweep import Estimate, Mean
from socratic_bench.studies.groups import conditions_text
from socratic_bench.types import plural

from . import terminal
from .output import plain, say
from .sweep_words import table

INTERVAL, RUNS, P, SEEN = "95 %", "runs", "p (Holm)", "could see"
LEFT_OUT = (SEEN, P, INTERVAL, RUNS)
MEDIAN, OF_MEDIAN, OF_MEAN = "median", "of the median", "of the mean"
MOST_TURNS = 9
SMALLEST_P = 0.001


def say_comparison(document: ComparisonDocument) -> None:
    """What is told of each model, then what of each pair."""
    by = document.primary_metric.name
    rows = [(one.name, str(one.n_runs), *_mean(one.metrics[by])) for one in document.contenders]
    _say_table(("model", RUNS, by, INTERVAL), rows, LEFT_OUT)
    _say_turns(document.contenders)
    for name in document.contenders[0].metrics:
        if timed := [one for one in document.contenders if name in one.survival]:
            _say_times(name, timed)
    contenders = document.contenders
    known = {name for one in contenders for name, of in one.metrics.items() if of.mean is not None}
    for pair in document.pairs:
        _say_pair(pair, known)
    for line in _closing(document):
        say(plain(line))


def _say_table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], left_out: Sequence[str]
) -> None:
    for line in table(heads, rows, terminal.columns(), left_out):
        say(line.rstrip())


def _say_turns(contenders: Sequence[Contender]) -> None:
    """Some of the turns, the first and the last among them."""
    scores = {one.name: {turn.turn: turn.mean for turn in one.score_by_turn} for one in contenders}
    judged = sorted({turn for some in scores.values() for turn in some})
    if not judged:
        return
    last = len(judged) - 1
    n_shown = min(len(judged), MOST_TURNS)
    shown = [judged[n * last // max(1, n_shown - 1)] for n in range(n_shown)]
    rows = [(name, *(_number(some.get(turn)) for turn in shown)) for name, some in scores.items()]
    heads = [str(turn) for turn in shown]
    say("")
    # Every other turn is left out first.
    _say_table(("score by turn", *heads), rows, (*heads[1:-1:2], *heads[2:-1:2]))


def _say_times(name: str, contenders: Sequence[Contender]) -> None:
    found = {one.name: one.survival[name] for one in contenders}
    mean = f"mean to {next(iter(found.values())).horizon:g}"
    rows = [
        (contender, *_estimate(one.median), *_estimate(one.restricted_mean))
        for contender, one in found.items()
    ]
    say("")
    heads = (name, MEDIAN, OF_MEDIAN, mean, OF_MEAN)
    _say_table(heads, rows, (OF_MEDIAN, OF_MEAN, MEDIAN))


def _estimate(one: Estimate | FigureDifference) -> tuple[str, str]:
    """With its limits: a side without one is a question mark."""
    if one.low is None and one.high is None:
        return _number(one.value), "?"
    return _number(one.value), f"{_number(one.low)} to {_number(one.high)}"


def _mean(one: Mean) -> tuple[str, str]:
    return _number(one.mean), _interval(one.low, one.high)


def _say_pair(pair: ComparedPair, known: Collection[str]) -> None:
    """Of metrics that are known of any model."""
    say("")
    say(f"{plain(pair.first)} less {plain(pair.second)}: {', '.join(_about(pair))}")
    rows = [(name, *_difference(one)) for name, one in pair.differences.items() if name in known]
    for name in (name for name in pair.differences if name in pair.survival):
        found = pair.survival[name]
        for of, one in (
            (f"mean to {found.horizon:g}", found.restricted_mean),
            (MEDIAN, found.median),
        ):
            rows.append((f"{name}, {of}", *_estimate(one), "", ""))
    _say_table(("metric", "less", INTERVAL, P, SEEN), rows, LEFT_OUT)


def _about(pair: ComparedPair) -> Iterator[str]:
    yield f"{plural(pair.n_pairs, 'pair')} by {pair.paired_by}"
    if pair.n_unpaired:
        yield f"{plural(pair.n_unpaired, 'run')} without one"


def _difference(one: Difference) -> tuple[str, str, str, str]:
    return (
        _number(one.mean),
        _interval(one.low, one.high),
        _p(one.p_holm),
        _number(one.detectable),
    )


def _p(value: float | None) -> str:
    if value is None:
        return "?"
    return f"{value:.3f}" if value >= SMALLEST_P else f"<{SMALLEST_P}"


def _interval(low: float | None, high: float | None) -> str:
    return "?" if low is None or high is None else f"{low:.2f} to {high:.2f}"


def _number(value: float | None) -> str:
    return "?" if value is None else f"{value:.2f}"


def _closing(document: ComparisonDocument) -> Iterator[str]:
    metric = document.primary_metric.name
    for first, second in document.tied or ():
        yield f"{first} and {second} cannot be told apart by {metric}."
    for one in document.conditions:
        yield f"~ {one.name} differs: {conditions_text(one.values)}"
    for notice in document.notices:
        yield f"~ {notice}"
