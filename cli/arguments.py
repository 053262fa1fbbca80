"""Parsing that finds every mistake: argparse, with its errors kept instead of fatal."""

import argparse
import os
from collections.abc import Mapping, Sequence

TYPE_CHECKING = False  # see cli/process.py
if TYPE_CHECKING:
    from typing import NoReturn

Flags = Mapping[str, str | Sequence[str] | bool]
STDOUT = 1
MISSING = "\0missing"  # no word of a command line can hold a NUL


class Help(argparse.RawDescriptionHelpFormatter):
    """Shows a flag's word without the brackets that its being noted when missing would bring.

    It asks for the terminal's width by itself: argparse imports five modules for that, each time.
    """

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_columns() - 2)

    def _format_args(self, action: argparse.Action, default_metavar: str) -> str:
        if action.nargs == argparse.OPTIONAL and isinstance(action.metavar, str):
            return action.metavar
        return super()._format_args(action, default_metavar)


class Parser(argparse.ArgumentParser):
    """Never exits by itself but for help; its mistakes are raised."""

    commands: Sequence[str] = ()  # other first words, which may be what a misspelt one means

    def error(self, message: str) -> "NoReturn":
        from socratic_bench.errors import UsageError

        raise UsageError([f"{message[:1].upper()}{message[1:]}."], hint=f"See {self.prog} --help.")


def _columns() -> int:
    """As `shutil.get_terminal_size` has it."""
    given = os.environ.get("COLUMNS", "")
    if given.isdigit() and int(given) > 0:
        return int(given)
    try:
        return os.get_terminal_size(STDOUT).columns or 80
    except OSError:
        return 80


def add_word(group: argparse._ArgumentGroup, flag: str, metavar: str, text: str) -> None:
    """A flag with a word. A missing word is noted and reported with all other mistakes."""
    group.add_argument(flag, metavar=metavar, help=text, nargs="?", const=MISSING)


def add_words(group: argparse._ArgumentGroup, flag: str, metavar: str, text: str) -> None:
    """A flag that may come several times, with a word each."""
    group.add_argument(flag, metavar=metavar, help=text, nargs="?", const=MISSING, action="append")


def add_switch(group: argparse._ArgumentGroup, flag: str, text: str) -> None:
    group.add_argument(flag, help=text, action="store_true")


def parse(parser: Parser, words: Sequence[str]) -> tuple[Flags, list[str]]:
    """The flags that were given, by their long names, and every mistake among the words."""
    found, unknown = parser.parse_known_args(words)
    flags: dict[str, str | list[str] | bool] = {}
    problems = [_unknown(parser, word) for word in unknown]
    for name, value in vars(found).items():
        flag = name.replace("_", "-")
        values = value if isinstance(value, list) else [value]
        if MISSING in values:
            problems.append(f"--{flag} needs a value.")
        elif value is not None and value is not False:
            flags[flag] = value
    return flags, problems


def _unknown(parser: Parser, word: str) -> str:
    from difflib import get_close_matches

    known = [option for action in parser._actions for option in action.option_strings]  # noqa: SLF001
    known += parser.commands
    near = get_close_matches(word.split("=", maxsplit=1)[0], known, n=1)
    kind = "flag" if word.startswith("-") else "word"
    return f"Unknown {kind} {word!r}{f'; did you mean {near[0]}?' if near else '.'}"
