"""Artifacts in a folder: every file appears whole, under its final name, or not at all."""

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import orjson

from socratic_bench.config import MAX_STORED_BYTES, read_bounded
from socratic_bench.errors import ArtifactError, UsageError


class FolderStore:
    """Keeps each key as a file below `root`, which is made when the first file is kept."""

    def __init__(self, root: str, notice: Callable[[str], None] | None = None) -> None:
        self._root = Path(root).absolute()
        self._notice = notice

    def check(self) -> None:
        """Make the folder and a file that vanishes; raise `UsageError` if that cannot be done."""
        try:
            self._root.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self._root) as file:
                file.write(b"\n")
        except (FileExistsError, NotADirectoryError) as error:
            paths = (self._root, *self._root.parents)
            file_there = next((path for path in paths if path.exists()), self._root)
            raise UsageError(
                [f"The output folder {self._shown()} cannot be used: {file_there} is a file."]
            ) from error
        except PermissionError as error:
            raise UsageError(
                [f"The output folder {self._shown()} cannot be written: no permission."],
                hint="Choose another --output-dir, or run as a user who may write there.",
            ) from error
        except (OSError, ValueError) as error:
            # Read-only or full, a name that is too long, or one that no file can have.
            raise UsageError(
                [f"The output folder {self._shown()} cannot be used: {_why(error)}."],
                hint="Choose another --output-dir.",
            ) from error

    def _shown(self) -> str:
        return str(self._root)[:200]

    def put(self, key: str, body: bytes) -> None:
        path = self._root / key
        try:
            self._keep_inside(path)
            path.parent.mkdir(parents=True, exist_ok=True)
            found = _found(path)
            if found == body:
                return
            if found is not None and self._notice and not _may_change(key, found, body):
                self._notice(f"{path} was cut off or changed by others; it is written anew.")
            _write_whole(path, body)
        except (OSError, RuntimeError, ValueError) as error:
            raise ArtifactError(
                f"{path} could not be written: {_why(error)}.",
                hint="Free space or mend the permissions of the output folder, then run again.",
            ) from error

    def read(self, key: str) -> bytes:
        """What was put under `key`. Raises `ArtifactError`."""
        path = self._root / key
        try:
            self._keep_inside(path)
            return read_bounded(path, bound=MAX_STORED_BYTES)
        except (OSError, RuntimeError, ValueError) as error:
            raise ArtifactError(
                f"{path} could not be read: {_why(error)}.",
                hint="Leave the output folder of a run alone while it is under way.",
            ) from error

    def missing(self, kept: Mapping[str, int]) -> Sequence[str]:
        """See `socratic_bench.ports.ArtifactStore`."""
        return [key for key, size in kept.items() if _size(self._root / key) != size]

    def _keep_inside(self, path: Path) -> None:
        # Whoever else may write here must not choose what this run overwrites.
        if not path.parent.resolve().is_relative_to(self._root.resolve()):
            raise ArtifactError(
                f"{path} was not written: it leads out of the output folder.",
                hint="Remove the links within the output folder, then run again.",
            )

    def location(self, key: str) -> str:
        return str(self._root / key) + ("/" if key.endswith("/") else "")


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def _found(path: Path) -> bytes | None:
    """What is there already, from an earlier process of the same run."""
    try:
        return read_bounded(path, bound=MAX_STORED_BYTES)
    except FileNotFoundError:
        return None


def _may_change(key: str, content: bytes, body: bytes) -> bool:
    """Whether the run itself may write `body` instead: more turns, a verdict that it lacked, or
    what an earlier version did not tell.
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


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def _write_whole(path: Path, body: bytes) -> None:
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
