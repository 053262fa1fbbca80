"""The flags of `run` and `resume`, from the table of settings to the parser.

Help reads them from flags.tsv, which `make docs` keeps: what the table is made of takes longer to
import than all of help takes.
"""

import os
from collections.abc import Iterator, Sequence

from .arguments import ADD, Help, Parser
from .commands import COMMANDS

# Group, flag, what the flag takes (see `ADD`), what stands for it, and the help; under VARIABLES
# a variable, and what it is if it is required.
Row = tuple[str, str, str, str, str]
VARIABLES = "variables"
# pathlib takes longer to import than help takes.
STORED = f"{os.path.dirname(__file__)}/flags.tsv"  # noqa: PTH120
WIDTH = 100

DESCRIPTION = """\
Plays a benchmark with the model under test, has a judge model score every turn, and prints one JSON
document on stdout.

commands:
"""
EXIT_CODES = """\
exit codes: 0 complete, 1 defect, 2 usage, 3 credentials or access, 4 service or store unavailable,
5 a gate or the judge coverage failed, 6 deadline or budget, 129 SIGHUP, 130 SIGINT, 143 SIGTERM.
"""


def build_parser(words: Sequence[str] = ()) -> Parser:
    """Every flag of the contract; values are read and checked later, all together."""
    rows = _stored_rows() if {"-h", "--help"} & {*words} else table_rows()
    commands = COMMANDS.items()
    parser = Parser(
        prog="socratic-runner",
        usage="socratic-runner [run] --model ID --prompt TEXT [--turns N] [options]",
        description=DESCRIPTION + "".join(f"  {name:9s}  {text}\n" for name, (_, text) in commands),
        epilog=f"{_variables(rows)}\n\n{EXIT_CODES}",
        formatter_class=Help,
        allow_abbrev=False,
    )
    parser.commands = tuple(COMMANDS)
    names = dict.fromkeys(row[0] for row in rows if row[0] != VARIABLES)
    groups = {name: parser.add_argument_group(name) for name in names}
    for group, flag, form, metavar, text in rows:
        if group != VARIABLES:
            ADD[form](groups[group], flag, metavar, text)
    groups["output"].add_argument(
        "--version", action="version", version=_version(), help="print the version"
    )
    return parser


def table_rows() -> Sequence[Row]:
    """What help and parser are made of, from the table of settings."""
    return [*_table_rows()]


def _table_rows() -> Iterator[Row]:
    from socratic_bench.benchmarks import RunConfig
    from socratic_bench.settings import listed

    from .options import Options

    entries = listed((RunConfig, Options))
    for entry in entries:
        if entry.flag:
            yield entry.group, f"--{entry.flag}", entry.form, entry.metavar or "", entry.text
    for entry in entries:
        for variable in entry.variables:
            yield VARIABLES, variable, "", "", "" if entry.flag else entry.meaning


def _stored_rows() -> Sequence[Row]:
    """The same as `make docs` has stored them."""
    with open(STORED, encoding="utf-8") as file:  # noqa: PTH123 -- see above
        return [_row(*line.rstrip("\n").split("\t")) for line in file]


def _row(group: str, flag: str, form: str, metavar: str, text: str) -> Row:
    return group, flag, form, metavar, text


def _variables(rows: Sequence[Row]) -> str:
    """All of them, those first that have no flag, and so are required."""
    from textwrap import fill

    told = [(name, text) for group, name, _, _, text in rows if group == VARIABLES]
    required = [f"{name} (required: {text})" for name, text in told if text]
    names = ", ".join([*required, *(name for name, text in told if not text)])
    return fill(f"variables: {names}. A flag beats its variable.", width=WIDTH)


def _version() -> str:
    from socratic_bench.version import VERSION

    return f"socratic-runner {VERSION}"
