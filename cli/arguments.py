"""Parsing that finds every mistake: argparse, with its errors kept instead of fatal."""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise

from .process import write_words
from .terminal import columns

TYPE_CHECKING = False  # see cli/process.py
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from socratic_bench.errors import Words

Flags = Mapping[str, str | Sequence[str] | bool]
STDOUT = 1
HELP_COLUMNS = 80
TEXT_COLUMNS = 100
MISSING = "\0missing"  # no word of a command line can hold a NUL
# The parser takes time with the square of the number of flags.
MOST_WORDS = 1000
LONGEST_SHOWN = 60
PLAN_SUFFIX = ".toml"


class Help(argparse.RawDescriptionHelpFormatter):
    """Shows a flag's word without brackets, although the parser takes it as optional."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=columns(STDOUT, HELP_COLUMNS) - 2)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Lines as they are, but the longest in several."""
        from textwrap import fill

        lines = text.splitlines()
        cut = [fill(line, TEXT_COLUMNS) if len(line) > TEXT_COLUMNS else line for line in lines]
        return super()._fill_text("\n".join(cut), width, indent)

    def _split_lines(self, text: str, width: int) -> list[str]:
        """Between words, so that a name with a hyphen stays whole."""
        from textwrap import wrap

        return wrap(text, width, break_on_hyphens=False)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        """A flag and its short one, and what it takes only once."""
        flags = ", ".join(action.option_strings)
        if not flags or action.nargs == 0:
            return flags or super()._format_action_invocation(action)
        return f"{flags} {self._format_args(action, action.dest.upper())}"

    def _format_args(self, action: argparse.Action, default_metavar: str) -> str:
        if action.nargs == argparse.OPTIONAL and isinstance(action.metavar, str):
            return action.metavar
        return super()._format_args(action, default_metavar)


class Parser(argparse.ArgumentParser):
    """Never exits by itself but for help; its mistakes are raised, or told by `repeated`."""

    commands: Sequence[str] = ()  # other commands, to suggest for a misspelt one

    def __init__(self, **how: "Any") -> None:  # noqa: ANN401 -- as argparse takes them
        super().__init__(**how)
        self._given: Counter[str] = Counter()
        self.offered: dict[str, Sequence[str]] = {}  # words for a flag or in its place
        self.register("action", None, StoreOnce)
        self.register(
            "action", "store_true", partial(StoreOnce, nargs=0, const=True, default=False)
        )

    def error(self, message: str) -> "NoReturn":
        from socratic_bench.errors import UsageError

        raise UsageError([f"{message[:1].upper()}{message[1:]}."], hint=f"See {self.prog} --help.")

    @property
    def flags(self) -> Collection[str]:
        """All that the command has, however they are written."""
        return self._option_string_actions

    def refuse(self, problems: "Sequence[Words]") -> None:
        """Raises `UsageError` with all of them, if there are any."""
        if problems:
            from socratic_bench.errors import UsageError

            raise UsageError(problems, hint=f"See {self.prog} --help.")

    def refuse_command(self, word: str) -> "NoReturn":
        """A first word that is no command: whatever follows it was meant for another one."""
        from socratic_bench.errors import UsageError

        near = _near(word, self.commands) or "."
        mistake = f"Unknown command {word!r}{near} There is {', '.join(self.commands)}."
        if word in self.commands:
            mistake = f"A command line takes one command, so {word!r} is one too many."
        raise UsageError(
            [mistake], hint="socratic-runner --help says what they are for, and lists every flag."
        )

    def give(self, flag: str) -> None:
        """Note that a flag stands on the command line, however it is written there."""
        self._given[flag] += 1

    def forget(self) -> None:
        """Begin again, with another reading of the command line."""
        self._given.clear()

    def repeated(self) -> list[str]:
        """A mistake for each flag that stood there more than once."""
        flags = [flag for flag, count in self._given.items() if count > 1]
        return [f"{flag} is given more than once: keep one." for flag in flags]

    def _print_message(self, message: str, file: object = None) -> None:
        """Help and version go the way of all documents."""
        del file
        if code := write_words(message):
            sys.exit(code)


