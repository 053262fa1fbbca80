"""`socratic-runner dataset verify|mutate PLACE`: data sets of programs, verified and mutated."""

import os
from argparse import Namespace
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

from socratic_bench.benchmarks.execution.dataset.document import (
    DatasetMutation,
    DatasetVerification,
    Isolation,
    mutation,
    verification,
)
from socratic_bench.benchmarks.execution.dataset.mutate import mutate, mutated_row, write_rows
from socratic_bench.benchmarks.execution.dataset.reading import DataSet, read_problems
from socratic_bench.benchmarks.execution.dataset.verify import verify
from socratic_bench.benchmarks.execution.items import Problem
from socratic_bench.benchmarks.execution.sandbox.client import (
    Limits,
    Sandbox,
    is_network_open,
    sandbox,
)
from socratic_bench.errors import ENDINGS
from socratic_bench.types import plural

from . import terminal
from .arguments import Parser, parse_strictly
from .flags import add_output
from .output import plain, print_document, say, say_live, waiting_for

VERIFY, MUTATE = "verify", "mutate"
FEWEST_RUNS, DEFAULT_RUNS, MOST_RUNS = 2, 3, 10
DEFAULT_TIMEOUT_S, MOST_TIMEOUT_S = 5.0, 600.0
DESCRIPTION = """\
verify runs the programs of a data set, and lists rows whose stored output is
wrong, is not a Python literal, or differs between runs. mutate writes a copy of
the data set with a mutated program in each row.

examples:
  socratic-runner dataset verify problems.jsonl
  socratic-runner dataset mutate problems.jsonl --output mutated.jsonl
"""
EPILOG = """\
Programs run in limited processes, but not in a sandbox: use a container without
a network (docker run --network none).

exit codes: 0 ok, 2 usage, or rows are wrong, 4 Hugging Face or a file failed
"""


def main(words: Sequence[str]) -> int:
    """Verify or mutate, print the findings; the exit code is 2 if a row is wrong."""
    parser = build_parser()
    flags = parse_strictly(parser, words)
    _check(flags, parser)
    return _verify(flags) if flags.action == VERIFY else _mutate(flags)


def build_parser() -> Parser:
    parser = Parser(
        prog="socratic-runner dataset",
        description=DESCRIPTION,
        epilog=EPILOG,
    )
    parser.add_argument("action", metavar="ACTION", nargs="?", help=f"{VERIFY} or {MUTATE}")
    parser.offers["action"] = (VERIFY, MUTATE)
    parser.add_argument(
        "place",
        metavar="PLACE",
        nargs="?",
        help="JSONL, JSON or Parquet file, folder, hf:OWNER/NAME, or shipped",
    )
    parser.add_argument(
        "--split",
        metavar="NAME",
        default="train",
        help="split of a Hugging Face data set (default %(default)s)",
    )
    parser.add_argument(
        "--runs",
        metavar="N",
        type=int,
        default=DEFAULT_RUNS,
        help=f"runs of each program with different hash seeds, {FEWEST_RUNS} to {MOST_RUNS} "
        "(default %(default)s)",
    )
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=float,
        default=DEFAULT_TIMEOUT_S,
        help=f"timeout of a program, up to {MOST_TIMEOUT_S:g} (default %(default)s)",
    )
    parser.add_argument("--output", metavar="FILE", help="mutate: JSONL file to write (required)")
    parser.add_argument(
        "--seed", metavar="N", type=int, default=0, help="mutate: random seed (default 0)"
    )
    parser.add_argument(
        "--replace", action="store_true", help="mutate: regenerate existing mutations"
    )
    add_output(parser)
    return parser


