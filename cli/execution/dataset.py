"""`socratic-runner dataset verify|mutate PLACE`: data sets of programs, verified and mutated."""

from argparse import Namespace
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

from ..arguments import Parser, parse_strictly
from ..stored_runs import add_output

if TYPE_CHECKING:
    from socratic_bench.benchmarks.execution.dataset.document import (
        DatasetMutation,
        DatasetVerification,
        Isolation,
    )
    from socratic_bench.benchmarks.execution.dataset.reading import DataSet
    from socratic_bench.benchmarks.execution.items import Problem
    from socratic_bench.benchmarks.execution.sandbox.client import Sandbox

VERIFY, MUTATE = "verify", "mutate"
FEWEST_RUNS, DEFAULT_RUNS, MOST_RUNS = 2, 3, 10
DEFAULT_TIMEOUT_S, MOST_TIMEOUT_S = 5.0, 600.0
EPILOG = """\
Programs are executed in processes of their own, with limits. Nothing but a container keeps them
from all of the machine: use one without a network (docker run --network none).
exit codes: 0 done, and nothing is wrong; 2 something is to mend; 4 the Hub, or a file, failed.
"""


def main(words: Sequence[str]) -> int:
    """Exit code 2 if a row is wrong."""
    parser = build_parser()
    found = parse_strictly(parser, words)
    _check(found, parser)
    return _verify(found) if found.action == VERIFY else _mutate(found)


def build_parser() -> Parser:
    parser = Parser(
        prog="socratic-runner dataset",
        description="verify executes the programs of a data set anew, and tells rows whose stored "
        "outputs are wrong, are no literals, or change between runs. mutate makes mutations, by "
        "one operator each, and writes the data set with them.",
        epilog=EPILOG,
    )
    parser.add_argument("action", metavar="ACTION", nargs="?", help=f"{VERIFY} or {MUTATE}")
    parser.offers["action"] = (VERIFY, MUTATE)
    parser.add_argument(
        "place",
        metavar="PLACE",
        nargs="?",
        help="shipped, a file of JSON Lines, JSON or Parquet, a folder, or hf:OWNER/NAME",
    )
    parser.add_argument("--split", metavar="NAME", default="train", help="of the Hub (%(default)s)")
    parser.add_argument(
        "--runs",
        metavar="N",
        type=int,
        default=DEFAULT_RUNS,
        help=f"runs, with as many hash seeds ({FEWEST_RUNS} to {MOST_RUNS}; %(default)s)",
    )
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=float,
        default=DEFAULT_TIMEOUT_S,
        help=f"for one run of a program (up to {MOST_TIMEOUT_S:g}; %(default)s)",
    )
    parser.add_argument("--output", metavar="FILE", help="mutate: the file to write, JSON Lines")
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="mutate: chooses (0)")
    parser.add_argument(
        "--replace", action="store_true", help="mutate: make anew those that are there, too"
    )
    add_output(parser, "no words on stderr")
    return parser


def _check(found: Namespace, parser: Parser) -> None:
    """Raises `UsageError` with every mistake of the command line."""
    from pathlib import Path

    runs, timeout_s, output = found.runs, found.timeout, found.output
    mistakes = {
        f"What to do: {VERIFY} or {MUTATE}.": found.action not in (VERIFY, MUTATE),
        "Which data set: name its place.": not found.place,
        f"--runs is {runs}: take {FEWEST_RUNS} to {MOST_RUNS}.": runs
        not in range(FEWEST_RUNS, MOST_RUNS + 1),
        f"--timeout is {timeout_s:g}: take up to {MOST_TIMEOUT_S:g} seconds.": not (
            0 < timeout_s <= MOST_TIMEOUT_S
        ),
        "mutate needs --output FILE.": found.action == MUTATE and not output,
        "--output and --replace are for mutate.": found.action == VERIFY
        and (output or found.replace),
        f"--output {output} is there already: name another file.": output and Path(output).exists(),
    }
    parser.refuse([words for words, is_made in mistakes.items() if is_made])


