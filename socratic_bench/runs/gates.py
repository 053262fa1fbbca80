"""What a completed run must reach: judge coverage, and minima of metrics."""

from collections.abc import Collection, Mapping, Sequence

from socratic_bench.benchmarks import RunConfig
from socratic_bench.errors import BenchError, ModelError, Problem, Stopped
from socratic_bench.ports.benchmark import Metrics
from socratic_bench.settings import Gate
from socratic_bench.turns import Rubric, Turn, Unscored
from socratic_bench.types import counted

ALLOWED_UNJUDGED = 1


def shortfalls(
    config: RunConfig,
    metrics: Metrics,
    *,
    n_turns: int,
    n_judged: int,
    rubric: Rubric | None,
    closing: Collection[str] = (),
) -> tuple[str, ...]:
    """A sentence for each bound that was missed, naming it and by how much; `closing` are the
    metrics that a closing verdict gives.

    One unjudged turn is always allowed, so that a short run does not fail by a single slip of the
    judge; a run without any judged turn never passes.
    """
    n_counted, counted = (n_judged, "judged turn") if rubric else (n_turns, "turn")
    why = f"too few {counted}s" if n_counted else f"no {counted}"
    missed = [
        _missed(gate, metrics, "no closing verdict" if gate.metric in closing else why)
        for gate in config.gates
    ]
    if rubric and config.jurors:
        missed.append(_coverage(config.min_judge_coverage, n_turns=n_turns, n_judged=n_judged))
    return tuple(sentence for sentence in missed if sentence)


def falls_short(config: RunConfig, metrics: Metrics, *, n_turns: int, n_judged: int | None) -> bool:
    """Whether any bound was missed, by what is kept of a run; `n_judged` is `None` of one that
    nobody judged.
    """
    is_covered = n_judged is None or not _coverage(
        config.min_judge_coverage, n_turns=n_turns, n_judged=n_judged
    )
    return not is_covered or any(_missed(gate, metrics, "") for gate in config.gates)


def missing_verdicts(turns: Sequence[Turn]) -> BenchError | None:
    """What ends a run in which some turns are not judged, but would be if it went on: the judge was
    unavailable, or verdicts did not fit the budget.
    """
    unscored = [turn.outcome for turn in turns if isinstance(turn.outcome, Unscored)]
    if unavailable := [one for one in unscored if "unavailable" in (one.reason, *one.causes)]:
        error: BenchError = ModelError(
            _not_judged(unavailable),
            code="judge_unavailable",
            end_reason="unavailable",
            retryable=True,
        )
        again = Problem.of("Run again later, or raise {max_attempts}.")
        error.hints = unavailable[0].hints or (again,)
        return error
    if unaffordable := [one for one in unscored if "budget" in (one.reason, *one.causes)]:
        hint = Problem.of("Raise {max_cost_usd}.")
        error = Stopped(_not_judged(unaffordable), end_reason="budget", hint=hint)
        error.retryable = False
        return error
    return None


def _not_judged(outcomes: Sequence[Unscored]) -> str:
    return f"{counted(len(outcomes), 'turn')} could not be judged. {outcomes[0].message}"


def _coverage(minimum: float, *, n_turns: int, n_judged: int) -> str | None:
    if n_judged == 0:
        return "No turn was judged, so there is no score."
    if n_turns - n_judged <= ALLOWED_UNJUDGED or n_judged / n_turns >= minimum:
        return None
    return (
        f"The judge's coverage is {n_judged / n_turns:.4f} ({n_judged} of {n_turns} turns), "
        f"{minimum - n_judged / n_turns:.4f} under {minimum:g}."
    )


def _missed(gate: Gate, metrics: Metrics, why: str) -> str | None:
    value = metric_at(gate.metric, metrics)
    if value is None:
        return f"{gate.metric} is null ({why}), so it does not reach {gate.minimum:g}."
    if value >= gate.minimum:
        return None
    return (
        f"{gate.metric} is {value:g}, which is {gate.minimum - value:.4g} under {gate.minimum:g}."
    )


def metric_at(path: str, metrics: Metrics) -> float | None:
    """The number at a dotted path below the metrics."""
    name, _, rest = path.partition(".")
    value = metrics.get(name)
    if rest and isinstance(value, Mapping):
        return value.get(rest)
    return None if isinstance(value, Mapping | Sequence) or value is None else float(value)
