"""Artifacts in a folder: every file appears whole, under its final name, or not at all."""

import errno
import fcntl
import os
import re
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from stat import S_ISDIR, S_ISLNK, S_ISREG
from typing import TypeVar

import orjson

from socratic_bench.errors import ArtifactError, Problem, UsageError
from socratic_bench.ports.store import StoredObject
from socratic_bench.settings import MAX_STORED_BYTES, open_regular, read_open

# Opens a folder without permission to read it, where the system can.
_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | getattr(os, "O_PATH", os.O_RDONLY)
# The user's umask says who else may read or write what is made here.
_FILE_MODE = 0o666
_NO_NAMES = {"", ".", ".."}
_DRAFT = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{8}")
# Puts content and length of a file on the disk, and not its times, where the system can.
sync_content: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)

Result = TypeVar("Result")


class PathTraversalError(OSError):
    """A key or a link that leads out of the folder, or may."""

    def __init__(self) -> None:
        super().__init__(errno.ELOOP, "it leads out of the output folder")


class FolderStore:
    """Keeps each key as a file below `root`, which is made when the first file is kept. `notice` is
    called with a sentence about each file that others had changed.
    """

    def __init__(self, root: str, notice: Callable[[str], None] | None = None) -> None:
        self._root = Path(root).absolute()
        self._tree = FolderTree(self._root)
        self._notice = notice

    def check(self) -> None:
        """Make the folder and a file that vanishes; raise `UsageError` if that cannot be done."""
        folder = f"The output folder {str(self._root)[:200]}"
        try:
            self._root.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self._root) as file:
                file.write(b"\n")
        except PermissionError as error:
            raise UsageError(
                [f"{folder} cannot be written: no permission."],
                hint=Problem.of(
                    "Choose another {output_dir}, or run as a user who may write there."
                ),
            ) from error
        except (OSError, ValueError) as error:
            # Read-only or full, a name that is too long, or one that no file can have.
            reason = _reason(error)
            if isinstance(error, (FileExistsError, NotADirectoryError)):
                paths = (self._root, *self._root.parents)
                reason = f"{next((path for path in paths if path.exists()), self._root)} is a file"
            raise UsageError(
                [f"{folder} cannot be used: {reason}."],
                hint=Problem.of("Choose another {output_dir}."),
            ) from error

    def put(self, key: str, body: bytes) -> None:
        """Write a file atomically. Raises `ArtifactError`. A file that is there already, of an
        earlier process of the same run, is replaced.
        """
        path, content = self._root / key, None
        try:
            try:
                content = self._tree.read(key)
            except FileNotFoundError:
                pass
            except PathTraversalError:
                content = b""  # a link is not followed, but replaced
            if content != body:
                self._tree.write(key, body)
        except (OSError, ValueError) as error:
            raise ArtifactError(
                f"{path} could not be written: {_reason(error)}.", hint=repair_hint(error)
            ) from error
        is_same = content is None or content == body
        if self._notice and not (is_same or _may_change(key, content or b"", body)):
            self._notice(f"{path} was truncated or changed by another program; it was rewritten.")

    def read(self, key: str) -> bytes:
        """The content of a file. Raises `ArtifactError`."""
        return self._reading(key, lambda: self._tree.read(key))

    def holds(self, key: str) -> bool:
        """Whether there is a file of this name. Raises `ArtifactError`."""
        return self._reading(key, lambda: self._tree.stat(key) is not None)

    def folders(self, key: str) -> Sequence[str]:
        """The names in a folder, sorted; none if it is not there. Raises `ArtifactError`."""
        folder = key.rstrip("/")
        names = self._reading(folder, lambda: self._tree.names(folder))
        return [name for name in names if not name.startswith(".")]  # drafts and locks of files

    def _reading(self, key: str, read: Callable[[], Result]) -> Result:
        """What `read` returns; its errors become `ArtifactError`s about this key."""
        try:
            return read()
        except (OSError, ValueError) as error:
            raise ArtifactError(
                f"{self._root / key} could not be read: {_reason(error)}.",
                hint="Leave the output folder of a run alone while it is in progress.",
            ) from error

    def update(self, key: str, change: Callable[[bytes | None], bytes | None]) -> None:
        """See `ListedStore`. A lock beside the file excludes others meanwhile."""
        folder, _, name = key.rpartition("/")
        with self._locked(f"{folder}/.{name}.lock", fcntl.LOCK_EX):
            body = change(self.get(key))
            if body is not None:
                self.put(key, body)

    def age_s(self, key: str) -> float | None:
        status = self._reading(key, lambda: self._tree.stat(key))
        return None if status is None else max(0.0, time.time() - status.st_mtime)

    def is_locked(self, key: str) -> bool:
        """Whether a process has locked a file, which is there."""
        try:
            with self._locked(key, fcntl.LOCK_SH | fcntl.LOCK_NB, make=False):
                return False
        except BlockingIOError:
            return True

    def get(self, key: str) -> bytes | None:
        return self.read(key) if self.holds(key) else None

    def keys(self, prefix: str) -> Sequence[str]:
        folder, _, start = prefix.rpartition("/")
        return [f"{folder}/{name}" for name in self.folders(folder) if name.startswith(start)]

    def sizes(self, prefix: str) -> Mapping[str, int]:
        folder, _, beginning = prefix.rpartition("/")
        return self._reading(folder, lambda: self._tree.sizes(folder, beginning))

    def remove(self, key: str) -> None:
        """Remove a file, if it is there. Raises `ArtifactError`."""
        self._reading(key, lambda: self._tree.remove(key))

    def remove_drafts(self, folder: str, beginning: str = "") -> None:
        """Remove half-written files of killed processes, by how their names begin. Only for whoever
        has locked what they belong to.
        """
        with suppress(OSError):  # what cannot be removed does no harm
            self._tree.remove_drafts(folder, of=lambda name: name.startswith(beginning))

    @contextmanager
    def exclusive(self, key: str, refusal: str | None = None) -> Iterator[None]:
        """Lock a file while the block runs; the lock ends with its process. If another process has
        the lock, raises `UsageError` with the refusal, or waits if there is none.
        """
        with ExitStack() as stack:
            try:
                kind = fcntl.LOCK_EX | (fcntl.LOCK_NB if refusal else 0)
                stack.enter_context(self._locked(key, kind))
            except BlockingIOError as error:
                hint = "Wait until it has ended, or end it."
                raise UsageError([refusal or ""], hint=hint) from error
            yield

    @contextmanager
    def shared(self, key: str, when_alone: Callable[[], None]) -> Iterator[None]:
        """Lock a file together with others while the block runs; if no other process has it, first
        do what only a single process may.
        """
        with suppress(BlockingIOError), self._locked(key, fcntl.LOCK_EX | fcntl.LOCK_NB):
            when_alone()
        with self._locked(key, fcntl.LOCK_SH):
            yield

    @contextmanager
    def _locked(self, key: str, kind: int, *, make: bool = True) -> Iterator[None]:
        """Raises `BlockingIOError` for a `kind` that does not wait."""
        flags = os.O_RDWR | (os.O_CREAT if make else 0)
        descriptor = self._reading(key, lambda: self._tree.open(key, flags, make=make))
        try:
            fcntl.flock(descriptor, kind)
            yield
        finally:
            os.close(descriptor)

    def missing(self, objects: Mapping[str, StoredObject]) -> Sequence[str]:
        missing = {*objects}
        for key, stored in objects.items():
            with suppress(OSError):
                content = self._tree.read(key, bound=stored.n_bytes)
                if sha256(content).digest() == stored.sha256:
                    missing.discard(key)
        return [key for key in objects if key in missing]

    def location(self, key: str) -> str:
        return str(self._root / key) + ("/" if key.endswith("/") else "")


