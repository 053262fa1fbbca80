"""The capabilities of one model: from the table, less what it has refused so far, and less what a
run leaves out.
"""

import threading
from collections.abc import Mapping, Sequence
from functools import reduce

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.models.bedrock.capabilities import (
    Capabilities,
    capabilities_of,
    dropped_field,
)
from socratic_bench.models.bedrock.wire import Wire, converse_arguments
from socratic_bench.ports.provider import ErrorKind, RefusedField
from socratic_bench.settings import CoreConfig
from socratic_bench.types import Request


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

    def limit(self, can: Capabilities) -> Capabilities:
        """What is left of a model's capabilities."""
        if not self.stream:
            can = can.without("streaming")
        return can if self.prompt_cache else can.without("prompt_cache")


class ShapedRequest(Struct, frozen=True):
    """A request as it is sent to a model that takes so much."""

    can: Capabilities
    arguments: Wire

    @property
    def is_streamed(self) -> bool:
        return self.can.streams(self.arguments)


class ObservedCapabilities:
    """The capabilities `now`, which shrink as calls go on by what is `refused`; safe to use from
    several threads.
    """

    def __init__(self, model_id: str) -> None:
        self.now = capabilities_of(model_id)
        self.refused: Mapping[str, RefusedField] = {}
        self._model_id = model_id
        self._lock = threading.Lock()

    def shaped(
        self, request: Request, options: Options, lacking: Sequence[str] = ()
    ) -> ShapedRequest:
        """The request as the model takes it and a run wants it; without what is `lacking`, too."""
        can = options.limit(reduce(Capabilities.without, lacking, self.now))
        if request.temperature_if_taken is None:
            can = can.without("temperature")
        arguments = converse_arguments(self._model_id, request, can, options.metadata)
        return ShapedRequest(can, arguments)

    def learn(self, refused: Sequence[str]) -> None:
        """Leave these out from now on."""
        with self._lock:
            self.now = reduce(Capabilities.without, refused, self.now)

    def mended(self, kind: ErrorKind, tried: Capabilities) -> ErrorKind | None:
        """The kind of an error that refuses a field which was `tried` and can be left out, as it is
        from now on; `None` for any other.
        """
        refused = dropped_field(kind.code, kind.message, tried)
        if refused is None:
            return None
        notice = _notice(self._model_id, refused, kind)
        with self._lock:
            if getattr(self.now, refused):
                self.now = self.now.without(refused)
                self.refused = {**self.refused, refused: RefusedField(kind.code, notice)}
        return replace(kind, mended=refused, notice=notice)


def _notice(model_id: str, refused: str, kind: ErrorKind) -> str:
    if kind.code == "access_denied" and refused == "streaming":
        return (
            f"Streaming of {model_id} is denied (bedrock:InvokeModelWithResponseStream): the run "
            "goes on without it."
        )
    return f"{model_id} refuses {refused.replace('_', ' ')}: the run goes on without it."
