"""`socratic-runner completion SHELL`: prints a script that completes command lines in a shell."""

from argparse import SUPPRESS, Action
from collections.abc import Iterator, Sequence
from importlib import import_module
from shlex import quote
from typing import NamedTuple

from socratic_bench.emulator import MODEL_IDS

from .arguments import Parser, parse_strictly
from .commands import COMMANDS
from .flags import add_switches
from .process import write_words
from .settings import offered_words
from .terminal import fitted

FILES = ("FILE", "DIR")
TEXT_COLUMNS = 60
MODEL = "ID"
# Also for zsh. What no case completes is completed as a file's name. In bash, words end at "=" and
# at colons, such as those of a model's id.
BASH = """\
_socratic_runner() {{
  local n=$COMP_CWORD current=${{COMP_WORDS[COMP_CWORD]}} before= command=run words=
  local known='{known}' allowed=${{BEDROCK_MODEL_IDS//[][\\",]/ }}
  while case "${{COMP_WORDS[n-1]}}/$current" in *:/*|*/:*) ;; *) false ;; esac; do
    n=$((n-1))
    current=${{COMP_WORDS[n]}}$current
  done
  before=${{COMP_WORDS[n-1]}}
  [ "$before" != = ] || before=${{COMP_WORDS[n-2]}}
  [ "$current" != = ] || current=
  COMPREPLY=()
  case ${{COMP_WORDS[1]}} in {commands}) command=${{COMP_WORDS[1]}} ;; esac
  case "$command $before" in
{values}
{offers}
  esac
  [ "$COMP_CWORD" = 1 ] && words="$words {names}"
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  case "$COMP_WORDBREAKS/$current" in
    *:*/*:*) COMPREPLY=("${{COMPREPLY[@]#"${{current%:*}}:"}}") ;;
  esac
}}
complete -o default -F _socratic_runner socratic-runner
"""
FISH = """\
function __socratic_runner_known; string split ' ' -- '{known}'; end
function __socratic_runner_allowed; string match -ar '[^][",\\s]+' -- "$BEDROCK_MODEL_IDS"; end
"""
ZSH = "autoload -U +X compinit bashcompinit && compinit -D && bashcompinit\n"


class Flag(NamedTuple):
    """A flag of a command, or an argument without a flag, which has no names.

    `takes` is the metavar of its word, empty if it takes none; `words` are those to offer.
    """

    names: Sequence[str]
    text: str
    takes: str
    words: Sequence[str]


def main(words: Sequence[str]) -> int:
    """Print the script of a shell as plain text; returns the exit code."""
    return write_words(SHELLS[parse_strictly(build_parser(), words).shell]())


def build_parser() -> Parser:
    parser = Parser(
        prog="socratic-runner completion",
        description="Prints a completion script for ~/.bashrc, ~/.zshrc or "
        "~/.config/fish/config.fish.\n\nexamples:\n"
        '  eval "$(socratic-runner completion bash)"\n'
        "  socratic-runner completion fish | source",
    )
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help="bash, zsh or fish")
    add_switches(parser, "debug")
    return parser


def _flags() -> Iterator[tuple[str, Sequence[Flag]]]:
    """The flags of each command."""
    for command, (module, _) in COMMANDS.items():
        if command == "help":
            yield command, [Flag((), "", "", [*COMMANDS])]
            continue
        parser: Parser = import_module(module, __package__).build_parser()
        visible = [action for action in parser._actions if action.help != SUPPRESS]  # noqa: SLF001
        yield command, [_flag(parser, action) for action in visible]


def _model_ids() -> str:
    """The ids of all models in the catalogue and of the emulator's, joined by spaces."""
    return " ".join([*MODEL_IDS, *offered_words()["--model"]])


def _flag(parser: Parser, action: Action) -> Flag:
    names = action.option_strings
    name = names[-1] if names else action.dest
    offers = parser.offers.get(name) or offered_words().get(name, ())
    words = () if action.metavar == MODEL else offers
    takes = "" if action.nargs == 0 else str(action.metavar or action.dest)
    return Flag(names, str(action.help), takes, words or [*(action.choices or ())])


def _bash() -> str:
    values, offers = [], []
    for command, flags in _flags():
        valued = [flag for flag in flags if flag.names and flag.takes]
        free = [flag for flag in valued if not _bash_words(flag)]
        patterns = [f"'{command} {name}'" for flag in free for name in flag.names]
        values += [f"    {'|'.join(patterns)}) return ;;"] if patterns else []
        for flag in filter(_bash_words, valued):
            pattern = "|".join(f"'{command} {name}'" for name in flag.names)
            values.append(f"    {pattern}) words={_bash_words(flag)} ;;")
        words = [word for flag in flags for word in flag.names or flag.words]
        offers.append(f"    '{command} '*) words='{' '.join(words)}' ;;")
    return BASH.format(
        commands="|".join(COMMANDS),
        names=" ".join(COMMANDS),
        values="\n".join(values),
        offers="\n".join(offers),
        known=_model_ids(),
    )


def _bash_words(flag: Flag) -> str:
    if flag.takes == MODEL:
        return '"${allowed:-$known}"' if "--model" in flag.names else '"$allowed $known"'
    return quote(" ".join(flag.words)) if flag.words else ""


def _fish() -> str:
    subcommands = " ".join(name for name in COMMANDS if name != "run")
    lines = [
        f"complete -c socratic-runner -n __fish_use_subcommand -fa {name} -d {quote(text)}"
        for name, (_, text) in COMMANDS.items()
    ]
    for command, flags in _flags():
        seen = f"__fish_seen_subcommand_from {command if command != 'run' else subcommands}"
        when = quote(seen if command != "run" else f"not {seen}")
        lines += [f"complete -c socratic-runner -n {when}{_fish_flag(flag)}" for flag in flags]
    return FISH.format(known=_model_ids()) + "\n".join([*lines, ""])


def _fish_flag(flag: Flag) -> str:
    names = [f" -l {name[2:]}" if name[:2] == "--" else f" -s {name[1]}" for name in flag.names]
    takes = " -rF" if flag.takes in FILES else " -x" if flag.takes and flag.names else ""
    words = f" -fa {quote(_fish_words(flag))}" if _fish_words(flag) else ""
    return f"{''.join(names)}{takes}{words} -d {quote(fitted(flag.text, TEXT_COLUMNS))}"


def _fish_words(flag: Flag) -> str:
    if flag.takes == MODEL and "--model" in flag.names:
        return "(__socratic_runner_allowed; or __socratic_runner_known)"
    if flag.takes == MODEL:
        return "(__socratic_runner_allowed) (__socratic_runner_known)"
    return " ".join(flag.words)


SHELLS = {"bash": _bash, "zsh": lambda: ZSH + _bash(), "fish": _fish}
