"""`socratic-runner label RUNS --labeller NAME --file FILE`: a person scores turns at a terminal."""

import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .arguments import Parser, parse_strictly
from .stored_runs import NO_CSV, WHICH_RUNS, add_judging, add_output, add_runs, calling_flags_of

if TYPE_CHECKING:
    from socratic_bench.studies.calibrate.session import LabellingRequest

N_TURNS = 100
EPILOG = (
    "exit codes: 0 stopped (Ctrl-C, too) or done, 2 usage, 4 a store cannot be read, 129 SIGHUP,\n"
    "143 SIGTERM.\n"
)


def main(words: Sequence[str]) -> int:
    """Ask until all is answered, or the person stops; every answer is kept at once."""
    from socratic_bench.studies.calibrate.session import prepare_labelling

    from .label_terminal import ask_all
    from .output import print_document, waiting_for
    from .sources import bucket_region

    parser = build_parser()
    found = parse_strictly(parser, words)
    asked = _asked(found, parser)
    with waiting_for("the stored runs", quiet=False), calling_flags_of(parser):
        labelling = prepare_labelling(asked, bucket_region)
    code = ask_all(labelling)
    return print_document(labelling.document, pretty=found.pretty) or code


def build_parser() -> Parser:
    parser = Parser(
        prog="socratic-runner label",
        description="Shows turns of stored runs at the terminal, without their model and judge, "
        "and asks you to score them. Turns are drawn by chance, more often near thresholds and "
        "where jurors disagree; each label keeps the probability. Every answer is kept at once: "
        "stop when you like, and give the same command to go on. Another --labeller gets the same "
        "turns.",
        epilog=EPILOG,
    )
    add_runs(parser)
    parser.add_argument("--labeller", metavar="NAME", help="who you are")
    parser.add_argument("--file", metavar="FILE", help="where labels are kept, JSON Lines")
    parser.add_argument(
        "--turns", metavar="N", default=str(N_TURNS), help=f"about so many (default {N_TURNS})"
    )
    parser.add_argument("--seed", metavar="N", default="0", help="which ones (default 0)")
    parser.add_argument("--rubric", metavar="NAME|FILE", default="", help="by which you score")
    parser.add_argument(
        "--whole-dialogues", action="store_true", help="draw dialogues, and ask for all their turns"
    )
    add_judging(parser)
    add_output(parser, None)
    return parser


def _asked(found: Namespace, parser: Parser) -> "LabellingRequest":
    """Raises `UsageError` with every mistake."""
    from socratic_bench.studies.calibrate.session import LabellingRequest

    problems = [] if found.runs else [WHICH_RUNS]
    if not (found.labeller or "").strip():
        problems.append("Who labels: give --labeller NAME.")
    if not (found.file or "").strip():
        problems.append("Where labels are kept: give --file FILE.")
    elif found.file.lower().endswith(".csv"):
        problems.append(NO_CSV)
    numbers = {}
    for name, least in (("turns", 1), ("seed", 0)):
        word = getattr(found, name)
        if not word.isascii() or not word.isdecimal() or int(word) < least:
            problems.append(f"--{name} is {word!r}, which is no number from {least} on.")
        else:
            numbers[name] = int(word)
    if sys.stdin is None or not sys.stdin.isatty():
        problems.append(
            "Standard input is no terminal, so nobody can answer: run this at a terminal (docker "
            "run -it), or write labels into a file by yourself (docs/calibration.md)."
        )
    parser.refuse(problems)
    return LabellingRequest(
        runs=tuple(found.runs),
        file=found.file,
        labeller=found.labeller.strip(),
        n_turns=numbers["turns"],
        seed=numbers["seed"],
        rubric=found.rubric,
        whole_dialogues=found.whole_dialogues,
        judging=found.judging,
    )
