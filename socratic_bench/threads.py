"""Threads that all runs of a process share, which whoever waits for one can leave behind."""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext, suppress
from queue import SimpleQueue
from traceback import clear_frames
from typing import Any, TypeVar

Result = TypeVar("Result")
# After so much work a thread ends: what it frees, the C library keeps for this thread alone, which
# grows to 60 KB.
MOST_WORK = 12
_Work = tuple[Callable[[], Any], "Future[Any]"]
_here = threading.local()


class RequestThreads:
    """As many threads as there is work under way; one that is free takes the next, a dozen times.

    They end with the process, whatever they do; those that are free end with `close`. Each lives in
    what `around` makes. There is no lock, for which hundreds of threads would wait in turn, each
    for the interpreter's as well.
    """

    def __init__(self, around: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        self._around = around
        self._free: deque[SimpleQueue[_Work | None]] = deque()
        self._is_open = True

    def submit(self, work: Callable[[], Result]) -> "Future[Result]":
        future: Future[Result] = Future()
        try:
            self._free.pop().put((work, future))
        except IndexError:
            inbox: SimpleQueue[_Work | None] = SimpleQueue()
            inbox.put((work, future))
            threading.Thread(target=self._serve, args=(inbox,), name="worker", daemon=True).start()
        return future

    def close(self) -> None:
        self._is_open = False
        with suppress(IndexError):
            while True:
                self._free.pop().put(None)

    def _serve(self, inbox: "SimpleQueue[_Work | None]") -> None:
        with self._around():
            for n_more in reversed(range(MOST_WORK)):
                if not self._does_next(inbox, is_last=not n_more):
                    break

    def _does_next(self, inbox: "SimpleQueue[_Work | None]", *, is_last: bool) -> bool:
        """Whether there may be more to do. Nothing of what was done is held on to."""
        given = inbox.get()
        if given is None:
            return False
        work, future = given
        result, error = _done(work)
        if not is_last:
            # Free before whoever waits can ask for the next.
            self._free.append(inbox)
        if not self._is_open:
            self.close()
        _settle(future, result, error)
        return True


class Workers:
    """So many pieces of work at once at most, begun in the order in which they came.

    Work that `is_brief`, and comes from other workers, has no thread of its own: theirs does it
    next, since to wake another one would take longer. So no worker must wait for such work. Should
    it hang, what waits behind them goes on all the same.
    """

    def __init__(self, threads: RequestThreads, most: int, *, is_brief: bool = False) -> None:
        self._threads = threads
        self._most = most
        self._is_brief = is_brief
        self._lock = threading.Lock()
        self._waiting: deque[_Work] = deque()
        self._n_busy = 0
        self._is_open = True

    def submit(self, work: Callable[[], Result]) -> "Future[Result]":
        """Do it as soon as there is a worker for it; once closed, never: it is cancelled."""
        future: Future[Result] = Future()
        with self._lock:
            if not self._is_open:
                future.cancel()
                return future
            self._waiting.append((work, future))
            is_busy = self._n_busy >= self._most
            self._n_busy += not is_busy
        if not is_busy:
            following: list[Callable[[], None]] | None = getattr(_here, "following", None)
            if self._is_brief and following is not None:
                following.append(self._work)
            else:
                self._threads.submit(self._work)
        return future

    def close(self) -> None:
        """Begin nothing more; what has begun goes on."""
        with self._lock:
            self._is_open = False
            waiting, self._waiting = self._waiting, deque()
        for _, future in waiting:
            future.cancel()

    def _work(self) -> None:
        while given := self._next():
            work, future = given
            if future.set_running_or_notify_cancel():
                following: list[Callable[[], None]] = []
                _here.following = following
                result, error = _done(work)
                _here.following = None
                _settle(future, result, error)
                if following:
                    self._hand_over()
                    for work_on in following:
                        work_on()
                    return

    def _hand_over(self) -> None:
        """Leave what waits to another thread, which is woken only if something does."""
        with self._lock:
            is_wanted = bool(self._waiting)
            self._n_busy -= not is_wanted
        if is_wanted:
            self._threads.submit(self._work)

    def _next(self) -> _Work | None:
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._n_busy -= 1
            return None


def _settle(future: "Future[Any]", result: object, error: BaseException | None) -> None:
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


def _done(work: Callable[[], Result]) -> tuple[Result | None, BaseException | None]:
    try:
        return work(), None
    except BaseException as error:  # noqa: BLE001 -- raised again where it is waited for
        let_go(error)
        return None, error


def let_go(error: BaseException) -> None:
    """Of what was read of an answer: an error lives on, and what stands in its frames with it."""
    told: BaseException | None = error
    while told is not None:
        clear_frames(told.__traceback__)
        told = told.__cause__ or told.__context__
