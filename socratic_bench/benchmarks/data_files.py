"""Reads the rows of a data set: a shipped file, one of JSON, CSV or Parquet, a folder, or the Hub.

Parquet is read by duckdb, and the Hugging Face Hub by huggingface_hub; the extra `tables` has both.
huggingface_hub keeps what it has fetched in its cache and needs no network with HF_HUB_OFFLINE=1.
"""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import orjson
from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.benchmarks.data_settings import HUB, SHIPPED
from socratic_bench.errors import ArtifactError, UsageError
from socratic_bench.settings import MAX_STORED_BYTES, is_folder, open_regular, read_bounded

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection  # of the extra `tables`

MAX_ROWS = 100_000
INSTALL_HINT = (
    "pip install 'socratic-runner[tables]', or the image's target full, has what reads it."
)

# Nothing is fetched from elsewhere to read a file.
_DUCKDB_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,
    "memory_limit": "1GB",
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}
_WORD = re.compile(r"\S")
_ROWS_AT_ONCE = 64
_QUERY = "select * from read_parquet(?) limit ?"
# If a data set has files of several forms, those of the first one are read.
_SUFFIXES = (".parquet", ".jsonl", ".json", ".csv")
_SPLITS = ("train", "test", "validation", "valid", "val", "dev", "eval")
_METADATA_FILES = {"dataset_infos.json", "dataset_info.json", "state.json"}


class Source(Struct, frozen=True, kw_only=True):
    """Unparsed rows, the place of each, such as "line 3", and where they are from."""

    rows: Sequence[object]
    places: Sequence[str]
    sha256: str
    split: str | None = None
    revision: str | None = None


def read_source(place: str, split: str, shipped: Path) -> Source:
    """The rows of a data set; `shipped` is the file that "shipped" stands for.

    Raises `UsageError` with every line that cannot be read, and `ArtifactError` if the Hub cannot
    be reached.
    """
    path = shipped if place == SHIPPED else Path(place)
    if place.startswith(HUB):
        fetched = _fetch(place.removeprefix(HUB), split)
        source = _read_files(place, fetched.files)
        return replace(source, split=split, revision=fetched.revision)
    if is_folder(path):
        return replace(_read_files(place, _files_of_split(path, split, place)), split=split)
    return _read_files(place, [path])


def _read_files(place: str, paths: Sequence[Path]) -> Source:
    rows: list[object] = []
    places: list[str] = []
    digest = sha256()
    for path in paths:
        content = _read_content(place, path)
        digest.update(content)
        for row_place, row in _rows(place, path, content):
            places.append(row_place)
            rows.append(row)
        if len(rows) > MAX_ROWS:
            raise UsageError([f"{place}: it has more than {MAX_ROWS} rows."])
    if not rows:
        raise UsageError([f"{place}: it has no rows."])
    return Source(rows=rows, places=places, sha256=digest.hexdigest())


def _rows(place: str, path: Path, content: bytes) -> Iterable[tuple[str, object]]:
    """The rows of one file, each with its place."""
    if path.suffix == ".parquet":
        return _numbered(_parquet_rows(path))
    text = content.removeprefix(b"\xef\xbb\xbf")
    if path.suffix.lower() == ".csv":
        return _csv_rows(place, text)
    if not text.lstrip().startswith(b"["):
        return _json_lines(place, text)
    try:
        return _numbered(orjson.loads(text))
    except orjson.JSONDecodeError as error:
        raise UsageError([f"{place}: it is not valid JSON: {error}."]) from error


def _numbered(rows: Iterable[object]) -> Iterator[tuple[str, object]]:
    return ((f"row {number}", row) for number, row in enumerate(rows, start=1))


def _read_content(place: str, path: Path) -> bytes:
    try:
        return read_bounded(path, bound=MAX_STORED_BYTES)
    except OSError as error:
        hint = "Name a file, hf:OWNER/NAME, or shipped." if error.errno == errno.ENOENT else None
        reason = error.strerror or type(error).__name__
        raise UsageError([f"{place}: cannot be read: {reason}."], hint=hint) from error


