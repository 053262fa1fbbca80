"""Parses a command line with argparse, and collects every mistake in it.

What shows mistakes is imported once there is one, so that `--help` stays quick.
"""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby, pairwise
from textwrap import wrap
from types import MappingProxyType

from .commands import REPLACED
from .process import write_words
from .terminal import columns

TYPE_CHECKING = False  # the module of that name takes longer to import than all of help
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from socratic_bench.errors import UsageError, Words

Flags = Mapping[str, str | Sequence[str] | bool]
STDOUT = 1
HELP_COLUMNS = 80
TEXT_COLUMNS = 80
FLAG_COLUMNS = 26
MISSING = "\0missing"  # no word of a command line can hold a NUL
# The parser takes time with the square of the number of flags.
MOST_WORDS = 1000
LONGEST_SHOWN = 60
MOST_SUGGESTIONS = 20
LEAST_SIMILARITY = 0.7  # of a word and what is suggested instead
CONFIG_SUFFIX = ".toml"
HELP, ALL = ("-h", "--help"), "all"


class Help(argparse.RawDescriptionHelpFormatter):
    """Formats help; a flag's word has no brackets, although the parser takes it as optional."""

    def __init__(self, prog: str) -> None:
        super().__init__(
            prog, width=columns(STDOUT, HELP_COLUMNS) - 2, max_help_position=FLAG_COLUMNS
        )

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Fill paragraphs. Heads and indented lines stay whole, so that examples can be pasted."""
        lines: list[str] = []
        for is_kept, group in groupby(text.splitlines(), _is_kept_line):
            paragraph = [*group]
            if not is_kept:
                room = min(width, TEXT_COLUMNS)
                paragraph = wrap(" ".join(paragraph), room, break_on_hyphens=False)
            lines += paragraph
        return super()._fill_text("\n".join(lines), width, indent)

    def _expand_help(self, action: argparse.Action) -> str:
        """Without the benchmarks that it belongs to, which `--help BENCHMARK` shows."""
        text = super()._expand_help(action)
        return text.rpartition(" [")[0] if text.endswith("]") else text

    def _split_lines(self, text: str, width: int) -> list[str]:
        """Wrap between words, so that a name with a hyphen stays whole."""
        return wrap(text, width, break_on_hyphens=False)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        """The flag, its letter, and once what it takes."""
        flags = ", ".join(action.option_strings)
        if not flags or action.nargs == 0:
            return flags or super()._format_action_invocation(action)
        return f"{flags} {self._format_args(action, action.dest.upper())}"

    def _format_args(self, action: argparse.Action, default_metavar: str) -> str:
        if isinstance(action.metavar, str) and action.option_strings:
            return action.metavar + (" ..." if action.nargs in ("*", "+") else "")
        return super()._format_args(action, default_metavar)


def _is_kept_line(line: str) -> bool:
    return not line or line.startswith(" ") or line.endswith(":")


class Parser(argparse.ArgumentParser):
    """A parser that raises `UsageError` where argparse would exit, except for help and version.

    `commands` are suggested for a misspelt command. `offers` has words that completion offers, by
    flag or by the name of an argument without a flag. `--help TOPIC` shows the flags of a topic,
    `--help all` every flag.
    """

    commands: Sequence[str] = ()
    common: Sequence[str] | None = None  # the flags that its help has; all if it is `None`
    topics: Mapping[str, Sequence[str]] = MappingProxyType({})  # flags by topic of its help
    variables = ""  # what its whole help says of them

    def __init__(self, **options: "Any") -> None:  # noqa: ANN401 -- as argparse takes them
        super().__init__(**{"formatter_class": Help, "allow_abbrev": False, **options})
        self._positionals.title = "arguments"
        self._counts: Counter[str] = Counter()  # of the flags on the command line
        self.offers: dict[str, Sequence[str]] = {}
        self.register("action", None, StoreOnce)
        self.register(
            "action", "store_true", partial(StoreOnce, nargs=0, const=True, default=False)
        )

    def error(self, message: str) -> "NoReturn":
        raise _usage_error([f"{message[:1].upper()}{message[1:]}."], f"See {self.prog} --help.")

    @property
    def flags(self) -> Collection[str]:
        """All flags of the command, letters among them."""
        return self._option_string_actions

    def refuse(self, problems: "Sequence[Words]") -> None:
        """Raise `UsageError` with all mistakes, if there are any."""
        if problems:
            raise _usage_error(problems, f"See {self.prog} --help.")

    def refuse_command(self, word: str) -> "NoReturn":
        """Raise `UsageError` for a first word that is no command, or is one too many."""
        suggestion = _suggestion(word, self.commands) or "."
        mistake = f"Unknown command {word!r}{suggestion} Commands: {', '.join(self.commands)}."
        if word in self.commands:
            mistake = f"More than one command: {word!r} is one too many."
        if word in REPLACED:
            mistake = f"The command {word} was removed: use socratic-runner {REPLACED[word]}."
        raise _usage_error([mistake], "See socratic-runner --help.")

    def choose_help(self, words: Sequence[str]) -> None:
        """Let the help show what the word after `--help` names."""
        after = next((words[n + 1 : n + 2] for n, word in enumerate(words) if word in HELP), ())
        topic = "".join(after)
        if topic == ALL:
            self.common, self.epilog = None, f"{self.variables}\n\n{self.epilog}"
        elif topic in self.topics:
            self.usage = f"{self.prog} --benchmark {topic} --model ID [options]"
            self.description, self.epilog = f"Flags of the benchmark {topic} alone.", None
            self.common = self.topics[topic]
        elif topic and not topic.startswith("-"):
            self.error(
                f"Unknown topic of --help {topic!r}; topics: {', '.join((ALL, *self.topics))}"
            )

    def format_help(self) -> str:
        """The help with the common flags, in their order, or with all flags."""
        if self.usage is None:
            arguments = [a for a in self._actions if not a.option_strings]
            names = [f"{a.metavar}{' ...' if a.nargs == '*' else ''}" for a in arguments]
            self.usage = " ".join([self.prog, *names, "[options]"])
        if self.common is None:
            return super().format_help()
        rank = {f"--{name}": n for n, name in enumerate(self.common)}
        actions = {group: group._group_actions for group in self._action_groups}  # noqa: SLF001
        for group, members in actions.items():
            shown = [a for a in members if not a.option_strings or a.option_strings[-1] in rank]
            shown.sort(key=lambda action: rank.get("".join(action.option_strings[-1:]), 0))
            group._group_actions = shown  # noqa: SLF001
        epilog = self.epilog
        if epilog and self.topics:
            options = {
                name for members in actions.values() for a in members for name in a.option_strings
            }
            topics = [t for t, names in self.topics.items() if options & {f"--{n}" for n in names}]
            self.epilog = f"more flags: --help {'|'.join((ALL, *topics))}\n\n{epilog}"
        text, self.epilog = super().format_help(), epilog
        for group, members in actions.items():
            group._group_actions = members  # noqa: SLF001
        return text

    def count(self, flag: str) -> None:
        """Note that a flag, by its long name, stands on the command line."""
        self._counts[flag] += 1

    def reset_counts(self) -> None:
        """Forget the flags that were counted, before the command line is parsed again."""
        self._counts.clear()

    def repetition_mistakes(self) -> list[str]:
        """A mistake for each flag that stands on the command line more than once."""
        flags = [flag for flag, count in self._counts.items() if count > 1]
        return [f"{flag} takes one value, but is given more than once." for flag in flags]

    def _print_message(self, message: str, file: object = None) -> None:
        """Write help and version as documents are written."""
        del file
        if code := write_words(message):
            sys.exit(code)


class StoreOnce(argparse.Action):
    """Stores a flag's word, and counts the flag, so that a repeated one is noticed."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: "str | Sequence[Any] | None",
        option_string: str | None = None,
    ) -> None:
        if option_string and isinstance(parser, Parser):
            parser.count(self.option_strings[-1])
        setattr(namespace, self.dest, self.const if self.nargs == 0 else values)


