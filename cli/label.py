"""`socratic-runner label RUNS --labeller NAME --file FILE`: a person scores turns at a terminal."""

import signal
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from textwrap import wrap

from socratic_bench.documents.calibration import Label
from socratic_bench.studies.calibrate.session import (
    Labelling,
    LabellingRequest,
    Question,
    prepare_labelling,
)

from . import terminal
from .arguments import Parser, parse_strictly
from .flags import NO_CSV, WHICH_RUNS, add_judging, add_output, add_runs
from .output import plain, print_document, say, say_question, waiting_for
from .process import SignalledError
from .settings import bucket_region, calling_flags

N_TURNS = 100
DESCRIPTION = """\
Shows turns of stored runs, without their model and scores, and asks you to score
them. Turns are sampled; those near a threshold, or on which judges differ, are
more likely. Each label stores its sampling probability. Answers are saved at
once; to resume, repeat the command. All labellers get the same turns.

example:
  socratic-runner label results --labeller anna --file labels.jsonl
"""
EPILOG = "exit codes: 0 done or stopped (Ctrl-C), 2 usage, 4 storage cannot be read\n"


HELP = "? what scores mean, b back, s skip this turn, a all of the dialogue, q quit"
LINES_BEFORE = 6  # messages shown before the reply; `a` shows all
REPLY_COLOUR = 36


def main(words: Sequence[str]) -> int:
    """Ask until all is answered, or the person stops; every answer is stored at once."""
    parser = build_parser()
    flags = parse_strictly(parser, words)
    request = _read_request(flags, parser)
    with waiting_for("the stored runs", quiet=False), calling_flags(parser):
        labelling = prepare_labelling(request, bucket_region)
    code = _ask_all(labelling)
    return print_document(labelling.document, flags=vars(flags), is_always_printed=True) or code


def build_parser() -> Parser:
    parser = Parser(
        prog="socratic-runner label",
        description=DESCRIPTION,
        epilog=EPILOG,
    )
    add_runs(parser)
    parser.add_argument("--labeller", metavar="NAME", help="your name, stored with each label")
    parser.add_argument("--file", metavar="FILE", help="file for the labels (JSON Lines)")
    parser.add_argument(
        "--turns",
        metavar="N",
        default=str(N_TURNS),
        help=f"number of turns to score, roughly (default {N_TURNS})",
    )
    parser.add_argument(
        "--seed", metavar="N", default="0", help="random seed of the sample (default 0)"
    )
    parser.add_argument(
        "--rubric", metavar="NAME|FILE", default="", help="rubric: built-in name or TOML file"
    )
    parser.add_argument("--whole-dialogues", action="store_true", help="sample whole dialogues")
    add_judging(parser)
    add_output(parser, None)
    return parser


def _read_request(flags: Namespace, parser: Parser) -> LabellingRequest:
    """What to label, and who does. Raises `UsageError` with every mistake."""
    problems = [] if flags.runs else [WHICH_RUNS]
    if not (flags.labeller or "").strip():
        problems.append("--labeller NAME is required.")
    if not (flags.file or "").strip():
        problems.append("--file FILE is required.")
    elif flags.file.lower().endswith(".csv"):
        problems.append(NO_CSV)
    numbers = {}
    for name, least in (("turns", 1), ("seed", 0)):
        word = getattr(flags, name)
        if not word.isascii() or not word.isdecimal() or int(word) < least:
            problems.append(f"--{name} must be a whole number of at least {least}, not {word!r}.")
        else:
            numbers[name] = int(word)
    if sys.stdin is None or not sys.stdin.isatty():
        problems.append(
            "label needs a terminal on stdin (docker run -it); labels can also be written by hand "
            "(format: socratic-runner schema label)."
        )
    parser.refuse(problems)
    return LabellingRequest(
        runs=tuple(flags.runs),
        file=flags.file,
        labeller=flags.labeller.strip(),
        n_turns=numbers["turns"],
        seed=numbers["seed"],
        rubric=flags.rubric,
        whole_dialogues=flags.whole_dialogues,
        judging=flags.judging,
    )


def _ask_all(labelling: Labelling) -> int:
    """Ask until all is answered, the person quits (q, Ctrl-D or Ctrl-C), or the terminal is gone.

    Returns the exit code: that of a signal, unless it is the person's Ctrl-C.
    """
    session, n_turns = labelling.session, len(labelling.turns)
    say(f"{session.n_done} of {n_turns} turns done. {HELP}.")
    code = 0
    try:
        _ask(labelling)
    except SignalledError as signalled:
        say("")
        if signalled.signal_number != signal.SIGINT:
            code = 128 + signalled.signal_number
    say(f"{session.n_done} of {n_turns} turns are labelled, in {labelling.request.file}.")
    return code


def _ask(labelling: Labelling) -> None:
    session, n_turns = labelling.session, len(labelling.turns)
    shown_turn: int | None = None
    while session.place is not None:
        turn, number = session.place
        if turn != shown_turn:
            _show(labelling.turns[turn], f"{session.n_done + 1} of {n_turns}", labelling)
            shown_turn = turn
        word = _read(session.questions[number].text)
        if word in (None, "q"):
            break
        _follow(word or "", labelling)


def _follow(word: str, labelling: Labelling) -> None:
    """Do what the person has typed: a command of one letter, or an answer."""
    session = labelling.session
    assert session.place is not None  # noqa: S101 -- a question is open
    turn, number = session.place
    if word == "b":
        session.back()
    elif word == "s":
        session.skip()
    elif word == "a":
        _show(labelling.turns[turn], "the whole dialogue", labelling, whole=True)
    elif word == "?":
        _explain(session.questions[number])
    elif problem := session.answer(word):
        say(problem)


def _explain(question: Question) -> None:
    for level, meaning in question.levels.items():
        _paragraph(f"{level}: {meaning}", "    ")
    say(HELP)


def _read(question: str) -> str | None:
    """The answer without surrounding white space; `None` if the person has left."""
    say_question(f"{question} > ")
    try:
        line = sys.stdin.readline()
    except OSError:  # the terminal is gone
        line = ""
    if not line.endswith("\n"):
        say("")
    return line.strip() if line else None


def _show(label: Label, head: str, labelling: Labelling, *, whole: bool = False) -> None:
    """Print a dialogue and the reply to be scored, without the names of model and judge."""
    asking, tested = labelling.rubric.speakers
    messages = [*_messages(label, asking, tested)]
    left_out = 0 if whole else max(0, len(messages) - 1 - LINES_BEFORE)
    say("")
    say(f"--- {head} ---")
    for n, (name, text) in enumerate(messages):
        if n == 1 and left_out:
            say(f"({left_out} left out; a shows them)")
        if not 1 <= n <= left_out:
            _paragraph(f"{name}: {text}", "")
    say("")
    _paragraph(f"{tested}, to be scored: {label.reply}", "", colour=REPLY_COLOUR)
    say("")


def _messages(label: Label, asking: str, tested: str) -> Iterator[tuple[str, str]]:
    """The speaker and the text of each message before the reply."""
    names = {"user": asking, "assistant": tested}
    for message in label.history:
        yield names[message.role], message.text
    yield asking, label.prompt or ""


def _paragraph(text: str, indent: str, colour: int | None = None) -> None:
    """Print a text with its lines broken between words, without control characters."""
    for line in text.split("\n"):
        for part in wrap(plain(line), max(20, terminal.columns() - len(indent) - 1)) or [""]:
            say(indent + terminal.coloured(part, colour))
