"""Rows of Parquet files, read by duckdb, which the extra `tables` brings."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from socratic_bench.benchmarks.execution.dataset.rows import MOST_ROWS
from socratic_bench.errors import UsageError
from socratic_bench.settings.files import MAX_STORED_BYTES, open_regular

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