class StoreOnce(argparse.Action):
    """Takes a flag's word and notes that it was given: of two, none is taken in silence."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: "str | Sequence[Any] | None",
        option_string: str | None = None,
    ) -> None:
        if option_string and isinstance(parser, Parser):
            parser.give(self.option_strings[-1])
        setattr(namespace, self.dest, self.const if self.nargs == 0 else values)


# How a flag is added: with a value, with one each time that it comes, with one or more, or without.
# A missing value is reported with all other mistakes.
FORMS: "Mapping[str, Mapping[str, Any]]" = {
    "word": {"nargs": "?", "const": MISSING},
    "words": {"nargs": "?", "const": MISSING, "action": "append"},
    "many": {"nargs": "*"},
    "switch": {"action": "store_true"},
}


def parse(parser: Parser, words: Sequence[str]) -> tuple[Flags, list[str]]:
    """The flags that were given, by their long names, and every mistake among the words; what
    stands without a flag goes by its name, and is missed by the command that needs it.
    """
    if len(words) > MOST_WORDS:
        parser.error(f"the command line has {len(words)} words, but at most {MOST_WORDS} are read")
    found, unknown = parser.parse_known_args(words)
    if strays := [*_taken_from_unknown(parser, found, words, unknown)]:
        parser.forget()
        kept = [word for place, word in enumerate(words) if place not in strays]
        found, unknown = parser.parse_known_args(kept)
    flags: dict[str, str | list[str] | bool] = {}
    problems = [*_unknown(parser, unknown), *parser.repeated()]
    bare = {action.dest for action in parser._actions if not action.option_strings}  # noqa: SLF001
    for name, value in vars(found).items():
        flag = name.replace("_", "-")
        values = value if isinstance(value, list) else [value]
        if (MISSING in values or values == []) and name not in bare:
            problems.append(f"--{flag} needs a value.")
        elif values and value is not None and value is not False:
            flags[flag] = value
    return flags, [*problems, *_undecodable(parser, found)]


def _taken_from_unknown(
    parser: Parser, found: argparse.Namespace, words: Sequence[str], unknown: Sequence[str]
) -> Iterator[int]:
    """Where a word that was read as a file was to be taken by an unknown flag before it. A plan
    behind it is still one: the flag may be a misspelt switch.
    """
    places = {action.dest for action in parser._actions if not action.option_strings}  # noqa: SLF001
    taken = [getattr(found, dest, None) for dest in places]
    read = {word for one in taken for word in (one if isinstance(one, list) else [one])}
    for place, (before, word) in enumerate(pairwise(words), start=1):
        is_of_flag = before.startswith("-") and "=" not in before and before in unknown
        if is_of_flag and word in read and not word.endswith(PLAN_SUFFIX):
            yield place


def parse_strictly(parser: Parser, words: Sequence[str]) -> argparse.Namespace:
    """The flags of a command that stops at its first mistakes."""
    found, unknown = parser.parse_known_args(words)
    parser.refuse([*_unknown(parser, unknown), *parser.repeated(), *_undecodable(parser, found)])
    return found


def _undecodable(parser: Parser, found: argparse.Namespace) -> Iterator[str]:
    """Every word must be valid text, file names too, since documents show them."""
    from socratic_bench.types import is_text

    for action in parser._actions:  # noqa: SLF001
        value = getattr(found, action.dest, None)
        for word in value if isinstance(value, list) else [value]:
            if isinstance(word, str) and not is_text(word):
                name = action.option_strings[-1] if action.option_strings else action.metavar
                yield f"{name} is no UTF-8 text: {os.fsencode(word)[:LONGEST_SHOWN]!r}."


def _unknown(parser: Parser, words: Sequence[str]) -> Iterator[str]:
    from socratic_bench.errors import MOST_SHOWN

    known = [option for action in parser._actions for option in action.option_strings]  # noqa: SLF001
    known += parser.commands
    for n, (before, word) in enumerate(pairwise(["", *words])):
        kind = "flag" if word.startswith("-") else "word"
        if kind == "word" and before.startswith("-"):
            continue  # what the unknown flag was to take
        near = _near(word.split("=", maxsplit=1)[0], known) if n < MOST_SHOWN else ""
        yield f"Unknown {kind} {word!r}{near or '.'}"


def _near(word: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(word, known, n=1)
    return f"; did you mean {near[0]}?" if near else ""
