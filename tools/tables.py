# ruff: noqa: INP001 - a script, not a package
"""Writes what is made of tables: cli/flags.tsv, the settings in docs/runner.md, the kinds of errors
in docs/bedrock.md, and what type checkers know of `RunConfig`.

    PYTHONPATH=. python tools/tables.py

A test fails while these are not what this would write.
"""

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import get_args, get_type_hints

from pages import filled_in

from cli.flags import STORED
from cli.settings import Options, table_rows
from socratic_bench.benchmarks import BENCHMARKS, RunConfig
from socratic_bench.documents.report import RunRecord, TurnRecord, VerdictRecord
from socratic_bench.errors import Problem
from socratic_bench.models.bedrock.error_table import ERROR_KINDS
from socratic_bench.setting import GROUPS
from socratic_bench.settings import flag_names
from socratic_bench.settings.table import Entry, listed
from socratic_bench.studies.report.tables import FURTHER, kind_of

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGE = DOCS / "runner.md"
BEDROCK = DOCS / "bedrock.md"
REPORT = DOCS / "report.md"
HEAD = ("| flag | variable | default | meaning |", "|---|---|---|---|")
ERRORS_HEAD = (
    "| code | what happened | retried | may be billed | end reason |",
    "|---|---|---|---|---|",
)
STUB = ROOT / "socratic_bench" / "benchmarks" / "run_config.py"
STUB_FORM = """\
\"\"\"What type checkers know of `RunConfig`, made by `make docs`. Nothing imports it.\"\"\"

{imports}
from socratic_bench.settings import WholeConfig


class RunConfig({bases}, WholeConfig, frozen=True, kw_only=True):
    \"\"\"Everything that one run depends on; what a field means stands beside it.\"\"\"
"""
PLAIN_TEXT = "| `--version`, `-V`, `--help`, `-h` | | | plain text on stdout |"


def made() -> dict[Path, str]:
    """Each file with the content that it should have."""
    page = PAGE.read_text(encoding="utf-8")
    own: list[str] = []
    for group, entries in groupby(listed((RunConfig, Options)), lambda entry: entry.group):
        rows = [*_table(group, [*entries])]
        if group in GROUPS:
            page = filled_in(page, f"settings: {group}", "\n".join(rows))
        else:
            own += [f"### {group.capitalize()}", "", *rows, ""]
    page = filled_in(page, "settings of benchmarks", "\n".join(own))
    flags = "".join("\t".join(row) + "\n" for row in table_rows())
    bedrock = filled_in(
        BEDROCK.read_text(encoding="utf-8"), "error kinds", "\n".join(_kinds_of_errors())
    )
    report = filled_in(REPORT.read_text(encoding="utf-8"), "columns", "\n".join(_columns()))
    return {PAGE: page, BEDROCK: bedrock, REPORT: report, Path(STORED): flags, STUB: _stub()}


def _columns() -> Iterator[str]:
    """The columns of each table of rows, and what further ones are called."""
    yield from ("| table | column | type | meaning |", "|---|---|---|---|")
    records = (("runs", RunRecord), ("turns", TurnRecord), ("verdicts", VerdictRecord))
    for table, record in records:
        plain = get_type_hints(record)
        for name, hint in get_type_hints(record, include_extras=True).items():
            yield f"| {table} | `{name}` | {kind_of(plain[name])} | {_meaning(hint)} |"
    for start, tables, meaning in FURTHER:
        yield f"| {tables} | `{start}…` | by column | {meaning} |"


def _meaning(hint: object) -> str:
    """The description beside a field's type, or else within it."""
    known = [one.description for one in getattr(hint, "__metadata__", ()) if one.description]
    inner = (_meaning(one) for one in get_args(hint))
    return known[-1] if known else next(filter(None, inner), "")


def _stub() -> str:
    """What type checkers know of `RunConfig`: the settings of each benchmark that has some."""
    rooms = {name: room for name, room in BENCHMARKS.items() if find_spec(f"{room}.settings")}
    lines = [
        f"from {room}.settings import Settings as {name.title().replace('_', '')}Settings"
        for name, room in sorted(rooms.items(), key=lambda pair: pair[1])
    ]
    bases = [line.rpartition(" ")[2] for line in lines]
    return STUB_FORM.format(imports="\n".join(lines), bases=", ".join(bases))


def _kinds_of_errors() -> Iterator[str]:
    yield from ERRORS_HEAD
    call = flag_names((RunConfig,))
    for name, one in ERROR_KINDS.items():
        retried, billed = ("yes" if is_so else "no" for is_so in (one.retried, one.maybe_billed))
        meaning = Problem(one.meaning).render(call)
        yield f"| `{name}` | {meaning} | {retried} | {billed} | `{one.end_reason}` |"


def _table(group: str, entries: Sequence[Entry]) -> Iterator[str]:
    yield from HEAD
    for one in entries:
        flag = f"`{' '.join(filter(None, (f'--{one.flag}', one.metavar)))}`" if one.flag else ""
        flag += f", `-{one.short}`" if one.short else ""
        variables = ", ".join(f"`{name}`" for name in one.variables)
        is_told = one.group in one.owners  # by the heading
        owned = f" (`{'`, `'.join(one.owners)}` alone)" if one.owners and not is_told else ""
        cells = (flag, variables, one.default, one.meaning + owned)
        yield "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"
    if group == "output":
        yield PLAIN_TEXT


if __name__ == "__main__":
    for path, content in made().items():
        path.write_text(content, encoding="utf-8")
