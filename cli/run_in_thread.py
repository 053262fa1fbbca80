"""Long work beside the main thread, which stays free for signals, and what signals do to it."""

import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from types import FrameType
from typing import TypeVar

from socratic_bench.models.cancel import CancelToken

from . import signals

Result = TypeVar("Result")


def take_signals() -> CancelToken:
    """A token that the first signal cancels, which is then reported; a second one ends the process.

    The handlers stay to the end: a signal that comes while the document is written changes nothing
    in it.
    """
    cancel_token = CancelToken()
    first_s: list[float] = []

    def take(number: int, _frame: FrameType | None) -> None:
        now_s = time.monotonic()
        if not first_s:
            first_s.append(now_s)
            cancel_token.interrupt(number)
        elif number != signal.SIGHUP or now_s - first_s[0] > signals.HANGUP_S:
            os._exit(128 + number)

    for number in signals.taken():
        signal.signal(number, take)
    return cancel_token


def run_in_thread(work: Callable[[], Result]) -> Result:
    """What `work` returns or raises, in a thread of its own; for the main thread.

    The main thread waits on a pipe into which every signal writes a byte. Waiting for the thread
    would not do: a signal that the system hands to another thread, or just before the wait begins,
    would not end it, and its handler would only be called once the thread is over.
    """
    outcome: Future[Result] = Future()
    reading, writing = os.pipe()
    os.set_blocking(writing, False)

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:  # noqa: BLE001 -- raised again in the main thread
            outcome.set_exception(error)
        finally:
            os.write(writing, b"\0")

    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    threading.Thread(target=run, name="run", daemon=True).start()
    while not outcome.done():
        os.read(reading, 64)
    signal.set_wakeup_fd(before)
    return outcome.result()
