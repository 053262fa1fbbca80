"""The flags of `run` and its help, and the flags that several commands share.

Both read flags from flags.tsv, which `make docs` writes from the table of settings: making the rows
from the table takes several times as long as all of `--help`.
"""

import os
from argparse import _ArgumentGroup
from collections.abc import Collection, Mapping, Sequence

from socratic_bench.version import VERSION

from .arguments import FORMS, Help, Parser
from .commands import COMMANDS

TYPE_CHECKING = False  # the module of that name takes longer to import than all of help
if TYPE_CHECKING:
    from socratic_bench.errors import Words


# Group, flag (its letter before it), form (see `FORMS`), metavar, and help text. In the group
# VARIABLES: the variable's name, "", its flag, and what it is if it is required.
Row = tuple[str, str, str, str, str]
VARIABLES = "variables"
JUDGE_GROUPS = ("judging", "service", "output")
RUNS = "runs"
WHICH_RUNS = (
    "Missing argument RUNS: files, folders or s3:// prefixes (after a flag that takes several "
    "values, write -- before it)."
)
MATCH_HELP = (
    "what a judge's verdict must have to count as LABEL: an event, or a score DIMENSION<N or "
    "DIMENSION>=N, such as 'gave_answer=purity<2'"
)
NO_CSV = "--file is written as JSON Lines: choose a name that does not end with .csv."
# os.path, since importing pathlib takes longer than all of help.
STORED = f"{os.path.dirname(__file__)}/flags.tsv"  # noqa: PTH120

USAGE = "[run] --model ID (--scenario NAME | --prompt TEXT) [options]"
DESCRIPTION = """\
Measures how long a language model that should tutor by questions keeps asking
before it gives answers away. An LLM judge scores each reply of the dialogue.

examples:
  socratic-runner --offline --model emulator.drift-5-v1:0 --scenario milk-price
  socratic-runner --model ID --scenario career-change --turns 20 -o results

commands (socratic-runner COMMAND --help):
"""
EXIT_CODES = """\
exit codes: 0 complete, 1 internal error, 2 usage, 3 credentials or access,
4 service or storage unavailable, 5 a limit such as --fail-under was missed, or
too few turns were judged, 6 budget, 7 deadline, 128+N signal N
"""
# The flags of the short help, the most used ones first in each group.
COMMON = (
    *("model", "scenario", "prompt", "turns", "temperature", "benchmark"),
    *("judge-model", "rubric", "fail-under"),
    *("offline", "region", "config", "dry-run", "max-cost-usd"),
    *("output-dir", "s3-bucket", "resume", "json", "quiet"),
)
# The commands that it only names.
RARE_COMMANDS = (
    *("export", "validate", "dataset", "optimisation", "schema", "emulator", "completion", "help"),
)


def build_parser() -> Parser:
    """The parser of `run`; values are read and checked later, all together."""
    rows = [row for row in stored_rows() if row[0] != VARIABLES]
    parser = settings_parser("", USAGE, DESCRIPTION + _commands(), EXIT_CODES)
    parser.commands = tuple(COMMANDS)
    groups = add_rows(parser, rows)
    version = f"socratic-runner {VERSION}"
    groups["output"].add_argument(
        "-V", "--version", action="version", version=version, help="print the version"
    )
    return parser


def _commands() -> str:
    shown = {name: text for name, (_, text) in COMMANDS.items() if name not in RARE_COMMANDS}
    lines = [f"  {name:9s}  {text}\n" for name, text in shown.items()]
    return "".join([*lines, f"  others: {', '.join(RARE_COMMANDS)}\n"])


def _topics(rows: Sequence[Row]) -> Mapping[str, Sequence[str]]:
    """The flags of each benchmark that not all have."""
    topics: dict[str, list[str]] = {}
    for group, flag, _, _, text in rows:
        owners = text.rstrip("]").rpartition(" [")[2].split(", ") if text.endswith("]") else [group]
        for owner in owners:
            topics.setdefault(owner, []).append(flag.rpartition("--")[2])
    text = next((row[4] for row in rows if row[1] == "--benchmark"), "")
    benchmarks = text.partition(" (")[0].split(", ")
    return {name: topics.get(name, ()) for name in benchmarks if name}


