"""Measures trees side by side, and says which is faster and how sure that is.

A round takes one sample of every arm for each workload, in rotated order and with the same input.
The interval of a ratio is that of the median over rounds by order statistics: it is exact whatever
the noise is like. At most three looks are taken; each one's level leaves 95 % to all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from math import comb, exp, fsum, log
from statistics import median
from typing import Annotated, Literal

from msgspec import Struct

from socratic_bench.types import doc

Arm = Literal["base", "human", "agent"]
LOOKS = (9, 18, 36)  # rounds after which the interval is looked at
LOOK_LEVEL = 1 - 0.05 / len(LOOKS)
SIMILAR_LOW, SIMILAR_HIGH = 0.95, 1.05
Performance = Literal["beats", "similar", "worse", "inconclusive"]


class Sample(Struct, frozen=True, kw_only=True):
    """One run of a workload in a fresh process, timed by the harness."""

    arm: Arm
    workload: str
    round: int
    seed: int
    seconds: Annotated[float, doc("from the go to the checksum, by the harness's clock")]
    setup_seconds: Annotated[float, doc("from the start of the process to its readiness")]
    checksum: str
    operations: Annotated[int | None, doc("that the workload counted; null: it counts none")] = None
    self_seconds: Annotated[float | None, doc("that the workload claims; null: none")] = None


class Ratio(Struct, frozen=True, kw_only=True):
    """A speed-up: the median over rounds, with an exact interval."""

    median: float
    low: Annotated[float | None, doc("lower limit; null with fewer rounds than a look has")]
    high: Annotated[float | None, doc("upper limit")]
    rounds: int


class Verdict(Struct, frozen=True, kw_only=True):
    """The agent's patch against the base and the human's. Ratios over 1 are in its favour."""

    performance: Performance
    improved: Annotated[bool | None, doc("over the base by more than min_effect; null: undecided")]
    at_least_similar: Annotated[bool | None, doc("at least 0.95 of the human; null: undecided")]
    over_base: Annotated[Ratio, doc("time of base / time of agent")]
    over_human: Annotated[Ratio, doc("time of human / time of agent")]
    human_over_base: Annotated[Ratio, doc("time of base / time of human")]

    @property
    def is_success(self) -> bool:
        return self.improved is True and self.at_least_similar is True


TakeSample = Callable[[Arm, str, int, int], Sample]  # arm, workload, round, seed


def measure(
    arms: Sequence[Arm],
    workloads: Sequence[str],
    take_sample: TakeSample,
    is_decided: Callable[[Sequence[Sample]], bool],
    *,
    key: str,
    looks: Sequence[int] = LOOKS,
) -> list[Sample]:
    """Samples of interleaved rounds, up to the first look that decides."""
    samples: list[Sample] = []
    n_rounds = 0
    for look in looks:
        for number in range(n_rounds, look):
            shift = number % len(arms)
            for workload in workloads:
                seed = input_seed(key, workload, number)
                order = (*arms[shift:], *arms[:shift])
                samples += [take_sample(arm, workload, number, seed) for arm in order]
        n_rounds = look
        if is_decided(samples):
            break
    return samples


def input_seed(key: str, workload: str, number: int) -> int:
    """The seed of a round's input, which no agent can know beforehand."""
    return int.from_bytes(sha256(f"{key}/{workload}/{number}".encode()).digest()[:4])


def ratio(
    samples: Sequence[Sample], slower: Arm, faster: Arm, *, deciding: Sequence[str], metric: str
) -> Ratio:
    """How many times as long one arm takes as another: the geometric mean of workloads by round."""
    values: dict[tuple[int, str, Arm], float] = {}
    for sample in samples:
        value = sample.seconds if metric == "seconds" else sample.operations
        if value is None:
            raise ValueError(f"the workload {sample.workload} counts no operations")
        values[sample.round, sample.workload, sample.arm] = max(float(value), 1e-9)
    rounds = sorted({sample.round for sample in samples})
    by_round = [
        exp(fsum(
            log(values[number, load, slower] / values[number, load, faster]) for load in deciding
        ) / len(deciding))
        for number in rounds
    ]  # fmt: skip
    low, high = order_interval(by_round)
    return Ratio(median=median(by_round), low=low, high=high, rounds=len(by_round))


def order_interval(values: Sequence[float]) -> tuple[float | None, float | None]:
    """The interval of the median between order statistics, at the level of a look or above."""
    n = len(values)
    tail, rank = 0.5**n, 0  # of falling below the lowest value
    while 1 - 2 * tail >= LOOK_LEVEL:
        rank += 1
        tail += comb(n, rank) * 0.5**n
    if rank == 0:
        return None, None
    ordered = sorted(values)
    return ordered[rank - 1], ordered[n - rank]


def judge(
    samples: Sequence[Sample], *, deciding: Sequence[str], metric: str, min_effect: float
) -> Verdict:
    """The verdict that samples of all three arms give."""

    def against(slower: Arm, faster: Arm) -> Ratio:
        return ratio(samples, slower, faster, deciding=deciding, metric=metric)

    over_base, over_human = against("base", "agent"), against("human", "agent")
    return Verdict(
        performance=_performance(over_human),
        improved=is_over(over_base, 1 + min_effect),
        at_least_similar=is_over(over_human, SIMILAR_LOW),
        over_base=over_base,
        over_human=over_human,
        human_over_base=against("base", "human"),
    )


def is_over(figure: Ratio, bound: float) -> bool | None:
    """Whether a ratio is over a bound by its whole interval; `None` if that is undecided."""
    if figure.low is None or figure.high is None:
        return None
    return True if figure.low > bound else False if figure.high <= bound else None


def is_decided(verdict: Verdict) -> bool:
    return verdict.improved is not None and verdict.performance != "inconclusive"


def _performance(figure: Ratio) -> Performance:
    if figure.low is None or figure.high is None:
        return "inconclusive"
    if figure.low > SIMILAR_HIGH:
        return "beats"
    if figure.high < SIMILAR_LOW:
        return "worse"
    is_similar = figure.low >= SIMILAR_LOW and figure.high <= SIMILAR_HIGH
    return "similar" if is_similar else "inconclusive"
