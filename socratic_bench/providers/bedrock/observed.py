"""What one model is known to take: from the table, and from what it has refused so far."""

import threading
from collections.abc import Callable

from socratic_bench.errors import ModelError
from socratic_bench.providers.bedrock.capabilities import Capabilities, dropped_field


class ObservedCapabilities:
    """The capabilities `now`, which shrink as a run goes on; safe to use from several threads."""

    def __init__(self, model_id: str, can: Capabilities, *, notice: Callable[[str], None]) -> None:
        self.now = can
        self._model_id = model_id
        self._notice = notice
        self._lock = threading.Lock()

    def drops(self, error: ModelError, tried: Capabilities) -> bool:
        """Whether the error refuses a field that was `tried` and can be left out; it is remembered
        if so.
        """
        refused = dropped_field(error.code, error.message, tried)
        if refused is None:
            return False
        with self._lock:
            is_news = getattr(self.now, refused)
            self.now = self.now.without(refused)
        if is_news:
            self._notice(_notice(self._model_id, refused, error))
        return True


def _notice(model_id: str, refused: str, error: ModelError) -> str:
    if error.code == "access_denied" and refused == "streaming":
        return (
            f"Streaming of {model_id} is denied (bedrock:InvokeModelWithResponseStream): the run "
            "goes on without it."
        )
    return f"{model_id} refuses {refused.replace('_', ' ')}: the run goes on without it."
