"""What people see of a run on stderr: a line per turn, and in a terminal what goes on now."""

import sys
import threading

from socratic_bench.ports import Sample
from socratic_bench.settings import CoreConfig
from socratic_bench.turns import Turn, Unscored
from socratic_bench.types import JUDGE, CallKey

from .output import plain, say
from .preloader import Preloader

QUESTION_CHARS = 48
CLEAR_LINE = "\r\x1b[K"


def progress(config: CoreConfig) -> "Progress":
    """A listener for this stderr: line by line, or with a live line."""
    return Progress(config, live=sys.stderr is not None and sys.stderr.isatty())


class Progress(Preloader):
    """Says turns in their order, each once it is judged, from whichever thread it hears of them."""

    def __init__(self, config: CoreConfig, *, live: bool) -> None:
        super().__init__()
        self._config = config
        self._live = live
        self._lock = threading.Lock()
        self._waiting: dict[int, Turn] = {}
        self._next = 0
        self._doing = ""

    def on_start(self, run_id: str, config: CoreConfig, opening: Sample) -> None:
        self._line(
            f"{run_id}: {plain(config.model)}, {plain(opening.label or f'sample {opening.id}')}, "
            f"seed {config.seed}"
        )

    def on_call(self, key: CallKey) -> None:
        super().on_call(key)
        if self._live and key.role != JUDGE:
            with self._lock:
                self._doing = f"turn {key.index + 1} of {self._config.turns}: {key.role} ..."
                self._redraw()

    def on_judged(self, turn: Turn) -> None:
        with self._lock:
            self._waiting[turn.index] = turn
            while self._next in self._waiting:
                say(self._cleared() + _turn_line(self._waiting.pop(self._next)))
                self._next += 1
            self._redraw()

    def on_notice(self, text: str) -> None:
        self._line(f"note: {plain(text)}")

    def on_end(self) -> None:
        with self._lock:
            self._doing = ""
            if self._live:
                say(CLEAR_LINE, end="")

    def _line(self, text: str) -> None:
        with self._lock:
            say(self._cleared() + text)
            self._redraw()

    def _cleared(self) -> str:
        return CLEAR_LINE if self._live else ""

    def _redraw(self) -> None:
        if self._live and self._next < self._config.turns and self._doing:
            say(CLEAR_LINE + self._doing, end="")


def _turn_line(turn: Turn) -> str:
    question = plain(turn.reply.message.text)
    shown = question if len(question) <= QUESTION_CHARS else f"{question[: QUESTION_CHARS - 1]}…"
    usage = turn.reply.usage
    tokens = f"{usage.input_tokens} in, {usage.output_tokens} out" if usage else "tokens unknown"
    return f"turn {turn.index:3d}  {_scores(turn):34s}  {shown:{QUESTION_CHARS}s}  {tokens}"


def _scores(turn: Turn) -> str:
    if turn.replayed:
        return "replayed"
    if isinstance(turn.outcome, Unscored):
        return f"unjudged: {turn.outcome.reason}"
    verdict = turn.verdict
    if verdict is None:
        return plain(turn.summary) or "not judged"
    parts = " ".join(f"{name} {score:g}" for name, score in verdict.scores.items())
    return f"{verdict.overall_score:4.1f} ({parts})"
