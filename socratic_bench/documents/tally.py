"""What the calls of one role took: tokens, requests, milliseconds."""

from collections.abc import Sequence

from socratic_bench.documents.clock import milliseconds
from socratic_bench.types import Attempt, Completion, Json, Usage
from socratic_bench.values import dataclass

TOKEN_KINDS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """`completions` are the calls that answered; `failed` the requests of calls that never did."""

    completions: tuple[Completion, ...] = ()
    failed: tuple[Attempt, ...] = ()

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """Every request, whether its call was answered in the end or not."""
        return (*(one for call in self.completions for one in call.attempts), *self.failed)

    @property
    def usage(self) -> Usage | None:
        """The tokens of all calls; `None` if the service left a call uncounted."""
        return sum_usage([call.usage for call in self.completions])


def sum_usage(usages: Sequence[Usage | None]) -> Usage | None:
    """The sum, or `None` if one of them is not known."""
    total = Usage()
    for usage in usages:
        if usage is None:
            return None
        total += usage
    return total


def usage_fields(usage: Usage | None) -> dict[str, Json]:
    """The token kinds by name, all null if the usage is not known."""
    return {kind: getattr(usage, kind) if usage else None for kind in TOKEN_KINDS}


def tally_usage(tallies: Sequence[Tally]) -> dict[str, Json]:
    """The usage entry of one role, or of several together."""
    attempts = [one for tally in tallies for one in tally.attempts]
    return {
        **usage_fields(sum_usage([tally.usage for tally in tallies])),
        "calls": sum(len(tally.completions) for tally in tallies),
        "attempts": len(attempts),
        "unanswered_maybe_billed": sum(
            one.error is not None and one.may_have_been_billed for one in attempts
        ),
    }


def tally_latency(tally: Tally) -> dict[str, Json] | None:
    """Percentiles over the answering attempts, in ms, and what was waited between attempts."""
    times = sorted(call.latency_ms for call in tally.completions)
    if not times:
        return None
    return {
        "p50_ms": percentile(times, 0.50),
        "p90_ms": percentile(times, 0.90),
        "p99_ms": percentile(times, 0.99),
        "max_ms": milliseconds(times[-1]),
        "wait_ms": milliseconds(sum(one.wait_ms for one in tally.attempts)),
    }


def percentile(ordered: Sequence[float], share: float) -> float:
    """Linear interpolation between closest ranks, as numpy's default (Hyndman and Fan's type 7)."""
    position = (len(ordered) - 1) * share
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return milliseconds(ordered[low] + (ordered[high] - ordered[low]) * (position - low))
