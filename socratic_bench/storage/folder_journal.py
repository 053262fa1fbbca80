"""The journal of one run in a folder: one line an entry, on the disk before the next call."""

import errno
import fcntl
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson

from socratic_bench.documents import encode
from socratic_bench.errors import ArtifactError, DamagedJournalError, UsageError
from socratic_bench.packed_lines import PackedLines
from socratic_bench.settings import MAX_STORED_BYTES, read_open
from socratic_bench.storage.folder import mending
from socratic_bench.storage.tree import Tree, sync_content, write_whole
from socratic_bench.store_ports import Entry, WrittenEntry
from socratic_bench.types import Json, counted

SUM = "sha256"
NEVER = "Nothing of it was used or changed."
ANEW = "Start a new run without resuming."


class FolderJournal:
    """See `socratic_bench.store_ports.Journal`. The lock is the process's, and goes with it.

    Raises `UsageError` where another process holds the file, or where it is no journal; of one that
    `is_new`, `FileExistsError` where there are entries already.
    """

    def __init__(self, tree: Tree, key: str, descriptor: int, *, is_new: bool = False) -> None:
        self._tree = tree
        self._key = key
        self._path = tree.root / key
        self._descriptor = descriptor
        self.repairs: list[str] = []
        self.mended: list[str] = []
        self.entries: Sequence[Mapping[str, Json]] = ()
        # All lines, in case somebody removes the file.
        self._lines = PackedLines()
        self._n_bytes = 0
        try:
            self._lock()
            if is_new and b"\n" not in self._content():
                os.ftruncate(descriptor, 0)
            self.entries = tuple(self._read())
            _refuse_journal(self.entries if is_new else ())
        except BaseException:
            os.close(descriptor)
            raise

    def append(self, entry: Mapping[str, Json], *, durable: bool = True) -> None:
        line = _line(entry)
        if durable and not self._is_as_left():
            self._mend(self._has_its_length)
        self._write(line, durable=durable)
        self._lines.append(line)
        self._n_bytes += len(line)

    def _write(self, line: bytes, *, durable: bool) -> None:
        try:
            write_whole(self._descriptor, line)
            if durable:
                sync_content(self._descriptor)
        except OSError as error:
            with suppress(OSError):
                # Half a line would spoil the next one.
                os.ftruncate(self._descriptor, self._n_bytes)
            raise unwritable(self._path, error) from error

    @property
    def is_kept(self) -> bool:
        """A failed write raises at once, but somebody may remove the file later."""
        try:
            return self._is_there() and self._is_whole()
        except OSError:
            return False

    def mend(self) -> None:
        """Write the file anew if it was removed, cut or changed. Raises `ArtifactError` if that
        fails, or if another one lies in its place.
        """
        self._mend(self._is_whole)

    def _mend(self, is_good: Callable[[], bool]) -> None:
        try:
            is_there = self._is_there()
            if not is_there:
                self._open_anew()
            if is_good() and is_there:
                return
            self._rewrite()
        except OSError as error:
            raise unwritable(self._path, error) from error
        told = f"{self._path} was removed or changed by others; it was written anew."
        if told not in self.mended:
            self.mended.append(told)

    def _rewrite(self) -> None:
        os.ftruncate(self._descriptor, 0)
        write_whole(self._descriptor, self._lines.joined())
        os.fsync(self._descriptor)

    def writes(self) -> Sequence[Future[None]]:
        """What was appended is there."""
        return ()

    def body_of(self, key: str) -> None:
        """It is not delivered."""

    def _is_there(self) -> bool:
        try:
            found = self._tree.stat(self._key)
            return found is not None and os.path.samestat(found, os.fstat(self._descriptor))
        except OSError:
            return False

    def _is_as_left(self) -> bool:
        """Only length and links are checked before each entry: reading all would take longer."""
        try:
            found = os.fstat(self._descriptor)
        except OSError:
            return False
        return found.st_nlink > 0 and found.st_size == self._n_bytes

    def _has_its_length(self) -> bool:
        return os.fstat(self._descriptor).st_size == self._n_bytes

    def _is_whole(self) -> bool:
        if not self._has_its_length():
            return False
        return read_open(self._descriptor, self._n_bytes) == self._lines.joined()

    def _open_anew(self) -> None:
        descriptor = self._tree.create(self._key)
        os.close(self._descriptor)
        self._descriptor = descriptor
        self._lock()

    def close(self) -> None:
        with suppress(OSError):
            os.close(self._descriptor)

    def _lock(self) -> None:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UsageError(
                [f"Another process is at work on {self._path.stem}: {self._owner()}."],
                hint="Wait until it has ended, or end it; its lock ends with it.",
            ) from error

    def _owner(self) -> str:
        found = [e for e in map(read_line, self._content().splitlines(keepends=True)) if e]
        nobody: dict[str, Any] = {}
        last = next((e for e in reversed(found) if e.get("kind") == "process"), nobody)
        return (
            f"process {last.get('pid', '(unknown)')} on {last.get('host', 'an unknown host')}, "
            f"since {last.get('started_at', 'an unknown time')}"
        )

    def _content(self) -> bytes:
        try:
            return read_open(self._descriptor, MAX_STORED_BYTES)
        except OSError as error:
            raise unopened(self._path, error) from error

    def _read(self) -> Iterator[Mapping[str, Json]]:
        content = self._content()
        whole, _, torn = content.rpartition(b"\n")
        lines = whole.split(b"\n") if whole else []
        found = [read_line(line + b"\n") for line in lines]
        if found and (found[0] or {}).get("run_id") != self._path.stem:
            raise DamagedJournalError(
                [f"{self._path} is no journal of {self._path.stem}. {NEVER}"], hint=ANEW
            )
        if torn:
            if not found:
                raise DamagedJournalError(
                    [f"{self._path} holds no whole entry. {NEVER}"], hint=ANEW
                )
            os.ftruncate(self._descriptor, len(content) - len(torn))
            self.repairs.append(
                f"The last entry of {self._path} was cut off half-way and was removed; "
                "its call is made again."
            )
        self._lines = PackedLines(line + b"\n" for line in lines)
        self._n_bytes = sum(len(line) + 1 for line in lines)
        damaged = sum(entry is None for entry in found)
        if damaged:
            self.repairs.append(
                f"{self._path}: {counted(damaged, 'damaged entry', 'damaged entries')} left out; "
                "the calls are made again."
            )
        yield from (entry for entry in found if entry is not None)


def _refuse_journal(entries: Sequence[Mapping[str, Json]]) -> None:
    if entries:
        raise FileExistsError(errno.EEXIST, "there is a journal already")


def _line(entry: Entry) -> bytes:
    body = entry.body if isinstance(entry, WrittenEntry) else encode(dict(entry))
    return b'%b,"%b":"%b"}\n' % (body[:-1], SUM.encode(), _sum(body).encode())


def _sum(body: bytes) -> str:
    return sha256(body).hexdigest()[:16]


def read_line(line: bytes) -> dict[str, Any] | None:
    """The entry of a line, or `None` for one that is cut off or was changed."""
    try:
        entry = orjson.loads(line)
        if not line.endswith(b"\n") or entry.pop(SUM) != _sum(encode(entry)):
            return None
    except (ValueError, KeyError, AttributeError, TypeError):
        return None
    found: dict[str, Any] = entry
    return found


def unopened(path: Path, error: OSError) -> UsageError:
    return UsageError([f"The journal {path} cannot be opened: {error.strerror}."], hint=ANEW)


def unwritable(path: Path, error: OSError) -> ArtifactError:
    return ArtifactError(
        f"The journal {path} could not be written: {error.strerror}.", hint=mending(error)
    )
