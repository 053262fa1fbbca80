"""A sweep's display in lines: one every so often in a log, or one that is drawn anew."""

import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from socratic_bench.types import plural

from . import terminal
from .output import plain, say, say_live
from .progress import tag_of
from .sweep_words import status

if TYPE_CHECKING:
    from socratic_bench.documents.sweep import CellRow
    from socratic_bench.studies.sweep.engine import SweepState

# After so many seconds a log has another line.
EVERY_S = 30.0


class LogDisplay:
    """A line at the start, another one every half minute, and notices at once."""

    def __init__(self, tick_s: float) -> None:
        self._tick_s = tick_s
        self._told_s = 0.0
        self._ended = threading.Event()
        self._ticker: threading.Thread | None = None
        self._state: SweepState | None = None
        self._tag = ""
        self._failures: set[tuple[str, str]] = set()

    def begin(self, sweep_id: str, state: "SweepState") -> None:
        """Show that sweep from now on."""
        now = state.snapshot()
        self._tag, self._state, self._told_s = tag_of(sweep_id), state, now.elapsed_s
        ended = f", {now.n_ended} of them ended before" if now.n_ended else ""
        cells, models = plural(now.n_cells, "cell"), plural(len(now.models), "model")
        say(f"{sweep_id}: {cells} of {models}{ended}")
        self._start()
        self._ticker = threading.Thread(target=self._tick, name="display", daemon=True)
        self._ticker.start()

    def notice(self, text: str) -> None:
        """A line that stays."""
        say(f"{self._tag}note: {plain(text)}")

    def failed(self, row: "CellRow") -> None:
        """A line for the first cell of a model that ends by this error; others are only counted."""
        code, message = (row.error.code, row.error.message) if row.error else (row.end_reason, "")
        if (row.model, code) not in self._failures:
            self._failures.add((row.model, code))
            say(f"{self._tag}a cell of {plain(row.model)} failed: {plain(message or code)}")

    def end(self) -> None:
        """Show nothing any more; what was drawn anew is gone from the terminal."""
        if self._ticker:
            self._ended.set()
            self._ticker.join()
            with suppress(OSError):
                self._show()
                self._stop()

    def _tick(self) -> None:
        """A terminal that is gone ends the display, and nothing else."""
        with suppress(OSError):
            self._show()
            while not self._ended.wait(self._tick_s):
                self._show()

    def _start(self) -> None: ...

    def _show(self) -> None:
        if self._state is None:
            return
        now = self._state.snapshot()
        if now.elapsed_s - self._told_s >= EVERY_S:
            self._told_s = now.elapsed_s
            say(f"{self._tag}{status(now)}")

    def _stop(self) -> None: ...


class LineDisplay(LogDisplay):
    """One line that is drawn anew each second, for a terminal where rich is not installed."""

    def _show(self) -> None:
        if self._state:
            room = terminal.columns() - 1
            say_live(terminal.fitted(status(self._state.snapshot(), room), room))

    def _stop(self) -> None:
        say_live("")
