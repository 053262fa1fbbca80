"""The turns of a run: stored and judged while the dialogue goes on."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor, wait
from contextlib import suppress

from msgspec.structs import replace

from socratic_bench.calling.cancel_token import CancelToken
from socratic_bench.documents import encode
from socratic_bench.errors import BenchError, InternalError
from socratic_bench.judging import Judge
from socratic_bench.ports import Listener
from socratic_bench.runner.plan import Plan
from socratic_bench.storage.delivery import Delivery
from socratic_bench.storage.keys import RunKeys
from socratic_bench.turns import Judged, Turn
from socratic_bench.types import Json

JUDGES_AT_ONCE = 4
# The dialogue's next request goes out first, since the interpreter puts one together at a time; and
# where a judge is as quick as the speakers, its answer need not come together with theirs.
GIVE_WAY_S = 0.01
# For turns that are measured and kept while the run is ending, which takes a millisecond each.
LAST_TURNS_S = 0.3


class Record:
    """Takes each finished turn; has it measured, kept and judged while the next one is played."""

    def __init__(
        self,
        *,
        keys: RunKeys,
        plan: Plan,
        judge: Judge | None,
        delivery: Delivery,
        listener: Listener,
        cancel_token: CancelToken,
    ) -> None:
        self._keys = keys
        self._episode = plan.episode
        self._parts = plan.benchmark.parts
        self._judge = judge
        self._delivery = delivery
        self._listener = listener
        self._cancel_token = cancel_token
        self._lock = threading.Lock()
        # Held so that a turn's file is sent and the listener told either both or not at all.
        self._keeping = threading.Lock()
        self._turns: list[Turn] = []
        self._documents: dict[str, Callable[[], dict[str, Json]]] = {}
        self._is_final = False
        self._played: Future[None] = Future()
        self._entering: list[Future[None]] = []
        self._judging: dict[int, Future[Judged]] = {}
        self._desk = ThreadPoolExecutor(1, thread_name_prefix="record")
        self._pool = ThreadPoolExecutor(JUDGES_AT_ONCE, thread_name_prefix="judge")

    def add(self, turn: Turn) -> None:
        """Keep a turn; returns at once. It is measured, stored and judged in other threads, in
        order.
        """
        with self._lock:
            self._turns.append(turn)
            so_far = tuple(self._turns)
        self._entering.append(self._desk.submit(self._enter, so_far))

    def wait(self) -> None:
        """After the last turn: wait until all are judged. Raises what ends the run meanwhile."""
        self._end_play()
        for entering in self._entering:
            self._cancel_token.result(entering)
        for judging in list(self._judging.values()):
            self._cancel_token.result(judging)

    def linger(self, at_most_s: float) -> None:
        """When the run was told to end: wait shortly for verdicts that come from the journal."""
        self._end_play()
        wait(self._entering, timeout=at_most_s)
        wait(list(self._judging.values()), timeout=at_most_s)

    def final(self) -> tuple[Turn, ...]:
        """Freeze and return all turns. Later verdicts are dropped, so that document and files
        agree.
        """
        with self._keeping, self._lock:
            self._is_final = True
            turns = tuple(self._turns)
        return tuple(
            self._measured(turns[: turn.index + 1])
            if entering.cancelled() or not entering.done()
            else turn
            for turn, entering in zip(turns, self._entering, strict=True)
        )

    def body_of(self, key: str) -> bytes | None:
        """The file that was sent under `key`, made anew; `None` if none was."""
        document = self._documents.get(key)
        return encode(document()) if document else None

    def close(self) -> None:
        """Start no more verdicts. Turns that were handed over are still measured and stored."""
        self._end_play()
        wait(self._entering, timeout=LAST_TURNS_S)
        self._desk.shutdown(wait=False, cancel_futures=True)
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _end_play(self) -> None:
        with suppress(InvalidStateError):
            self._played.set_result(None)

    def _enter(self, so_far: Sequence[Turn]) -> None:
        try:
            self._take_in(so_far)
        except Exception as defect:
            # The next turn would fail in the same way, so the dialogue need not go on.
            self._cancel_token.end(InternalError.of(defect))
            raise

    def _take_in(self, so_far: Sequence[Turn]) -> None:
        """Measure the last of the turns, store it, tell it, and have it judged."""
        from socratic_bench.documents.files import TurnFile

        if len(so_far) == len(self._turns):
            self._cancel_token.pause(GIVE_WAY_S, self._played)
        turn = self._measured(so_far)
        index = turn.index
        sample = self._episode.opening
        run_id, parts = self._keys.run_id, self._parts
        if not self._kept(
            turn,
            self._keys.turn(index),
            lambda: TurnFile.of(turn, run_id=run_id, sample=sample, parts=parts).printed,
        ):
            return
        self._listener.on_turn(turn)
        if self._judge is None or turn.replayed:
            self._listener.on_judged(turn)
        elif turn.unscorable is None:
            shown = (*so_far[:-1], turn)
            self._judging[index] = self._pool.submit(self._have_judged, shown, index)
        else:
            self._keep_verdict(turn)

    def _measured(self, so_far: Sequence[Turn]) -> Turn:
        # Not needed before the first reply is there.
        from socratic_bench.judging.injection import suspects_injection

        turn, rubric = self._episode.measured(so_far, len(so_far) - 1), self._episode.rubric
        if rubric is None:
            return turn
        suspected = suspects_injection(turn.reply.message.text, rubric)
        return replace(turn, injection_suspected=suspected)

    def _have_judged(self, turns: Sequence[Turn], index: int) -> Judged:
        assert self._judge is not None  # noqa: S101 -- only called with a judge
        try:
            judged = self._judge.judge(self._episode.judge_input(turns, index), index)
        except BenchError as error:
            # Every other verdict would fail in the same way, so the dialogue need not go on.
            self._cancel_token.end(error)
            raise
        self._keep_verdict(replace(turns[index], judged=judged))
        return judged

    def _keep_verdict(self, turn: Turn) -> None:
        from socratic_bench.documents.files import JudgeFile

        rubric, judge = self._episode.rubric, self._judge
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
