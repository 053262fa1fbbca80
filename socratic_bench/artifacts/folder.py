"""Artifacts in a folder: every file appears whole, under its final name, or not at all."""

import os
import tempfile
from pathlib import Path

from socratic_bench.errors import ArtifactError, UsageError


class FolderStore:
    """Keeps each key as a file below `root`, which is made when the first file is kept."""

    def __init__(self, root: str) -> None:
        self._root = Path(root).absolute()

    def check(self) -> None:
        """Raise `UsageError` if the folder can neither be used nor made."""
        try:
            nearest = next(path for path in (self._root, *self._root.parents) if path.exists())
        except (OSError, ValueError) as error:
            # A name that is too long, or holds what no name can.
            raise UsageError(
                [f"The output folder {str(self._root)[:200]} cannot be used: {_why(error)}."]
            ) from error
        if not nearest.is_dir():
            raise UsageError(
                [f"The output folder {self._root} cannot be used: {nearest} is a file."]
            )
        if not os.access(nearest, os.W_OK | os.X_OK):
            raise UsageError(
                [f"The output folder {self._root} cannot be written: no permission on {nearest}."],
                hint="Choose another --output-dir, or run as a user who may write there.",
            )

    def put(self, key: str, body: bytes) -> None:
        path = self._root / key
        try:
            self._keep_inside(path)
            path.parent.mkdir(parents=True, exist_ok=True)
            _write_whole(path, body)
        except (OSError, RuntimeError, ValueError) as error:
            raise ArtifactError(
                f"{path} could not be written: {_why(error)}.",
                hint="Free space or mend the permissions of the output folder, then run again.",
            ) from error

    def _keep_inside(self, path: Path) -> None:
        # Whoever else may write here must not choose what this run overwrites.
        if not path.parent.resolve().is_relative_to(self._root.resolve()):
            raise ArtifactError(
                f"{path} was not written: it leads out of the output folder.",
                hint="Remove the links within the output folder, then run again.",
            )

    def location(self, key: str) -> str:
        return str(self._root / key) + ("/" if key.endswith("/") else "")


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
