"""What people see of a run on stderr: a line per turn, and in a terminal what goes on now."""

import threading

from socratic_bench.ports import Benchmark, Sample
from socratic_bench.settings import CoreConfig
from socratic_bench.turns import Turn, Unscored
from socratic_bench.types import JUDGE, CallKey

from . import terminal
from .output import plain, say
from .preloader import Preloader

QUESTION_COLUMNS = 48
SCORES_COLUMNS = 40
CLEAR_LINE = "\r\x1b[K"
# From so many columns on there is room for the parts of a score, and for tokens.
WITH_SCORES, WITH_TOKENS = 80, 100


def tag_of(run_id: str) -> str:
    """What the lines of a run begin with, by which those of parallel runs are told apart."""
    return f"{run_id[-4:]} "


class Progress(Preloader):
    """Says turns in their order, each once it is judged, from whichever thread it hears of them.

    Of items that are published in any order each is said as it comes.
    """

    def __init__(self, config: CoreConfig, benchmark: Benchmark) -> None:
        super().__init__()
        self._config = config
        self._benchmark = benchmark
        self._live = terminal.is_terminal()
        self._lock = threading.Lock()
        self._waiting: dict[int, Turn] = {}
        self._next = 0
        self._most = config.turns
        self._is_dialogue = True
        self._doing = ""
        self._tag = ""

    def on_start(self, run_id: str, config: CoreConfig, opening: Sample) -> None:
        self._tag = tag_of(run_id)
        self._is_dialogue = opening.n_items is None
        self._most = opening.n_items or config.turns
        self._line(
            f"{run_id}: {plain(config.model)}, {plain(opening.label or f'sample {opening.id}')}, "
            f"seed {config.seed}"
        )

    def on_call(self, key: CallKey) -> None:
        super().on_call(key)
        if self._live and key.role != JUDGE:
            with self._lock:
                self._doing = f"turn {key.index + 1} of {self._most}: {key.role} ..."
                self._redraw()

    def on_judged(self, turn: Turn) -> None:
        with self._lock:
            self._waiting[turn.index if self._is_dialogue else self._next] = turn
            while self._next in self._waiting:
                say(self._cleared() + self._turn_line(self._waiting.pop(self._next)))
                self._next += 1
            self._redraw()

    def on_notice(self, text: str) -> None:
        self._line(f"{self._tag}note: {plain(text)}")

    def on_end(self) -> None:
        with self._lock:
            self._doing = ""
            if self._live:
                say(CLEAR_LINE, end="")

    def _line(self, text: str) -> None:
        with self._lock:
            say(self._cleared(), end="")
            say(text)
            self._redraw()

    def _cleared(self) -> str:
        return CLEAR_LINE if self._live else ""

    def _redraw(self) -> None:
        if self._live and self._next < self._most and self._doing:
            shown = terminal.fitted(self._tag + self._doing, terminal.columns() - 1)
            say(CLEAR_LINE + shown, end="")

    def _turn_line(self, turn: Turn) -> str:
        """Score and mark in any case; then, as there is room, its parts, the reply, tokens."""
        columns = terminal.columns()
        head = f"{self._tag}turn {turn.index:3d} "
        score = f"{self._mark(turn)} {_score(turn, columns)}"
        tail = f"  {_tokens(turn)}" if columns >= WITH_TOKENS else ""
        room = columns - sum(map(terminal.width_of, (head, score, tail))) - 2
        reply = terminal.fitted(plain(turn.reply.message.text), min(room, QUESTION_COLUMNS))
        gap = " " * (min(room, QUESTION_COLUMNS) - terminal.width_of(reply)) if tail else ""
        return f"{head}{_coloured(score)}  {reply}{gap}{tail}".rstrip()

    def _mark(self, turn: Turn) -> str:
        if isinstance(turn.outcome, Unscored):
            return UNJUDGED
        return SHORT if self._benchmark.falls_short(self._config, turn) else " "


UNJUDGED, SHORT = "?", "!"
COLOURS = {UNJUDGED: terminal.YELLOW, SHORT: terminal.RED}


def _coloured(score: str) -> str:
    colour = COLOURS.get(score[0])
    return terminal.coloured(score, colour) if colour else score


def _tokens(turn: Turn) -> str:
    usage = turn.reply.usage
    return f"{usage.input_tokens} in, {usage.output_tokens} out" if usage else "tokens unknown"


def _score(turn: Turn, columns: int) -> str:
    short, parts = _scores(turn)
    if columns < WITH_SCORES:
        return terminal.fitted(short, columns // 4)
    return f"{terminal.fitted(short + parts, SCORES_COLUMNS):{SCORES_COLUMNS}s}"


def _scores(turn: Turn) -> tuple[str, str]:
    """What is said in any case, and what more there is."""
    if turn.replayed:
        return "replayed", ""
    if isinstance(turn.outcome, Unscored):
        return "unjudged", f": {turn.outcome.reason}"
    verdict = turn.verdict
    if verdict is None:
        return plain(turn.summary) or "not judged", ""
    parts = " ".join(f"{name} {score:g}" for name, score in verdict.scores.items())
    return f"{verdict.overall_score:4.1f}", f" ({parts})"