# How argparse adds a flag with a value, with several values, which may also be repeated, and one
# without. A missing value is reported with all other mistakes.
FORMS: "Mapping[str, Mapping[str, Any]]" = {
    "word": {"nargs": "?", "const": MISSING},
    "many": {"nargs": "*", "action": "extend"},
    "switch": {"action": "store_true"},
}


def parse(parser: Parser, words: Sequence[str]) -> tuple[Flags, list[str]]:
    """The given flags by their long names, and every mistake on the command line.

    Arguments without a flag go by their names; the command itself reports those that are missing.
    """
    if len(words) > MOST_WORDS:
        parser.error(f"The command line has {len(words)} words; the limit is {MOST_WORDS}")
    if parser.common is not None:
        parser.choose_help(words)
    namespace, unknown = parser.parse_known_args(words)
    if strays := {*_words_of_unknown_flags(parser, namespace, words, unknown)}:
        parser.reset_counts()
        read = [word for index, word in enumerate(words) if index not in strays]
        namespace, unknown = parser.parse_known_args(read)
    flags: dict[str, str | list[str] | bool] = {}
    problems = [*_unknown_words(parser, unknown), *parser.repetition_mistakes()]
    positionals = _positionals(parser)
    for name, value in vars(namespace).items():
        flag = name.replace("_", "-")
        values = value if isinstance(value, list) else [value]
        if (MISSING in values or values == []) and name not in positionals:
            problems.append(f"--{flag} needs a value.")
        elif values and value is not None and value is not False:
            flags[flag] = value
    problems += _swallowed_configs(parser, flags)
    return flags, [*problems, *_undecodable_words(parser, namespace)]


