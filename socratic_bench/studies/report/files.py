"""Files of reports on the disk."""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from errno import EISDIR
from pathlib import Path
from typing import Literal

from msgspec import Struct

from socratic_bench.errors import ArtifactError

Form = Literal["html", "markdown", "csv", "parquet", "png", "svg"]


class RenderedFile(Struct, frozen=True, kw_only=True):
    """What is to stand in a file; `form` is what it is, such as html."""

    form: Form
    path: str
    body: bytes


def file_problem(path: str) -> str | None:
    """Why there can be no such file, as far as folders tell."""
    target = Path(path)
    if not target.parent.is_dir():
        return f"There is no folder {target.parent} for {target.name}."
    if target.is_dir():
        return f"{path} is a folder: name a file in it."
    is_special = target.exists() and not target.is_file()
    return f"{path} is no regular file, and is left as it is: name another." if is_special else None


def folder_problem(path: str) -> str | None:
    """The same for a folder, which may have to be made."""
    target = Path(path)
    if target.exists() and not target.is_dir():
        return f"{path} is a file: name a folder."
    return None if target.absolute().parent.is_dir() else f"There is no folder {target.parent}."


def write_all(files: Sequence[RenderedFile]) -> None:
    """All of them in place of what is there, each whole, once all could be written beside it.

    Raises `ArtifactError` for what cannot be written; no draft stays.
    """
    drafts: list[tuple[str, Path]] = []
    try:
        for one in files:
            with _translated(one.path):
                _write_draft(one, drafts)
        for draft, target in drafts:
            with _translated(str(target)):
                Path(draft).replace(target)
    finally:
        for draft, _ in drafts:
            Path(draft).unlink(missing_ok=True)


def _write_draft(one: RenderedFile, drafts: list[tuple[str, Path]]) -> None:
    target = Path(one.path)
    if target.is_dir():
        raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
    if not target.parent.is_dir():
        target.parent.mkdir()
    number, draft = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    drafts.append((draft, target))
    with os.fdopen(number, "wb") as file:
        file.write(one.body)
    Path(draft).chmod(0o666 & ~_umask())


@contextmanager
def _translated(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ArtifactError(f"{path} could not be written: {error.strerror}.") from error


def _umask() -> int:
    """That of the process, which can only be read by setting it."""
    found = os.umask(0)
    os.umask(found)
    return found