def _may_change(key: str, content: bytes, body: bytes) -> bool:
    """Whether `body` may replace a file of the same run: it has more turns, a missing verdict, or
    more keys.
    """
    try:
        before, after = orjson.loads(content), orjson.loads(body)
    except ValueError:
        return False
    if not isinstance(before, dict):
        return False
    if all(name in after and after[name] == value for name, value in before.items()):
        return True
    is_measured_later = before.get("correctness", "") is None  # a patch that was only prepared
    return (
        is_measured_later or not key.startswith("raw/") or before.get("unjudged_reason") is not None
    )


def repair_hint(error: Exception) -> str:
    """What to do about a file in the folder that cannot be written."""
    if isinstance(error, PathTraversalError):
        return "Remove the links within the output folder, then run again."
    return "Free space or fix the permissions of the output folder, then run again."


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


class FolderTree:
    """The files below `root` by key, names with "/" between them; no link below `root` is followed.

    Each name is opened in its open parent folder, so that a folder which is replaced by a link
    meanwhile is not followed either. `root` itself may be a link. All methods raise `OSError`, or
    `ValueError` for names that no file can have.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def open(self, key: str, flags: int = os.O_RDONLY, *, make: bool = False) -> int:
        """A descriptor of a regular file; with `make`, the folders that it lies in are made."""
        with self._parent(key, make=make) as (folder, name), _link_errors(folder, name):
            return open_regular(name, flags | os.O_NOFOLLOW, mode=_FILE_MODE, folder=folder)

    def create(self, key: str) -> int:
        """A new file, open for appending, whose name is on the disk. Fails if there is one."""
        descriptor = self.open(key, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL, make=True)
        with self._readable_folder(key.rpartition("/")[0]) as folder:
            os.fsync(folder)
        return descriptor

    def read(self, key: str, bound: int = MAX_STORED_BYTES) -> bytes:
        """All of a file of at most `bound` bytes."""
        descriptor = self.open(key)
        try:
            return read_open(descriptor, bound)
        finally:
            os.close(descriptor)

    def write(self, key: str, body: bytes) -> None:
        """Write a file atomically; a link of that name is replaced, not followed."""
        with self._parent(key, make=True) as (folder, name):
            _write_through_draft(folder, name, body)

    def remove_drafts(self, folder: str, of: Callable[[str], bool] = lambda _: True) -> None:
        """Remove what killed processes left half-written in a folder, of the names that `of` takes.
        Only for whoever has locked what these files belong to: a living process's draft would go.
        """
        for draft in self.names(folder):
            match = _DRAFT.fullmatch(draft)
            if match and of(match["name"]):
                with self._parent(f"{folder}/{draft}" if folder else draft) as (parent, name):
                    os.unlink(name, dir_fd=parent)

    def remove(self, key: str) -> None:
        """Remove a file, if it is there, and the folders that are empty without it."""
        with suppress(FileNotFoundError):
            with self._parent(key) as (folder, name):
                os.unlink(name, dir_fd=folder)
            while (key := key.rpartition("/")[0]) and not self.names(key):
                with self._parent(key) as (folder, name):
                    os.rmdir(name, dir_fd=folder)

    def stat(self, key: str) -> os.stat_result | None:
        """What lies under a key, be it a link itself; `None` if nothing does."""
        try:
            with self._parent(key) as (folder, name):
                return os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def names(self, folder: str) -> list[str]:
        """The names in a folder, sorted; none if it is not there."""
        try:
            with self._readable_folder(folder) as descriptor:
                return sorted(entry.name for entry in os.scandir(descriptor))
        except FileNotFoundError:
            return []

    def sizes(self, folder: str, beginning: str = "") -> dict[str, int]:
        """The bytes of each regular file in a folder, and in the folders in it, by key, if its name
        there begins so.
        """
        try:
            with self._readable_folder(folder) as descriptor:
                found = {
                    f"{folder}/{entry.name}": entry.stat(follow_symlinks=False)
                    for entry in os.scandir(descriptor)
                    if entry.name.startswith(beginning)
                }
        except FileNotFoundError:
            return {}
        sizes = {key: status.st_size for key, status in found.items() if S_ISREG(status.st_mode)}
        for key, status in found.items():
            if S_ISDIR(status.st_mode):
                sizes |= self.sizes(key)
        return sizes

    @contextmanager
    def _readable_folder(self, key: str) -> Iterator[int]:
        with self._parent(f"{key}/." if key else ".") as (folder, name):
            descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    @contextmanager
    def _parent(self, key: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """The open folder that a key lies in, and its name there; with `make`, folders are made."""
        *folders, name = key.split("/")
        if _NO_NAMES & {*folders} or name == "..":
            raise PathTraversalError
        if make:
            self.root.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.root, _FOLDER & ~os.O_NOFOLLOW)
        try:
            for child in folders:
                parent, descriptor = descriptor, _open_folder(descriptor, child, make=make)
                os.close(parent)
            yield descriptor, name
        finally:
            os.close(descriptor)


def _open_folder(parent: int, name: str, *, make: bool) -> int:
    if make:
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=parent)
    with _link_errors(parent, name):
        return os.open(name, _FOLDER, dir_fd=parent)


def _write_through_draft(folder: int, name: str, body: bytes) -> None:
    # Random, since others may write here, too.
    draft = f".{name}.{secrets.token_hex(4)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    descriptor = os.open(draft, flags, _FILE_MODE, dir_fd=folder)
    try:
        try:
            write_whole(descriptor, body)
            sync_content(descriptor)
        finally:
            os.close(descriptor)
        os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=folder)
        raise


def write_whole(descriptor: int, content: bytes) -> None:
    """Write all of it. Raises `OSError`."""
    remaining = memoryview(content)
    while remaining:
        remaining = remaining[os.write(descriptor, remaining) :]


@contextmanager
def _link_errors(folder: int, name: str) -> Iterator[None]:
    """Raise `PathTraversalError` for what fails because of a link; one to a device is no file."""
    try:
        yield
    except OSError as error:
        is_of_link = error.errno in {errno.ELOOP, errno.ENOTDIR}
        if not (is_of_link and S_ISLNK(_mode(folder, name, follow=False))):
            raise
        target = _mode(folder, name, follow=True)
        if target and not (S_ISREG(target) or S_ISDIR(target)):
            raise OSError(errno.EINVAL, "it is not a regular file") from error
        raise PathTraversalError from error


def _mode(folder: int, name: str, *, follow: bool) -> int:
    """Kind and permissions of a name or of its target, 0 if there is none."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=follow).st_mode
    except OSError:
        return 0
