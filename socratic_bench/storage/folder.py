"""Artifacts in a folder: every file appears whole, under its final name, or not at all."""

import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import orjson

from socratic_bench.errors import ArtifactError, Problem, UsageError
from socratic_bench.storage.tree import PathTraversalError, Tree
from socratic_bench.store_ports import StoredObject

Result = TypeVar("Result")


class FolderStore:
    """Keeps each key as a file below `root`, which is made when the first file is kept."""

    def __init__(self, root: str, notice: Callable[[str], None] | None = None) -> None:
        self._root = Path(root).absolute()
        self._tree = Tree.at(self._root)
        self._notice = notice

    def check(self) -> None:
        """Make the folder and a file that vanishes; raise `UsageError` if that cannot be done."""
        try:
            self._root.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self._root) as file:
                file.write(b"\n")
        except PermissionError as error:
            raise UsageError(
                [f"The output folder {self._shown()} cannot be written: no permission."],
                hint=Problem.of(
                    "Choose another {output_dir}, or run as a user who may write there."
                ),
            ) from error
        except (OSError, ValueError) as error:
            # Read-only or full, a name that is too long, or one that no file can have.
            reason = _why(error)
            if isinstance(error, (FileExistsError, NotADirectoryError)):
                paths = (self._root, *self._root.parents)
                reason = f"{next((path for path in paths if path.exists()), self._root)} is a file"
            raise UsageError(
                [f"The output folder {self._shown()} cannot be used: {reason}."],
                hint=Problem.of("Choose another {output_dir}."),
            ) from error

    def _shown(self) -> str:
        return str(self._root)[:200]

    def put(self, key: str, body: bytes) -> None:
        path = self._root / key

        def replaces(found: bytes) -> bool:
            """What an earlier process of the same run left."""
            if found != body and self._notice and not _may_change(key, found, body):
                self._notice(f"{path} was cut off or changed by others; it is written anew.")
            return found != body

        try:
            self._tree.write(key, body, replaces=replaces)
        except (OSError, ValueError) as error:
            raise ArtifactError(
                f"{path} could not be written: {_why(error)}.", hint=mending(error)
            ) from error

    def read(self, key: str) -> bytes:
        """What was put under `key`. Raises `ArtifactError`."""
        return self._asked(key, lambda: self._tree.read(key))

    def holds(self, key: str) -> bool:
        """Whether there is a file of this name. Raises `ArtifactError`."""
        return self._asked(key, lambda: self._tree.stat(key) is not None)

    def names(self, folder: str) -> Sequence[str]:
        """The names in a folder, sorted; none if it is not there. Raises `ArtifactError`."""
        found = self._asked(folder, lambda: self._tree.names(folder))
        return [name for name in found if not name.startswith(".")]  # drafts of files

    def _asked(self, key: str, ask: Callable[[], Result]) -> Result:
        try:
            return ask()
        except (OSError, ValueError) as error:
            raise ArtifactError(
                f"{self._root / key} could not be read: {_why(error)}.",
                hint="Leave the output folder of a run alone while it is under way.",
            ) from error

    @contextmanager
    def alone(self, key: str, refusal: str) -> Iterator[None]:
        """Meanwhile no other process has this key so; the lock goes when its process does.

        Raises `UsageError` with the refusal if another has it.
        """
        flags = os.O_RDWR | os.O_CREAT
        descriptor = self._asked(key, lambda: self._tree.open(key, flags, make=True))
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise UsageError([refusal], hint="Wait until it has ended, or end it.") from error
            yield
        finally:
            os.close(descriptor)

    def missing(self, kept: Mapping[str, StoredObject]) -> Sequence[str]:
        """See `socratic_bench.store_ports.ArtifactStore`."""
        return [key for key, was in kept.items() if not self._has(key, was)]

    def _has(self, key: str, was: StoredObject) -> bool:
        try:
            found = self._tree.read(key, bound=was.n_bytes)
        except OSError:
            return False
        return sha256(found).digest() == was.sha256

    def location(self, key: str) -> str:
        return str(self._root / key) + ("/" if key.endswith("/") else "")


def _may_change(key: str, content: bytes, body: bytes) -> bool:
    """Whether `body` may replace a file of the same run: it has more turns, a missing verdict, or
    keys that an earlier version lacked.
    """
    try:
        document, other = orjson.loads(content), orjson.loads(body)
    except ValueError:
        return False
    if not isinstance(document, dict):
        return False
    if all(name in other and other[name] == value for name, value in document.items()):
        return True
    return not key.startswith("raw/") or document.get("unjudged_reason") is not None


def mending(error: Exception) -> str:
    """What to do about a file in the folder that cannot be written."""
    if isinstance(error, PathTraversalError):
        return "Remove the links within the output folder, then run again."
    return "Free space or mend the permissions of the output folder, then run again."


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
