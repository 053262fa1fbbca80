"""Tokens, requests and times: of one call, of one role, of all roles, and of one model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import quantiles
from typing import Annotated, Any, Self

from msgspec import Meta, Struct
from msgspec.structs import replace

from socratic_bench.documents.document import (
    TIME_PLACES,
    USD_PLACES,
    Amount,
    Count,
    Model,
    Timestamp,
    to_places,
    utc,
)
from socratic_bench.types import Attempt, Completion, ProviderStopReason, Role, Usage, doc


class RoleUsage(Struct, frozen=True, kw_only=True):
    """One role's calls: those that were answered, and the failed requests of all others."""

    completions: tuple[Completion, ...] = ()
    failed: tuple[Attempt, ...] = ()

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """Every request, also of calls that were never answered."""
        return (*(a for call in self.completions for a in call.attempts), *self.failed)

    @property
    def usage(self) -> Usage | None:
        """Tokens of all calls; `None` if the service did not count a call."""
        return sum_usage([call.usage for call in self.completions])


def sum_usage(usages: Sequence[Usage | None]) -> Usage | None:
    """The sum; `None` if one of them is unknown."""
    total = Usage()
    for usage in usages:
        if usage is None:
            return None
        total += usage
    return total


class Tokens(Struct, frozen=True, kw_only=True):
    """Tokens; null where the service sent no counters."""

    input_tokens: Annotated[
        Count | None, doc("all input tokens; cache reads and writes are part of them")
    ] = None
    output_tokens: Annotated[Count | None, doc("output tokens")] = None
    cache_read_tokens: Annotated[Count | None, doc("input tokens read from the prompt cache")] = (
        None
    )
    cache_write_tokens: Annotated[Count | None, doc("input tokens written to the prompt cache")] = (
        None
    )

    @classmethod
    def of(cls, usage: Usage | None) -> Tokens:
        return cls(**_tokens(usage))


class CallUsage(Tokens, frozen=True, kw_only=True):
    """Tokens and calls of a role, or of all roles."""

    calls: Annotated[Count, doc("calls that were answered")] = 0

    @classmethod
    def of_all(cls, tallies: Sequence[RoleUsage]) -> Self:
        usage = sum_usage([role_usage.usage for role_usage in tallies])
        calls = sum(len(role_usage.completions) for role_usage in tallies)
        return cls(**_tokens(usage), calls=calls)

    @classmethod
    def by_role(cls, tallies: Mapping[Role, RoleUsage]) -> dict[str, Self]:
        """By role, and in total."""
        roles = {role: cls.of_all([role_usage]) for role, role_usage in tallies.items()}
        return {**roles, "total": cls.of_all([*tallies.values()])}


class ActorUsage(CallUsage, frozen=True, kw_only=True):
    """Tokens, calls and requests of a role, or of all roles."""

    attempts: Annotated[
        Count, doc("requests sent, also for calls that failed or were cancelled when the run ended")
    ] = 0

    @classmethod
    def of_all(cls, tallies: Sequence[RoleUsage]) -> Self:
        attempts = sum(len(role_usage.attempts) for role_usage in tallies)
        return replace(super().of_all(tallies), attempts=attempts)


def _tokens(usage: Usage | None) -> dict[str, int | None]:
    return {name: getattr(usage, name, None) for name in Tokens.__struct_fields__}


def usage_total(usages: Iterable[ActorUsage]) -> ActorUsage:
    """The sums; null where a number is unknown."""
    used = [*usages]

    def total(name: str) -> Any:  # noqa: ANN401 -- as the field has it
        numbers = [getattr(usage, name) for usage in used]
        return None if None in numbers else sum(numbers)

    return ActorUsage(**{name: total(name) for name in ActorUsage.__struct_fields__})


def cost_total(costs_usd: Iterable[float | None]) -> float | None:
    """USD in all; `None` if a cost is unknown."""
    costs = [*costs_usd]
    return None if None in costs else round(sum(cost or 0.0 for cost in costs), USD_PLACES)


# Fields of a completion that are measured, and the times that a call waited.
MEASURED = ("ttft_ms", "latency_ms", "service_latency_ms", "overhead_ms", "output_tokens_per_s")
WAITS = ("wait_before_ms", "wait_between_ms")