def _json_lines(place: str, text: bytes) -> list[tuple[str, object]]:
    """One row a line or, if a line is no whole row, objects one after another."""
    mistakes: list[str] = []
    rows: list[tuple[str, object]] = []
    for number, line in enumerate(text.split(b"\n"), start=1):
        try:
            rows += [(f"line {number}", orjson.loads(line))] if line.strip() else []
        except orjson.JSONDecodeError as error:
            if not mistakes and (objects := _json_objects(text)):
                return objects
            mistakes.append(f"{place}: line {number} is not valid JSON: {error}.")
    if mistakes:
        raise UsageError(mistakes)
    return rows


def _json_objects(text: bytes) -> list[tuple[str, object]]:
    """Objects over several lines, one after another; empty if the text is anything else."""
    decoder, words = json.JSONDecoder(), text.decode("utf-8", "replace")
    objects: list[tuple[str, object]] = []
    line, end = 1, 0
    while start := _WORD.search(words, end):
        line += words.count("\n", end, start.start())
        try:
            _, end = decoder.raw_decode(words, start.start())
            # Read once more, by a parser that refuses NaN and halves of characters.
            objects.append((f"line {line}", orjson.loads(words[start.start() : end])))
        except (ValueError, RecursionError):
            return []
        line += words.count("\n", start.start(), end)
    return objects


def _csv_rows(place: str, content: bytes) -> list[tuple[str, object]]:
    """Rows by the names in the first line; an empty cell is none. A row that is longer than the
    first line, or shorter, is a mistake.
    """
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise UsageError([f"{place}: it is not UTF-8 text."]) from error
    csv.field_size_limit(MAX_STORED_BYTES)  # an image in base64 is longer than its own limit
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows: list[tuple[str, object]] = []
    mistakes: list[str] = []
    names: list[str] = []
    line = 1
    try:
        for cells in reader:
            if not names:
                names = [name.strip() for name in cells]
            elif cells and len(cells) != len(names):
                mistakes.append(f"{place}: line {line} has {len(cells)} cells, not {len(names)}.")
            elif any(cells):
                row = {name: cell for name, cell in zip(names, cells, strict=True) if cell}
                rows.append((f"line {line}", row))
            line = reader.line_num + 1
    except csv.Error as error:
        mistakes.append(f"{place}: line {line} is not valid CSV: {error}.")
    if mistakes:
        raise UsageError(mistakes)
    return rows


def _parquet_rows(path: Path) -> list[object]:
    """The rows as plain values. Raises `OSError`, or `UsageError` naming what is wrong."""
    try:
        import duckdb
    except ImportError as error:
        raise UsageError([f"{path.name}: duckdb is not installed."], hint=INSTALL_HINT) from error
    descriptor = open_regular(path)
    try:
        with duckdb.connect(":memory:", config=_DUCKDB_CONFIG) as connection:
            # By its descriptor: a name may have characters that stand for others.
            result = connection.execute(_QUERY, [f"/dev/fd/{descriptor}", MAX_ROWS + 1])
            return [*_bounded_rows(path, result)]
    except duckdb.OutOfMemoryException as error:
        raise _too_large(path) from error
    except duckdb.Error as error:
        reason = str(error).splitlines()[0]
        raise UsageError([f"{path.name}: it is not a Parquet file: {reason}"]) from error
    finally:
        os.close(descriptor)


def _bounded_rows(path: Path, result: DuckDBPyConnection) -> Iterator[object]:
    """The rows of a table, whose text may be far longer than its compressed file."""
    names = [column[0] for column in result.description or ()]
    n_characters = 0
    while rows := result.fetchmany(_ROWS_AT_ONCE):
        n_characters += sum(_n_characters(row) for row in rows)
        if n_characters > MAX_STORED_BYTES:
            raise _too_large(path)
        yield from (dict(zip(names, row, strict=True)) for row in rows)


def _too_large(path: Path) -> UsageError:
    return UsageError([f"{path.name}: it has more than {MAX_STORED_BYTES} bytes of text."])


def _n_characters(value: object) -> int:
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, dict):
        return sum(map(_n_characters, value.values()))
    return sum(map(_n_characters, value)) if isinstance(value, list | tuple) else 1


