"""What people see of a run at its end on stderr: its result, what it took, and where it is kept."""

from collections.abc import Iterator

from socratic_bench.documents import RunResult
from socratic_bench.documents.cost import CostEntry
from socratic_bench.ports import Benchmark

from .output import plain, say
from .progress import tag_of

MINUTE_S, HOUR_S = 60, 3600
LEAST_USD = 0.0001


def say_closing(result: RunResult, benchmark: Benchmark) -> None:
    """One line, for a run that has anything to tell."""
    if result.n_turns:
        say(f"{tag_of(result.run_id)}{result.status}: {', '.join(_parts(result, benchmark))}")


def _parts(result: RunResult, benchmark: Benchmark) -> Iterator[str]:
    first, *others = benchmark.headline(result.metrics)
    judged = f" ({result.n_judged} of {result.n_turns} judged)" if result.is_judged else ""
    yield plain(first) + judged
    yield from map(plain, others)
    yield _cost(result.cost)
    yield duration(result.duration_s)
    for place in (result.folder, result.s3):
        if place:
            yield f"kept in {plain(place.curated or place.raw)}"


def _cost(cost: CostEntry | None) -> str:
    total = cost and cost.roles["total"]
    if not cost or not total:
        return "cost unknown"
    usd = total.total_usd
    told = f"under {LEAST_USD} USD" if 0 < usd < LEAST_USD else f"{usd:.4f} USD"
    return f"{told} (not billed)" if cost.stand_in else told


def duration(seconds: float) -> str:
    if seconds < MINUTE_S:
        return f"{seconds:.1f} s"
    if seconds < HOUR_S:
        return f"{seconds // MINUTE_S:.0f} min {seconds % MINUTE_S:.0f} s"
    return f"{seconds // HOUR_S:.0f} h {seconds % HOUR_S // MINUTE_S:.0f} min"
