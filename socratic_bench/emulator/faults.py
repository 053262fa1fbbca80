"""Injected faults: their names, their notation, and when they strike."""

from collections.abc import Sequence
from typing import Literal, get_args

from msgspec import Struct

from socratic_bench.emulator.dialogue import hashed
from socratic_bench.emulator.models import Role

# What the service or the network does to a call.
ERROR_KINDS = (
    "throttled",
    "daily_quota",
    "quota_exceeded",
    "not_ready",
    "internal",
    "unavailable",
    "model_timeout",
    "model_error",
    "validation",
    "access_denied",
    "not_found",
    "expired_token",
    "unrecognized_key",
    "on_demand",
    "legacy",
    "context_window",
    "denied_streaming",
)
WIRE_KINDS = (
    "reset",
    "refused",
    "bad_gateway",
    "cut",
    "cut_frame",
    "corrupt",
    "empty_body",
    "html",
    "truncated_json",
    "no_output",
    "hang",
    "stream_error",
    "no_metadata",
)
# What a model makes of its reply.
CONTENT_KINDS = (
    "empty_reply",
    "filtered",
    "guardrail",
    "max_tokens",
    "context_stop",
    "reasoning_only",
    "malformed_output",
    "huge_reply",
)
# What only a judge can get wrong; other roles are left alone.
VERDICT_KINDS = (
    "prose_verdict",
    "wrapped_verdict",
    "out_of_range",
    "off_step",
    "missing_dimension",
    "string_score",
    "nan_score",
)
KINDS = ERROR_KINDS + WIRE_KINDS + CONTENT_KINDS + VERDICT_KINDS
STREAM_ONLY_KINDS = ("cut_frame", "stream_error", "no_metadata", "denied_streaming")

# A day is as long as a wait can be.
_MOST = {"p": 1, "ms": 86_400_000}

# Of the judge's calls, those for a verdict on a reply, and the one about a whole dialogue.
FaultRole = Literal[Role, "verdict", "closing", "any"]


class Fault(Struct, frozen=True, kw_only=True):
    """A fault and the calls it strikes. `count=None`: all; `ms` is a wait, or advice to wait.

    `refused` resets the connection and lets nobody connect for `ms`.
    """

    kind: str
    role: FaultRole = "any"
    count: int | None = None
    after: int = 0
    p: float = 1.0
    model: str = ""
    ms: float | None = None
    op: str = ""

    def fits(self, role: str, model_id: str, operation: str, *, is_closing: bool = False) -> bool:
        part = "closing" if is_closing else "verdict"
        return (
            (self.role in ("any", role) or (role == "judge" and self.role == part))
            and (not self.op or self.op == operation)
            and self.model in model_id
            and (self.kind not in VERDICT_KINDS or role == "judge")
            and (self.kind not in STREAM_ONLY_KINDS or operation == "ConverseStream")
        )


def parse_fault(spec: str) -> Fault:
    """Read `KIND[:role=..][:count=N][:after=K][:p=0.3][:model=SUBSTR][:ms=N][:op=Converse]`."""
    kind, *options = _split(spec.strip())
    if kind not in KINDS:
        raise ValueError(f"Unknown fault {kind!r} in {spec!r}. Known are: {', '.join(KINDS)}.")
    return Fault(kind=kind, **_read_options(options, spec))  # type: ignore[arg-type]  # read by name


class FaultInjector:
    """Decides for each call which fault strikes it, and remembers how often each one did."""

    def __init__(self, faults: Sequence[Fault], seed: int) -> None:
        self.faults = tuple(faults)
        self._seed = seed
        self._matched = [0] * len(self.faults)
        self._struck = [0] * len(self.faults)

    def next_fault(
        self, role: str, model_id: str, operation: str, *, is_closing: bool = False
    ) -> Fault | None:
        """The first fault that strikes. The later ones do not notice this call."""
        for index, fault in enumerate(self.faults):
            fits = fault.fits(role, model_id, operation, is_closing=is_closing)
            if fits and self._strikes(index, fault):
                self._struck[index] += 1
                return fault
        return None

    def _strikes(self, index: int, fault: Fault) -> bool:
        number = self._matched[index]
        self._matched[index] += 1
        if number < fault.after or (fault.count is not None and self._struck[index] >= fault.count):
            return False
        return fault.p >= 1 or hashed(f"{self._seed}:{index}:{number}") / 2**64 < fault.p


def _split(spec: str) -> list[str]:
    """Cut at colons; a piece without "=" belongs to the one before (model ids contain colons)."""
    kind, *fields = spec.split(":")
    pieces = [kind]
    for piece in fields:
        if "=" in piece or len(pieces) == 1:
            pieces.append(piece)
        else:
            pieces[-1] += f":{piece}"
    return pieces


def _read_options(options: Sequence[str], spec: str) -> dict[str, object]:
    names = set(Fault.__struct_fields__) - {"kind"}
    read: dict[str, object] = {}
    for option in options:
        name, _, value = option.partition("=")
        if name not in names:
            raise ValueError(
                f"Unknown option {name!r} in fault {spec!r}. Known are: {', '.join(sorted(names))}."
            )
        read[name] = _read_option(name, value, spec)
    return read


def _read_option(name: str, value: str, spec: str) -> object:
    if name == "role":
        if value not in get_args(FaultRole):
            raise ValueError(
                f"The role in fault {spec!r} is one of {', '.join(get_args(FaultRole))}."
            )
        return value
    if name in ("model", "op"):
        return value
    try:
        number = int(value) if name in ("count", "after") else float(value)
    except ValueError:
        raise ValueError(
            f"The option {name} in fault {spec!r} is a number, not {value!r}."
        ) from None
    if not 0 <= number <= _MOST.get(name, float("inf")):
        raise ValueError(f"The option {name} in fault {spec!r} is out of range.")
    return number
