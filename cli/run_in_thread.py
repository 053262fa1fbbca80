"""Runs something in another thread, so that the main thread stays free for signals."""

import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

Result = TypeVar("Result")


def run_in_thread(
    play: Callable[[], Result], meanwhile: Callable[[threading.Thread], None] = lambda _thread: None
) -> Result:
    """What `play` returns or raises, in a thread of its own; for the main thread.

    The main thread does `meanwhile`, with the thread, before it waits.

    The main thread waits on a pipe into which every signal writes a byte. Waiting for the thread
    would not do: a signal that the system hands to another thread, or just before the wait begins,
    would not end it, and its handler would only be called once the thread is over.
    """
    outcome: Future[Result] = Future()
    reading, writing = os.pipe()
    os.set_blocking(writing, False)

    def run() -> None:
        try:
            outcome.set_result(play())
        except BaseException as error:  # noqa: BLE001 -- raised again in the main thread
            outcome.set_exception(error)
        finally:
            os.write(writing, b"\0")

    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    thread = threading.Thread(target=run, name="run", daemon=True)
    thread.start()
    meanwhile(thread)
    while not outcome.done():
        os.read(reading, 64)
    signal.set_wakeup_fd(before)
    return outcome.result()