def _check(flags: Namespace, parser: Parser) -> None:
    """Raises `UsageError` with every mistake of the command line."""
    runs, timeout_s, output = flags.runs, flags.timeout, flags.output
    mistakes = {
        f"Missing argument ACTION: {VERIFY} or {MUTATE}.": flags.action not in (VERIFY, MUTATE),
        "Missing argument PLACE: the data set.": not flags.place,
        f"--runs must be {FEWEST_RUNS} to {MOST_RUNS}, not {runs}.": runs
        not in range(FEWEST_RUNS, MOST_RUNS + 1),
        f"--timeout must be at most {MOST_TIMEOUT_S:g} seconds, not {timeout_s:g}.": not (
            0 < timeout_s <= MOST_TIMEOUT_S
        ),
        "mutate needs --output FILE.": flags.action == MUTATE and not output,
        "verify takes neither --output nor --replace.": flags.action == VERIFY
        and (output or flags.replace),
        f"--output {output} exists: choose another file.": output and Path(output).exists(),
    }
    parser.refuse([words for words, applies in mistakes.items() if applies])


def _verify(flags: Namespace) -> int:
    data, limits = _read(flags), Limits(timeout_s=flags.timeout)
    with (
        sandbox(flags.runs, limits) as box,
        closing(_with_progress(data.problems, flags)) as problems,
    ):
        results = verify(problems, box)
    document = verification(data, results, flags.runs, limits, _isolation(box))
    unwritten = _print(document, partial(_say_verified, document), flags)
    return unwritten or (0 if document.ok else ENDINGS["usage"].exit_code)


def _mutate(flags: Namespace) -> int:
    data, limits = _read(flags), Limits(timeout_s=flags.timeout)
    to_mutate = [
        problem for problem in data.problems if flags.replace or problem.mutated_code is None
    ]
    with sandbox(flags.runs, limits) as box, closing(_with_progress(to_mutate, flags)) as problems:
        mutations = {result.problem.id: result for result in mutate(problems, box, flags.seed)}
    all_problems = [
        mutations[problem.id].problem if problem.id in mutations else problem
        for problem in data.problems
    ]
    rows = [
        mutated_row(row, problem) if problem.id in mutations else row
        for row, problem in zip(data.rows, all_problems, strict=True)
    ]
    document = mutation(
        data,
        all_problems,
        mutations,
        limits,
        _isolation(box),
        output=flags.output,
        sha256=write_rows(rows, flags.output),
    )
    return _print(document, partial(_say_mutated, document), flags)


def _read(flags: Namespace) -> DataSet:
    with waiting_for("the data set", quiet=flags.quiet):
        return read_problems(
            flags.place,
            split=flags.split,
            include_missing_mutations=True,
            needs_literals=False,
            keeps_rows=flags.action == MUTATE,
        )


def _isolation(box: Sandbox) -> Isolation:
    return Isolation(
        user="nobody" if os.geteuid() == 0 else "own",
        refuses_calls=box.refuses_calls,
        hides_files=box.hides_files,
        network_open=is_network_open(),
    )


def _with_progress(problems: Sequence[Problem], flags: Namespace) -> Generator[Problem, None, None]:
    """The same problems; a live terminal shows how many of them are done."""
    is_live = terminal.is_live() and not flags.quiet
    try:
        for n_done, problem in enumerate(problems, start=1):
            yield problem
            if is_live:
                say_live(f"{n_done} of {len(problems)}")
    finally:
        if is_live:
            say_live("")


def _print(
    document: DatasetVerification | DatasetMutation, words: Callable[[], None], flags: Namespace
) -> int:
    return print_document(document, words=words, flags=vars(flags))


def _say_verified(document: DatasetVerification) -> None:
    for row in document.rows:
        for finding in row.findings:
            call = "" if finding.case is None else f", call {finding.case + 1}"
            say(f"{plain(row.id)}: {finding.program}{call}: {plain(finding.message)}")
    say(f"{plural(len(document.rows), 'row')}, {document.n_wrong} wrong")
    _say_isolation(document.isolation)


def _say_mutated(document: DatasetMutation) -> None:
    for row in document.rows:
        if row.reason:
            say(f"{plain(row.id)}: no mutation: {plain(row.reason)}")
    say(f"{document.n_made} mutations made, {plain(document.output)} written")
    _say_isolation(document.isolation)


def _say_isolation(isolation: Isolation) -> None:
    if isolation.network_open:
        say("warning: programs ran with network access; use docker run --network none")
