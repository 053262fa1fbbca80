"""Tables of runs, turns and verdicts as files, each with the JSON Schema of its rows."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_type_hints

import orjson

from socratic_bench.documents.report import RunRecord, TurnRecord, VerdictRecord
from socratic_bench.errors import ArtifactError
from socratic_bench.studies.report.study import Rows
from socratic_bench.studies.report.tables import (
    FURTHER,
    RowTable,
    csv_of,
    parquet_of,
    tables_of,
)

TableForm = Literal["jsonl", "csv", "parquet"]
_RECORDS = {"runs": RunRecord, "turns": TurnRecord, "verdicts": VerdictRecord}
_JSON_TYPES: Mapping[str, Mapping[str, Any]] = {
    "boolean": {"type": ["boolean", "null"]},
    "integer": {"type": ["integer", "null"]},
    "number": {"type": ["number", "null"]},
    "text": {"type": ["string", "null"]},
    "time": {"type": ["string", "null"], "format": "date-time"},
}


def write_tables(rows: Rows, folder: str, form: TableForm) -> list[str]:
    """Write a file and its schema for each table; returns their paths. Raises `ArtifactError`."""
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
        return [str(path) for table in tables_of(rows) for path in _write(table, place, form)]
    except OSError as error:
        raise ArtifactError(f"{folder} cannot be written: {error.strerror}.") from error


def schema_of_rows(table: RowTable) -> dict[str, Any]:
    """The JSON Schema (2020-12) of a row; in CSV null is an empty cell without quotes."""
    meanings = _meanings(table.name)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"row of {table.name}",
        "type": "object",
        "properties": {
            name: {**_JSON_TYPES[kind], **_meaning(name, meanings)}
            for name, kind in table.columns.items()
        },
        "required": [*table.columns],
        "additionalProperties": False,
    }


def _write(table: RowTable, place: Path, form: TableForm) -> Iterator[Path]:
    body = {
        "jsonl": lambda: _lines_of(table),
        "csv": lambda: csv_of(table),
        "parquet": lambda: parquet_of(table, place),
    }[form]()
    schema = orjson.dumps(schema_of_rows(table), option=orjson.OPT_INDENT_2) + b"\n"
    for name, content in ((f"{table.name}.{form}", body), (f"{table.name}.schema.json", schema)):
        path = place / name
        path.write_bytes(content)
        yield path


def _lines_of(table: RowTable) -> bytes:
    rows = ({name: row.get(name) for name in table.columns} for row in table.rows)
    return b"".join(orjson.dumps(row, option=orjson.OPT_UTC_Z) + b"\n" for row in rows)


def _meanings(table: str) -> dict[str, str]:
    """The descriptions of the fields that every row has."""
    hints = get_type_hints(_RECORDS[table], include_extras=True)
    metas = {name: getattr(hint, "__metadata__", ()) for name, hint in hints.items()}
    return {
        name: next((meta.description for meta in found if meta.description), "")
        for name, found in metas.items()
    }


def _meaning(column: str, meanings: Mapping[str, str]) -> dict[str, str]:
    text = meanings.get(column)
    if text is None:
        text = next(text for start, _, text in FURTHER if column.startswith(start))
    return {"description": text} if text else {}
