"""Which turns people are asked to label: drawn by chance, each with a known probability."""

from collections.abc import Iterator, Sequence
from hashlib import sha256

from msgspec import Struct

from socratic_bench.benchmarks import load_benchmark
from socratic_bench.studies.calibrate.judged_runs import JudgedRun, JudgedTurn

# How much likelier a turn is drawn within a point of a threshold, and where jurors disagree.
NEAR, NEAR_POINTS = 3.0, 1.0
DISPUTED, DISPUTED_POINTS = 2.0, 1.0
HALVINGS = 60


class SampledTurn(Struct, frozen=True, kw_only=True):
    """A turn that was drawn, with its probability."""

    run: JudgedRun
    turn: JudgedTurn
    probability: float


def drawn_turns(
    runs: Sequence[JudgedRun], n_turns: int, *, seed: int, whole_dialogues: bool = False
) -> list[SampledTurn]:
    """About `n_turns` of them, each drawn by itself, in an order by chance; the same for the same
    seed. Probabilities are never 0, and as turns weigh, up to 1. `whole_dialogues`: dialogues are
    drawn instead, all as likely, with every turn in their order.
    """
    turns = [(run, turn) for run in runs for turn in run.turns]
    if whole_dialogues:
        share = min(1.0, n_turns / len(turns)) if turns else 0.0
        chosen = [run for run in runs if _chance(seed, run.run_id) < share]
        chosen.sort(key=lambda run: _chance(seed, "order", run.run_id))
        return [
            SampledTurn(run=run, turn=turn, probability=share)
            for run in chosen
            for turn in run.turns
        ]
    weights = [_weight(run, turn) for run, turn in turns]
    factor = _factor(weights, n_turns)
    found = [
        SampledTurn(run=run, turn=turn, probability=min(1.0, factor * weight))
        for (run, turn), weight in zip(turns, weights, strict=True)
        if _chance(seed, run.run_id, turn.turn) < factor * weight
    ]
    return sorted(found, key=lambda one: _chance(seed, "order", one.run.run_id, one.turn.turn))


def _weight(run: JudgedRun, turn: JudgedTurn) -> float:
    score = turn.score
    near = score is not None and any(abs(score - one) <= NEAR_POINTS for one in _thresholds(run))
    disputed = turn.spread >= DISPUTED_POINTS
    return (NEAR if near else 1.0) * (DISPUTED if disputed else 1.0)


def _thresholds(run: JudgedRun) -> Iterator[float]:
    """Those of the benchmark that are scores, which are decimal; numbers of turns are whole."""
    told = run.document.get("thresholds") or {}
    for name in load_benchmark(run.benchmark).parts.thresholds.__struct_encode_fields__:
        if isinstance(value := told.get(name), float):
            yield value


def _factor(weights: Sequence[float], n_turns: int) -> float:
    """By what weights are multiplied so that so many are drawn on average; none counts above 1."""
    low, high = 0.0, 1.0 / min(weights, default=1.0)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        is_enough = sum(min(1.0, middle * weight) for weight in weights) >= n_turns
        low, high = (low, middle) if is_enough else (middle, high)
    return high


def _chance(*parts: object) -> float:
    """In 0 to 1, the same for the same parts on any machine."""
    digest = sha256("/".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64
