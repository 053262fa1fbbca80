"""What a run may write of a call: figures that no service counts are no damage, but forged."""

from msgspec.structs import fields

from socratic_bench.types import Attempt, Completion, Usage

# As of what a service counts: no call has more tokens or milliseconds.
MOST = 10**12
_OPTIONAL = (
    "service_latency_ms",
    "ttft_ms",
    "input_tokens_at_most",
    "output_tokens_at_most",
)
_TEXTS = ("stop_reason",)
_FLAGS = ("may_have_been_billed", "streamed")


class ImpossibleError(Exception):
    """A sealed entry holds what no run writes; the words say what."""


def check(found: Usage | Attempt | Completion) -> None:
    """Raise `ImpossibleError` for tokens, times, flags or words that no document may hold."""
    for field in fields(found):
        name, value = field.name, getattr(found, field.name)
        if value is None and name in _OPTIONAL:
            continue
        if not _is_possible(name, value):
            raise ImpossibleError(f"{name} of {value!r:.40}")


def _is_possible(name: str, value: object) -> bool:
    if name.endswith("_ms"):
        return type(value) in {int, float} and _is_bounded(value)
    if "tokens" in name:
        return type(value) is int and _is_bounded(value)
    if name in _FLAGS:
        return isinstance(value, bool)
    return isinstance(value, str) if name in _TEXTS else True


def _is_bounded(value: object) -> bool:
    return isinstance(value, int | float) and 0 <= value <= MOST
