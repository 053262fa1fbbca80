"""Rows of whole numbers that the processes of a machine share, or the threads of one."""

import fcntl
import mmap
import os
import threading
from array import array
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from socratic_bench.errors import UsageError

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


class SharedRows(Rows):
    """Rows in a file that each process maps.

    The lock is the kernel's: it is free again when its holder is killed, wherever it was. Numbers
    are written one by one, so that no row is ever unreadable.
    """

    is_shared = True

    def __init__(self, path: Path, width: int) -> None:
        super().__init__(width)
        size = WORD * (MOST_PROCESSES + MOST_ROWS * width)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            with self.locked():
                _check_size(self._descriptor, size, path)
                os.ftruncate(self._descriptor, size)
                self._map = mmap.mmap(self._descriptor, size)
                self._numbers = memoryview(self._map).cast("q")
                self.place = self._claimed()
        except BaseException:
            os.close(self._descriptor)
            raise

    def row(self, name: str) -> memoryview:
        """See `Rows.row`."""
        key = int.from_bytes(sha256(name.encode()).digest()[:WORD], signed=True) or 1
        with self.locked():
            for row in self._slices():
                if row[KEY] in (0, key):
                    row[KEY] = key
                    return row
        raise UsageError([f"Rate targets can be kept for {MOST_ROWS} models and regions at most."])

    def all_rows(self) -> list[memoryview]:
        """See `Rows.all_rows`."""
        return [row for row in self._slices() if row[KEY]]

    def is_gone(self, place: int) -> bool:
        """See `Rows.is_gone`."""
        return not is_alive(self._numbers[place])

    @contextmanager
    def locked(self) -> Iterator[None]:
        """See `Rows.locked`."""
        with self._lock:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Another process may have this one's place."""
        with self._lock:
            if self._numbers[self.place] == os.getpid():
                self._numbers[self.place] = 0
            os.close(self._descriptor)

    def _slices(self) -> Iterator[memoryview]:
        for number in range(MOST_ROWS):
            begin = MOST_PROCESSES + number * self._width
            yield self._numbers[begin : begin + self._width]

    def _claimed(self) -> int:
        """A place that no living process has; the last one is shared if there are too many."""
        for place in range(MOST_PROCESSES - 1):
            if not is_alive(self._numbers[place]):
                self._numbers[place] = os.getpid()
                return place
        return MOST_PROCESSES - 1


def _check_size(descriptor: int, size: int, path: Path) -> None:
    if os.fstat(descriptor).st_size not in (0, size):
        raise UsageError([f"{path} is no file of rate targets of this version."])


def is_alive(process_id: int) -> bool:
    """Whether there is a process of that id; 0 is none."""
    if process_id == 0:
        return False
    with suppress(PermissionError):  # it is another user's
        try:
            os.kill(process_id, 0)
        except ProcessLookupError:
            return False
    return True
