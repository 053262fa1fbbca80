"""Long work in a thread of its own, while the main thread handles signals."""

import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future
from types import FrameType
from typing import TypeVar

from socratic_bench.models.cancel import CancelToken

from .process import ending_signals, is_second_signal

Result = TypeVar("Result")


def take_signals() -> CancelToken:
    """A token that the first signal cancels; a second one ends the process at once.

    The handlers stay until the process ends: a signal that comes while the document is written
    changes nothing in it.
    """
    cancel_token = CancelToken()

    def handle(number: int, _frame: FrameType | None) -> None:
        if is_second_signal(number):
            os._exit(128 + number)
        cancel_token.interrupt(number)

    for number in ending_signals():
        signal.signal(number, handle)
    return cancel_token


def run_in_thread(work: Callable[[], Result]) -> Result:
    """Do `work` in a new thread; returns or raises what it does. Only for the main thread.

    The main thread waits on a pipe into which every signal writes a byte. Waiting for the thread
    is not enough: a signal that the system hands to another thread, or just before the wait begins,
    does not end that wait, and its handler is called only once the thread has ended.
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

    previous = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    threading.Thread(target=run, name="run", daemon=True).start()
    while not outcome.done():
        os.read(reading, 64)
    signal.set_wakeup_fd(previous)
    return outcome.result()
