"""`socratic-runner show RUN`: one stored run at the terminal."""

import re
from argparse import Namespace
from collections.abc import Sequence
from functools import partial

from .arguments import Parser, parse_strictly
from .flags import add_settings
from .stored_runs import add_judging, add_output, calling_flags_of

EPILOG = "exit codes: 0 shown, 2 usage, 4 a store cannot be read.\n"
_TURNS = re.compile(r"(\d+)(?:-(\d+))?")
_OF_IDS = "where a run is that its id names"
# The settings of a run that say where an id is looked for, each with its help here.
_WHERE = {
    "output_dir": _OF_IDS,
    "s3_bucket": _OF_IDS,
    "s3_prefix": "before every key there",
}


def main(words: Sequence[str]) -> int:
    """Draw it on stderr, and print its figures."""
    from socratic_bench.studies.report.single import read_single

    from .output import print_document, waiting_for
    from .show_words import say_run
    from .sources import bucket_region

    parser = build_parser()
    found = parse_strictly(parser, words)
    turns = _checked(found, parser)
    with waiting_for("the stored run", quiet=found.quiet), calling_flags_of(parser):
        single = read_single(found.run, _roots(found), bucket_region, found.judging)
    picture = partial(say_run, single, turns, has_transcript=not found.no_transcript)
    return print_document(single.document, words=picture, quiet=found.quiet, pretty=found.pretty)


def build_parser() -> Parser:
    parser = Parser(
        prog="socratic-runner show",
        description="Draws one complete stored run at the terminal (stderr): its figures, a chart "
        "of scores by turn, events, and the transcript. Prints what it has drawn as one JSON "
        "document. Calls no model.",
        epilog=EPILOG,
    )
    parser.add_argument(
        "run",
        metavar="RUN",
        nargs="?",
        help="a run's id, document, curated file or folder, or an output folder or s3:// place "
        "that has one run",
    )
    add_settings(parser, **_WHERE)
    add_judging(parser)
    parser.add_argument(
        "--turns", metavar="A-B", help="of the transcript, these turns alone, counted from 0"
    )
    parser.add_argument("--no-transcript", action="store_true", help="leave the transcript out")
    add_output(parser, "draw nothing")
    return parser


def _checked(found: Namespace, parser: Parser) -> range | None:
    """The turns whose words are shown, `None` for all. Raises `UsageError` with every mistake."""
    problems = [] if found.run else ["Which run: give its id, its file or its folder."]
    turns = None
    if found.turns is not None:
        named = _TURNS.fullmatch(found.turns)
        if named:
            turns = range(int(named[1]), int(named[2] or named[1]) + 1)
        if not turns:
            problems.append(f"--turns {found.turns!r} is not A-B, such as 5-12, or one turn.")
    parser.refuse(problems)
    return turns


def _roots(found: Namespace) -> list[str]:
    """The stores in which an id is looked for: those of flags, or else those of variables."""
    from msgspec.structs import replace

    from socratic_bench.settings import CoreConfig, Reader

    from .sources import sources

    given = {name: word for name in _WHERE if (word := getattr(found, name))}
    asked = sources({name.replace("_", "-"): word for name, word in given.items()})
    if "output_dir" in given or "s3_bucket" in given:
        asked = replace(asked, environ={})
    folder, bucket, prefix = map(Reader(CoreConfig, asked).read, _WHERE)
    place = "/".join(part for part in (bucket, prefix.strip("/")) if part)
    return [root for root in (folder, f"s3://{place}" if bucket else None) if root]
