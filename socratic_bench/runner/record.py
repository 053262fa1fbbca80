"""The turns of a run as they grow: kept in the stores and judged, both beside the dialogue."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace

from socratic_bench.artifacts.delivery import Delivery
from socratic_bench.artifacts.keys import RunKeys
from socratic_bench.documents import encode
from socratic_bench.errors import BenchError
from socratic_bench.judging import Judge
from socratic_bench.ports import Episode, Listener
from socratic_bench.runner.halt import Halt
from socratic_bench.types import Json, Judged, Turn

JUDGES_AT_ONCE = 4
# The dialogue's next request goes out first, since the interpreter puts one together at a time; and
# where a judge is as quick as the speakers, its answer need not come together with theirs.
GIVE_WAY_S = 0.02


class Record:
    """Takes each finished turn, keeps it, and has it judged while the next one is played."""

    def __init__(
        self,
        *,
        keys: RunKeys,
        episode: Episode,
        judge: Judge | None,
        delivery: Delivery,
        listener: Listener,
        halt: Halt,
    ) -> None:
        self._keys = keys
        self._episode = episode
        self._judge = judge
        self._delivery = delivery
        self._listener = listener
        self._halt = halt
        self._lock = threading.Lock()
        self._turns: list[Turn] = []
        self._is_final = False
        self._is_played = threading.Event()
        self._judging: dict[int, Future[Judged]] = {}
        self._pool = ThreadPoolExecutor(JUDGES_AT_ONCE, thread_name_prefix="judge")

    @property
    def turns(self) -> tuple[Turn, ...]:
        """All turns so far, with the verdicts so far."""
        with self._lock:
            return tuple(self._turns)

    def final(self) -> tuple[Turn, ...]:
        """All turns; a verdict that comes later is neither kept nor told, so that all agree."""
        with self._lock:
            self._is_final = True
            return tuple(self._turns)

    def add(self, turn: Turn) -> None:
        """Keep a turn and start judging it; returns at once."""
        from socratic_bench.documents.artifacts import turn_document

        with self._lock:
            self._turns.append(turn)
            so_far = tuple(self._turns)
        scenario = self._episode.opening.scenario
        self._send(
            self._keys.turn(turn.index), lambda: turn_document(self._keys.run_id, scenario, turn)
        )
        self._listener.on_turn(turn)
        if self._judge is None or turn.replayed:
            self._listener.on_judged(turn)
        elif turn.unjudgeable is None:
            self._judging[turn.index] = self._pool.submit(self._have_judged, so_far, turn.index)
        else:
            self._keep_verdict(turn)

    def wait(self) -> None:
        """After the last turn: wait until all are judged. Raises what ends the run meanwhile."""
        self._is_played.set()
        for future in list(self._judging.values()):
            self._halt.result(future)

    def linger(self, at_most_s: float) -> None:
        """Give verdicts a moment that are only read from memory, when the run was told to end."""
        self._is_played.set()
        wait(list(self._judging.values()), timeout=at_most_s)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _have_judged(self, turns: Sequence[Turn], index: int) -> Judged:
        assert self._judge is not None  # noqa: S101 -- only called with a judge
        self._is_played.wait(GIVE_WAY_S)
        try:
            judged = self._judge.judge(self._episode.exhibit(turns, index), index)
        except BenchError as error:
            # What befell this verdict would befall every other, so the dialogue need not go on.
            self._halt.end(error)
            raise
        self._keep_verdict(replace(turns[index], judged=judged))
        return judged

    def _keep_verdict(self, turn: Turn) -> None:
        from socratic_bench.documents.artifacts import judge_document

        with self._lock:
            if self._is_final:
                return
            self._turns[turn.index] = turn
        rubric, judge = self._episode.rubric, self._judge
        if rubric is None or judge is None:
            return
        self._send(
            self._keys.judge(turn.index),
            lambda: judge_document(
                self._keys.run_id,
                turn,
                turn.outcome,
                judge_model=judge.model.model_id,
                dimensions=[dimension.name for dimension in rubric.dimensions],
            ),
        )
        self._listener.on_judged(turn)

    def _send(self, key: str, document: Callable[[], dict[str, Json]]) -> None:
        if self._delivery.has_stores:
            self._delivery.send(key, encode(document()))