def _verify(found: Namespace) -> int:
    from socratic_bench.benchmarks.execution.dataset.document import verification
    from socratic_bench.benchmarks.execution.dataset.verify import verify
    from socratic_bench.benchmarks.execution.sandbox.client import Limits, sandbox
    from socratic_bench.errors import ENDINGS

    data, limits = _read(found), Limits(timeout_s=found.timeout)
    with sandbox(found.runs, limits) as box, closing(_telling(data.problems, found)) as problems:
        verified = verify(problems, box)
    document = verification(data, verified, found.runs, limits, _isolation(box))
    unwritten = _print(document, partial(_say_verified, document), found)
    return unwritten or (0 if document.ok else ENDINGS["usage"].exit_code)


def _mutate(found: Namespace) -> int:
    from socratic_bench.benchmarks.execution.dataset.document import mutation
    from socratic_bench.benchmarks.execution.dataset.mutate import mutate, mutated_row, write_rows
    from socratic_bench.benchmarks.execution.sandbox.client import Limits, sandbox

    data, limits = _read(found), Limits(timeout_s=found.timeout)
    wanted = [one for one in data.problems if found.replace or one.mutated_code is None]
    with sandbox(found.runs, limits) as box, closing(_telling(wanted, found)) as problems:
        made = {one.problem.id: one for one in mutate(problems, box, found.seed)}
    whole = [made[one.id].problem if one.id in made else one for one in data.problems]
    rows = [
        mutated_row(row, one) if one.id in made else row
        for row, one in zip(data.rows, whole, strict=True)
    ]
    sha256 = write_rows(rows, found.output)
    isolation = _isolation(box)
    document = mutation(data, whole, made, limits, isolation, output=found.output, sha256=sha256)
    return _print(document, partial(_say_mutated, document), found)


def _read(found: Namespace) -> "DataSet":
    from socratic_bench.benchmarks.execution.dataset.reading import read_problems

    from ..output import waiting_for

    with waiting_for("the data set", quiet=found.quiet):
        return read_problems(
            found.place,
            split=found.split,
            include_missing_mutations=True,
            needs_literals=False,
            keeps_rows=found.action == MUTATE,
        )


def _isolation(box: "Sandbox") -> "Isolation":
    import os

    from socratic_bench.benchmarks.execution.dataset.document import Isolation
    from socratic_bench.benchmarks.execution.sandbox.client import is_network_open

    return Isolation(
        user="nobody" if os.geteuid() == 0 else "own",
        refuses_calls=box.refuses_calls,
        hides_files=box.hides_files,
        network_open=is_network_open(),
    )


def _telling(problems: "Sequence[Problem]", found: Namespace) -> "Generator[Problem, None, None]":
    """The same, telling on a terminal how many of them are done."""
    from .. import terminal
    from ..output import say_live

    is_shown = terminal.is_live() and not found.quiet
    try:
        for n_done, problem in enumerate(problems, start=1):
            yield problem
            if is_shown:
                say_live(f"{n_done} of {len(problems)}")
    finally:
        if is_shown:
            say_live("")


def _print(
    document: "DatasetVerification | DatasetMutation", words: Callable[[], None], found: Namespace
) -> int:

    from ..output import print_document

    return print_document(document, words=words, quiet=found.quiet, pretty=found.pretty)


def _say_verified(document: "DatasetVerification") -> None:
    from socratic_bench.types import plural

    from ..output import plain, say

    for row in document.rows:
        for one in row.findings:
            call = "" if one.case is None else f", call {one.case + 1}"
            say(f"{plain(row.id)}: {one.program}{call}: {plain(one.message)}")
    say(f"{plural(len(document.rows), 'row')}, {document.n_wrong} wrong")
    _say_open(document.isolation)


def _say_mutated(document: "DatasetMutation") -> None:
    from ..output import plain, say

    for row in document.rows:
        if row.reason:
            say(f"{plain(row.id)}: no mutation: {plain(row.reason)}")
    say(f"{document.n_made} mutations made, {plain(document.output)} written")
    _say_open(document.isolation)


def _say_open(isolation: "Isolation") -> None:
    from ..output import say

    if isolation.network_open:
        say("the network was open to these programs: in docker run --network none it is not")
