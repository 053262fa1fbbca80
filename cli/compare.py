"""`socratic-runner compare A B ...`: stored runs side by side, pair by pair."""

from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from .arguments import Parser, parse_strictly
from .stored_runs import WHICH_RUNS, add_judging, add_output, add_runs, calling_flags_of

if TYPE_CHECKING:
    from socratic_bench.errors import UsageError
    from socratic_bench.studies.compare.compare import ComparisonRequest

EPILOG = """\
exit codes: 0 compared, 2 usage, 4 a store cannot be read, 5 a figure was too low, a drop too
large, or one of them not known.
"""


def main(words: Sequence[str]) -> int:
    """Exit code 5 if a gate was missed."""
    from socratic_bench.errors import EXIT_GATE
    from socratic_bench.studies.compare.compare import compare

    from .compare_table import say_comparison
    from .output import print_document, waiting_for
    from .sources import bucket_region, call_by_flags

    parser = build_parser()
    found = parse_strictly(parser, words)
    asked, misused = _asked(found, parser.prog)
    with waiting_for("the stored runs", quiet=found.quiet), calling_flags_of(parser):
        document = compare(asked, bucket_region, misused, call_by_flags())
    unwritten = print_document(
        document,
        words=partial(say_comparison, document),
        quiet=found.quiet,
        error=document.error,
        pretty=found.pretty,
    )
    return unwritten or (EXIT_GATE if document.error else 0)


def build_parser() -> Parser:
    parser = Parser(
        prog="socratic-runner compare",
        description="Compares models by stored runs: means, and differences over pairs of runs of "
        "one sample, opening and repeat. A model that several arguments have is compared with "
        "itself. Intervals and tests need the extra stats.",
        epilog=EPILOG,
    )
    add_runs(parser)
    add_judging(parser)
    parser.add_argument("--baseline", metavar="FILE", help="compare all with these runs alone")
    parser.add_argument(
        "--max-drop",
        metavar="METRIC=VALUE",
        action="append",
        help="leave with 5 if a metric is worse than the baseline's by more, or not known; "
        "METRIC.low: if it may be by the interval; repeatable",
    )
    parser.add_argument(
        "--fail-under",
        metavar="METRIC=VALUE",
        action="append",
        help="leave with 5 if a mean is lower, or not known; METRIC.low: the lower limit of its "
        "interval; METRIC.median, METRIC.restricted_mean, and .low of these: of a time until an "
        "event; repeatable; runs of one model are enough",
    )
    parser.add_argument(
        "--metrics", metavar="NAME", nargs="+", help="compare these in place of the usual ones"
    )
    parser.add_argument(
        "--allow", action="store_true", help="compare runs that were not played or judged alike"
    )
    parser.add_argument(
        "--interval",
        choices=("t", "bootstrap-t"),
        default="t",
        help="how intervals of means and differences are made (default t)",
    )
    add_output(parser)
    return parser


def _asked(found: Namespace, prog: str) -> "tuple[ComparisonRequest, list[UsageError]]":
    """What is to be compared, and what is wrong with how it is said."""
    from socratic_bench.errors import UsageError
    from socratic_bench.settings import Gate
    from socratic_bench.studies.compare.compare import ComparisonRequest
    from socratic_bench.studies.gates import MaxDrop, Minimum

    problems = [] if found.runs else [WHICH_RUNS]
    if found.max_drop and not found.baseline:
        problems.append("--max-drop needs a --baseline.")
    drops = [(word, MaxDrop.parse(word)) for word in found.max_drop or ()]
    problems += [
        f"--max-drop {word!r} is not METRIC=VALUE, with a value of at least 0."
        for word, drop in drops
        if drop is None
    ]
    gates = [(word, Gate.parse(word)) for word in found.fail_under or ()]
    problems += [f"--fail-under {word!r} is not METRIC=VALUE." for word, gate in gates if not gate]
    asked = ComparisonRequest(
        arguments=tuple(found.runs),
        baseline=found.baseline,
        metrics=tuple(found.metrics or ()),
        drops=tuple(drop for _, drop in drops if drop),
        minima=tuple(Minimum.of(gate) for _, gate in gates if gate),
        allows_differences=found.allow,
        method=found.interval,
        judging=found.judging,
    )
    return asked, [UsageError(problems, hint=f"See {prog} --help.")] if problems else []
