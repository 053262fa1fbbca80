"""What people see on stderr while a sweep goes on: lines of a log, one live line, or a table."""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from socratic_bench.documents.sweep import CellRow
from socratic_bench.studies.sweep.engine import ModelProgress, Snapshot, SweepDisplay, SweepState
from socratic_bench.types import plural

from . import terminal
from .output import plain, say, say_live
from .progress import LOG_EVERY_S, tag_of
from .terminal import count, marked, number, rough_duration, table

TICK_S = 1.0
# Lines that a table leaves free, so that a line for people above it is seen.
FREE_LINES = 2


def display_for(factors: Mapping[str, int], *, quiet: bool, tick_s: float = TICK_S) -> SweepDisplay:
    """The display that fits what stderr is; none if people want `quiet`.

    `factors` are the numbers whose product is the number of runs, by what they count.
    """
    if quiet:
        return _NoDisplay()
    if not terminal.is_live():
        return LogDisplay(factors, tick_s)
    with suppress(ImportError):  # the extra `ui`
        return LiveDisplay(factors, tick_s)
    return LineDisplay(factors, tick_s)


class _NoDisplay:
    def begin(self, sweep_id: str, state: SweepState) -> None: ...

    def notice(self, text: str) -> None: ...

    def failed(self, row: CellRow) -> None: ...

    def end(self) -> None: ...


class LogDisplay:
    """A line at the start, another one every half minute, and notices at once."""

    def __init__(self, factors: Mapping[str, int], tick_s: float) -> None:
        self._factors = factors
        self._tick_s = tick_s
        self._printed_s = 0.0
        self._ended = threading.Event()
        self._ticker: threading.Thread | None = None
        self._state: SweepState | None = None
        self._tag = ""
        self._failures: set[tuple[str, str]] = set()

    def begin(self, sweep_id: str, state: SweepState) -> None:
        """Show this sweep from now on."""
        now = state.snapshot()
        self._tag, self._state, self._printed_s = tag_of(sweep_id), state, now.elapsed_s
        product = " x ".join(plural(n, name) for name, n in self._factors.items() if n > 1)
        product = f" ({product})" if product else ""
        ended = f"; {now.n_ended} of them ended earlier" if now.n_ended else ""
        say(f"{sweep_id}: {plural(now.n_cells, 'run')}{product}{ended}")
        self._start()
        self._ticker = threading.Thread(target=self._tick, name="display", daemon=True)
        self._ticker.start()

    def notice(self, text: str) -> None:
        """Print a line that stays."""
        say(f"{self._tag}note: {plain(text)}")

    def failed(self, row: CellRow) -> None:
        """Print a line for the first cell of a model that ends by an error of this kind."""
        code, message = (row.error.code, row.error.message) if row.error else (row.end_reason, "")
        if (row.model, code) not in self._failures:
            self._failures.add((row.model, code))
            say(f"{self._tag}a run of {plain(row.model)} failed: {plain(message or code)}")

    def end(self) -> None:
        """Show nothing any more; a live line or table is removed from the terminal."""
        if self._ticker:
            self._ended.set()
            self._ticker.join()
            with suppress(OSError):
                self._show()
                self._stop()

    def _tick(self) -> None:
        """Show the state every tick. A terminal that is gone ends the display, and nothing else."""
        with suppress(OSError):
            self._show()
            while not self._ended.wait(self._tick_s):
                self._show()

    def _start(self) -> None: ...

    def _show(self) -> None:
        if self._state is None:
            return
        now = self._state.snapshot()
        if now.elapsed_s - self._printed_s >= LOG_EVERY_S:
            self._printed_s = now.elapsed_s
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


