"""The turns of a run: stored and judged while the dialogue goes on."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, InvalidStateError, wait
from contextlib import contextmanager, suppress
from functools import cache, partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from socratic_bench.concurrency import Workers
from socratic_bench.errors import BenchError, InternalError
from socratic_bench.runs.closing_judging import ClosingJudging, Outcome
from socratic_bench.runs.context import RunScope
from socratic_bench.runs.items import TurnsSoFar
from socratic_bench.runs.stores import Document, RunStores
from socratic_bench.turns import ClosingResult, Turn, without_words

if TYPE_CHECKING:
    from socratic_bench.judging.jury import Jury

# The dialogue's next request goes out first, since the interpreter puts one together at a time; and
# where a judge is as quick as the speakers, its answer need not come together with theirs.
GIVE_WAY_S = 0.01
# For turns that are measured and kept while the run is ending, which takes a millisecond each.
LAST_TURNS_S = 0.3
# For measuring what is left by then: a run is over two seconds after it was told to end.
LAST_MEASURES_S = 1.0
# For reading an earlier process's verdicts when a resumed run is told to end.
LAST_VERDICTS_S = 0.5


class Record:
    """Takes each finished turn, in any order; has it measured, kept and judged while others are
    played.
    """

    def __init__(self, scope: RunScope, stores: RunStores) -> None:
        self._scope = scope
        self._stores = stores
        self._lock = threading.Lock()
        # Held so that a turn's file is sent and the listener told either both or not at all.
        self._keeping = threading.Lock()
        self._turns: dict[int, Turn] = {}
        self._unmeasured: dict[int, str] = {}
        self._newest: int | None = None
        self._is_closed = False
        self._is_final = False
        self._played: Future[None] = Future()
        self._entering: dict[int, Future[None]] = {}
        self._judging: dict[int, Future[None]] = {}
        self._turn_worker = self._judges = Workers(1)
        self._conclusion = ClosingJudging(scope, self._keep_conclusion)

    def judge_by(self, judge: "Callable[[], Jury | None]") -> None:
        """Before the first turn: what tells, once there is something to judge, who judges; `None`
        where nobody does.
        """
        self._conclusion.judge = cache(judge)
        self._judges = Workers(self._scope.plan.judges_at_once)

    def add(self, turn: Turn) -> None:
        """Keep a turn; returns at once. It is measured, stored and judged in other threads, in
        order.
        """
        with self._lock:
            if self._is_closed:
                return
            if turn.index in self._turns:
                raise ValueError(f"turn {turn.index} was published before")
            self._turns[turn.index] = turn
            self._newest = turn.index
            self._entering[turn.index] = self._turn_worker.submit(partial(self._enter, turn.index))

    def wait(self, outcome: Outcome) -> None:
        """After the last turn: wait until all are judged, and the episode as a whole. Raises what
        ends the run meanwhile.
        """
        self._end_play()
        for entering in list(self._entering.values()):
            self._scope.cancel_token.result(entering)
        turns = [turn for _, turn in sorted(self._turns.items())]
        self._conclusion.wait(turns, outcome, list(self._judging.values()))

    def unless_incomplete(self, outcome: Outcome) -> Outcome:
        """How the run ended, unless a benchmark took fewer items for all of them."""
        n_items = self._scope.plan.episode.opening.n_items or 0
        n_published = sum(index in self._turns for index in range(n_items))
        if isinstance(outcome, BenchError) or n_published == n_items:
            return outcome
        return InternalError(f"The benchmark published {n_published} of {n_items} items.")

    def wait_for_replayed(self) -> None:
        """When a resumed run was told to end: wait shortly for verdicts from the journal."""
        acquired = self._scope.acquired
        if acquired and acquired.journal.was_there:
            self._end_play()
            wait(list(self._entering.values()), timeout=LAST_VERDICTS_S)
            wait(list(self._judging.values()), timeout=LAST_VERDICTS_S)

    def final(self) -> tuple[Turn, ...]:
        """Freeze and return all turns. Later verdicts are dropped, so that document and files
        agree.
        """
        with self._keeping, self._lock:
            self._is_final = True
            turns = sorted(self._turns.items())
        entering = [*self._entering.items()]
        left = {at for at, future in entering if not future.done() or future.cancelled()}
        until_s = self._scope.cancel_token.monotonic_s() + LAST_MEASURES_S
        return tuple(self._if_measured(turn, until_s) if at in left else turn for at, turn in turns)

    @property
    def unmeasured(self) -> dict[int, str]:
        """The turns that could not be measured, and why: by which exception, if by one."""
        return dict(self._unmeasured)

    def concluded(self) -> ClosingResult | None:
        """What came of asking about the episode as a whole, frozen like the turns."""
        return self._conclusion.final()

    def close(self) -> None:
        """Start no more verdicts. Turns that were handed over are still measured and stored."""
        self._end_play()
        with self._lock:
            self._is_closed = True
        wait([*self._entering.values()], timeout=LAST_TURNS_S)
        self._turn_worker.close()
        self._judges.close()

    def _end_play(self) -> None:
        with suppress(InvalidStateError):
            self._played.set_result(None)

    def _enter(self, index: int) -> None:
        with self._or_end():
            self._take_in(index)
        with self._lock:
            del self._entering[index]  # which would be kept for each turn

    @contextmanager
    def _or_end(self) -> Iterator[None]:
        """What fails here would fail for every turn: the dialogue need not go on."""
        try:
            yield
        except Exception as error:
            told = error if isinstance(error, BenchError) else InternalError.of(error)
            self._scope.cancel_token.end(told)
            raise

    def _take_in(self, index: int) -> None:
        """Measure a turn, store it, tell it, and have it judged."""
        from socratic_bench.documents.files import TurnFile

        if index == self._newest:
            self._scope.cancel_token.pause(GIVE_WAY_S, self._played)
        turn = self._measured(index)
        sample = self._scope.plan.episode.opening
        run_id, parts = self._scope.keys.run_id, self._scope.plan.benchmark.parts
        if not self._kept(
            turn,
            self._scope.keys.turn(index),
            lambda: TurnFile.of(turn, run_id=run_id, sample=sample, parts=parts).printed,
        ):
            return
        self._scope.listener.on_turn(turn)
        rubric = self._scope.plan.rubric_of(index)
        jury = self._conclusion.judge()
        if jury is None or rubric is None or turn.replayed:
            self._scope.listener.on_judged(turn)
        elif turn.unscorable is None:
            judge = jury.by(rubric)
            with self._lock:
                self._judging[index] = self._judges.submit(partial(self._have_judged, judge, index))
        else:
            self._keep_verdict(turn)

    def _if_measured(self, turn: Turn, until_s: float) -> Turn:
        token = self._scope.cancel_token
        if token.error and token.monotonic_s() > until_s:
            self._unmeasured[turn.index] = "the run had ended"
            return turn
        try:
            return self._measured(turn.index)
        except Exception:  # noqa: BLE001 -- the run has ended, and what was played is told
            return turn

    def _measured(self, index: int) -> Turn:
        try:
            return self._read(index)
        except Exception as defect:
            self._unmeasured[index] = type(defect).__name__
            raise

    def _read(self, index: int) -> Turn:
        # Not needed before the first reply is there.
        from socratic_bench.judging.injection import suspects_injection

        turn = self._scope.plan.episode.measured(TurnsSoFar(self._turns, index), index)
        rubric = self._scope.plan.rubric_of(index)
        if rubric is None:
            return turn
        suspected = suspects_injection(turn.reply.message.text, rubric)
        return replace(turn, injection_suspected=suspected)

    def _have_judged(self, judge: "Jury", index: int) -> None:
        turns = TurnsSoFar(self._turns, index)
        with self._or_end():
            judged = judge.judge(self._scope.plan.episode.judge_input(turns, index), index)
        # The outcome has what is wanted of the judge's words.
        judged = replace(judged, calls=tuple(map(without_words, judged.calls)))
        self._keep_verdict(replace(turns[index], judged=judged))
        with self._lock:
            del self._judging[index]

    def _keep_verdict(self, turn: Turn) -> None:
        from socratic_bench.documents.files import JudgeFile

        rubric, judge = self._scope.plan.rubric_of(turn.index), self._conclusion.judge()
        assert rubric is not None and judge is not None  # noqa: S101, PT018 -- by whom it is
        if self._kept(
            turn,
            self._scope.keys.judge(turn.index),
            lambda: (
                JudgeFile.of(
                    turn,
                    run_id=self._scope.keys.run_id,
                    judge_model=judge.model_id,
                    rubric=rubric,
                    parts=self._scope.plan.benchmark.parts,
                ).printed
            ),
        ):
            self._scope.listener.on_judged(turn)

    def _keep_conclusion(self, concluded: ClosingResult) -> None:
        from socratic_bench.documents.closing_file import ClosingFile

        run_id, judge = self._scope.keys.run_id, self._conclusion.judge()
        assert judge is not None  # noqa: S101 -- by whom it is
        self._stores.send(
            self._scope.keys.closing_verdict,
            lambda: ClosingFile.of(concluded, run_id=run_id, judge_model=judge.model_id).printed,
        )

    def _kept(self, turn: Turn, key: str, document: Document) -> bool:
        """Replace the turn by this version and send its file, unless the turns are final already,
        so that the document and the files agree.
        """
        with self._keeping:
            with self._lock:
                if self._is_final:
                    return False
                self._turns[turn.index] = turn
            self._stores.send(key, document)
        return True
