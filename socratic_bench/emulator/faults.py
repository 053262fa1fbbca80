"""Injected faults: their names, their notation, and when they strike."""

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from socratic_bench.emulator.dialogue import hashed
from socratic_bench.emulator.models import Role

# What the service or the network does to a call.
ERROR_KINDS = (
    *("throttled", "daily_quota", "quota_exceeded", "not_ready", "internal", "unavailable"),
    *("model_timeout", "model_error", "validation", "access_denied", "not_found"),
    *("expired_token", "unrecognized_key", "on_demand", "legacy", "context_window"),
    "denied_streaming",
)
WIRE_KINDS = (
    *("reset", "refused", "bad_gateway", "cut", "cut_frame", "corrupt", "empty_body", "html"),
    *("truncated_json", "no_output", "hang", "stream_error", "no_metadata"),
)
# What a model makes of its reply.
CONTENT_KINDS = (
    *("empty_reply", "filtered", "guardrail", "max_tokens", "context_stop", "reasoning_only"),
    *("malformed_output", "huge_reply"),
)
# What only a judge can get wrong; other roles are left alone.
VERDICT_KINDS = (
    *("prose_verdict", "wrapped_verdict", "out_of_range", "off_step", "missing_dimension"),
    *("string_score", "nan_score"),
)
# How a batch job ends; all but the first after half of its records.
JOB_KINDS = ("job_failed", "job_expired", "job_stopped", "job_partial")
JOB_OPERATION = "CreateModelInvocationJob"
KINDS = ERROR_KINDS + WIRE_KINDS + CONTENT_KINDS + VERDICT_KINDS + JOB_KINDS
# OptimizePrompt streams, too, and has no content but a prompt.
OPTIMIZER_KINDS = {*ERROR_KINDS, *WIRE_KINDS} - {"denied_streaming", "no_metadata"}
STREAMED_OPERATIONS = ("ConverseStream", "OptimizePrompt")
STREAM_ONLY_KINDS = ("cut_frame", "stream_error", "no_metadata", "denied_streaming")

LONGEST_WAIT_MS = 24 * 3600 * 1000

# Of the judge's calls, those for a verdict on a reply, and the one about a whole dialogue.
FaultRole = Literal[Role, "optimizer", "verdict", "closing", "any"]


class Fault(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fault and the calls it strikes, all without a count; `ms` is a wait, or advice to wait."""

    kind: str
    role: FaultRole = "any"
    count: Annotated[int, Meta(ge=0)] | None = None
    after: Annotated[int, Meta(ge=0)] = 0
    p: Annotated[float, Meta(ge=0, le=1)] = 1.0
    model: str = ""
    ms: Annotated[float, Meta(ge=0, le=LONGEST_WAIT_MS)] | None = None
    op: str = ""

    def fits(self, role: str, model_id: str, operation: str, *, is_closing: bool = False) -> bool:
        if (operation == JOB_OPERATION) != (self.kind in JOB_KINDS):
            return False
        if operation == "OptimizePrompt" and self.kind not in OPTIMIZER_KINDS:
            return False
        part = "closing" if is_closing else "verdict"
        return (
            (self.role in ("any", role) or (role == "judge" and self.role == part))
            and (not self.op or self.op == operation)
            and self.model in model_id
            and (self.kind not in VERDICT_KINDS or role == "judge")
            and (self.kind not in STREAM_ONLY_KINDS or operation in STREAMED_OPERATIONS)
        )


def parse_fault(spec: str) -> Fault:
    """Read `KIND[:role=..][:count=N][:after=K][:p=0.3][:model=SUBSTR][:ms=N][:op=Converse]`."""
    kind, *options = _split(spec.strip())
    if kind not in KINDS:
        raise ValueError(f"Unknown fault {kind!r} in {spec!r}. Known are: {', '.join(KINDS)}.")
    given = {name: value for name, _, value in (option.partition("=") for option in options)}
    try:
        fault = {**given, "kind": kind}
        return msgspec.convert(fault, Fault, strict=False)  # noqa: TID251 -- no room of ours is used
    except msgspec.ValidationError as error:
        reason, _, place = str(error).partition(" - at `$.")
        where = f"{place.rstrip('`')} of " if place else ""
        raise ValueError(f"In {where}the fault {spec!r}: {reason}.") from None


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
