"""A sweep's display at a terminal: a table of its models, drawn anew each second below all other
lines. Needs rich, the extra `ui`; imported only where it is used.
"""

from rich.console import Console
from rich.live import Live
from rich.text import Text

from . import terminal
from .sweep_lines import LogDisplay
from .sweep_words import model_table, status_lines

# Left free, so that a line for people above the table is seen.
FREE_LINES = 2


class LiveDisplay(LogDisplay):
    """While it is shown, what anybody writes to stderr goes through rich, which puts it above."""

    def _start(self) -> None:
        console = _console()
        self._live = Live(
            console=console, auto_refresh=False, transient=True, redirect_stdout=False
        )
        self._live.start()
        # A process that is killed leaves no terminal without a cursor.
        console.show_cursor(True)

    def _show(self) -> None:
        if self._state is None:
            return
        columns, lines = terminal.columns(), terminal.lines()
        self._live.console.size = (columns, lines)
        now = self._state.snapshot()
        below = status_lines(now, columns)
        told = [*model_table(now, columns, lines - len(below) - FREE_LINES), *below]
        # Escapes are those of our own colours; what models are called has none.
        self._live.update(Text.from_ansi("\n".join(told), end=""), refresh=True)

    def _stop(self) -> None:
        self._live.stop()


def _console() -> Console:
    return Console(
        stderr=True,
        force_terminal=True,
        force_interactive=True,
        no_color=not terminal.has_colour(),
        highlight=False,
        soft_wrap=True,  # all lines have the length that they shall have
    )
