"""The journals in a folder: one file a run, one line an entry, on the disk before the next call."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson

from socratic_bench.documents import encode
from socratic_bench.errors import (
    ArtifactError,
    DamagedJournalError,
    InUseError,
    Problem,
    UsageError,
)
from socratic_bench.ports.store import Entry, WrittenEntry
from socratic_bench.settings import MAX_STORED_BYTES, read_open
from socratic_bench.storage.folder import FolderTree, repair_hint, sync_content, write_whole
from socratic_bench.storage.keys import JUDGING_FILE, RunKeys, index_of
from socratic_bench.types import Json, plural

FOLDER = "journal/runs"
# Room for the longest prompt twice, and for the rest of a first entry.
MAX_FIRST_LINE_BYTES = 16 * 2**20
SUM = "sha256"
UNCHANGED = "Nothing of it was used or changed."
START_NEW_RUN = "Start a new run without resuming."


class FolderJournals:
    """See `Journals`: the files `journal/runs/{run_id}.jsonl` below `root`, each locked by its
    process. `notice` is called with a sentence about each damaged file.
    """

    def __init__(self, root: str, notice: Callable[[str], None] = lambda _: None) -> None:
        self._root = Path(root).absolute()
        self._tree = FolderTree(self._root)
        self._notice = notice

    @contextmanager
    def exclusive(self, identity: str) -> Iterator[None]:
        """See `Journals.exclusive`: a lock on an empty file, which ends with its process."""
        key = f"{index_of(identity)}lock"
        with _write_errors(self._root / key):
            descriptor = self._tree.open(key, os.O_RDWR | os.O_CREAT, make=True)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                what = "Another process is about to begin or resume this run"
                self._notice(f"{what}: waiting for it.")
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def newest(self, identity: str) -> Iterator[str]:
        """See `Journals.newest`. Damaged files are passed over, with a notice."""
        folder = self._root / FOLDER
        with _open_errors(folder):
            names = [name for name in self._tree.names(FOLDER) if fnmatchcase(name, "run-*.jsonl")]
        for path in (folder / name for name in reversed(names)):
            try:
                line = self._first_line(path)
            except OSError as error:
                self._notice(f"{path} cannot be read and is skipped: {error.strerror}.")
                continue
            entry = _read_line(line)
            if entry and entry.get("digest") == identity:
                yield path.stem
            elif entry is None and line.endswith(b"\n"):
                self._notice(f"{path} is damaged at its beginning and is skipped.")

    def first(self, run_id: str) -> Mapping[str, Json]:
        path, line = self._path(run_id), b""
        with _open_errors(path), suppress(FileNotFoundError):
            line = self._first_line(path)
        if not line:
            raise self._absent(path)
        entry = _read_line(line)
        if entry is None:
            raise DamagedJournalError(
                [f"{path} is damaged at its beginning. {UNCHANGED}"], hint=START_NEW_RUN
            )
        return entry

    def holds(self, run_id: str) -> bool:
        """See `Journals.holds`: with a whole first entry, unlike that of a process that was killed
        before.
        """
        path = self._path(run_id)
        with _open_errors(path), suppress(FileNotFoundError):
            return self._first_line(path).endswith(b"\n")
        return False

    def create(self, run_id: str, identity: str) -> FolderJournal:
        """A new, empty journal. The first entry tells the `identity`, so nothing else is stored."""
        del identity
        path = self._path(run_id)
        key = self._key(path)
        with _write_errors(path):
            try:
                descriptor = self._tree.create(key)
            except FileExistsError:
                descriptor = self._tree.open(key, os.O_RDWR | os.O_APPEND)
            return FolderJournal(self._tree, key, descriptor, is_new=True)

    def open(self, run_id: str) -> FolderJournal:
        """See `Journals.open`. Half-written files of a killed process are removed."""
        path = self._path(run_id)
        with _open_errors(path):
            try:
                descriptor = self._tree.open(self._key(path), os.O_RDWR | os.O_APPEND)
            except FileNotFoundError as error:
                raise self._absent(path) from error
        journal = FolderJournal(self._tree, self._key(path), descriptor)
        # What cannot be removed does no harm; a folder that is a link shows at the next write.
        with suppress(OSError):
            self._remove_drafts(RunKeys(run_id))
        return journal

    def _remove_drafts(self, keys: RunKeys) -> None:
        """Remove the drafts of a locked run's files, which may be those of a judging."""
        self._tree.remove_drafts(keys.raw.rstrip("/"))
        folder, _, curated = keys.curated.rpartition("/")
        self._tree.remove_drafts(folder, of=lambda name: name == curated)
        self._tree.remove_drafts(
            "", of=lambda name: name == JUDGING_FILE or fnmatchcase(name, "judge_*.json")
        )

    def _path(self, run_id: str) -> Path:
        return self._root / RunKeys(run_id).journal_file

    def _key(self, path: Path) -> str:
        return str(path.relative_to(self._root))

    def _first_line(self, path: Path) -> bytes:
        """The first line of a journal. Raises `OSError` for what cannot be read, or is no file."""
        with os.fdopen(self._tree.open(self._key(path)), "rb") as file:
            return file.readline(MAX_FIRST_LINE_BYTES)

    def _absent(self, path: Path) -> UsageError:
        return UsageError(
            [f"There is no journal of {path.stem} in {self._root}."],
            hint=Problem.of(
                "Give the {output_dir} of the run, and its run_id as its document has it."
            ),
        )


