# ruff: noqa: INP001 - a script, not a package
"""Writes what is made of tables: cli/flags.tsv, the settings in docs/runner.md and the kinds of
errors in docs/bedrock.md.

    PYTHONPATH=. python tools/tables.py

A test fails while these are not what this would write.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from bench.report import filled_in
from cli.flags import STORED, table_rows
from cli.options import Options
from socratic_bench.benchmarks import RunConfig
from socratic_bench.providers.bedrock.kinds import ERROR_KINDS
from socratic_bench.settings import Entry, listed

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE = DOCS / "runner.md"
BEDROCK = DOCS / "bedrock.md"
HEAD = ("| flag | variable | default | meaning |", "|---|---|---|---|")
ERRORS_HEAD = (
    "| code | what happened | retried | may be billed | end reason |",
    "|---|---|---|---|---|",
)
PLAIN_TEXT = "| `--version`, `-V`, `--help`, `-h` | | | plain text on stdout |"


def made() -> dict[Path, str]:
    """Each file with the content that it should have."""
    page = PAGE.read_text(encoding="utf-8")
    for group, entries in groupby(listed((RunConfig, Options)), lambda entry: entry.group):
        page = filled_in(page, f"settings: {group}", "\n".join(_table(group, [*entries])))
    flags = "".join("\t".join(row) + "\n" for row in table_rows())
    bedrock = filled_in(
        BEDROCK.read_text(encoding="utf-8"), "error kinds", "\n".join(_kinds_of_errors())
    )
    return {PAGE: page, BEDROCK: bedrock, Path(STORED): flags}


def _kinds_of_errors() -> Iterator[str]:
    yield from ERRORS_HEAD
    for name, one in ERROR_KINDS.items():
        retried, billed = ("yes" if is_so else "no" for is_so in (one.retried, one.maybe_billed))
        yield f"| `{name}` | {one.meaning} | {retried} | {billed} | `{one.end_reason}` |"


def _table(group: str, entries: Sequence[Entry]) -> Iterator[str]:
    yield from HEAD
    for one in entries:
        flag = f"`{' '.join(filter(None, (f'--{one.flag}', one.metavar)))}`" if one.flag else ""
        flag += f", `-{one.short}`" if one.short else ""
        variables = ", ".join(f"`{name}`" for name in one.variables)
        cells = (flag, variables, one.default, one.meaning)
        yield "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"
    if group == "output":
        yield PLAIN_TEXT


if __name__ == "__main__":
    for path, content in made().items():
        path.write_text(content, encoding="utf-8")