def settings_parser(command: str, usage: str, description: str, epilog: str) -> Parser:
    """A parser for a command whose flags are settings; `usage` is what follows the command.

    Values are read and checked later, all together. Its help is short unless a topic is given.
    """
    prog = f"socratic-runner {command}".rstrip()
    rows = stored_rows()
    parser = Parser(
        prog=prog,
        usage=f"{prog} {usage}",
        description=description,
        epilog=epilog,
        formatter_class=Help,
    )
    parser.common, parser.topics, parser.variables = COMMON, _topics(rows), _variables(rows)
    return parser


def add_rows(parser: Parser, rows: Sequence[Row]) -> Mapping[str, _ArgumentGroup]:
    """Add each row's flag to the group of its name; returns the groups in the rows' order."""
    names = dict.fromkeys(row[0] for row in rows)
    groups = {name: parser.add_argument_group(name) for name in names}
    for group, flag, form, metavar, text in rows:
        groups[group].add_argument(*flag.split(), metavar=metavar, help=text, **FORMS[form])
    return groups


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


def add_switches(parser: Parser, *names: str, quiet: str = "no text on stderr") -> None:
    """Add switches of `run` to another command; `quiet` is that switch's help there."""
    for _, flag, _, _, text in stored_rows():
        name = flag.rpartition("--")[2]
        if name in names:
            help_text = quiet if name == "quiet" else text
            parser.add_argument(*flag.split(), action="store_true", help=help_text)


def add_settings(parser: Parser, **texts: str) -> None:
    """Add settings of a run to another command, each with a help text and its variable."""
    rows = stored_rows()
    variables = {flag: name for group, name, _, flag, _ in rows if group == VARIABLES}
    for _, flag, _, metavar, _ in rows:
        long = flag.split()[-1]
        if text := texts.get(long.removeprefix("--").replace("-", "_")):
            help_text = f"{text} ({variables[long]})"
            parser.add_argument(*flag.split(), metavar=metavar, help=help_text)


def add_runs(parser: Parser) -> None:
    """Add the argument that names stored runs, under `RUNS`."""
    parser.add_argument(
        RUNS,
        metavar="RUNS",
        nargs="*",
        help="stored runs: an output folder, s3://BUCKET/PREFIX, one sweep in them "
        "(DIR/sweeps/SWEEP_ID), or a JSON document of a run or sweep; or dialogues of other tools "
        "(.jsonl, .txt, .eval)",
    )


def add_judging(parser: Parser) -> None:
    """Add the flag that names whose verdicts are read."""
    parser.add_argument(
        "--judging", metavar="NAME", help="use the scores of a re-scoring (command judge) by name"
    )


def add_output(parser: Parser, quiet: str | None = "no text on stderr") -> None:
    """Add the switches of what is printed; `quiet` is the help of -q, if there is one."""
    if quiet is None:
        add_switches(parser, "pretty", "debug")
    else:
        add_switches(parser, "json", "pretty", "quiet", "debug", quiet=quiet)


def read_matches(words: Sequence[str], problems: "list[Words]") -> dict[str, str]:
    """The values of --match: label -> what counts as the judge's "yes". Adds to `problems`."""
    pairs = [word.partition("=") for word in words]
    problems += [
        f"--match takes LABEL=QUANTITY, not {name!r}." for name, sign, _ in pairs if not sign
    ]
    return {name.strip(): quantity.strip() for name, _, quantity in pairs}


def _row(group: str, flag: str, form: str, metavar: str, text: str) -> Row:
    return group, flag, form, metavar, text


def _variables(rows: Sequence[Row]) -> str:
    """A line that lists the variables, required ones first: they have no flag."""
    variables = [(name, text) for group, name, _, _, text in rows if group == VARIABLES]
    required = [f"{name} (required: {text})" for name, text in variables if text]
    names = ", ".join([*required, *(name for name, text in variables if not text)])
    return f"variables: {names}. Flags override variables."
