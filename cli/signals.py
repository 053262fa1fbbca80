"""SIGHUP, SIGINT and SIGTERM, from the first statement of the program to its last.

Until a command takes signals itself, the first one is an exception; before the program is far
enough to report one, it is remembered. Once a document is being written, a signal only ends the
process, so that there is never more than one document.
"""

import os
import signal
from types import FrameType

# A closing terminal sends SIGHUP more than once: by its shell, and by the system. One so soon after
# a first signal does not count as a second signal.
HANGUP_S = 5.0


class SignalledError(BaseException):
    """A signal came before a run was under way; not an `Exception`, so that nobody swallows it."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal_number)
        self.signal_number = signal_number


_remembered: list[int] = []


def taken() -> list[signal.Signals]:
    """The signals that end a run. A SIGHUP that is ignored, as nohup has it, stays so."""
    ignores_hangup = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [*([] if ignores_hangup else [signal.SIGHUP]), signal.SIGINT, signal.SIGTERM]


def remember() -> None:
    """From now on, remember the first signal until `interrupting` raises it."""
    for number in taken():
        signal.signal(number, lambda taken, _frame: _remembered.append(taken))


def interrupting() -> None:
    """From now on, a signal raises `SignalledError`; one that was remembered does so at once."""
    for number in taken():
        signal.signal(number, _raise)
    if _remembered:
        _raise(_remembered[0], None)


def end_at_next_signal() -> None:
    """From now on, a signal that no command takes itself ends the process at once."""
    for number in taken():
        if signal.getsignal(number) is _raise:
            signal.signal(number, _end)


def _raise(number: int, _frame: FrameType | None) -> None:
    end_at_next_signal()  # the next one would be raised where this one is reported
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    raise SignalledError(number)


def _end(number: int, _frame: FrameType | None) -> None:
    os._exit(128 + number)
