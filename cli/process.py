"""The process of a command: what it writes to stdout, the signals that end it, and its exit.

Until a command handles signals itself, the first one raises `SignalledError`; one that comes before
the program can report it is remembered. Once a document is being written, a signal only ends the
process, so that there is never more than one document.
"""

import errno
import os
import signal
import sys
import time
from contextlib import suppress
from select import select
from types import FrameType

# Exit code of a command that succeeded but could not print its document.
EXIT_UNWRITTEN = 4
RUN_AGAIN = "Run the command again with stdout redirected, such as > file.json."
# Programs that start others pass a signal on that these get by themselves, too: timeout(1) sends it
# to the command and to its group, a closing terminal by its shell and by the system. One so soon
# after the first does not count as a second signal.
TOGETHER_S, HANGUP_S = 0.3, 5.0

_remembered: list[int] = []
_first_s: list[float] = []  # when the first signal came


class SignalledError(BaseException):
    """A signal came before a run was under way; not an `Exception`, so that nobody swallows it."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal_number)
        self.signal_number = signal_number


def write_words(text: str) -> int:
    """Write text that is no document, such as help, to stdout; returns the exit code."""
    failure = write_stdout(text.encode())
    if failure is None:
        return 0
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            sys.stderr.write(f"{unwritten_message(failure)}\n")
    return EXIT_UNWRITTEN


def unwritten_message(failure: str, hint: str = RUN_AGAIN) -> str:
    """What people read if `write_stdout` failed."""
    return f"error: stdout {failure} before the document was written.\n  {hint}"


def write_stdout(content: bytes) -> str | None:
    """Write all bytes to stdout; returns why that failed, or `None`."""
    try:
        descriptor = sys.stdout.fileno()
        unwritten = memoryview(content)
        # An unbuffered stream takes only a part when a signal comes in between.
        while unwritten:
            unwritten = unwritten[_write_part(descriptor, unwritten) :]
    except OSError as error:
        # The interpreter would try to flush once more on its way out, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return "was closed" if isinstance(error, BrokenPipeError) else f"failed ({error.strerror})"
    return None


def is_stdout_closed() -> bool:
    """Whether nothing can ever be written to stdout: it is closed, or open for reading only."""
    if sys.stdout is None:
        return True
    try:
        os.write(sys.stdout.fileno(), b"")
    except OSError as error:
        return error.errno == errno.EBADF
    return False


def is_stdout_terminal() -> bool:
    """Whether somebody reads stdout at a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


def leave_now(code: int) -> None:
    """End the process at once, without waiting for abandoned calls or cleaning up."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with suppress(OSError, ValueError):
                stream.flush()
    os._exit(code)


def ending_signals() -> list[signal.Signals]:
    """The signals that end a run. A SIGHUP that is ignored, as under nohup, stays ignored."""
    ignores_hangup = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [*([] if ignores_hangup else [signal.SIGHUP]), signal.SIGINT, signal.SIGTERM]


def remember_signals() -> None:
    """From now on, remember signals until `raise_signals` raises the first one."""
    for number in ending_signals():
        signal.signal(number, lambda received, _frame: _remembered.append(received))


def raise_signals() -> None:
    """From now on, a signal raises `SignalledError`; a remembered one does so at once."""
    for number in ending_signals():
        signal.signal(number, _raise)
    if _remembered:
        _raise(_remembered[0], None)


def end_at_next_signal() -> None:
    """From now on, a signal that no command handles itself ends the process at once."""
    for number in ending_signals():
        if signal.getsignal(number) is _raise:
            signal.signal(number, _end)


def _write_part(descriptor: int, content: memoryview) -> int:
    try:
        return os.write(descriptor, content)
    except BlockingIOError:
        # The reader made the pipe non-blocking; a full one is not broken.
        select([], [descriptor], [])
        return 0


def is_second_signal(number: int) -> bool:
    """Whether a signal that has come now is another one than the first."""
    now_s = time.monotonic()
    if not _first_s:
        _first_s.append(now_s)
        return False
    return now_s - _first_s[0] > (HANGUP_S if number == signal.SIGHUP else TOGETHER_S)


def _raise(number: int, _frame: FrameType | None) -> None:
    is_second_signal(number)
    end_at_next_signal()  # the next one would be raised where this one is reported
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    raise SignalledError(number)


def _end(number: int, _frame: FrameType | None) -> None:
    if is_second_signal(number):
        os._exit(128 + number)
