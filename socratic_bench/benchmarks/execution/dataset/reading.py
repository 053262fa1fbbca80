"""Rows of Parquet files, read by duckdb, which the extra `tables` brings."""

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

from socratic_bench.benchmarks.execution.dataset.rows import MOST_ROWS, ParsedRow, read_row
from socratic_bench.benchmarks.execution.items import Problem
from socratic_bench.benchmarks.execution.settings import HUB, SHIPPED
from socratic_bench.errors import ArtifactError, UsageError
from socratic_bench.settings.files import MAX_STORED_BYTES, is_folder, open_regular, read_bounded

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


HINT = "pip install 'socratic-runner[tables]', or the image's target full, has what reads it."


# Nothing is fetched from elsewhere to read a file.
_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,
    "memory_limit": "1GB",
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}
_ROWS_AT_ONCE = 64
_QUERY = "select * from read_parquet(?) limit ?"


def rows_of(path: Path) -> list[object]:
    """The rows, as plain values. Raises `UsageError` for a file that is none, that has more text
    than a file may have, or without duckdb, and `OSError`.
    """
    try:
        import duckdb
    except ImportError as error:
        raise UsageError([f"{path.name}: duckdb is not installed."], hint=HINT) from error
    descriptor = open_regular(path)
    try:
        with duckdb.connect(":memory:", config=_CONFIG) as connection:
            # By its descriptor: a name may have characters that stand for others.
            found = connection.execute(_QUERY, [f"/dev/fd/{descriptor}", MOST_ROWS + 1])
            return [*_bounded(path, found)]
    except duckdb.OutOfMemoryException as error:
        raise _too_large(path) from error
    except duckdb.Error as error:
        reason = str(error).splitlines()[0]
        raise UsageError([f"{path.name}: it is no Parquet file: {reason}"]) from error
    finally:
        os.close(descriptor)


def _bounded(path: Path, found: "DuckDBPyConnection") -> Iterator[object]:
    """The rows of a table, which may hold far more than its file."""
    names = [column[0] for column in found.description or ()]
    n_characters = 0
    while rows := found.fetchmany(_ROWS_AT_ONCE):
        n_characters += sum(_length(row) for row in rows)
        if n_characters > MAX_STORED_BYTES:
            raise _too_large(path)
        yield from (dict(zip(names, row, strict=True)) for row in rows)


def _too_large(path: Path) -> UsageError:
    return UsageError([f"{path.name}: it has more than {MAX_STORED_BYTES} bytes of text."])


def _length(value: object) -> int:
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, dict):
        return sum(map(_length, value.values()))
    return sum(map(_length, value)) if isinstance(value, list | tuple) else 1


# Data sets of the Hugging Face Hub, or of a folder that is laid out as one there.
#
# The extra `tables` brings huggingface_hub, which keeps what it has fetched in its cache and needs
# no network with HF_HUB_OFFLINE=1.

# The first form that a data set has files of is read.
_SUFFIXES = (".parquet", ".jsonl", ".json")
_SPLITS = ("train", "test", "validation", "valid", "val", "dev", "eval")
_ABOUT = {"dataset_infos.json", "dataset_info.json", "state.json"}


class Fetched(Struct, frozen=True, kw_only=True):
    """Files of one split, in order, and the commit that they are of."""

    files: tuple[Path, ...]
    revision: str | None = None


def fetch(name: str, split: str) -> Fetched:
    """The files of `OWNER/NAME[@REVISION]`. Raises `UsageError` if there are none, or without
    huggingface_hub, and `ArtifactError` if the Hub cannot be reached.
    """
    try:
        from huggingface_hub import constants, errors
    except ImportError as error:
        raise UsageError([f"hf:{name}: huggingface_hub is not installed."], hint=HINT) from error
    repository, _, revision = name.partition("@")
    try:
        if constants.HF_HUB_OFFLINE:
            return _cached(repository, split, revision or None)
        return _downloaded(repository, split, revision or None)
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


def files_of(folder: Path, split: str, place: str) -> tuple[Path, ...]:
    """The files of a split in a folder of the Hub's layout. Raises `UsageError` if it has none."""
    names = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    return tuple(folder / name for name in _chosen(names, split, place))


def _cached(repository: str, split: str, revision: str | None) -> Fetched:
    from huggingface_hub import snapshot_download

    folder = Path(
        snapshot_download(repository, repo_type="dataset", revision=revision, local_files_only=True)
    )
    files = files_of(folder, split, f"hf:{repository}")
    return Fetched(files=files, revision=folder.name)


def _downloaded(repository: str, split: str, revision: str | None) -> Fetched:
    from huggingface_hub import HfApi, hf_hub_download

    info = HfApi().dataset_info(repository, revision=revision, files_metadata=True)
    sizes = {one.rfilename: one.size or 0 for one in info.siblings or ()}
    names = _chosen([*sizes], split, f"hf:{repository}")
    if sum(sizes[name] for name in names) > MAX_STORED_BYTES:
        raise UsageError([f"hf:{repository}: it has more than {MAX_STORED_BYTES} bytes."])
    files = (
        hf_hub_download(repository, name, repo_type="dataset", revision=info.sha) for name in names
    )
    return Fetched(files=tuple(map(Path, files)), revision=info.sha)


def _chosen(names: Sequence[str], split: str, place: str) -> Sequence[str]:
    """The data files of a split: those with its name in their path. Where no path names a split,
    all are `train`.
    """
    data = sorted(
        name
        for name in names
        if not name.startswith(".") and PurePosixPath(name).name not in _ABOUT
    )
    for suffix in _SUFFIXES:
        found = [name for name in data if name.endswith(suffix)]
        if not found:
            continue
        chosen = [name for name in found if _names(name, split)]
        named = {word for word in _SPLITS for name in found if _names(name, word)}
        if not chosen and not named and split == "train":
            return found
        if chosen:
            return chosen
        known = ", ".join(sorted(named)) or "train"
        raise UsageError([f"{place}: it has no split {split!r}: there is {known}."])
    raise UsageError([f"{place}: it has no files of Parquet, JSON Lines or JSON."])


