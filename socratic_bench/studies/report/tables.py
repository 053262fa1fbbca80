"""Runs, turns and verdicts as tables of typed columns, and these as CSV and Parquet."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import orjson
from msgspec import Struct

from socratic_bench.documents.report import RunRecord, TurnRecord, VerdictRecord
from socratic_bench.errors import ArtifactError
from socratic_bench.studies.report.study import Rows
from socratic_bench.studies.rows import RunRow

Kind = Literal["boolean", "integer", "number", "text", "time"]
Cell = bool | int | float | str | datetime | None
_KINDS: Mapping[object, Kind] = {bool: "boolean", int: "integer", float: "number", datetime: "time"}
# Columns that only some rows have: how their names begin, of which tables, and what they hold.
FURTHER: Sequence[tuple[str, str, str]] = (
    ("metric_", "runs", "a metric of the run, by its path among `metrics`"),
    ("score_", "turns, verdicts", "a score by a dimension of the rubric"),
    ("event_", "turns, verdicts", "whether an event of the rubric was seen"),
    ("heuristic_", "turns", "regex-based feature of the reply"),
    ("own_", "turns", "another key of the turn; a list is JSON"),
    ("rationale_", "verdicts", "the judge's reason for a score"),
    ("quote_", "verdicts", "quotation behind a score"),
    ("evidence_", "verdicts", "quotation behind an event"),
)
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


class RowTable(Struct, frozen=True, kw_only=True):
    """Rows of cells by column name; a column that a row lacks is null in it."""

    name: str
    columns: Mapping[str, Kind]
    rows: Sequence[Mapping[str, Cell]]


def tables_of(rows: Rows) -> list[RowTable]:
    return [
        _table("runs", RunRecord, _metric_kinds(rows), (_run(run, rows) for run in rows.runs)),
        _table("turns", TurnRecord, _own_kinds(rows), _turns(rows)),
        _table("verdicts", VerdictRecord, _event_kinds(rows, has_evidence=True), _verdicts(rows)),
    ]


def _table(
    name: str, record: type, further: Mapping[str, Kind], rows: Iterable[Mapping[str, Cell]]
) -> RowTable:
    """Build a table; columns without a declared type take the kind of their values."""
    starts = [start for start, *_ in FURTHER]

    def place(column: str) -> int:
        """Those of the record first, then each further kind together."""
        is_own = column in record.__annotations__
        return -1 if is_own else starts.index(column[: column.index("_") + 1])

    made = [*rows]
    declared = {name: kind_of(hint) for name, hint in get_type_hints(record).items()}
    kinds = {**declared, **further}
    types_by_name: dict[str, set[type]] = {}
    for row in made:
        for key, value in row.items():
            if key not in kinds:
                types_by_name.setdefault(key, set()).add(type(value))
    columns = kinds | {key: _kind_of_values(key, types) for key, types in types_by_name.items()}
    return RowTable(
        name=name,
        columns={key: columns[key] for key in sorted(columns, key=place)},
        rows=[{key: _fit(value, columns[key]) for key, value in row.items()} for row in made],
    )


def _kind_of_values(key: str, types: set[type]) -> Kind:
    if key.startswith("score_"):
        return "number"
    known_types = types - {NoneType}
    if known_types == {int, float}:
        return "number"
    return _KINDS.get(known_types.pop(), "text") if len(known_types) == 1 else "text"


def _fit(value: Cell, kind: Kind) -> Cell:
    """Fit a value to its column: to a float in one of floats, to text in one of text."""
    if value is None or isinstance(value, str | datetime):
        return value
    if kind == "text":
        return orjson.dumps(value).decode()
    if kind == "integer":
        return int(value)
    return float(value) if kind == "number" else value


def _metric_kinds(rows: Rows) -> dict[str, Kind]:
    """Columns of metrics; one for each entry of a mapping."""
    hints = get_type_hints(rows.benchmark.parts.metrics)
    kinds: dict[str, Kind] = {}
    for metric in rows.benchmark.metrics:
        name, _, inner = metric.name.partition(".")
        hint = hints.get(name, float)
        kind = kind_of(get_args(hint)[-1] if inner and get_args(hint) else hint)
        is_whole = not any((run.metrics[metric.name] or 0) % 1 for run in rows.runs)
        kinds[f"metric_{metric.name}"] = "integer" if kind == "integer" and is_whole else "number"
    return kinds


def _run(run: RunRow, rows: Rows) -> Mapping[str, Cell]:
    jurors = ", ".join(str(juror.get("model")) for juror in run.at("judge.jurors") or ())
    record = _cells(
        RunRecord,
        run,
        benchmark=rows.benchmark.name,
        scenario=run.sample_name,
        end_reason=run.at("end_reason"),
        started_at=_time(run.at("timestamps.started_at")),
        completed_at=_time(run.at("timestamps.completed_at")),
        duration_s=run.at("timestamps.duration_seconds"),
        region=run.at("inputs.region"),
        service_tier=run.at("inputs.service_tier"),
        temperature=run.at("inputs.temperature"),
        judges=jurors or run.at("judge.model"),
        rubric=run.at("judge.rubric"),
        judge_coverage=run.at("judge.coverage"),
        calibration=run.at("judge.calibration.status"),
        input_tokens=run.at("usage.total.input_tokens"),
        output_tokens=run.at("usage.total.output_tokens"),
        cost_usd=run.at("cost.total.total_usd"),
        is_stand_in_cost=run.at("cost.stand_in"),
    )
    names = [metric.name for metric in rows.benchmark.metrics]
    metrics = {f"metric_{name}": run.metrics[name] for name in names}
    return {**record, **metrics}


def _cells(record: type[Struct], *sources: object, **more: Cell) -> dict[str, Cell]:
    """Cells of a record: from `more`, otherwise from the first source that has the name."""
    cells = {}
    for name in record.__struct_fields__:
        source = next((source for source in sources if hasattr(source, name)), None)
        cells[name] = more[name] if name in more else getattr(source, name)
    return cells


def _time(text: object) -> datetime | None:
    return datetime.fromisoformat(text) if isinstance(text, str) else None


def _own_kinds(rows: Rows) -> dict[str, Kind]:
    views, part = rows.benchmark.views, rows.benchmark.parts.turn
    hints = get_type_hints(part)
    names = zip(part.__struct_fields__, part.__struct_encode_fields__, strict=True)
    kinds: dict[str, Kind] = {
        f"own_{key}": kind_of(hints[name]) for name, key in names if key != views.said
    }
    return _event_kinds(rows, has_evidence=False) | kinds


def _event_kinds(rows: Rows, *, has_evidence: bool) -> dict[str, Kind]:
    """Columns of all events that the benchmark's rubrics define, seen or not."""
    events = rows.benchmark.views.events
    kinds: dict[str, Kind] = {f"event_{event}": "boolean" for event in events}
    return kinds | {f"evidence_{event}": "text" for event in events if has_evidence}


