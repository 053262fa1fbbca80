"""What people see of a run at its end on stderr: its result, what it took, and what shows it."""

from collections.abc import Callable, Iterator

from socratic_bench.documents.cost import CostEntry
from socratic_bench.documents.place import Place
from socratic_bench.documents.result import RunResult
from socratic_bench.errors import ENDINGS
from socratic_bench.ports.benchmark import Benchmark

from .output import plain, say
from .progress import tag_of

MINUTE_S, HOUR_S = 60, 3600
LEAST_USD = 0.0001


def say_closing(result: RunResult, benchmark: Benchmark, called: Callable[[str], str]) -> None:
    """One line, for a run that has anything to tell, and one for the command that shows a run which
    is complete and kept; settings are `called` by their flags.
    """
    tag = tag_of(result.run_id)
    cut_short = result.status == "completed" and ENDINGS[result.end_reason].is_cut_short
    ended = f"{result.status} ({result.end_reason})" if cut_short else result.status
    if result.n_turns:
        say(f"{tag}{ended}: {', '.join(_parts(result, benchmark))}")
    elif cut_short:
        say(f"{tag}{ended}: no turn was played")
    if any(place and place.curated for place in (result.folder, result.s3)):
        from socratic_bench.runs.resume import stored_words

        words = stored_words(result.config, result.run_id, "show").told(called)
        say(f"{tag}seen by: {plain(words)}")


def _parts(result: RunResult, benchmark: Benchmark) -> Iterator[str]:
    metrics = result.metrics  # none, not even null ones, where a defect has kept them away
    first, *others = benchmark.headline(metrics) if metrics else ("no metrics",)
    judged = f" ({result.n_judged} of {result.n_turns} judged)" if result.is_judged else ""
    yield plain(first) + judged
    yield from map(plain, others)
    yield _cost(result.cost)
    yield duration(result.duration_s)
    yield from (_place(place) for place in (result.folder, result.s3) if place)


def _place(place: Place) -> str:
    """Without the file that comes last, not even the first may have arrived."""
    if place.curated is None:
        return f"what arrived is in {plain(place.raw)}"
    return f"kept in {plain(place.curated)}"


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
