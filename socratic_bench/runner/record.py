"""The turns of a run: stored and judged while the dialogue goes on."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError, wait
from contextlib import suppress
from functools import partial

from msgspec.structs import replace

from socratic_bench.calling.cancel_token import CancelToken
from socratic_bench.documents import encode
from socratic_bench.errors import BenchError, InternalError
from socratic_bench.judging import Judge
from socratic_bench.ports import EpisodeResult
from socratic_bench.runner.conclusion import Conclusion
from socratic_bench.runner.items import TurnsSoFar
from socratic_bench.runner.listener import Listener
from socratic_bench.runner.plan import Plan
from socratic_bench.storage.delivery import Delivery
from socratic_bench.storage.keys import RunKeys
from socratic_bench.threads import RequestThreads, Workers
from socratic_bench.turns import Concluded, Judged, Turn
from socratic_bench.types import Json

# The dialogue's next request goes out first, since the interpreter puts one together at a time; and
# where a judge is as quick as the speakers, its answer need not come together with theirs.
GIVE_WAY_S = 0.01
# For turns that are measured and kept while the run is ending, which takes a millisecond each.
LAST_TURNS_S = 0.3


class Record:
    """Takes each finished turn, in any order; has it measured, kept and judged while others are
    played.
    """

    def __init__(  # noqa: PLR0913 -- the parts of a run that it works with
        self,
        *,
        keys: RunKeys,
        plan: Plan,
        judge: Judge | None,
        delivery: Delivery,
        listener: Listener,
        cancel_token: CancelToken,
        threads: RequestThreads,
    ) -> None:
        self._keys = keys
        self._episode = plan.episode
        self._rubric_of = plan.rubric_of
        self._parts = plan.benchmark.parts
        self._judge = judge
        self._delivery = delivery
        self._listener = listener
        self._cancel_token = cancel_token
        self._lock = threading.Lock()
        # Held so that a turn's file is sent and the listener told either both or not at all.
        self._keeping = threading.Lock()
        self._turns: dict[int, Turn] = {}
        self._newest: int | None = None
        self._documents: dict[str, Callable[[], dict[str, Json]]] = {}
        self._is_closed = False
        self._is_final = False
        self._played: Future[None] = Future()
        self._entering: dict[int, Future[None]] = {}
        self._judging: dict[int, Future[Judged]] = {}
        self._desk = Workers(threads, 1)
        self._pool = Workers(threads, plan.judges_at_once)
        self._conclusion = Conclusion(
            plan, judge, cancel_token=cancel_token, threads=threads, keep=self._keep_conclusion
        )

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
            self._entering[turn.index] = self._desk.submit(partial(self._enter, turn.index))

    @property
    def n_turns(self) -> int:
        return len(self._turns)

    def wait(self, episode_result: EpisodeResult) -> None:
        """After the last turn: wait until all are judged, and the episode as a whole. Raises what
        ends the run meanwhile.
        """
        self._end_play()
        for entering in list(self._entering.values()):
            self._cancel_token.result(entering)
        turns = [turn for _, turn in sorted(self._turns.items())]
        self._conclusion.wait(turns, episode_result, list(self._judging.values()))

    def linger(self, at_most_s: float) -> None:
        """When the run was told to end: wait shortly for verdicts that come from the journal."""
        self._end_play()
        wait(list(self._entering.values()), timeout=at_most_s)
        wait(list(self._judging.values()), timeout=at_most_s)

    def final(self) -> tuple[Turn, ...]:
        """Freeze and return all turns. Later verdicts are dropped, so that document and files
        agree.
        """
        with self._keeping, self._lock:
            self._is_final = True
            turns = sorted(self._turns.items())
        entered = {index for index, entering in self._entering.items() if _is_done(entering)}
        return tuple(turn if at in entered else self._measured(at) for at, turn in turns)

    def concluded(self) -> Concluded | None:
        """What came of asking about the episode as a whole, frozen like the turns."""
        return self._conclusion.final()

    def body_of(self, key: str) -> bytes | None:
        """The file that was sent under `key`, made anew; `None` if none was."""
        document = self._documents.get(key)
        return encode(document()) if document else None

    def close(self) -> None:
        """Start no more verdicts. Turns that were handed over are still measured and stored."""
        self._end_play()
        with self._lock:
            self._is_closed = True
        wait(self._entering.values(), timeout=LAST_TURNS_S)
        self._desk.close()
        self._pool.close()

    def _end_play(self) -> None:
        with suppress(InvalidStateError):
            self._played.set_result(None)

    def _enter(self, index: int) -> None:
        try:
            self._take_in(index)
        except Exception as defect:
            # The next turn would fail in the same way, so the dialogue need not go on.
            self._cancel_token.end(InternalError.of(defect))
            raise

    def _take_in(self, index: int) -> None:
        """Measure a turn, store it, tell it, and have it judged."""
        from socratic_bench.documents.files import TurnFile

        if index == self._newest:
            self._cancel_token.pause(GIVE_WAY_S, self._played)
        turn = self._measured(index)
        sample = self._episode.opening
        run_id, parts = self._keys.run_id, self._parts
        if not self._kept(
            turn,
            self._keys.turn(index),
            lambda: TurnFile.of(turn, run_id=run_id, sample=sample, parts=parts).printed,
        ):
            return
        self._listener.on_turn(turn)
        rubric = self._rubric_of(index)
        if self._judge is None or rubric is None or turn.replayed:
            self._listener.on_judged(turn)
        elif turn.unscorable is None:
            judge = replace(self._judge, rubric=rubric)
            self._judging[index] = self._pool.submit(partial(self._have_judged, judge, index))
        else:
            self._keep_verdict(turn)

    def _measured(self, index: int) -> Turn:
        # Not needed before the first reply is there.
        from socratic_bench.judging.injection import suspects_injection

        turn = self._episode.measured(TurnsSoFar(self._turns, index), index)
        rubric = self._rubric_of(index)
        if rubric is None:
            return turn
        suspected = suspects_injection(turn.reply.message.text, rubric)
        return replace(turn, injection_suspected=suspected)

    def _have_judged(self, judge: Judge, index: int) -> Judged:
        turns = TurnsSoFar(self._turns, index)
        try:
            judged = judge.judge(self._episode.judge_input(turns, index), index)
        except BenchError as error:
            # Every other verdict would fail in the same way, so the dialogue need not go on.
            self._cancel_token.end(error)
            raise
        self._keep_verdict(replace(turns[index], judged=judged))
        return judged

    def _keep_verdict(self, turn: Turn) -> None:
        from socratic_bench.documents.files import JudgeFile

        rubric, judge = self._rubric_of(turn.index), self._judge
        assert rubric is not None and judge is not None  # noqa: S101, PT018 -- by whom it is
        if self._kept(
            turn,
            self._keys.judge(turn.index),
            lambda: (
                JudgeFile.of(
                    turn,
                    run_id=self._keys.run_id,
                    judge_model=judge.model.model_id,
                    rubric=rubric,
                    parts=self._parts,
                ).printed
            ),
        ):
            self._listener.on_judged(turn)

    def _keep_conclusion(self, concluded: Concluded) -> None:
        from socratic_bench.documents.files import ClosingFile

        run_id, judge = self._keys.run_id, self._judge
        assert judge is not None  # noqa: S101 -- by whom it is
        self._send(
            self._keys.closing_verdict,
            lambda: (
                ClosingFile.of(concluded, run_id=run_id, judge_model=judge.model.model_id).printed
            ),
        )

    def _kept(self, turn: Turn, key: str, document: Callable[[], dict[str, Json]]) -> bool:
        """Replace the turn by this version and send its file, unless the turns are final already,
        so that the document and the files agree.
        """
        with self._keeping:
            with self._lock:
                if self._is_final:
                    return False
                self._turns[turn.index] = turn
            self._send(key, document)
        return True

    def _send(self, key: str, document: Callable[[], dict[str, Json]]) -> None:
        if self._delivery.has_stores:
            self._documents[key] = document
            self._delivery.send(key, encode(document()))


def _is_done(entering: Future[None]) -> bool:
    return entering.done() and not entering.cancelled()
