"""A data set: the shipped one, a file of JSON Lines, JSON or Parquet, or one of the Hub."""

import errno
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.benchmarks.execution.dataset.rows import MOST_ROWS, ParsedRow, read_row
from socratic_bench.benchmarks.execution.dataset.tables import rows_of
from socratic_bench.benchmarks.execution.problem import Problem
from socratic_bench.benchmarks.execution.settings import HUB, SHIPPED
from socratic_bench.errors import UsageError
from socratic_bench.settings.files import MAX_STORED_BYTES, is_folder, read_bounded

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
    from socratic_bench.benchmarks.execution.dataset.hub import fetch, files_of

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
