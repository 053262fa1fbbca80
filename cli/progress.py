"""What people see of a run on stderr: its progress, its result, and the estimate of a dry run.

Progress is a line for each turn and retry, and one for each long wait; at a terminal a line below
these shows what is going on now.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from math import ceil
from typing import Any

from msgspec import Struct

from socratic_bench.documents.cost import CostEntry
from socratic_bench.documents.document import Place
from socratic_bench.documents.run import RunResult
from socratic_bench.errors import ENDINGS
from socratic_bench.models.events import (
    AttemptBegan,
    AttemptFailed,
    CallBegan,
    CallEvent,
    CallRetries,
    CallWaits,
    WaitCause,
)
from socratic_bench.ports.benchmark import Benchmark, Sample
from socratic_bench.runs import Plan
from socratic_bench.runs.context import Listener
from socratic_bench.runs.resume import stored_words
from socratic_bench.settings import CoreConfig
from socratic_bench.turns import Turn, Unscored
from socratic_bench.types import JUDGE, CallKey, plural

from . import terminal
from .output import REPORT_AFTER_S, plain, say, say_live

QUESTION_COLUMNS = 48
SCORES_COLUMNS = 40
TICK_S = 1.0
# In a log a wait that goes on is repeated after so long.
AGAIN_S = 60.0
LOG_EVERY_S = 30.0
MOST_NOTICES = 3  # of many runs
# From so many columns on there is room for the parts of a score, and for tokens.
WITH_SCORES, WITH_TOKENS = 80, 100
UNJUDGED, SHORT = "?", "!"
COLOURS = {UNJUDGED: terminal.YELLOW, SHORT: terminal.RED}
# A step outside of calls is shown once it takes so long.
STEP_SHOWN_AFTER_S = 0.5
# Of concurrent waits the one of the lowest rank is shown.
PAUSED, ANSWERING, JUDGING, BLOCKED, STEP = range(5)
CAUSES: dict[WaitCause, str] = {
    "rate_limit": "waits for the rate limit",
    "rate_target": "waits for the rate target",
    "prompt_cache": "waits for the prompt cache",
    "budget": "waits for what the budget has left",
    "connection": "waits for a connection",
}
LEAST_USD = 0.0001


def tag_of(run_id: str) -> str:
    """The prefix of a run's lines, by which those of parallel runs are told apart."""
    return f"{run_id[-4:]} "


def listener_for(plan: Plan, *, quiet: bool) -> Listener:
    """The listener that shows a run to people; a silent one if they want `quiet`."""
    return Listener() if quiet else Progress(plan.config, plan.benchmark)


class Wait(Struct, kw_only=True):
    """Something that a run waits for; moments are in seconds, `printed_s` that of the last line."""

    what: str
    since_s: float
    rank: int
    until_s: float | None = None
    printed_s: float | None = None

    def is_overdue(self, now_s: float, again_s: float) -> bool:
        """Whether it is to be printed: for the first time, again because it takes longer than was
        printed, or again after `again_s`.
        """
        if self.printed_s is None:
            return now_s - self.since_s >= REPORT_AFTER_S
        if self.until_s is not None and self.printed_s < self.until_s:
            return now_s - self.until_s >= REPORT_AFTER_S
        return now_s - self.printed_s >= again_s

    def text(self, now_s: float, room: int | None = None) -> str:
        """What is waited for, and how long; the former is cut if there is not the room for both."""
        time = self._time(now_s)
        what = self.what if room is None else terminal.fitted(self.what, room - len(time))
        return f"{what}{time}"

    def _time(self, now_s: float) -> str:
        if self.until_s is not None and self.until_s > now_s:
            return f", next in {ceil(self.until_s - now_s)} s"
        waited_s = now_s - self.since_s
        return f", {waited_s:.0f} s so far" if waited_s >= REPORT_AFTER_S else ""


