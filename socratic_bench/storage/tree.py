"""One folder and what is below it, reached name by name, so that no link below it is followed."""

import errno
import os
import secrets
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import ClassVar
from weakref import WeakValueDictionary

from socratic_bench.settings import MAX_STORED_BYTES, open_regular, read_open

# Opens a folder without permission to read it, where the system can.
_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | getattr(os, "O_PATH", os.O_RDONLY)
# The user's umask says who else may read or write what is made here.
_FILE_MODE = 0o666
_NO_NAMES = {"", ".", ".."}
# Puts content and length of a file on the disk, and not its times, where the system can.
sync_content: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)
# Each run has a folder of its own, and they share three.
MOST_OPEN_FOLDERS = 64


class PathTraversalError(OSError):
    """A key or a link that leads out of the folder, or may."""

    def __init__(self) -> None:
        super().__init__(errno.ELOOP, "it leads out of the output folder")


class _Folder:
    """An open folder, closed once nobody uses it. One that `is_new` had nothing in it."""

    def __init__(self, descriptor: int, *, is_new: bool = False) -> None:
        self.descriptor = descriptor
        self.is_new = is_new
        self.written: set[str] = set()
        self._found = os.fstat(descriptor)

    def __del__(self) -> None:
        os.close(self.descriptor)

    def is_at(self, path: str) -> bool:
        """Whether it still lies there."""
        try:
            return os.path.samestat(os.stat(path), self._found)  # noqa: PTH116 -- quicker
        except OSError:
            return False


class Tree:
    """The files below `root` by their keys: names with "/" between them. `root` may be a link.

    Each name is looked up in its open parent folder, so that a folder that is replaced by a link
    meanwhile is not followed either. All methods raise `OSError`, or `ValueError` for names that no
    file can have. Safe to use from several threads.
    """

    _lock = threading.Lock()
    _in_use: ClassVar["WeakValueDictionary[Path, Tree]"] = WeakValueDictionary()

    def __init__(self, root: Path) -> None:
        self.root = root
        self._open_folders: dict[tuple[str, ...], _Folder] = {}
        # Random, since others may write here, too.
        self._drafts = count(secrets.randbits(32))

    @classmethod
    def at(cls, root: Path) -> "Tree":
        """One for all who use this folder at a time, so that they share what is open of it."""
        with cls._lock:
            return cls._in_use.setdefault(root, cls(root))

    def open(self, key: str, flags: int = os.O_RDONLY, *, make: bool = False) -> int:
        """A descriptor of a regular file; with `make`, the folders that it lies in are made."""
        held, name = self._folder_of(key, make=make)
        with _told_apart(held.descriptor, name):
            folder = held.descriptor
            return open_regular(name, flags | os.O_NOFOLLOW, mode=_FILE_MODE, folder=folder)

    def create(self, key: str) -> int:
        """A new file, open for appending, whose name is on the disk. Fails if there is one."""
        descriptor = self.open(key, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL, make=True)
        self._sync_folder_of(key)
        return descriptor

    def read(self, key: str, bound: int = MAX_STORED_BYTES) -> bytes:
        """All of a file, as long as it may be."""
        descriptor = self.open(key)
        try:
            return read_open(descriptor, bound)
        finally:
            os.close(descriptor)

    def write(self, key: str, body: bytes, *, replaces: Callable[[bytes], bool]) -> None:
        """Put a file there atomically, over one that is there if that one `replaces` its content; a
        link of that name is replaced, not followed.
        """
        held, name = self._folder_of(key, make=True)
        # What nobody can have left need not be looked for.
        is_first = held.is_new and name not in held.written
        found = None if is_first else _content(held.descriptor, name)
        if found is None or replaces(found):
            self._put(held.descriptor, name, body)
            held.written.add(name)

    def _put(self, folder: int, name: str, body: bytes) -> None:
        draft = f".{name}.{next(self._drafts):08x}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        descriptor = os.open(draft, flags, _FILE_MODE, dir_fd=folder)
        try:
            _fill(descriptor, body)
            os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(draft, dir_fd=folder)
            raise

    def stat(self, key: str) -> os.stat_result | None:
        """What lies under a key, be it a link itself; `None` if nothing does."""
        try:
            held, name = self._folder_of(key)
            return os.stat(name, dir_fd=held.descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def names(self, key: str) -> list[str]:
        """The names in a folder, sorted; none if it is not there."""
        try:
            held, _ = self._folder_of(f"{key}/.")
            readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=held.descriptor)
        except FileNotFoundError:
            return []
        try:
            return sorted(entry.name for entry in os.scandir(readable))
        finally:
            os.close(readable)

    def _folder_of(self, key: str, *, make: bool = False) -> tuple[_Folder, str]:
        """Open for as long as it is held, and the name in it."""
        *folders, name = key.split("/")
        if _NO_NAMES & {*folders} or name == "..":
            raise PathTraversalError
        return self._open_folder(tuple(folders), make=make), name

    def _open_folder(self, names: tuple[str, ...], *, make: bool) -> _Folder:
        """Looked up anew, each name in its parent, where it lies no more."""
        found = self._open_folders.get(names)
        if found is not None and found.is_at("/".join((str(self.root), *names))):
            return found
        if names:
            above = self._open_folder(names[:-1], make=make)
            descriptor, is_new = _enter(above.descriptor, names[-1], make=make)
            found = _Folder(descriptor, is_new=is_new)
        else:
            if make:
                self.root.mkdir(parents=True, exist_ok=True)
            found = _Folder(os.open(self.root, _FOLDER & ~os.O_NOFOLLOW))
        self._open_folders[names] = found
        # No lock: whoever waits for one has it before the interpreter, and others wait for both.
        while len(self._open_folders) > MOST_OPEN_FOLDERS:
            with suppress(RuntimeError, StopIteration):  # others have added or taken one meanwhile
                self._open_folders.pop(next(iter(self._open_folders)), None)
        return found

    def _sync_folder_of(self, key: str) -> None:
        held, _ = self._folder_of(key)
        readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=held.descriptor)
        try:
            os.fsync(readable)
        finally:
            os.close(readable)


