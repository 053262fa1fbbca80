"""Reads a data set: the shipped one, a file of JSON Lines, JSON or Parquet, a folder, or the Hub.

Parquet is read by duckdb, and the Hugging Face Hub by huggingface_hub; the extra `tables` has both.
huggingface_hub keeps what it has fetched in its cache and needs no network with HF_HUB_OFFLINE=1.
"""

from __future__ import annotations

import errno
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import orjson
from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.benchmarks.execution.dataset.rows import MAX_ROWS, ParsedRow, read_row
from socratic_bench.benchmarks.execution.items import Problem
from socratic_bench.benchmarks.execution.settings import HUB, SHIPPED
from socratic_bench.errors import ArtifactError, UsageError
from socratic_bench.settings.files import MAX_STORED_BYTES, is_folder, open_regular, read_bounded

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection  # of the extra `tables`

INSTALL_HINT = (
    "pip install 'socratic-runner[tables]', or the image's target full, has what reads it."
)

_SHIPPED_FILE = Path(__file__).parents[1] / "data" / "problems.jsonl"
# Nothing is fetched from elsewhere to read a file.
_DUCKDB_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,
    "memory_limit": "1GB",
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}
_ROWS_AT_ONCE = 64
_QUERY = "select * from read_parquet(?) limit ?"
# If a data set has files of several forms, those of the first one are read.
_SUFFIXES = (".parquet", ".jsonl", ".json")
_SPLITS = ("train", "test", "validation", "valid", "val", "dev", "eval")
_METADATA_FILES = {"dataset_infos.json", "dataset_info.json", "state.json"}


class DataSet(Struct, frozen=True, kw_only=True):
    """A data set in the order of its rows; `dropped` are ids of rows without a mutation."""

    place: str
    sha256: str  # of the file's bytes; of all files' in turn if there are several
    n_rows: int
    problems: tuple[Problem, ...]
    dropped: tuple[str, ...]
    split: str | None = None  # of a data set of the Hub
    revision: str | None = None  # the commit, of a data set of the Hub
    rows: Sequence[Mapping[str, Any]] = ()  # unchanged, if the caller asked for them


def read_problems(
    place: str = SHIPPED,
    *,
    split: str = "train",
    include_missing_mutations: bool = False,
    needs_literals: bool = True,
    keeps_rows: bool = False,
) -> DataSet:
    """Read "shipped", a file, or the `split` of a folder or of `hf:OWNER/NAME`.

    Rows without a mutation are dropped unless they are included; `keeps_rows` returns the rows as
    they are, too. Raises `UsageError` with every mistake of every row, such as an output that is no
    literal where literals are needed, and `ArtifactError` if the Hub cannot be reached.
    """
    source = _read_source(place, split)
    parsed_rows = [read_row(row, needs_literals=needs_literals) for row in source.rows]
    problems = [row.problem for row in parsed_rows if row.problem]
    mistakes = [*_mistakes(place, source.rows, parsed_rows)]
    n_by_id = Counter(problem.id for problem in problems)
    mistakes += [f"{place}: {n} rows have the id {id_!r}." for id_, n in n_by_id.items() if n > 1]
    if mistakes:
        raise UsageError(mistakes, hint="The page on data sets says what the columns hold.")
    mutated = [problem for problem in problems if problem.mutated_code is not None]
    dropped = tuple(problem.id for problem in problems if problem.mutated_code is None)
    if not mutated and not include_missing_mutations:
        raise UsageError(
            [f"{place}: none of its {len(problems)} rows has a mutation."],
            hint="socratic-runner dataset mutate makes mutations.",
        )
    return DataSet(
        place=place,
        sha256=source.sha256,
        n_rows=len(source.rows),
        problems=tuple(problems if include_missing_mutations else mutated),
        dropped=() if include_missing_mutations else dropped,
        split=source.split,
        revision=source.revision,
        rows=[row for row in source.rows if isinstance(row, dict)] if keeps_rows else (),
    )


class _Source(Struct, frozen=True, kw_only=True):
    """Unparsed rows, and where they are from."""

    rows: Sequence[object]
    sha256: str
    split: str | None = None
    revision: str | None = None


def _read_source(place: str, split: str) -> _Source:
    path = _SHIPPED_FILE if place == SHIPPED else Path(place)
    if place.startswith(HUB):
        fetched = _fetch(place.removeprefix(HUB), split)
        source = _read_files(place, fetched.files)
        return replace(source, split=split, revision=fetched.revision)
    if is_folder(path):
        return replace(_read_files(place, _files_of_split(path, split, place)), split=split)
    return _read_files(place, [path])


def _read_files(place: str, paths: Sequence[Path]) -> _Source:
    rows: list[object] = []
    digest = sha256()
    for path in paths:
        content = _read_content(place, path)
        digest.update(content)
        rows += _parquet_rows(path) if path.suffix == ".parquet" else _json_rows(place, content)
        if len(rows) > MAX_ROWS:
            raise UsageError([f"{place}: it has more than {MAX_ROWS} rows."])
    if not rows:
        raise UsageError([f"{place}: it has no rows."])
    return _Source(rows=rows, sha256=digest.hexdigest())


def _read_content(place: str, path: Path) -> bytes:
    try:
        return read_bounded(path, bound=MAX_STORED_BYTES)
    except OSError as error:
        hint = "Name a file, hf:OWNER/NAME, or shipped." if error.errno == errno.ENOENT else None
        reason = error.strerror or type(error).__name__
        raise UsageError([f"{place}: cannot be read: {reason}."], hint=hint) from error


def _json_rows(place: str, content: bytes) -> list[object]:
    """The rows of an array, or of one row a line. Raises `UsageError` with every bad line."""
    text = content.removeprefix(b"\xef\xbb\xbf").strip()
    if not text.startswith(b"["):
        return _json_lines(place, text)
    try:
        rows: list[object] = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise UsageError([f"{place}: it is no JSON: {error}."]) from error
    return rows


def _json_lines(place: str, text: bytes) -> list[object]:
    mistakes, rows = [], []
    for number, line in enumerate(text.split(b"\n"), start=1):
        try:
            rows += [orjson.loads(line)] if line.strip() else []
        except orjson.JSONDecodeError as error:
            mistakes.append(f"{place}: line {number} is no JSON: {error}.")
    if mistakes:
        raise UsageError(mistakes)
    return rows


def _mistakes(place: str, rows: Sequence[object], parsed: Sequence[ParsedRow]) -> Iterator[str]:
    """A sentence for each mistake of each row, and a single one if all rows have it."""
    counts = Counter(mistake for row in parsed for mistake in row.mistakes)
    of_all = [mistake for mistake, n_rows in counts.items() if n_rows == len(rows) > 1]
    yield from (f"{place}: every row: {mistake}" for mistake in of_all)
    for number, (row, parsed_row) in enumerate(zip(rows, parsed, strict=True), start=1):
        row_id = row.get("id") if isinstance(row, dict) else None
        name = f" ({row_id[:60]})" if isinstance(row_id, str) and row_id else ""
        for mistake in (mistake for mistake in parsed_row.mistakes if mistake not in of_all):
            yield f"{place}: row {number}{name}: {mistake}"


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
        raise UsageError([f"{path.name}: it is no Parquet file: {reason}"]) from error
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
        raise UsageError([f"{place}: it has no split {split!r}: there is {known_splits}."])
    raise UsageError([f"{place}: it has no files of Parquet, JSON Lines or JSON."])


def _has_split(path: str, split: str) -> bool:
    return re.search(rf"(?:^|[/_.-]){re.escape(split)}(?=[/_.-])", path) is not None
