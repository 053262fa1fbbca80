"""One folder and what is below it, reached name by name, so that no link below it is followed."""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from socratic_bench.settings import MAX_STORED_BYTES, open_regular, read_open

# Opens a folder without permission to read it, where the system can.
_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | getattr(os, "O_PATH", os.O_RDONLY)
# The user's umask says who else may read or write what is made here.
_FILE_MODE = 0o666
_NO_NAMES = {"", ".", ".."}


class OutsideError(OSError):
    """A key or a link that leads out of the folder, or may."""

    def __init__(self) -> None:
        super().__init__(errno.ELOOP, "it leads out of the output folder")


class Tree:
    """The files below `root` by their keys: names with "/" between them. `root` may be a link.

    Each name is looked up in its open parent folder, so that a folder that is replaced by a link
    meanwhile is not followed either. All methods raise `OSError`, or `ValueError` for names that no
    file can have.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def open(self, key: str, flags: int = os.O_RDONLY, *, make: bool = False) -> int:
        """A descriptor of a regular file; with `make`, the folders that it lies in are made."""
        with self._folder_of(key, make=make) as (folder, name), _told_apart(folder, name):
            return open_regular(name, flags | os.O_NOFOLLOW, mode=_FILE_MODE, folder=folder)

    def create(self, key: str) -> int:
        """A new file, open for appending, whose name is on the disk. Fails if there is one."""
        descriptor = self.open(key, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL, make=True)
        self._sync_folder_of(key)
        return descriptor

    def read(self, key: str) -> bytes:
        """All of a file, as long as it may be."""
        descriptor = self.open(key)
        try:
            return read_open(descriptor, MAX_STORED_BYTES)
        finally:
            os.close(descriptor)

    def write(self, key: str, body: bytes) -> None:
        """Replace a file atomically; a link of that name is replaced, not followed."""
        with self._folder_of(key, make=True) as (folder, name):
            draft = f".{name}.{secrets.token_hex(4)}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            descriptor = os.open(draft, flags, _FILE_MODE, dir_fd=folder)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(body)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(FileNotFoundError):
                    os.unlink(draft, dir_fd=folder)
                raise

    def stat(self, key: str) -> os.stat_result | None:
        """What lies under a key, be it a link itself; `None` if nothing does."""
        try:
            with self._folder_of(key) as (folder, name):
                return os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def names(self, key: str) -> list[str]:
        """The names in a folder, sorted; none if it is not there."""
        try:
            with self._folder_of(f"{key}/.") as (folder, _):
                readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)
        except FileNotFoundError:
            return []
        try:
            return sorted(entry.name for entry in os.scandir(readable))
        finally:
            os.close(readable)

    @contextmanager
    def _folder_of(self, key: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        *folders, name = key.split("/")
        if _NO_NAMES & {*folders} or name == "..":
            raise OutsideError
        if make:
            self.root.mkdir(parents=True, exist_ok=True)
        folder = os.open(self.root, _FOLDER & ~os.O_NOFOLLOW)
        try:
            for each in folders:
                above, folder = folder, _enter(folder, each, make=make)
                os.close(above)
            yield folder, name
        finally:
            os.close(folder)

    def _sync_folder_of(self, key: str) -> None:
        with self._folder_of(key) as (folder, _):
            readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)
            try:
                os.fsync(readable)
            finally:
                os.close(readable)


def _enter(folder: int, name: str, *, make: bool) -> int:
    with _told_apart(folder, name):
        try:
            return os.open(name, _FOLDER, dir_fd=folder)
        except FileNotFoundError:
            if not make:
                raise
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=folder)
        return os.open(name, _FOLDER, dir_fd=folder)


@contextmanager
def _told_apart(folder: int, name: str) -> Iterator[None]:
    """What fails because of a link is an `OutsideError`; one to a device is no file anyway."""
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
        raise OutsideError from error


def _kind(folder: int, name: str, *, follow: bool) -> int:
    """What a name or its target is, 0 if there is none."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=follow).st_mode
    except OSError:
        return 0
