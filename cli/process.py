"""How the process ends: what is no document is written, and it leaves."""

import os
import sys
from contextlib import suppress

from . import stdout

TYPE_CHECKING = False  # known to type checkers; the module of that name takes long to import
if TYPE_CHECKING:
    from typing import NoReturn


def write_words(text: str) -> int:
    """Write what is no document, such as help; the exit code."""
    why = stdout.write(text.encode())
    if why:
        from .output import say_unwritten

        say_unwritten(why)
    return stdout.EXIT_UNWRITTEN if why else 0


def leave_now(code: int) -> "NoReturn":
    """End the process at once, without waiting for abandoned calls or cleaning up."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with suppress(OSError, ValueError):
                stream.flush()
    os._exit(code)
