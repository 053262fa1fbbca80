"""The stream of the one document: written whole, or it is known why not."""

import errno
import os
import sys

# Exit code of a command that succeeded but could not print its document.
EXIT_UNWRITTEN = 4


def is_closed() -> bool:
    """Whether nothing can ever be written: it is closed, or open for reading only."""
    if sys.stdout is None:
        return True
    try:
        os.write(sys.stdout.fileno(), b"")
    except OSError as error:
        return error.errno == errno.EBADF
    return False


def is_terminal() -> bool:
    """Whether somebody reads it at a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


def write(content: bytes) -> str | None:
    """Write all of it; returns why that failed, or `None`."""
    try:
        descriptor = sys.stdout.fileno()
        rest = memoryview(content)
        # An unbuffered stream takes only a part when a signal comes in between.
        while rest:
            rest = rest[_write_some(descriptor, rest) :]
    except OSError as error:
        # The interpreter would try to flush once more on its way out, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return "was closed" if isinstance(error, BrokenPipeError) else f"failed ({error.strerror})"
    return None


def _write_some(descriptor: int, content: memoryview) -> int:
    try:
        return os.write(descriptor, content)
    except BlockingIOError:
        # The reader made the pipe non-blocking; a full one is not broken.
        import select

        select.select([], [descriptor], [])
        return 0
