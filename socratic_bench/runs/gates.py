"""What a completed run must reach: coverage by the judge, readable answers, bounds of metrics."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from socratic_bench.benchmarks import RunConfig
from socratic_bench.errors import BenchError, ModelError, Problem, Stopped
from socratic_bench.judging.verdict import UNREAD
from socratic_bench.ports.benchmark import MetricInfo, Metrics
from socratic_bench.settings import Gate
from socratic_bench.turns import ClosingResult, Rubric, Turn, Unscored
from socratic_bench.types import plural

# A short run does not fail by a single slip of the judge.
ALLOWED_UNJUDGED = 1
MAX_UNREAD = 0.1
NO_JUDGE = "{metric} is of judged turns, and {no_judge} leaves judging out."
TOO_SHORT = (
    "runs of this length measure {metric} up to {highest:g}, not up to {bound:g}. Raise {turns}."
)


def gate_failures(
    config: RunConfig,
    metrics: Metrics,
    *,
    n_turns: int,
    n_judged: int,
    rubric: Rubric | None,
    closing: Collection[str] = (),
) -> tuple[str, ...]:
    """A sentence for each bound that was missed: its name, and by how much. A run without any
    judged turn misses the coverage. `closing` are the metrics that the closing verdict gives.
    """
    n_counted, unit = (n_judged, "judged turn") if rubric else (n_turns, "turn")
    reason = f"too few {unit}s" if n_counted else f"no {unit}"
    failures: list[str | None] = []
    for gate in config.all_gates:
        value = metric_at(gate.metric, metrics)
        if value is None or not gate.passes(value):
            why_null = "no closing verdict" if gate.metric in closing else reason
            failures.append(gate.failure(gate.metric, value, why_null))
    if rubric and config.jurors:
        minimum = config.min_judge_coverage
        failures.append(_coverage_failure(minimum, n_turns=n_turns, n_judged=n_judged))
    return tuple(sentence for sentence in failures if sentence)


def unread_failures(turns: Sequence[Turn], closing: ClosingResult | None) -> Iterator[str]:
    """A sentence if too many answers of the model under test have a form that cannot be read, and
    if the closing verdict, of which a run has one, has such a form.
    """
    outcome = closing.outcome if closing else None
    if isinstance(outcome, Unscored) and outcome.reason in UNREAD:
        yield f"The closing verdict could not be read. {outcome.message}"
    n = sum(turn.answered == "unparsed" for turn in turns)
    if n > max(ALLOWED_UNJUDGED, MAX_UNREAD * len(turns)):
        yield f"{n} of {plural(len(turns), 'answer')} could not be read, over {MAX_UNREAD:.0%}."


def unknown_metric(gate: Gate, name: str, known: Iterable[str]) -> Problem:
    text = f"{{{gate.setting}}} names no metric: {{metric!r}}. Available: {{known}}."
    return Problem.of(text, metric=name, known=", ".join(known))


def gate_problem(
    gate: Gate,
    metric: MetricInfo,
    *,
    is_judged: bool = True,
    highest: float | None = None,
    n_parts: int = 1,
) -> Problem | None:
    """Why the result of a gate is certain before the first call; `None` if it is not.

    `highest` is the highest value of the metric that the run can show, and `n_parts` how many of
    its items can have the metric.
    """
    start, named = f"{{{gate.setting}}} {{word}}: ", {"word": gate.metric, "metric": metric.name}
    if metric.higher_is_better != (gate.side == "under"):
        other = "gates" if metric.higher_is_better else "gates_over"
        better = "higher" if metric.higher_is_better else "lower"
        text = f"of {{metric}} a {better} value is better. Bound it by {{{other}}}."
        return Problem.of(start + text, **named)
    if not is_judged and metric.needs_turns != 0:
        return Problem.of(start + NO_JUDGE, **named)
    if not n_parts:
        return Problem.of(f"{start}nothing of what is asked for has {{metric}}.", **named)
    if highest is not None and gate.bound > highest:
        return Problem.of(start + TOO_SHORT, **named, bound=gate.bound, highest=highest)
    low, high = metric.low, metric.high
    if (low is not None and gate.bound < low) or (high is not None and gate.bound > high):
        ends = f"from {low:g}" + ("" if high is None else f" to {high:g}")
        return Problem.of(f"{start}{{metric}} is {ends}, so the result is certain.", **named)
    return None


def is_judged_enough(minimum: float, *, n_turns: int, n_judged: int) -> bool:
    """Whether the judged turns of a run reach a coverage."""
    return _coverage_failure(minimum, n_turns=n_turns, n_judged=n_judged) is None


def missing_verdicts(turns: Sequence[Turn]) -> BenchError | None:
    """The error of a run whose verdicts are missing because the judge was unavailable or the budget
    exhausted: these come when it is resumed.
    """
    unscored = [turn.outcome for turn in turns if isinstance(turn.outcome, Unscored)]
    if unavailable := [each for each in unscored if "unavailable" in (each.reason, *each.causes)]:
        error = ModelError(
            _unjudged_message(unavailable),
            code="judge_unavailable",
            end_reason="unavailable",
            retryable=True,
        )
        again = Problem.of("Run again later, or raise {max_attempts}.")
        error.hints = unavailable[0].hints or (again,)
        return error
    if unaffordable := [each for each in unscored if "budget" in (each.reason, *each.causes)]:
        hint = Problem.of("Raise {max_cost_usd}.")
        return Stopped(_unjudged_message(unaffordable), end_reason="budget", hint=hint)
    return None


def metric_at(path: str, metrics: Metrics) -> float | None:
    """The number at a dotted path in the metrics; `None` if there is none."""
    name, _, below = path.partition(".")
    value = metrics.get(name)
    if below and isinstance(value, Mapping):
        return value.get(below)
    return None if isinstance(value, Mapping | Sequence) or value is None else float(value)


def _coverage_failure(minimum: float, *, n_turns: int, n_judged: int) -> str | None:
    if n_judged == 0:
        return "No turn was judged, so there is no score."
    if n_turns - n_judged <= ALLOWED_UNJUDGED or n_judged / n_turns >= minimum:
        return None
    return (
        f"The judge's coverage is {n_judged / n_turns:.4f} ({n_judged} of {n_turns} turns), "
        f"{minimum - n_judged / n_turns:.4f} under {minimum:g}."
    )


def _unjudged_message(outcomes: Sequence[Unscored]) -> str:
    return f"{plural(len(outcomes), 'turn')} could not be judged. {outcomes[0].message}"
