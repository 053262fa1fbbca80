"""Imports what is needed only after the first reply, while that is waited for."""

import gc
import threading
from collections.abc import Sequence
from importlib import import_module

from socratic_bench.models.events import CallBegan, CallEvent
from socratic_bench.runs.context import Listener

AFTER_A_REPLY = (
    "socratic_bench.judging.closing",
    "socratic_bench.judging.injection",
    "socratic_bench.judging.jury",
    "socratic_bench.judging.quotes",
    "socratic_bench.judging.request",
    "socratic_bench.runs.finish",
    "socratic_bench.documents.run",
    "socratic_bench.documents.files",
    "socratic_bench.documents.closing_file",
    f"{__package__}.output",
    "statistics",
)
# Importing now would delay the first request.
SENDING_S = 0.1


class Preloader(Listener):
    """A silent listener that knows when the first call is made."""

    def __init__(self) -> None:
        self.called = threading.Event()

    def on_call(self, event: CallEvent) -> None:
        if isinstance(event, CallBegan):
            self.called.set()


def import_while_waiting(
    thread: threading.Thread, called: threading.Event, modules: Sequence[str]
) -> None:
    """Import, with the benchmark's own `modules`, while the run in `thread` waits for its first
    call; not if that is over by then.
    """
    called.wait()
    thread.join(SENDING_S)
    if thread.is_alive():
        for name in (*modules, *AFTER_A_REPLY):
            import_module(name)
        # What exists by now stays, so the garbage collector need not look at it.
        gc.freeze()
