"""The turns of a run: each is measured, stored and judged while the dialogue goes on. Once it has
ended, the jury is asked about the episode as a whole.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError, wait
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from socratic_bench.concurrency import Workers
from socratic_bench.documents.files import ClosingFile, JudgeFile, TurnFile
from socratic_bench.errors import ENDINGS, BenchError, InternalError
from socratic_bench.judging.injection import suspects_injection
from socratic_bench.judging.jury import Jury
from socratic_bench.ports.benchmark import ClosingQuestion, EpisodeResult
from socratic_bench.runs.context import RunContext
from socratic_bench.runs.items import TurnsSoFar
from socratic_bench.runs.prepare import Plan
from socratic_bench.runs.stores import Document, RunStores
from socratic_bench.turns import ClosingResult, Turn, without_words

# The dialogue's next request goes out first, since the interpreter puts one together at a time; and
# where a judge is as quick as the speakers, its answer need not come together with theirs.
GIVE_WAY_S = 0.01
# A run is over two seconds after it was told to end. It waits so long for turns that are being
# measured and stored, which takes a millisecond each ...
LAST_TURNS_S = 0.3
# ... then measures what is left for so long ...
LAST_MEASURES_S = 1.0
# ... and, if it was resumed, has waited so long for verdicts that are in its journal.
LAST_VERDICTS_S = 0.5

# How a run ended: by itself, or by an error.
Outcome = EpisodeResult | BenchError


class PlayedTurns(Struct, frozen=True, kw_only=True):
    """What a run has played and judged, as its document and files have it.

    Attributes:
        unmeasured: turns that could not be measured, by index: the exception's name, or why.
        closing: what came of asking about the episode as a whole; `None` if it was not asked.
    """

    turns: tuple[Turn, ...] = ()
    unmeasured: Mapping[int, str] = field(default_factory=dict)
    closing: ClosingResult | None = None


def closing_question(plan: Plan, turns: Sequence[Turn], outcome: Outcome) -> ClosingQuestion | None:
    """What is asked of an episode that has ended. `None` if nothing of it was played, or a failure
    ended it. An episode that the budget has cut short is asked about, as far as the budget allows.
    """
    end_reason = outcome.end_reason
    is_over = ENDINGS[end_reason].status == "completed" or end_reason == "budget"
    if not is_over or all(turn.replayed for turn in turns):
        return None
    closing = None if isinstance(outcome, BenchError) else outcome.closing
    return plan.episode.closing_question(turns, closing)


class TurnRecord:
    """Takes finished turns in any order; each is measured, stored and judged in other threads."""

    def __init__(self, context: RunContext, stores: RunStores) -> None:
        self._context = context
        self._stores = stores
        self.jury: Jury | None = None  # has the turns judged, all of which are yet to come
        self._lock = threading.Lock()
        # Held so that a turn's file is sent and the listener told either both or not at all.
        self._storing = threading.Lock()
        self._turns: dict[int, Turn] = {}
        self._unmeasured: dict[int, str] = {}
        self._newest: int | None = None
        self._is_closed = False
        self._is_frozen = False
        self._play_ended: Future[None] = Future()
        self._processing: dict[int, Future[None]] = {}
        self._judging: dict[int, Future[None]] = {}
        self._turn_worker = Workers(1)
        self._judge_workers = Workers(context.plan.judges_at_once)
        self._closing: ClosingResult | None = None

    def add(self, turn: Turn) -> None:
        """Take a turn and return at once: it is measured, stored and judged in other threads."""
        with self._lock:
            if self._is_closed:
                return
            if turn.index in self._turns:
                raise ValueError(f"turn {turn.index} was published before")
            self._turns[turn.index] = turn
            self._newest = turn.index
            self._processing[turn.index] = self._turn_worker.submit(
                partial(self._process, turn.index)
            )

    def wait(self, outcome: Outcome) -> None:
        """After the last turn: wait until all are judged, and the episode as a whole.

        With a budget the closing question is asked after the verdicts, so that these come first
        whoever is quicker. Raises what ends the run meanwhile.
        """
        self._end_play()
        self._wait_for(self._processing)
        turns = [turn for _, turn in sorted(self._turns.items())]
        question = closing_question(self._context.plan, turns, outcome) if self.jury else None
        if question is None or self._context.config.max_cost_usd is not None:
            self._wait_for(self._judging)
        if self.jury and question:
            self._conclude(self.jury, question)
            self._wait_for(self._judging)

    def _wait_for(self, works: Mapping[int, "Future[None]"]) -> None:
        for future in list(works.values()):
            self._context.cancel_token.result(future)

    def _conclude(self, jury: Jury, question: ClosingQuestion) -> None:
        """Have the jury asked. A late answer is dropped, so document and files agree."""
        try:
            result = jury.conclude(question)
        except BenchError as error:
            self._context.cancel_token.end(error)
            raise
        run_id, judge_model = self._context.run_id, jury.model_id
        with self._storing:
            if not self._is_frozen:
                self._closing = result
                self._stores.send(
                    self._context.keys.closing_verdict,
                    lambda: ClosingFile.of(result, run_id=run_id, judge_model=judge_model).printed,
                )

    def unless_incomplete(self, outcome: Outcome) -> Outcome:
        """How the run ended, or a defect if a benchmark has published fewer items than it has."""
        n_items = self._context.plan.episode.opening.n_items or 0
        n_published = sum(index in self._turns for index in range(n_items))
        if isinstance(outcome, BenchError) or n_published == n_items:
            return outcome
        return InternalError(f"The benchmark published {n_published} of {n_items} items.")

    def wait_for_replayed(self) -> None:
        """When a resumed run was told to end: wait shortly for verdicts from the journal."""
        self._end_play()
        wait(list(self._processing.values()), timeout=LAST_VERDICTS_S)
        wait(list(self._judging.values()), timeout=LAST_VERDICTS_S)

    def close(self) -> None:
        """Begin no more verdicts. Turns that were added are still measured and stored."""
        self._end_play()
        with self._lock:
            self._is_closed = True
        wait([*self._processing.values()], timeout=LAST_TURNS_S)
        self._turn_worker.close()
        self._judge_workers.close()

    def freeze(self) -> PlayedTurns:
        """All turns as they are now. Later verdicts are dropped, so document and files agree."""
        with self._storing, self._lock:
            self._is_frozen = True
            turns = [turn for _, turn in sorted(self._turns.items())]
        unprocessed = {
            index
            for index, future in [*self._processing.items()]
            if not future.done() or future.cancelled()
        }
        until_s = self._context.cancel_token.monotonic_s() + LAST_MEASURES_S
        measured = tuple(
            self._measure_late(turn, until_s) if turn.index in unprocessed else turn
            for turn in turns
        )
        return PlayedTurns(turns=measured, unmeasured=dict(self._unmeasured), closing=self._closing)

    def _end_play(self) -> None:
        with suppress(InvalidStateError):
            self._play_ended.set_result(None)

    def _process(self, index: int) -> None:
        with self._ending_run():
            self._measure_and_store(index)
        with self._lock:
            del self._processing[index]  # else a future would be kept for each turn

    @contextmanager
    def _ending_run(self) -> Iterator[None]:
        """End the run by what fails in the block: it would fail for every turn."""
        try:
            yield
        except Exception as error:
            self._context.cancel_token.end(
                error if isinstance(error, BenchError) else InternalError.of(error)
            )
            raise

    def _measure_and_store(self, index: int) -> None:
        """Measure a turn, store it, tell the listener, and have it judged."""
        context, plan = self._context, self._context.plan
        if index == self._newest:
            context.cancel_token.pause(GIVE_WAY_S, self._play_ended)
        turn = self._measure(index)
        run_id, sample, parts = context.run_id, plan.episode.opening, plan.benchmark.parts
        if not self._store(
            turn,
            context.keys.turn(index),
            lambda: TurnFile.of(turn, run_id=run_id, sample=sample, parts=parts).printed,
        ):
            return
        context.listener.on_turn(turn)
        rubric = plan.rubric_of(index)
        if self.jury is None or rubric is None or turn.replayed:
            context.listener.on_judged(turn)
        elif turn.unscorable is None:
            jury = self.jury.by(rubric)
            with self._lock:
                self._judging[index] = self._judge_workers.submit(partial(self._judge, jury, index))
        else:
            self._store_verdict(self.jury, turn)

    def _judge(self, jury: Jury, index: int) -> None:
        turns = TurnsSoFar(self._turns, index)
        with self._ending_run():
            judged = jury.judge(self._context.plan.episode.judge_input(turns, index), index)
        # The outcome has what is wanted of the judge's words.
        judged = replace(judged, calls=tuple(map(without_words, judged.calls)))
        self._store_verdict(jury, replace(turns[index], judged=judged))
        with self._lock:
            del self._judging[index]

    def _store_verdict(self, jury: Jury, turn: Turn) -> None:
        context, plan = self._context, self._context.plan
        rubric = plan.rubric_of(turn.index)
        assert rubric is not None  # noqa: S101 -- what is judged has one

        def document() -> dict[str, Any]:
            return JudgeFile.of(
                turn,
                run_id=context.run_id,
                judge_model=jury.model_id,
                rubric=rubric,
                parts=plan.benchmark.parts,
            ).printed

        if self._store(turn, context.keys.judge(turn.index), document):
            context.listener.on_judged(turn)

    def _store(self, turn: Turn, key: str, document: Document) -> bool:
        """Take this version of a turn and send its file, unless the turns are frozen already."""
        with self._storing:
            with self._lock:
                if self._is_frozen:
                    return False
                self._turns[turn.index] = turn
            self._stores.send(key, document)
        return True

    def _measure(self, index: int) -> Turn:
        plan = self._context.plan
        try:
            turn = plan.episode.measure(TurnsSoFar(self._turns, index), index)
            rubric = plan.rubric_of(index)
            if rubric is None:
                return turn
            is_suspect = suspects_injection(turn.reply.message.text, rubric)
            return replace(turn, injection_suspected=is_suspect)
        except Exception as defect:
            self._unmeasured[index] = type(defect).__name__
            raise

    def _measure_late(self, turn: Turn, until_s: float) -> Turn:
        """Measure a turn once the run has ended; one that cannot be measured stays as it is."""
        token = self._context.cancel_token
        if token.error and token.monotonic_s() > until_s:
            self._unmeasured[turn.index] = "the run had ended"
            return turn
        try:
            return self._measure(turn.index)
        except Exception:  # noqa: BLE001 -- the run has ended, and what was played is reported
            return turn
