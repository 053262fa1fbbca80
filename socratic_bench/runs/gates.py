"""What a completed run must reach: coverage by the judge, and minima of metrics."""

from collections.abc import Collection, Mapping, Sequence

from socratic_bench.benchmarks import RunConfig
from socratic_bench.errors import BenchError, ModelError, Problem, Stopped
from socratic_bench.ports.benchmark import Metrics
from socratic_bench.settings import Gate
from socratic_bench.turns import Rubric, Turn, Unscored
from socratic_bench.types import plural

# A short run does not fail by a single slip of the judge.
ALLOWED_UNJUDGED = 1


def gate_failures(
    config: RunConfig,
    metrics: Metrics,
    *,
    n_turns: int,
    n_judged: int,
    rubric: Rubric | None,
    closing: Collection[str] = (),
) -> tuple[str, ...]:
    """A sentence for each bound that was missed: its name, and by how much.

    A run without any judged turn misses the coverage. `closing` are the metrics that the closing
    verdict gives.
    """
    n_counted, unit = (n_judged, "judged turn") if rubric else (n_turns, "turn")
    reason = f"too few {unit}s" if n_counted else f"no {unit}"
    failures = [
        _gate_failure(gate, metrics, "no closing verdict" if gate.metric in closing else reason)
        for gate in config.gates
    ]
    if rubric and config.jurors:
        minimum = config.min_judge_coverage
        failures.append(_coverage_failure(minimum, n_turns=n_turns, n_judged=n_judged))
    return tuple(sentence for sentence in failures if sentence)


def has_gate_failures(
    config: RunConfig, metrics: Metrics, *, n_turns: int, n_judged: int | None
) -> bool:
    """Whether a stored run missed any bound; `n_judged` is `None` if nobody judged it."""
    is_covered = n_judged is None or not _coverage_failure(
        config.min_judge_coverage, n_turns=n_turns, n_judged=n_judged
    )
    return not is_covered or any(_gate_failure(gate, metrics, "") for gate in config.gates)


def missing_verdicts(turns: Sequence[Turn]) -> BenchError | None:
    """The error of a run whose verdicts are missing because the judge was unavailable or the budget
    exhausted: these come when it is resumed.
    """
    unscored = [turn.outcome for turn in turns if isinstance(turn.outcome, Unscored)]
    if unavailable := [each for each in unscored if "unavailable" in (each.reason, *each.causes)]:
        error: BenchError = ModelError(
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
        error = Stopped(_unjudged_message(unaffordable), end_reason="budget", hint=hint)
        error.retryable = False
        return error
    return None


def metric_at(path: str, metrics: Metrics) -> float | None:
    """The number at a dotted path in the metrics; `None` if there is none."""
    name, _, below = path.partition(".")
    value = metrics.get(name)
    if below and isinstance(value, Mapping):
        return value.get(below)
    return None if isinstance(value, Mapping | Sequence) or value is None else float(value)


def _gate_failure(gate: Gate, metrics: Metrics, why_null: str) -> str | None:
    value = metric_at(gate.metric, metrics)
    if value is None:
        return f"{gate.metric} is null ({why_null}), so it does not reach {gate.minimum:g}."
    if value >= gate.minimum:
        return None
    return (
        f"{gate.metric} is {value:g}, which is {gate.minimum - value:.4g} under {gate.minimum:g}."
    )


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
