"""SIGINT and SIGTERM, from the first statement of the program to its last.

Until a command takes signals itself, the first one is an exception; before the program is far
enough to report one, it is remembered. Once a document is being written, a signal only ends the
process: there is never a second document, nor half a one followed by another.
"""

import os
import signal
from types import FrameType

NUMBERS = (signal.SIGINT, signal.SIGTERM)


class SignalledError(BaseException):
    """A signal came before a run was under way; not an `Exception`, so that nobody swallows it."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal_number)
        self.signal_number = signal_number


_remembered: list[int] = []


def remember() -> None:
    """From now on, remember the first signal until `interrupting` raises it."""
    for number in NUMBERS:
        signal.signal(number, lambda taken, _frame: _remembered.append(taken))


def interrupting() -> None:
    """From now on, a signal raises `SignalledError`; one that was remembered does so at once."""
    for number in NUMBERS:
        signal.signal(number, _raise)
    if _remembered:
        raise SignalledError(_remembered[0])


def from_now_on_final() -> None:
    """From now on, a signal that no command takes itself ends the process at once."""
    for number in NUMBERS:
        if signal.getsignal(number) is _raise:
            signal.signal(number, _end)


def _raise(number: int, _frame: FrameType | None) -> None:
    raise SignalledError(number)


def _end(number: int, _frame: FrameType | None) -> None:
    os._exit(128 + number)