class CallLatency(Struct, frozen=True, kw_only=True):
    """Times of the attempt that answered, measured here and by the service, and waits."""

    ttft_ms: Annotated[
        Amount | None,
        doc("milliseconds until the first content, reasoning included; null if not streamed"),
    ]
    latency_ms: Annotated[
        Amount, doc("milliseconds until the last byte of the attempt that answered")
    ]
    service_latency_ms: Annotated[Amount | None, doc("milliseconds reported by the service")]
    overhead_ms: Annotated[
        float | None, doc("latency_ms minus service_latency_ms: network and client")
    ]
    output_tokens_per_s: Annotated[Amount | None, doc("output tokens divided by latency_ms")]
    wait_before_ms: Annotated[Amount, doc("milliseconds waited before the first attempt")]
    wait_between_ms: Annotated[Amount, doc("milliseconds waited between attempts")]
    attempts: Annotated[int, Meta(ge=1, description="requests of this call")]

    @classmethod
    def of(cls, call: Completion) -> CallLatency:
        times = {name: to_places(getattr(call, name), TIME_PLACES) for name in (*MEASURED, *WAITS)}
        return cls(**times, attempts=len(call.attempts))


class AttemptEntry(Struct, frozen=True, kw_only=True):
    """One request."""

    started_at: Annotated[Timestamp, doc("when it was sent, UTC")]
    duration_ms: Annotated[Amount, doc("how long the request took, in milliseconds")]
    wait_ms: Annotated[Amount, doc("milliseconds waited before it")]
    error: Annotated[str | None, doc("code of the failure; null for the attempt that answered")]
    may_have_been_billed: Annotated[
        bool, doc("false only if certainly no model processed the request")
    ]

    @classmethod
    def of(cls, attempt: Attempt) -> AttemptEntry:
        return cls(
            started_at=utc(attempt.started_at),
            duration_ms=round(attempt.duration_ms, TIME_PLACES),
            wait_ms=round(attempt.wait_ms, TIME_PLACES),
            error=attempt.error,
            may_have_been_billed=attempt.may_have_been_billed,
        )


Attempts = Annotated[
    list[AttemptEntry], doc("every request of the call, in order; the last answered")
]
RequestId = Annotated[str | None, doc("the service's id of the answer")]


class CallEntry(Struct, frozen=True, kw_only=True):
    """A call: how it ended, its tokens, times and requests."""

    stop_reason: Annotated[str, doc("why the model stopped")]
    provider_stop_reason: ProviderStopReason = None
    usage: Annotated[Tokens, doc("tokens of the call")]
    latency: Annotated[CallLatency, doc("times of the attempt that answered")]
    attempts: Attempts
    request_id: RequestId

    @classmethod
    def of(cls, call: Completion) -> CallEntry:
        return cls(**call_fields(call))


def call_fields(call: Completion) -> dict[str, Any]:
    """The fields of a `CallEntry`."""
    return {
        "stop_reason": call.stop_reason,
        "provider_stop_reason": call.provider_stop_reason,
        "usage": Tokens.of(call.usage),
        "latency": CallLatency.of(call),
        "attempts": [AttemptEntry.of(attempt) for attempt in call.attempts],
        "request_id": call.request_id,
    }


class Percentiles(Struct, frozen=True, kw_only=True):
    """Percentiles by linear interpolation (type 7 of Hyndman and Fan), in the key's unit."""

    p50: Annotated[float, doc("the median")]
    p90: Annotated[float, doc("the 90th percentile")]
    p99: Annotated[float, doc("the 99th percentile")]

    @classmethod
    def of(cls, values: Sequence[float | None]) -> Percentiles | None:
        """Percentiles of the known values; `None` without any."""
        numbers = [value for value in values if value is not None]
        if not numbers:
            return None
        # Before Python 3.13, `quantiles` takes at least two values.
        points = quantiles(numbers if len(numbers) > 1 else numbers * 2, n=100, method="inclusive")
        p50, p90, p99 = (round(points[percent - 1], TIME_PLACES) for percent in (50, 90, 99))
        return cls(p50=p50, p90=p90, p99=p99)


class Waits(Struct, frozen=True, kw_only=True):
    """Milliseconds waited, summed over calls."""

    total: Annotated[Amount, doc("all waits")]
    before_first_attempt: Annotated[
        Amount,
        doc(
            "of answered calls, before their first attempt: for the rate limit, or for a prompt "
            "cache that another call was writing"
        ),
    ]
    between_attempts: Annotated[Amount, doc("of answered calls, between their attempts")]
    of_failed_calls: Annotated[Amount, doc("of calls that were never answered")]