def _swallowed_configs(parser: Parser, flags: Flags) -> Iterator[str]:
    """A mistake for each config file that is read as a value of a flag with several values."""
    names = {name.replace("_", "-") for name in _positionals(parser)}
    if not names.isdisjoint(flags) or not names:
        return
    for action in parser._actions:  # noqa: SLF001
        name = action.option_strings[-1] if action.option_strings else ""
        values = flags.get(name[2:], ()) if action.metavar != "FILE" else ()
        for word in values if isinstance(values, list) else ():
            if word.endswith(CONFIG_SUFFIX):
                yield f"{word} is read as a value of {name}: write -- before it, or put it first."


def parse_strictly(parser: Parser, words: Sequence[str]) -> argparse.Namespace:
    """The flags of a command that raises `UsageError` at once for mistakes on its command line."""
    namespace, unknown = parser.parse_known_args(words)
    parser.refuse(
        [
            *_unknown_words(parser, unknown),
            *parser.repetition_mistakes(),
            *_undecodable_words(parser, namespace),
        ]
    )
    return namespace


def _positionals(parser: Parser) -> set[str]:
    """The names of the arguments without a flag."""
    return {action.dest for action in parser._actions if not action.option_strings}  # noqa: SLF001


def _words_of_unknown_flags(
    parser: Parser, namespace: argparse.Namespace, words: Sequence[str], unknown: Sequence[str]
) -> Iterator[int]:
    """The indices of words that follow an unknown flag and are its values.

    A plan after it is still an argument: the flag may be a misspelt switch.
    """
    values = [getattr(namespace, name, None) for name in _positionals(parser)]
    read = {word for value in values for word in (value if isinstance(value, list) else [value])}
    many = [
        name
        for action in parser._actions  # noqa: SLF001
        if action.nargs in ("*", "+")
        for name in action.option_strings
    ]
    flag, is_value = "", False
    for index, word in enumerate(words):
        if word.startswith("-"):
            flag, is_value = word, word in unknown and "=" not in word
        elif is_value and word in {*read, *unknown} and not word.endswith(CONFIG_SUFFIX):
            yield index
            is_value = bool(_suggestion(flag, many))


def _undecodable_words(parser: Parser, namespace: argparse.Namespace) -> Iterator[str]:
    """A mistake for each word that is no valid text, file names among them."""
    for action in parser._actions:  # noqa: SLF001
        value = getattr(namespace, action.dest, None)
        for word in value if isinstance(value, list) else [value]:
            if isinstance(word, str) and not _is_text(word):
                name = action.option_strings[-1] if action.option_strings else action.metavar
                yield f"{name} is not UTF-8 text: {os.fsencode(word)[:LONGEST_SHOWN]!r}."


def _is_text(word: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in word)


def _unknown_words(parser: Parser, words: Sequence[str]) -> Iterator[str]:
    options = [option for action in parser._actions for option in action.option_strings]  # noqa: SLF001
    options += parser.commands
    for index, (before, word) in enumerate(pairwise(["", *words])):
        is_flag = word.startswith("-")
        if not is_flag and before.startswith("-"):
            continue  # the value of the unknown flag
        name = word.split("=", maxsplit=1)[0]
        suggestion = _suggestion(name, options) if index < MOST_SUGGESTIONS else ""
        yield f"{'Unknown flag' if is_flag else 'Unexpected argument'} {word!r}{suggestion or '.'}"


def _suggestion(word: str, options: Sequence[str]) -> str:
    from difflib import get_close_matches  # only for mistakes

    matches = get_close_matches(word, options, n=1, cutoff=LEAST_SIMILARITY)
    return f"; did you mean {matches[0]}?" if matches else ""


def _usage_error(problems: "Sequence[Words]", hint: str) -> "UsageError":
    from socratic_bench.errors import UsageError  # only for mistakes

    return UsageError(problems, hint=hint)
