"""Rows of whole numbers that the processes of a machine share, or the threads of one."""

import threading
from array import array
from collections.abc import Iterator
from contextlib import contextmanager

WORD = 8
MOST_ROWS = 256
# Processes that may have the file open at once; it begins with their ids.
MOST_PROCESSES = 32
KEY = 0  # where a row has the hash of its name; 0: it is free


class Rows:
    """Rows by name, each `width` numbers long and 0 at first; those of one process.

    `place` is this process's number among those that share them.
    """

    is_shared = False
    place = 0

    def __init__(self, width: int) -> None:
        self._width = width
        self._lock = threading.Lock()

    def row(self, name: str) -> memoryview:
        """The row of that name, which is the same for all."""
        del name
        return memoryview(array("q", bytes(self._width * WORD)))

    def all_rows(self) -> list[memoryview]:
        """Those that earlier processes left, too."""
        return []

    def is_gone(self, place: int) -> bool:
        """Whether the process that has a place is no more."""
        del place
        return False

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Alone with all rows; never for longer than arithmetic takes."""
        with self._lock:
            yield

    def close(self) -> None:
        """Let go of them."""