def _turns(rows: Rows) -> Iterator[Mapping[str, Cell]]:
    for run in rows.runs:
        for turn in run.turns:
            yield {
                **_cells(
                    TurnRecord, turn, run, scenario=run.sample_name, n_verdicts=len(turn.verdicts)
                ),
                **_with_prefix("score_", turn.scores),
                **_seen(turn.events, rows),
                **_with_prefix("heuristic_", turn.heuristics),
                **_with_prefix("own_", turn.own),
            }


def _with_prefix(start: str, values: Mapping[str, Any]) -> dict[str, Cell]:
    """Cells with prefixed names; lists and mappings become JSON."""
    return {
        f"{start}{name}": orjson.dumps(value).decode() if isinstance(value, list | dict) else value
        for name, value in values.items()
    }


def _seen(events: Mapping[str, str] | None, rows: Rows) -> dict[str, Cell]:
    """Whether an event was seen; null if nobody looked."""
    if events is None:
        return {}
    names = dict.fromkeys((*rows.benchmark.views.events, *events))
    return {f"event_{name}": name in events for name in names}


def _verdicts(rows: Rows) -> Iterator[Mapping[str, Cell]]:
    for run in rows.runs:
        for turn in run.turns:
            for n, verdict in enumerate(turn.verdicts):
                yield {
                    **_cells(
                        VerdictRecord, verdict, turn, run, scenario=run.sample_name, verdict=n
                    ),
                    **_with_prefix("score_", verdict.scores),
                    **_seen(verdict.events, rows),
                    **_with_prefix("rationale_", verdict.rationale),
                    **_with_prefix("quote_", verdict.quotes or {}),
                    **_with_prefix("evidence_", verdict.events or {}),
                }