class Waits:
    """All waits of a run; not safe to use from several threads."""

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._calls: dict[CallKey, Wait] = {}
        self._step: Wait | None = None

    def on_call(self, event: CallEvent) -> Wait | None:
        """What the call waits for after an event; `None` once it has ended."""
        if isinstance(event, AttemptFailed):  # an event about what happens next follows
            return self._calls.get(event.key)
        self._calls.pop(event.key, None)
        wait = _wait(event, self._monotonic_s())
        if wait:
            self._calls[event.key] = wait
        return wait

    def on_step(self, what: str) -> None:
        """Note what is waited for outside of calls; empty for nothing."""
        wait = Wait(what=f"waiting for {what}", since_s=self._monotonic_s(), rank=STEP)
        self._step = wait if what else None

    def current(self) -> Wait | None:
        """The wait that a live line shows; a step that has just begun is left out."""
        latest_s = self._monotonic_s() - STEP_SHOWN_AFTER_S
        waits = (wait for wait in self._all() if wait.rank != STEP or wait.since_s <= latest_s)
        return min(waits, key=lambda wait: (wait.rank, -wait.since_s), default=None)

    def overdue(self, again_s: float) -> Wait | None:
        """A wait that has not been printed for too long."""
        now_s = self._monotonic_s()
        overdue = (wait for wait in self._all() if wait.is_overdue(now_s, again_s))
        return min(overdue, key=lambda wait: (wait.rank, wait.since_s), default=None)

    def _all(self) -> list[Wait]:
        return [*self._calls.values(), *([self._step] if self._step else [])]