class ActorLatency(Struct, frozen=True, kw_only=True):
    """Percentiles over the attempts that answered, and waits."""

    ttft_ms: Annotated[
        Percentiles | None,
        doc(
            "milliseconds until the first content of a stream, reasoning included; null if "
            "nothing was streamed"
        ),
    ]
    first_text_ms: Annotated[
        Percentiles | None, doc("milliseconds until the first text, after any reasoning")
    ] = None
    latency_ms: Annotated[Percentiles | None, doc("milliseconds until the last byte")]
    service_latency_ms: Annotated[Percentiles | None, doc("milliseconds reported by the service")]
    overhead_ms: Annotated[
        Percentiles | None, doc("latency_ms minus service_latency_ms: network and client")
    ]
    output_tokens_per_s: Annotated[Percentiles | None, doc("output tokens divided by latency_ms")]
    waits_ms: Annotated[Waits, doc("milliseconds waited, summed over calls")]
    unanswered_maybe_billed: Annotated[
        Count, doc("failed requests that may be billed; their tokens are not counted")
    ]

    @classmethod
    def of(cls, role_usage: RoleUsage) -> ActorLatency | None:
        """Latency of a role's calls; `None` if nothing was sent."""
        if not role_usage.attempts:
            return None
        calls = role_usage.completions
        return cls(
            **{
                name: Percentiles.of([getattr(call, name) for call in calls])
                for name in (*MEASURED, "first_text_ms")
            },
            waits_ms=_waits(role_usage),
            unanswered_maybe_billed=sum(
                attempt.error is not None and attempt.may_have_been_billed
                for attempt in role_usage.attempts
            ),
        )


def _waits(role_usage: RoleUsage) -> Waits:
    total = sum(attempt.wait_ms for attempt in role_usage.attempts)
    before = sum(call.wait_before_ms for call in role_usage.completions)
    between = sum(call.wait_between_ms for call in role_usage.completions)
    return Waits(
        total=round(total, TIME_PLACES),
        before_first_attempt=round(before, TIME_PLACES),
        between_attempts=round(between, TIME_PLACES),
        of_failed_calls=round(max(0.0, total - before - between), TIME_PLACES),
    )


class ModelThroughput(Struct, frozen=True, kw_only=True):
    """Requests and tokens of a model in a region, of all roles, retries included."""

    model: Model
    region: Annotated[str | None, doc("region of the calls; null if none is set")]
    target_rpm: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        doc("limit of requests in any minute; null without a target"),
    ]
    target_tpm: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        doc("limit of tokens, input and output, in any minute; null without a target"),
    ]
    rpm: Annotated[
        Amount | None,
        doc("requests per minute, over `work_s` or at least a minute; null: no request"),
    ]
    tpm: Annotated[
        Amount | None,
        doc("tokens per minute, input and output, over the same time; null: no request"),
    ]
    requests: Annotated[Count, doc("requests sent")]
    tokens: Annotated[
        Count, doc("tokens of all requests; an upper bound for requests that were not counted")
    ]
    throttled: Annotated[Count, doc("requests that were throttled")]
    waited_s: Annotated[
        Amount, doc("seconds that requests waited for a target and the rate limit, summed")
    ]
    work_s: Annotated[
        Amount,
        doc(
            "seconds from the first call to the last, waits included; pauses without any call "
            "count at most a minute each"
        ),
    ]
    stalled: Annotated[bool, doc("whether it was stopped because it had not answered for too long")]


class ShardShare(Struct, frozen=True, kw_only=True):
    """What a shard of a sweep plays, and what it has of the limits that were given."""

    index: Annotated[Count, doc("number of the shard, from 0")]
    count: Annotated[int, Meta(ge=1, description="number of shards: it plays every count-th run")]
    at_once: Annotated[int, Meta(ge=1, description="shards that run at a time")]
    n_runs_of_sweep: Annotated[Count, doc("runs of all shards")]
    max_connections: Annotated[int, Meta(ge=1, description="its part of the connections")]
    target_rpm: Annotated[
        dict[str, int], doc("its part of the requests a minute, by model; *: each without its own")
    ]
    target_tpm: Annotated[dict[str, int], doc("its part of the tokens a minute, by model")]
    max_cost_usd: Annotated[
        Amount | None, doc("its part of the budget, by its runs; null without a budget")
    ]