class FolderJournal:
    """See `socratic_bench.ports.store.Journal`. The lock is the process's, and ends with it.

    Raises `UsageError` where another process holds the file, or where it is no journal; of one that
    `is_new`, `FileExistsError` where there are entries already.
    """

    def __init__(
        self, tree: FolderTree, key: str, descriptor: int, *, is_new: bool = False
    ) -> None:
        self._tree = tree
        self._key = key
        self._path = tree.root / key
        self._descriptor = descriptor
        self.repairs: list[str] = []
        self.mended: list[str] = []
        self.entries: Sequence[Mapping[str, Json]] = ()
        # All lines, in case somebody removes the file.
        self._lines: list[bytes] = []
        self._n_bytes = 0
        try:
            self._lock()
            if is_new and b"\n" not in self._content():
                os.ftruncate(descriptor, 0)
            self.entries = tuple(self._read())
            if is_new and self.entries:
                raise FileExistsError(errno.EEXIST, "there is a journal already")  # noqa: TRY301
        except BaseException:
            os.close(descriptor)
            raise

    def append(self, entry: Mapping[str, Json], *, durable: bool = True) -> None:
        line = _line(entry)
        if durable:
            self._mend(is_read=False)  # to read all of it would take longer
        with _write_errors(self._path):
            try:
                write_whole(self._descriptor, line)
                if durable:
                    sync_content(self._descriptor)
            except OSError:
                with suppress(OSError):  # half a line would spoil the next one
                    os.ftruncate(self._descriptor, self._n_bytes)
                raise
        self._lines.append(line)
        self._n_bytes += len(line)

    @property
    def is_kept(self) -> bool:
        """A failed write raises at once, but somebody may remove the file later."""
        try:
            return self._is_there() and self._is_whole(is_read=True)
        except OSError:
            return False

    def mend(self) -> None:
        """Write the file anew if it was removed, cut or changed. Raises `ArtifactError` if that
        fails, or if another one lies in its place.
        """
        self._mend(is_read=True)

    def _mend(self, *, is_read: bool) -> None:
        with _write_errors(self._path):
            if not self._is_there():
                descriptor = self._tree.create(self._key)
                os.close(self._descriptor)
                self._descriptor = descriptor
                self._lock()
            elif self._is_whole(is_read=is_read):
                return
            os.ftruncate(self._descriptor, 0)
            write_whole(self._descriptor, b"".join(self._lines))
            os.fsync(self._descriptor)
        message = f"{self._path} was removed or changed by another program; it was rewritten."
        if message not in self.mended:
            self.mended.append(message)

    def writes(self) -> Sequence[Future[None]]:
        """None: what was appended is on the disk."""
        return ()

    def body_of(self, key: str) -> None:
        """None: no delivery carries these entries."""

    def _is_there(self) -> bool:
        try:
            status = self._tree.stat(self._key)
            return status is not None and os.path.samestat(status, os.fstat(self._descriptor))
        except OSError:
            return False

    def _is_whole(self, *, is_read: bool) -> bool:
        """Whether it has its length and, if it `is_read`, its content."""
        if os.fstat(self._descriptor).st_size != self._n_bytes:
            return False
        return not is_read or read_open(self._descriptor, self._n_bytes) == b"".join(self._lines)

    def close(self) -> None:
        with suppress(OSError):
            os.close(self._descriptor)

    def _lock(self) -> None:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise InUseError(
                [f"Another process is at work on {self._path.stem}: {self._owner()}."],
                hint="Wait until it has ended, or end it; its lock ends with it.",
            ) from error

    def _owner(self) -> str:
        """The process that has the lock, for people."""
        entries = [e for e in map(_read_line, self._content().splitlines(keepends=True)) if e]
        process: dict[str, Any] = next(
            (entry for entry in reversed(entries) if entry.get("kind") == "process"), {}
        )
        return (
            f"process {process.get('pid', '(unknown)')} on "
            f"{process.get('host', 'an unknown host')}, "
            f"since {process.get('started_at', 'an unknown time')}"
        )

    def _content(self) -> bytes:
        with _open_errors(self._path):
            return read_open(self._descriptor, MAX_STORED_BYTES)

    def _read(self) -> Iterator[Mapping[str, Json]]:
        """The entries of the file; what is damaged is left out and noted in `repairs`."""
        content = self._content()
        whole, _, torn = content.rpartition(b"\n")
        self._lines = [line + b"\n" for line in whole.split(b"\n")] if whole else []
        self._n_bytes = len(content) - len(torn)
        entries = [_read_line(line) for line in self._lines]
        if entries and (entries[0] or {}).get("run_id") != self._path.stem:
            raise DamagedJournalError(
                [f"{self._path} is not a journal of {self._path.stem}. {UNCHANGED}"],
                hint=START_NEW_RUN,
            )
        if torn and not entries:
            raise DamagedJournalError(
                [f"{self._path} holds no whole entry. {UNCHANGED}"], hint=START_NEW_RUN
            )
        if torn:
            os.ftruncate(self._descriptor, self._n_bytes)
            self.repairs.append(
                f"The last entry of {self._path} was cut off half-way and was removed; "
                "its call is made again."
            )
        damaged = sum(entry is None for entry in entries)
        if damaged:
            self.repairs.append(
                f"{self._path}: {plural(damaged, 'damaged entry', 'damaged entries')} left out; "
                "the calls are made again."
            )
        yield from (entry for entry in entries if entry is not None)


def _line(entry: Entry) -> bytes:
    body = entry.body if isinstance(entry, WrittenEntry) else encode(dict(entry))
    return b'%b,"%b":"%b"}\n' % (body[:-1], SUM.encode(), _checksum(body).encode())


def _checksum(body: bytes) -> str:
    return sha256(body).hexdigest()[:16]


def _read_line(line: bytes) -> dict[str, Any] | None:
    """The entry of a line, or `None` for one that is cut off or was changed."""
    try:
        entry: dict[str, Any] = orjson.loads(line)
        if not line.endswith(b"\n") or entry.pop(SUM) != _checksum(encode(entry)):
            return None
    except (ValueError, KeyError, AttributeError, TypeError):
        return None
    return entry


@contextmanager
def _open_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(
            [f"The journal {path} cannot be opened: {error.strerror}."], hint=START_NEW_RUN
        ) from error


@contextmanager
def _write_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ArtifactError(
            f"The journal {path} could not be written: {error.strerror}.", hint=repair_hint(error)
        ) from error
