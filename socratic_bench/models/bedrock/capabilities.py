"""Which request fields a model takes: what the table says, less what it has refused so far, less
what a run leaves out; and the words by which the service refuses a field.
"""

import json
import re
import threading
from collections.abc import Mapping, Sequence
from functools import cache, reduce
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.catalogue.models import Capabilities, capabilities_of
from socratic_bench.concurrency import convert
from socratic_bench.models.bedrock.request import Wire, converse_arguments
from socratic_bench.ports.provider import ErrorKind, RefusedField
from socratic_bench.settings import CoreConfig
from socratic_bench.types import Request

# Fields that the program adds by itself and can leave out.
OWN_FIELDS = (
    *("system", "forced_tool", "streaming", "streamed_tools", "prompt_cache"),
    "temperature",  # of a request that wants one if it is taken; the user's is sent all the same
)


class Options(Struct, frozen=True, kw_only=True):
    """What every request of a run has or lacks: `metadata` goes with each."""

    stream: bool = True
    prompt_cache: bool = True
    metadata: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, config: CoreConfig) -> "Options":
        return cls(
            stream=config.stream, prompt_cache=config.prompt_cache, metadata=config.request_metadata
        )

    def limited(self, capabilities: Capabilities) -> Capabilities:
        """What the run uses of a model's capabilities."""
        if not self.stream:
            capabilities = capabilities.without("streaming")
        return capabilities if self.prompt_cache else capabilities.without("prompt_cache")


class ShapedRequest(Struct, frozen=True):
    """The arguments of a request to a model that takes so much."""

    capabilities: Capabilities
    arguments: Wire

    @property
    def is_streamed(self) -> bool:
        return self.capabilities.streams(self.arguments)


class ObservedCapabilities:
    """What one model takes: `now` shrinks by what it refuses, which `refused` holds by field. Safe
    to use from several threads.
    """

    def __init__(self, model_id: str) -> None:
        self.now = capabilities_of(model_id)
        self.refused: Mapping[str, RefusedField] = {}
        self._model_id = model_id
        self._lock = threading.Lock()

    def shaped(
        self, request: Request, options: Options, lacking: Sequence[str] = ()
    ) -> ShapedRequest:
        """The request as the model takes it and a run wants it, without the fields `lacking`."""
        capabilities = options.limited(reduce(Capabilities.without, lacking, self.now))
        if request.temperature_if_taken is None:
            capabilities = capabilities.without("temperature")
        arguments = converse_arguments(self._model_id, request, capabilities, options.metadata)
        return ShapedRequest(capabilities, arguments)

    def learn(self, refused: Sequence[str]) -> None:
        """Leave these fields out from now on."""
        with self._lock:
            self.now = reduce(Capabilities.without, refused, self.now)

    def mended(self, kind: ErrorKind, assumed: Capabilities) -> ErrorKind | None:
        """The same kind, marked as mended, if the error refuses a field that was `assumed` to be
        taken and that is left out from now on; `None` for any other error.
        """
        field = dropped_field(kind.code, kind.message, assumed)
        if field is None:
            return None
        notice = _notice(self._model_id, field, kind)
        with self._lock:
            if getattr(self.now, field):
                self.now = self.now.without(field)
                self.refused = {**self.refused, field: RefusedField(kind.code, notice)}
        return replace(kind, mended=field, notice=notice)


def dropped_field(code: str, message: str, assumed: Capabilities) -> str | None:
    """Which of `OWN_FIELDS`, `assumed` to be taken, an error of the service refuses."""
    field = refused_field(code, message)
    return field if field in OWN_FIELDS and getattr(assumed, field) else None


def refused_field(code: str, message: str) -> str | None:
    """Which field an error of the service refuses: a capability, or a setting of the user's."""
    return next(
        (
            refusal.field
            for refusal in _refusals()
            if code in refusal.codes and re.search(refusal.says, message, re.IGNORECASE)
        ),
        None,
    )


class _Refusal(Struct, frozen=True):
    """Words by which the service refuses a field, in errors of these codes (see `ERROR_KINDS`)."""

    field: str
    says: str
    codes: tuple[str, ...] = ("invalid_request",)


@cache
def _refusals() -> Sequence[_Refusal]:
    rows = json.loads(Path(__file__).with_name("refusals.json").read_bytes())["refusals"]
    return [convert(row, _Refusal) for row in rows]


def _notice(model_id: str, field: str, kind: ErrorKind) -> str:
    if kind.code == "access_denied" and field == "streaming":
        return (
            f"Streaming of {model_id} is denied (bedrock:InvokeModelWithResponseStream): the run "
            "continues without it."
        )
    return f"{model_id} refuses {field.replace('_', ' ')}: the run continues without it."
