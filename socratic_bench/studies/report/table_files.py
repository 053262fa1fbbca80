"""Tables of rows as files: CSV that a spreadsheet cannot take for formulas, and Parquet."""

import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson

from socratic_bench.errors import ArtifactError
from socratic_bench.studies.report.tables import Cell, Kind, RowTable

# What spreadsheets compute, behind what they skip, in narrow and in wide signs.
_FORMULA = re.compile(r"[\s\x00-\x20\u200b-\u200f\u2028-\u202f\u2060\ufeff']*[=+\-@\t\r\n＝＋－＠]")  # noqa: RUF001
_SQL_TYPES: Mapping[Kind, str] = {
    "boolean": "BOOLEAN",
    "integer": "BIGINT",
    "number": "DOUBLE",
    "text": "VARCHAR",
    "time": "TIMESTAMPTZ",
}
# Nothing is fetched from elsewhere to write a file; one thread writes the same file again.
_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}


def csv_of(table: RowTable) -> bytes:
    """Text stands in quotes, null is an empty cell without any. RFC 4180, in UTF-8."""
    lines = [",".join(map(_quoted, table.columns))]
    lines += [",".join(_csv_cell(row.get(name)) for name in table.columns) for row in table.rows]
    return "".join(f"{line}\r\n" for line in lines).encode()


def _csv_cell(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, str):
        return _quoted(cell)
    return _moment(cell) if isinstance(cell, datetime) else repr(cell)


def _quoted(text: str) -> str:
    """With an apostrophe before what would be computed; apostrophes before that are kept, so that
    taking one away gives the text again.
    """
    safe = f"'{text}" if _FORMULA.match(text) else text
    return '"{}"'.format(safe.replace('"', '""'))


def _moment(time: datetime) -> str:
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def parquet_of(table: RowTable, place: Path) -> bytes:
    """Made in a folder of its own in `place`, which is gone afterwards.

    Raises `ArtifactError` if it cannot be made there, and `ImportError` without duckdb.
    """
    import duckdb

    try:
        with TemporaryDirectory(dir=place, prefix=".report-") as folder:
            lines, made = Path(folder, "rows.jsonl"), Path(folder, "rows.parquet")
            longest = _write_lines(table, lines)
            with duckdb.connect(":memory:", config=_CONFIG) as connection, lines.open("rb") as file:
                # By its descriptor: a name may have characters that stand for others.
                source = (
                    f"read_json('/dev/fd/{file.fileno()}', format='newline_delimited', "
                    f"maximum_object_size={longest}, columns={{{_sql_columns(table)}}})"
                )
                target = f"{_literal(os.fspath(made))} (format parquet, compression zstd)"
                connection.execute(f"copy (from {source}) to {target}")
            return made.read_bytes()
    except (OSError, duckdb.Error) as error:
        reason = str(error).splitlines()[0]
        raise ArtifactError(f"{table.name}.parquet could not be made: {reason}") from error


def _write_lines(table: RowTable, path: Path) -> int:
    """The rows as lines of JSON; returns more than the longest of them takes."""
    longest = 1 << 20
    with path.open("wb") as file:
        for row in table.rows:
            line = orjson.dumps({key: row[key] for key in row if row[key] is not None})
            longest = max(longest, 2 * len(line))
            file.write(line + b"\n")
    return longest


def _sql_columns(table: RowTable) -> str:
    return ", ".join(
        f"{_literal(name)}: '{_SQL_TYPES[kind]}'" for name, kind in table.columns.items()
    )


def _literal(text: str) -> str:
    return "'{}'".format(text.replace("'", "''"))