class _Fetched(Struct, frozen=True, kw_only=True):
    """The files of one split, in order, and the commit that they are of."""

    files: tuple[Path, ...]
    revision: str | None = None


def _fetch(name: str, split: str) -> _Fetched:
    """The files of `OWNER/NAME[@REVISION]` on the Hub. Raises `UsageError` if there are none, or
    without huggingface_hub, and `ArtifactError` if the Hub cannot be reached.
    """
    try:
        from huggingface_hub import constants, errors
    except ImportError as error:
        raise UsageError(
            [f"hf:{name}: huggingface_hub is not installed."], hint=INSTALL_HINT
        ) from error
    repository, _, revision = name.partition("@")
    try:
        if constants.HF_HUB_OFFLINE:
            return _fetch_from_cache(repository, split, revision or None)
        return _download(repository, split, revision or None)
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError) as error:
        raise UsageError(
            [f"hf:{name}: the Hub has none of this name, or none for you."],
            hint="Set HF_TOKEN if it is not public.",
        ) from error
    except errors.HFValidationError as error:
        raise UsageError([f"hf:{name}: this is not OWNER/NAME."]) from error
    except errors.LocalEntryNotFoundError as error:
        raise UsageError(
            [f"hf:{name}: it is not in the cache, and the Hub is not asked."],
            hint="Run it once without HF_HUB_OFFLINE.",
        ) from error
    except Exception as error:
        # Those are OSError, and the error of the HTTP library that it uses.
        if not isinstance(error, errors.HfHubHTTPError.__bases__):
            raise
        raise ArtifactError(
            f"hf:{name}: the Hub could not be read: {type(error).__name__}.",
            hint="Try again; with HF_HUB_OFFLINE=1 its cache is read alone.",
        ) from error


def _fetch_from_cache(repository: str, split: str, revision: str | None) -> _Fetched:
    from huggingface_hub import snapshot_download

    folder = Path(
        snapshot_download(repository, repo_type="dataset", revision=revision, local_files_only=True)
    )
    files = _files_of_split(folder, split, f"hf:{repository}")
    return _Fetched(files=files, revision=folder.name)


def _download(repository: str, split: str, revision: str | None) -> _Fetched:
    from huggingface_hub import HfApi, hf_hub_download

    info = HfApi().dataset_info(repository, revision=revision, files_metadata=True)
    sizes = {file.rfilename: file.size or 0 for file in info.siblings or ()}
    names = _names_of_split([*sizes], split, f"hf:{repository}")
    if sum(sizes[name] for name in names) > MAX_STORED_BYTES:
        raise UsageError([f"hf:{repository}: it has more than {MAX_STORED_BYTES} bytes."])
    files = (
        hf_hub_download(repository, name, repo_type="dataset", revision=info.sha) for name in names
    )
    return _Fetched(files=tuple(map(Path, files)), revision=info.sha)


def _files_of_split(folder: Path, split: str, place: str) -> tuple[Path, ...]:
    """The files of a split in a folder of the Hub's layout. Raises `UsageError` if it has none."""
    names = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    return tuple(folder / name for name in _names_of_split(names, split, place))


def _names_of_split(names: Sequence[str], split: str, place: str) -> Sequence[str]:
    """The data files with the split's name in their path; all are `train` where none has one."""
    data_files = sorted(
        name
        for name in names
        if not name.startswith(".") and PurePosixPath(name).name not in _METADATA_FILES
    )
    for suffix in _SUFFIXES:
        candidates = [name for name in data_files if name.endswith(suffix)]
        if not candidates:
            continue
        of_split = [name for name in candidates if _has_split(name, split)]
        splits = {word for word in _SPLITS for name in candidates if _has_split(name, word)}
        if not of_split and not splits and split == "train":
            return candidates
        if of_split:
            return of_split
        known_splits = ", ".join(sorted(splits)) or "train"
        raise UsageError([f"{place}: it has no split {split!r}; available: {known_splits}."])
    raise UsageError([f"{place}: it has no files of Parquet, JSON Lines, JSON or CSV."])


def _has_split(path: str, split: str) -> bool:
    return re.search(rf"(?:^|[/_.-]){re.escape(split)}(?=[/_.-])", path) is not None