class LiveDisplay(LogDisplay):
    """A table of the models, drawn anew each second below all other lines, by rich.

    While it is shown, what anybody writes to stderr goes through rich, which puts it above. Raises
    `ImportError` if rich, the extra `ui`, is not installed.
    """

    def __init__(self, factors: Mapping[str, int], tick_s: float) -> None:
        from rich.console import Console  # an extra
        from rich.live import Live
        from rich.text import Text

        super().__init__(factors, tick_s)
        console = Console(
            stderr=True,
            force_terminal=True,
            force_interactive=True,
            no_color=not terminal.has_colour(),
            highlight=False,
            soft_wrap=True,  # all lines have the right length already
        )
        self._live = Live(
            console=console, auto_refresh=False, transient=True, redirect_stdout=False
        )
        self._to_text = Text.from_ansi

    def _start(self) -> None:
        self._live.start()
        # A process that is killed leaves no terminal without a cursor.
        self._live.console.show_cursor(True)

    def _show(self) -> None:
        if self._state is None:
            return
        columns, lines = terminal.columns(), terminal.lines()
        self._live.console.size = (columns, lines)
        now = self._state.snapshot()
        below = status_lines(now, columns)
        text = [*model_table(now, columns, lines - len(below) - FREE_LINES), *below]
        # Escapes are those of our own colours; names of models have none.
        self._live.update(self._to_text("\n".join(text), end=""), refresh=True)

    def _stop(self) -> None:
        self._live.stop()


def status(now: Snapshot, room: int | None = None) -> str:
    """One line; what matters least is left out where there is not room for all of it."""
    parts = [*_parts(now)]
    while room is not None and len(parts) > 1 and len(_joined(parts)) > room:
        parts.remove(max(parts, key=lambda part: part[0]))
    return _joined(parts)


def status_lines(now: Snapshot, columns: int) -> list[str]:
    """The whole status, on as many lines as it takes."""
    lines: list[str] = []
    for _, part in _parts(now):
        if lines and len(lines[-1]) + len(part) + 3 <= columns:
            lines[-1] += f", {part}"
        else:
            lines.append(part)
    return [f"{line}," for line in lines[:-1]] + lines[-1:]


def model_table(now: Snapshot, columns: int, n_lines: int | None = None) -> list[str]:
    """A table with a line for each model; it has at most `n_lines` lines, heads included."""
    room = len(now.models) if n_lines is None else max(n_lines - 1, 1)
    models = now.models if len(now.models) <= room else now.models[: room - 1]
    heads = ("model", "done", "running", "failed", "calls", "tokens", "USD")
    lines = table(heads, [_row(model) for model in models], columns)
    n_more = len(now.models) - len(models)
    return [*lines, f"and {n_more} more"] if n_more else lines


def _parts(now: Snapshot) -> Iterator[tuple[int, str]]:
    """The parts of a status, each with its rank: the highest is left out first."""
    models = now.models
    yield 0, f"{sum(model.n_done for model in models)} of {now.n_cells} done"
    yield 3, f"{sum(model.n_running for model in models)} running"
    if n_failed := sum(model.n_failed for model in models):
        yield 1, f"{n_failed} failed"
    if now.calls_per_s is not None:
        yield 4, f"{now.calls_per_s:.1f} calls/s"
    yield 6, f"{count(sum(model.n_tokens for model in models))} tokens"
    cost_usd = _total([model.cost_usd for model in models])
    yield 5, "cost unknown" if cost_usd is None else f"{number(cost_usd)} USD"
    yield 7, f"{rough_duration(now.elapsed_s)} so far"
    if now.left_s is not None:
        yield 2, f"{rough_duration(now.left_s)} left"


def _joined(parts: Iterable[tuple[int, str]]) -> str:
    return ", ".join(text for _, text in parts)


def _total(amounts: Sequence[float | None]) -> float | None:
    """The sum; `None` if an amount is unknown."""
    summands = [amount for amount in amounts if amount is not None]
    return sum(summands) if len(summands) == len(amounts) else None


def _row(model: ModelProgress) -> list[str]:
    return [
        plain(model.model),
        f"{model.n_done}/{model.n_cells}",
        str(model.n_running),
        marked(model.n_failed),
        str(model.n_calls),
        count(model.n_tokens),
        number(model.cost_usd if model.n_done + model.n_failed else None),
    ]
