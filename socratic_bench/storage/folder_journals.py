"""The journals in a folder: found, begun and taken up, each held by a lock on its file."""

import fcntl
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path

from socratic_bench.errors import DamagedJournalError, Problem, UsageError
from socratic_bench.storage.folder_journal import (
    ANEW,
    NEVER,
    FolderJournal,
    read_line,
    unopened,
    unwritable,
)
from socratic_bench.storage.keys import RunKeys, index_of
from socratic_bench.storage.tree import Tree
from socratic_bench.types import Json

FOLDER = "journal/runs"
# Room for the longest prompt twice, and for the rest of a first entry.
MAX_FIRST_LINE_BYTES = 16 * 2**20


class FolderJournals:
    """The files `journal/runs/{run_id}.jsonl` below `root`; `notice` is told of damaged ones."""

    def __init__(self, root: str, notice: Callable[[str], None] = lambda _: None) -> None:
        self._root = Path(root).absolute()
        self._tree = Tree.at(self._root)
        self._notice = notice

    @contextmanager
    def alone(self, identity: str) -> Iterator[None]:
        """See `Journals.alone`: by a lock on an empty file, which goes when its process does."""
        key = f"{index_of(identity)}lock"
        try:
            descriptor = self._tree.open(key, os.O_RDWR | os.O_CREAT, make=True)
        except OSError as error:
            raise unwritable(self._root / key, error) from error
        try:
            self._lock(descriptor)
            yield
        finally:
            os.close(descriptor)

    def _lock(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._notice("Another process is about to begin or resume this run: waiting for it.")
            fcntl.flock(descriptor, fcntl.LOCK_EX)

    def newest(self, identity: str) -> Iterator[str]:
        for path in reversed(self._paths()):
            try:
                line = self._first_line(path)
            except OSError as error:
                self._notice(f"{path} cannot be read and is passed over: {error.strerror}.")
                continue
            entry = read_line(line)
            if entry and entry.get("digest") == identity:
                yield path.stem
            elif entry is None and line.endswith(b"\n"):
                self._notice(f"{path} is damaged at its beginning and is passed over.")

    def first(self, run_id: str) -> Mapping[str, Json]:
        path = self._path(run_id)
        try:
            line = self._first_line(path)
        except FileNotFoundError:
            line = b""
        except OSError as error:
            raise unopened(path, error) from error
        if not line:
            raise self._absent(path)
        entry = read_line(line)
        if entry is None:
            raise DamagedJournalError([f"{path} is damaged at its beginning. {NEVER}"], hint=ANEW)
        return entry

    def holds(self, run_id: str) -> bool:
        path = self._path(run_id)
        try:
            return self._tree.stat(self._key(path)) is not None
        except OSError as error:
            raise unopened(path, error) from error

    def create(self, run_id: str, identity: str) -> FolderJournal:
        """`identity` is told by the first entry, so that nothing else has to be kept of it.

        A process that was killed before that was whole has left a file that is none yet.
        """
        del identity
        path = self._path(run_id)
        try:
            try:
                descriptor = self._tree.create(self._key(path))
            except FileExistsError:
                descriptor = self._tree.open(self._key(path), os.O_RDWR | os.O_APPEND)
            journal = FolderJournal(self._tree, self._key(path), descriptor, is_new=True)
        except OSError as error:
            raise unwritable(path, error) from error
        return journal

    def open(self, run_id: str) -> FolderJournal:
        path = self._path(run_id)
        try:
            descriptor = self._tree.open(self._key(path), os.O_RDWR | os.O_APPEND)
        except FileNotFoundError as error:
            raise self._absent(path) from error
        except OSError as error:
            raise unopened(path, error) from error
        return FolderJournal(self._tree, self._key(path), descriptor)

    def _path(self, run_id: str) -> Path:
        return self._root / RunKeys(run_id).journal_file

    def _paths(self) -> list[Path]:
        """The journals that are there, the oldest first."""
        folder = self._root / FOLDER
        try:
            names = self._tree.names(FOLDER)
        except OSError as error:
            raise unopened(folder, error) from error
        return [folder / name for name in names if fnmatchcase(name, "run-*.jsonl")]

    def _key(self, path: Path) -> str:
        return str(path.relative_to(self._root))

    def _first_line(self, path: Path) -> bytes:
        """What a journal begins with. Raises `OSError` for what cannot be read, or is no file."""
        with os.fdopen(self._tree.open(self._key(path)), "rb") as file:
            return file.readline(MAX_FIRST_LINE_BYTES)

    def _absent(self, path: Path) -> UsageError:
        return UsageError(
            [f"There is no journal of {path.stem} in {self._root}."],
            hint=Problem.of(
                "Give the {output_dir} of the run, and its run_id as its document has it."
            ),
        )