class ManyRuns(Listener):
    """Shows how many runs are done, one after another: a live line, or a line each half minute.

    A notice is printed once, although many runs may have it.
    """

    def __init__(self, n_runs: int, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._n_runs, self._n_begun, self._n_turns = n_runs, 0, 0
        self._monotonic_s, self._printed_s = monotonic_s, monotonic_s()
        self._notices: set[str] = set()
        self._lock = threading.Lock()

    def on_start(self, run_id: str, config: CoreConfig, opening: Sample) -> None:
        del run_id, config, opening
        with self._lock:
            self._n_begun += 1

    def on_judged(self, turn: Turn) -> None:
        del turn
        with self._lock:
            self._n_turns += 1
            text = f"run {self._n_begun} of {self._n_runs}, {plural(self._n_turns, 'turn')} judged"
            if terminal.is_live():
                say_live(text)
            elif self._monotonic_s() - self._printed_s >= LOG_EVERY_S:
                self._printed_s = self._monotonic_s()
                say(text)

    def on_notice(self, text: str) -> None:
        with self._lock:
            if text not in self._notices and len(self._notices) < MOST_NOTICES:
                self._notices.add(text)
                say(f"note: {plain(text)}")


class Progress(Listener):
    """Prints the turns of a dialogue in their order, each once it is judged.

    Items, which are published in any order, are printed as they come. May be called from any
    thread.
    """

    def __init__(
        self,
        config: CoreConfig,
        benchmark: Benchmark,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config = config
        self._benchmark = benchmark
        self._monotonic_s = monotonic_s
        self._live = terminal.is_live()
        self._lock = threading.Lock()
        self._waits = Waits(monotonic_s)
        self._last_line_s = monotonic_s()
        self._ended = threading.Event()
        self._judged: dict[int, Turn] = {}
        self._next = 0
        self._is_dialogue = True
        self._tag = ""
        threading.Thread(target=self._tick, name="progress", daemon=True).start()

    def on_start(self, run_id: str, config: CoreConfig, opening: Sample) -> None:
        self._tag = tag_of(run_id)
        self._is_dialogue = opening.n_items is None
        self._line(
            f"{run_id}: {plain(config.model)}, {plain(opening.label or f'sample {opening.id}')}, "
            f"seed {config.seed}"
        )

    def on_call(self, event: CallEvent) -> None:
        with self._lock:
            wait = self._waits.on_call(event)
            if self._live:
                if isinstance(event, (AttemptBegan, CallRetries, CallWaits)):
                    self._redraw()
            elif wait and self._is_printed_at_once(event):
                self._print_wait(wait)

    def on_wait(self, what: str) -> None:
        with self._lock:
            self._waits.on_step(what)

    def on_judged(self, turn: Turn) -> None:
        with self._lock:
            self._judged[turn.index if self._is_dialogue else self._next] = turn
            while self._next in self._judged:
                self._print(self._turn_line(self._judged.pop(self._next)))
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
            self._print(text)
            self._redraw()

    def _print(self, text: str) -> None:
        self._last_line_s = self._monotonic_s()
        say(text)

    def _is_printed_at_once(self, event: CallEvent) -> bool:
        """In a log: each retry of a dialogue, and each wait that is known to be long.

        Many items may wait together, so their waits are printed only after a silence.
        """
        if isinstance(event, CallWaits):
            is_long = event.wait_s is not None and event.wait_s >= REPORT_AFTER_S
        else:
            is_long = isinstance(event, CallRetries)
        return is_long and (self._is_dialogue or self._is_silent())

    def _is_silent(self) -> bool:
        return self._monotonic_s() - self._last_line_s >= REPORT_AFTER_S

    def _print_wait(self, wait: Wait) -> None:
        now_s = self._monotonic_s()
        wait.printed_s = now_s
        self._print(f"{self._tag}{wait.text(now_s)}")

    def _tick(self) -> None:
        """Report long waits, whatever is waited for."""
        while not self._ended.wait(TICK_S):
            with self._lock:
                if self._live:
                    self._redraw()
                elif self._is_silent() and (wait := self._waits.overdue(AGAIN_S)):
                    self._print_wait(wait)

    def _redraw(self) -> None:
        wait = self._waits.current()
        if not (self._live and wait) or self._ended.is_set():
            return
        room = terminal.columns() - 1 - len(self._tag)
        say_live(self._tag + wait.text(self._monotonic_s(), room))

    def _turn_line(self, turn: Turn) -> str:
        """Mark and score; then, as there is room, parts of the score, the reply, tokens."""
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


def _tokens(turn: Turn) -> str:
    usage = turn.reply.usage
    return f"{usage.input_tokens} in, {usage.output_tokens} out" if usage else "tokens unknown"


def _score(turn: Turn, columns: int) -> str:
    short, parts = _scores(turn)
    if columns < WITH_SCORES:
        return terminal.fitted(short, columns // 4)
    return f"{terminal.fitted(short + parts, SCORES_COLUMNS):{SCORES_COLUMNS}s}"


def _scores(turn: Turn) -> tuple[str, str]:
    """The score in short, and its parts."""
    if turn.replayed:
        return "replayed", ""
    if isinstance(turn.outcome, Unscored):
        return "unjudged", f": {turn.outcome.reason}"
    verdict = turn.verdict
    if verdict is None:
        return plain(turn.summary) or "not judged", ""
    parts = " ".join(f"{name} {score:g}" for name, score in verdict.scores.items())
    return f"{verdict.overall_score:4.1f}", f" ({parts})"


def say_result(result: RunResult, benchmark: Benchmark, call: Callable[[str], str]) -> None:
    """Print how a run ended and, if it is complete and stored, the command that shows it.

    `call` turns a setting's name into its flag.
    """
    tag = tag_of(result.run_id)
    cut_short = result.status == "completed" and ENDINGS[result.end_reason].is_cut_short
    ended = f"{result.status} ({result.end_reason})" if cut_short else result.status
    if result.n_turns:
        say(f"{tag}{ended}: {', '.join(_result_parts(result, benchmark))}")
    elif cut_short:
        say(f"{tag}{ended}: no turn was run")
    if any(place and place.curated for place in (result.folder, result.s3)):
        words = stored_words(result.config, result.run_id, "show").render(call)
        say(f"{tag}view: {plain(words)}")


def _result_parts(result: RunResult, benchmark: Benchmark) -> Iterator[str]:
    metrics = result.metrics  # none, not even null ones, where a defect has kept them away
    primary, *figures = benchmark.headline(metrics) if metrics else ("no metrics",)
    judged = f" ({result.n_judged} of {result.n_turns} judged)" if result.is_judged else ""
    yield plain(primary) + judged
    yield from map(plain, figures)
    yield _format_cost(result.cost)
    yield terminal.duration(result.duration_s)
    yield from (_format_place(place) for place in (result.folder, result.s3) if place)


def _format_place(place: Place) -> str:
    """Of a run that is not complete some files may be missing."""
    if place.curated is None:
        return f"incomplete files in {plain(place.raw)}"
    return f"stored in {plain(place.curated)}"


def _format_cost(cost: CostEntry | None) -> str:
    total = cost and cost.roles["total"]
    if not cost or not total:
        return "cost unknown"
    usd = total.total_usd
    text = f"under {LEAST_USD} USD" if 0 < usd < LEAST_USD else f"{terminal.number(usd)} USD"
    return f"{text} (simulated)" if cost.stand_in else text


def say_estimate(document: Mapping[str, Any]) -> None:
    """Print a dry run: a line for each role, and one for money and time with their range."""
    for role, usage in document["usage"].items():
        if usage["calls"]:
            calls = plural(usage["calls"], "call")
            say(
                f"{role:8s} {calls:>10s}  {usage['input_tokens']:9,d} in  "
                f"{usage['cache_read_tokens']:9,d} of it cached  {usage['output_tokens']:7,d} out"
            )
    for juror in document["jurors"] if len(document["jurors"]) > 1 else ():
        cost = _format_range(juror["cost_usd"], juror["low_usd"], juror["high_usd"], "USD")
        say(f"  {juror['model']}: {plural(juror['usage']['calls'], 'call')}, {cost}")
    for role, prices in document["via"].items():
        if prices["cheaper"] == "batch":
            now_usd, batch_usd = (terminal.number(prices[f"{way}_usd"]) for way in ("now", "batch"))
            say(f"{role}: {now_usd} USD on demand, {batch_usd} USD in a batch")
    low, high = document["low"], document["high"]
    total = document["cost"] and document["cost"]["total"]
    unit = "USD (simulated)" if document["cost"] and document["cost"]["stand_in"] else "USD"
    usd = _format_range(total and total["total_usd"], low["cost_usd"], high["cost_usd"], unit)
    span = (document["duration_seconds"], low["duration_seconds"], high["duration_seconds"])
    if document["end_reason"] == "budget":
        say(f"warning: the budget covers only {plural(document['n_turns'], 'turn')}")
    deadline = document["deadline"]
    if deadline and not deadline["covers_expected"]:
        say(f"warning: the deadline of {deadline['deadline_s']:g} s is too early")
    time_s = _format_range(*span, "s")
    say(f"expected {usd}, {time_s}; {_request_text(document['sent'])}")


def _request_text(sent: Mapping[str, int]) -> str:
    requests = plural(sent["count_tokens"], "request")
    texts = {
        "count_tokens": f"tokens were counted ({requests} of CountTokens)",
        "emulator_pace": "the endpoint was asked whether it is the mock",
        "bucket": "the bucket was checked",
    }
    texts_sent = [text for name, text in texts.items() if sent[name]]
    return f"no model was called; {', '.join(texts_sent)}" if texts_sent else "nothing was called"


def _format_range(expected: float | None, low: float | None, high: float | None, unit: str) -> str:
    if expected is None or low is None or high is None:
        return f"{unit} unknown"
    span = "" if low == high else f" ({terminal.interval(low, high)})"
    return f"{terminal.number(expected)} {unit}{span}"


def _wait(event: CallEvent, now_s: float) -> Wait | None:
    who, wait_s = event.key.role, None
    match event:
        case CallRetries(kind=kind, n_tried=n_tried, n_most=n_most):
            of = f" of {n_most}" if n_most else ""
            what, rank = f"{who} {kind.words}, attempt {n_tried}{of}", PAUSED
            wait_s = event.wait_s
        case CallWaits(cause=cause):
            wait_s = event.wait_s
            what, rank = f"{who} {CAUSES[cause]}", BLOCKED if wait_s is None else PAUSED
        case CallBegan():
            what, rank = f"{who} {CAUSES['connection']}", BLOCKED
        case AttemptBegan():
            what, rank = f"waiting for the {who}", JUDGING if who == JUDGE else ANSWERING
        case _:
            return None
    return Wait(
        what=what if event.key.part else f"turn {event.key.index}: {what}",
        since_s=now_s,
        rank=rank,
        until_s=None if wait_s is None else now_s + wait_s,
    )