def kind_of(hint: object) -> Kind:
    """The kind of a column by the type of a field, optional or not."""
    if get_origin(hint) in (Union, UnionType):
        kinds = {kind_of(option) for option in get_args(hint) if option is not NoneType}
        if kinds == {"integer", "number"}:
            return "number"
        return kinds.pop() if len(kinds) == 1 else "text"
    return _KINDS.get(hint, "text")


def csv_of(table: RowTable) -> bytes:
    """CSV after RFC 4180 in UTF-8. Text stands in quotes, null is an empty cell without quotes."""
    lines = [",".join(map(_quote, table.columns))]
    lines += [",".join(_csv_cell(row.get(name)) for name in table.columns) for row in table.rows]
    return "".join(f"{line}\r\n" for line in lines).encode()


def _quote(text: str) -> str:
    """Quote a text, with an apostrophe before what a spreadsheet would compute. Apostrophes before
    that are doubled up, so that removing one restores the text.
    """
    safe = f"'{text}" if _FORMULA.match(text) else text
    return '"{}"'.format(safe.replace('"', '""'))


def _csv_cell(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, str):
        return _quote(cell)
    if isinstance(cell, datetime):
        return cell.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return repr(cell)


def parquet_of(table: RowTable, place: Path) -> bytes:
    """Parquet, made in a temporary folder in `place`. Raises `ArtifactError` if that cannot be
    made, and `ImportError` without duckdb.
    """
    import duckdb

    try:
        with TemporaryDirectory(dir=place, prefix=".report-") as folder:
            lines, made = Path(folder, "rows.jsonl"), Path(folder, "rows.parquet")
            longest = _write_lines(table, lines)
            with duckdb.connect(":memory:", config=_CONFIG) as connection, lines.open("rb") as file:
                # By its descriptor: a name may have characters that stand for others.
                columns = ", ".join(
                    f"{_literal(name)}: '{_SQL_TYPES[kind]}'"
                    for name, kind in table.columns.items()
                )
                source = (
                    f"read_json('/dev/fd/{file.fileno()}', format='newline_delimited', "
                    f"maximum_object_size={longest}, columns={{{columns}}})"
                )
                target = f"{_literal(os.fspath(made))} (format parquet, compression zstd)"
                connection.execute(f"copy (from {source}) to {target}")
            return made.read_bytes()
    except (OSError, duckdb.Error) as error:
        reason = str(error).splitlines()[0]
        raise ArtifactError(f"{table.name}.parquet could not be made: {reason}") from error


def _write_lines(table: RowTable, path: Path) -> int:
    """Write the rows as lines of JSON; returns an upper bound of the longest line, in bytes."""
    longest = 1 << 20
    with path.open("wb") as file:
        for row in table.rows:
            line = orjson.dumps({key: row[key] for key in row if row[key] is not None})
            longest = max(longest, 2 * len(line))
            file.write(line + b"\n")
    return longest


def _literal(text: str) -> str:
    return "'{}'".format(text.replace("'", "''"))
