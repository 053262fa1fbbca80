"""The flags of `run` and of other commands that take settings.

Parser and help read them from flags.tsv, which `make docs` writes from the table of settings:
making the rows from the table takes several times as long as all of `--help`.
"""

import os
from collections.abc import Collection, Iterator, Sequence
from functools import cache

from .arguments import FORMS, Help, Parser
from .commands import COMMANDS

TYPE_CHECKING = False  # see cli/process.py
if TYPE_CHECKING:
    from argparse import _ArgumentGroup
    from collections.abc import Mapping

    from socratic_bench.settings.table import Entry

# Group, flag (its letter before it), form (see `FORMS`), metavar, and help text. In the group
# VARIABLES: the variable's name, "", its flag, and what it is if it is required.
Row = tuple[str, str, str, str, str]
VARIABLES = "variables"
JUDGE_GROUPS = ("judging", "service", "output")
# os.path, since importing pathlib takes longer than all of help.
STORED = f"{os.path.dirname(__file__)}/flags.tsv"  # noqa: PTH120

DESCRIPTION = """\
Plays a benchmark with the model under test, has a judge model score every turn, and prints one JSON
document on stdout. A flag with [NAME] belongs to that benchmark alone.

commands:
"""
EXIT_CODES = """\
exit codes: 0 complete, 1 defect, 2 usage, 3 credentials or access, 4 service or store unavailable,
5 a gate or the judge coverage failed, 6 deadline or budget, 129 SIGHUP, 130 SIGINT, 143 SIGTERM.
"""


def build_parser() -> Parser:
    """The parser of `run`; values are read and checked later, all together."""
    rows = stored_rows()
    parser = settings_parser(
        "",
        "[run] --model ID --prompt TEXT [--turns N] [options]",
        DESCRIPTION + _commands(),
        f"{_variables(rows)}\n\n{EXIT_CODES}",
    )
    parser.commands = tuple(COMMANDS)
    groups = add_rows(parser, [row for row in rows if row[0] != VARIABLES])
    groups["output"].add_argument(
        "-V", "--version", action="version", version=_version(), help="print the version"
    )
    return parser


def _commands() -> str:
    return "".join(f"  {name:10s}  {text}\n" for name, (_, text) in COMMANDS.items())


def settings_parser(command: str, usage: str, description: str, epilog: str) -> Parser:
    """A parser for a command whose flags are settings; `usage` is what follows the command.

    Values are read and checked later, all together.
    """
    prog = f"socratic-runner {command}".rstrip()
    return Parser(
        prog=prog,
        usage=f"{prog} {usage}",
        description=description,
        epilog=epilog,
        formatter_class=Help,
        allow_abbrev=False,
    )


def add_rows(parser: Parser, rows: "Sequence[Row]") -> "Mapping[str, _ArgumentGroup]":
    """Add each row's flag to the group of its name; returns the groups in the rows' order."""
    names = dict.fromkeys(row[0] for row in rows)
    groups = {name: parser.add_argument_group(name) for name in names}
    for group, flag, form, metavar, text in rows:
        groups[group].add_argument(*flag.split(), metavar=metavar, help=text, **FORMS[form])
    return groups


def table_rows() -> Iterator[Row]:
    """The rows made from the table of settings."""
    entries = _entries()
    for entry in entries:
        if entry.flag:
            flag = f"-{entry.short} --{entry.flag}" if entry.short else f"--{entry.flag}"
            is_in_heading = entry.group in entry.owners
            owners = "" if is_in_heading or not entry.owners else f" [{', '.join(entry.owners)}]"
            yield entry.group, flag, entry.form, entry.metavar or "", entry.text + owners
    for entry in entries:
        for variable in entry.variables:
            flag = f"--{entry.flag}" if entry.flag else ""
            yield VARIABLES, variable, "", flag, "" if entry.flag else entry.meaning


@cache
def offered_words() -> "Mapping[str, Sequence[str]]":
    """Words that completion offers, by flag."""
    return {f"--{entry.flag}": entry.offers() for entry in _entries() if entry.flag}


def _entries() -> "Sequence[Entry]":
    from socratic_bench.benchmarks import RunConfig
    from socratic_bench.settings.table import listed

    from .options import Options

    return listed((RunConfig, Options))


def stored_rows() -> Sequence[Row]:
    """The rows as `make docs` has stored them."""
    with open(STORED, encoding="utf-8") as file:  # noqa: PTH123 -- see above
        return [_row(*line.rstrip("\n").split("\t")) for line in file]


def judge_rows(excluded: Collection[str], of_benchmarks: Collection[str] = ()) -> list[Row]:
    """The rows of flags for judging stored runs: those of every run, and the named of benchmarks.

    `excluded` and `of_benchmarks` are flags without dashes.
    """
    rows = [(row, row[1].split("--")[-1]) for row in stored_rows() if row[0] in JUDGE_GROUPS]
    return [
        row
        for row, name in rows
        if name not in excluded and (not row[4].endswith("]") or name in of_benchmarks)
    ]


def add_switches(parser: Parser, *names: str, quiet: str = "no table on stderr") -> None:
    """Add switches of `run` to another command; `quiet` is that switch's help there."""
    for _, flag, _, _, text in stored_rows():
        name = flag.rpartition("--")[2]
        if name in names:
            words = quiet if name == "quiet" else text
            parser.add_argument(*flag.split(), action="store_true", help=words)


def add_settings(parser: Parser, **texts: str) -> None:
    """Add settings of a run to another command, each with a help text and its variable."""
    rows = stored_rows()
    variables = {flag: name for group, name, _, flag, _ in rows if group == VARIABLES}
    for _, flag, _, metavar, _ in rows:
        long = flag.split()[-1]
        if text := texts.get(long.removeprefix("--").replace("-", "_")):
            help_text = f"{text} ({variables[long]})"
            parser.add_argument(*flag.split(), metavar=metavar, help=help_text)


def _row(group: str, flag: str, form: str, metavar: str, text: str) -> Row:
    return group, flag, form, metavar, text


def _variables(rows: Sequence[Row]) -> str:
    """A line that lists the variables, required ones first: they have no flag."""
    variables = [(name, text) for group, name, _, _, text in rows if group == VARIABLES]
    required = [f"{name} (required: {text})" for name, text in variables if text]
    names = ", ".join([*required, *(name for name, text in variables if not text)])
    return f"variables: {names}. A flag beats its variable."


def _version() -> str:
    from socratic_bench.version import VERSION

    return f"socratic-runner {VERSION}"