def _fill(descriptor: int, body: bytes) -> None:
    """Write, synchronize and close a new file."""
    try:
        write_whole(descriptor, body)
        sync_content(descriptor)
    finally:
        os.close(descriptor)


def write_whole(descriptor: int, content: bytes) -> None:
    """Write all of it. Raises `OSError`."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _content(folder: int, name: str) -> bytes | None:
    """Of the file of a name, `None` if there is none; a link has none that counts."""
    try:
        with _told_apart(folder, name):
            descriptor = open_regular(name, os.O_RDONLY | os.O_NOFOLLOW, folder=folder)
    except FileNotFoundError:
        return None
    except PathTraversalError:
        return b""
    try:
        return read_open(descriptor, MAX_STORED_BYTES)
    finally:
        os.close(descriptor)


def _enter(folder: int, name: str, *, make: bool) -> tuple[int, bool]:
    """A folder in another one, and whether it was made."""
    with _told_apart(folder, name):
        try:
            return os.open(name, _FOLDER, dir_fd=folder), False
        except FileNotFoundError:
            if not make:
                raise
        is_new = False
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=folder)
            is_new = True
        return os.open(name, _FOLDER, dir_fd=folder), is_new


@contextmanager
def _told_apart(folder: int, name: str) -> Iterator[None]:
    """What fails because of a link is a `PathTraversalError`; one to a device is no file anyway."""
    try:
        yield
    except OSError as error:
        if error.errno not in {errno.ELOOP, errno.ENOTDIR}:
            raise
        if not stat.S_ISLNK(_kind(folder, name, follow=False)):
            raise
        target = _kind(folder, name, follow=True)
        if target and not (stat.S_ISREG(target) or stat.S_ISDIR(target)):
            raise OSError(errno.EINVAL, "it is no regular file") from error
        raise PathTraversalError from error


def _kind(folder: int, name: str, *, follow: bool) -> int:
    """What a name or its target is, 0 if there is none."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=follow).st_mode
    except OSError:
        return 0
