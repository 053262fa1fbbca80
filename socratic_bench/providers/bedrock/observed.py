"""The capabilities of one model: from the table, less what it has refused so far."""

import threading

from msgspec.structs import replace

from socratic_bench.provider_ports import ErrorKind
from socratic_bench.providers.bedrock.capabilities import Capabilities, dropped_field


class ObservedCapabilities:
    """The capabilities `now`, which shrink as calls go on, with `notices` of it; safe to use from
    several threads.
    """

    def __init__(self, model_id: str, can: Capabilities) -> None:
        self.now = can
        self.notices: tuple[str, ...] = ()
        self._model_id = model_id
        self._lock = threading.Lock()

    def mended(self, kind: ErrorKind, tried: Capabilities) -> ErrorKind | None:
        """The kind of an error that refuses a field which was `tried` and can be left out, as it is
        from now on; `None` for any other.
        """
        refused = dropped_field(kind.code, kind.message, tried)
        if refused is None:
            return None
        with self._lock:
            if getattr(self.now, refused):
                self.now = self.now.without(refused)
                self.notices = (*self.notices, _notice(self._model_id, refused, kind))
        return replace(kind, mended=refused, notice=_notice(self._model_id, refused, kind))


def _notice(model_id: str, refused: str, kind: ErrorKind) -> str:
    if kind.code == "access_denied" and refused == "streaming":
        return (
            f"Streaming of {model_id} is denied (bedrock:InvokeModelWithResponseStream): the run "
            "goes on without it."
        )
    return f"{model_id} refuses {refused.replace('_', ' ')}: the run goes on without it."
