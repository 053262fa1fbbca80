"""What the calls of one role took: tokens, requests, milliseconds."""

from collections.abc import Sequence

from msgspec import Struct

from socratic_bench.documents.clock import milliseconds
from socratic_bench.types import Attempt, Completion, Json, Usage

SHARES = (50, 90, 99)
TOKEN_KINDS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


class Tally(Struct, frozen=True, kw_only=True):
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
    }


def tally_latency(tally: Tally) -> dict[str, Json] | None:
    """Percentiles over the answering attempts, what was waited apart from them, and how many of the
    others may stand on the bill; `None` if nothing was sent.
    """
    if not tally.attempts:
        return None
    calls = tally.completions
    return {
        "ttft_ms": percentiles([call.ttft_ms for call in calls]),
        "latency_ms": percentiles([call.latency_ms for call in calls]),
        "service_latency_ms": percentiles([call.service_latency_ms for call in calls]),
        "overhead_ms": percentiles([call.overhead_ms for call in calls]),
        "output_tokens_per_s": percentiles([call.output_tokens_per_s for call in calls]),
        "waits_ms": _waits(tally),
        "unanswered_maybe_billed": sum(
            one.error is not None and one.may_have_been_billed for one in tally.attempts
        ),
    }


def percentiles(values: Sequence[float | None]) -> dict[str, Json] | None:
    """Three percentiles of the values that are known; `None` without any.

    Linear interpolation between closest ranks: `statistics.quantiles` by its method "inclusive",
    Hyndman and Fan's type 7.
    """
    from statistics import quantiles  # brings decimals and fractions along

    known = [value for value in values if value is not None]
    if not known:
        return None
    cuts = quantiles(known, n=100, method="inclusive") if len(known) > 1 else known * 99
    return {f"p{share}": milliseconds(cuts[share - 1]) for share in SHARES}


def _waits(tally: Tally) -> dict[str, Json]:
    total = sum(one.wait_ms for one in tally.attempts)
    before = sum(call.wait_before_ms for call in tally.completions)
    between = sum(call.wait_between_ms for call in tally.completions)
    return {
        "total": milliseconds(total),
        "before_first_attempt": milliseconds(before),
        "between_attempts": milliseconds(between),
        "of_failed_calls": milliseconds(max(0.0, total - before - between)),
    }