def _names(path: str, split: str) -> bool:
    return re.search(rf"(?:^|[/_.-]){re.escape(split)}(?=[/_.-])", path) is not None


# A data set: the shipped one, a file of JSON Lines, JSON or Parquet, or one of the Hub.

_SHIPPED_FILE = Path(__file__).parents[1] / "data" / "problems.jsonl"


class DataSet(Struct, frozen=True, kw_only=True):
    """What was read. `problems` are in the order of the rows; `dropped` are the ids of rows without
    a mutation that were left out.
    """

    place: str
    sha256: str  # of the file's bytes; of all files' in turn if there are several
    n_rows: int
    problems: tuple[Problem, ...]
    dropped: tuple[str, ...]
    split: str | None = None  # of a data set of the Hub
    revision: str | None = None  # the commit, of a data set of the Hub
    rows: Sequence[Mapping[str, Any]] = ()  # as they stand there; for who asks for them


class _Source(Struct, frozen=True, kw_only=True):
    """Plain rows, and where they are from."""

    rows: Sequence[object]
    sha256: str
    split: str | None = None
    revision: str | None = None


def read_problems(
    place: str = SHIPPED,
    *,
    split: str = "train",
    include_missing_mutations: bool = False,
    needs_literals: bool = True,
    keeps_rows: bool = False,
) -> DataSet:
    """The problems of `place`: "shipped", the path of a file, or of a folder or
    `hf:OWNER/NAME`, of which `split` is read; with its rows as they are if these are kept.

    Rows without a mutation are dropped unless they are included. Raises `UsageError` with every
    mistake of every row, such as an output that is no literal where literals are needed, and
    `ArtifactError` if the Hub cannot be reached.
    """
    source = _source(place, split)
    readings = [read_row(row, needs_literals=needs_literals) for row in source.rows]
    problems = [reading.problem for reading in readings if reading.problem]
    mistakes = [*_mistakes(place, source.rows, readings), *_repeated(place, problems)]
    if mistakes:
        raise UsageError(mistakes, hint="The page on data sets says what the columns hold.")
    kept = [one for one in problems if include_missing_mutations or one.mutated_code is not None]
    dropped = tuple(one.id for one in problems if one.mutated_code is None)
    if not kept:
        raise UsageError(
            [f"{place}: none of its {len(problems)} rows has a mutation."],
            hint="socratic-runner dataset mutate makes mutations.",
        )
    return DataSet(
        place=place,
        sha256=source.sha256,
        n_rows=len(source.rows),
        problems=tuple(kept),
        dropped=() if include_missing_mutations else dropped,
        split=source.split,
        revision=source.revision,
        rows=[row for row in source.rows if isinstance(row, dict)] if keeps_rows else (),
    )


def _source(place: str, split: str) -> _Source:
    path = _SHIPPED_FILE if place == SHIPPED else Path(place)
    is_hub = place.startswith(HUB)
    if not is_hub and not is_folder(path):
        return _of_files(place, [path])

    if not is_hub:
        return replace(_of_files(place, files_of(path, split, place)), split=split)
    found = fetch(place.removeprefix(HUB), split)
    return replace(_of_files(place, found.files), split=split, revision=found.revision)


def _of_files(place: str, paths: Sequence[Path]) -> _Source:
    rows: list[object] = []
    digest = sha256()
    for path in paths:
        content = _content(place, path)
        digest.update(content)
        rows += rows_of(path) if path.suffix == ".parquet" else _json_rows(place, content)
        if len(rows) > MOST_ROWS:
            raise UsageError([f"{place}: it has more than {MOST_ROWS} rows."])
    if not rows:
        raise UsageError([f"{place}: it has no rows."])
    return _Source(rows=rows, sha256=digest.hexdigest())


def _content(place: str, path: Path) -> bytes:
    try:
        return read_bounded(path, bound=MAX_STORED_BYTES)
    except OSError as error:
        hint = "Name a file, hf:OWNER/NAME, or shipped." if error.errno == errno.ENOENT else None
        reason = error.strerror or type(error).__name__
        raise UsageError([f"{place}: cannot be read: {reason}."], hint=hint) from error


def _json_rows(place: str, content: bytes) -> list[object]:
    """Of an array, or of one row a line. Raises `UsageError` with every line that is no JSON."""
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


def _mistakes(place: str, rows: Sequence[object], readings: Sequence[ParsedRow]) -> Iterator[str]:
    """What is wrong with every row is told once."""
    counts = Counter(mistake for reading in readings for mistake in reading.mistakes)
    of_all = [mistake for mistake, n_rows in counts.items() if n_rows == len(rows) > 1]
    yield from (f"{place}: every row: {mistake}" for mistake in of_all)
    for number, (row, reading) in enumerate(zip(rows, readings, strict=True), start=1):
        found = row.get("id") if isinstance(row, dict) else None
        name = f" ({found[:60]})" if isinstance(found, str) and found else ""
        for mistake in (one for one in reading.mistakes if one not in of_all):
            yield f"{place}: row {number}{name}: {mistake}"


def _repeated(place: str, problems: Sequence[Problem]) -> Iterator[str]:
    counts = Counter(problem.id for problem in problems)
    for name, count in counts.items():
        if count > 1:
            yield f"{place}: {count} rows have the id {name!r}."
