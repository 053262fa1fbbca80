"""What people see of a run on stderr: a line per turn and per retry, and one for each long wait; in
a terminal, what goes on now.
"""

import threading
import time
from collections.abc import Callable

from socratic_bench.models.events import AttemptBegan, CallEvent, CallRetries, CallWaits
from socratic_bench.ports.benchmark import Benchmark, Sample
from socratic_bench.settings import CoreConfig
from socratic_bench.turns import Turn, Unscored

from . import terminal
from .output import TOLD_AFTER_S, plain, say, say_live
from .preloader import Preloader
from .waits import Wait, Waits

QUESTION_COLUMNS = 48
SCORES_COLUMNS = 40
TICK_S = 1.0
# A wait that goes on is told of again after so long, in a log.
AGAIN_S = 60.0
# From so many columns on there is room for the parts of a score, and for tokens.
WITH_SCORES, WITH_TOKENS = 80, 100


def tag_of(run_id: str) -> str:
    """What the lines of a run begin with, by which those of parallel runs are told apart."""
    return f"{run_id[-4:]} "


class Progress(Preloader):
    """Says turns in their order, each once it is judged, from whichever thread it hears of them.

    Of items that are published in any order each is said as it comes.
    """

    def __init__(
        self,
        config: CoreConfig,
        benchmark: Benchmark,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._config = config
        self._benchmark = benchmark
        self._monotonic_s = monotonic_s
        self._live = terminal.is_live()
        self._lock = threading.Lock()
        self._waits = Waits(monotonic_s)
        self._said_s = monotonic_s()
        self._ended = threading.Event()
        self._waiting: dict[int, Turn] = {}
        self._next = 0
        self._most = config.turns
        self._is_dialogue = True
        self._tag = ""
        threading.Thread(target=self._tick, name="progress", daemon=True).start()

    def on_start(self, run_id: str, config: CoreConfig, opening: Sample) -> None:
        self._tag = tag_of(run_id)
        self._is_dialogue = opening.n_items is None
        self._most = opening.n_items or config.turns
        self._line(
            f"{run_id}: {plain(config.model)}, {plain(opening.label or f'sample {opening.id}')}, "
            f"seed {config.seed}"
        )

    def on_call(self, event: CallEvent) -> None:
        super().on_call(event)
        with self._lock:
            wait = self._waits.on_call(event)
            if self._live:
                if isinstance(event, (AttemptBegan, CallRetries, CallWaits)):
                    self._redraw()
            elif wait and self._is_told_at_once(event):
                self._say_wait(wait)

    def on_wait(self, what: str) -> None:
        with self._lock:
            self._waits.step(what)

    def on_judged(self, turn: Turn) -> None:
        with self._lock:
            self._waiting[turn.index if self._is_dialogue else self._next] = turn
            while self._next in self._waiting:
                self._say(self._turn_line(self._waiting.pop(self._next)))
                self._next += 1
            self._redraw()

    def on_notice(self, text: str) -> None:
        self._line(f"{self._tag}note: {plain(text)}")

    def on_end(self) -> None:
        with self._lock:
            self._ended.set()
            if self._live:
                say_live("")

    def _line(self, text: str) -> None:
        with self._lock:
            self._say(text)
            self._redraw()

    def _say(self, text: str) -> None:
        self._said_s = self._monotonic_s()
        say(text)

    def _is_told_at_once(self, event: CallEvent) -> bool:
        """In a log: each retry of a dialogue, and each wait that is known to be long. Of items, of
        which many may wait together, only one in a while is.
        """
        if isinstance(event, CallWaits):
            is_long = event.wait_s is not None and event.wait_s >= TOLD_AFTER_S
        else:
            is_long = isinstance(event, CallRetries)
        return is_long and (self._is_dialogue or self._is_silent())

    def _is_silent(self) -> bool:
        return self._monotonic_s() - self._said_s >= TOLD_AFTER_S

    def _say_wait(self, wait: Wait) -> None:
        now_s = self._monotonic_s()
        wait.told_s = now_s
        self._say(f"{self._tag}{wait.forms(now_s)[0]}")

    def _tick(self) -> None:
        """Nothing is waited for in silence, whatever it is."""
        while not self._ended.wait(TICK_S):
            with self._lock:
                if self._live:
                    self._redraw()
                elif self._is_silent() and (wait := self._waits.overdue(AGAIN_S)):
                    self._say_wait(wait)

    def _redraw(self) -> None:
        wait = self._waits.shown()
        if not (self._live and wait) or self._ended.is_set():
            return
        room = terminal.columns() - 1
        first, *others = (self._tag + form for form in wait.forms(self._monotonic_s()))
        done = f" ({self._next} of {self._most} done)"
        forms = (first + done, first, *others) if wait.turn is not None else (first, *others)
        fitting = (form for form in forms if terminal.width_of(form) <= room)
        say_live(next(fitting, None) or terminal.fitted(forms[-1], room))

    def _turn_line(self, turn: Turn) -> str:
        """Score and mark in any case; then, as there is room, its parts, the reply, tokens."""
        columns = terminal.columns()
        head = f"{self._tag}turn {turn.index:3d} "
        score = f"{self._mark(turn)} {_score(turn, columns)}"
        tail = f"  {_tokens(turn)}" if columns >= WITH_TOKENS else ""
        room = columns - sum(map(terminal.width_of, (head, score, tail))) - 2
        reply = terminal.fitted(plain(turn.reply.message.text), min(room, QUESTION_COLUMNS))
        gap = " " * (min(room, QUESTION_COLUMNS) - terminal.width_of(reply)) if tail else ""
        score = terminal.coloured(score, COLOURS.get(score[0]))
        return f"{head}{score}  {reply}{gap}{tail}".rstrip()

    def _mark(self, turn: Turn) -> str:
        if isinstance(turn.outcome, Unscored):
            return UNJUDGED
        return SHORT if self._benchmark.falls_short(self._config, turn) else " "


UNJUDGED, SHORT = "?", "!"
COLOURS = {UNJUDGED: terminal.YELLOW, SHORT: terminal.RED}


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
