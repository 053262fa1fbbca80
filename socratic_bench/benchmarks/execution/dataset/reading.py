"""Reads a data set of problems: the shipped one, a file, a folder, or the Hub."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from socratic_bench.benchmarks.data_files import read_source
from socratic_bench.benchmarks.data_settings import SHIPPED
from socratic_bench.benchmarks.execution.dataset.rows import ParsedRow, read_row
from socratic_bench.benchmarks.execution.items import Problem
from socratic_bench.errors import UsageError

_SHIPPED_FILE = Path(__file__).parents[1] / "data" / "problems.jsonl"


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
    source = read_source(place, split, _SHIPPED_FILE)
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
