"""`socratic-runner compare A B ...`: stored runs side by side, pair by pair."""

from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from .arguments import Parser, parse_strictly
from .stdout import EXIT_UNWRITTEN

if TYPE_CHECKING:
    from socratic_bench.comparison.comparing import Asked
    from socratic_bench.documents.comparison import ComparisonDocument

EPILOG = """\
exit codes: 0 compared, 2 usage, 4 a store cannot be read, 5 a drop was too large or not known.
"""


def main(words: Sequence[str]) -> int:
    """Exit code 5 if a gate was missed."""
    from socratic_bench.comparison.comparing import compare
    from socratic_bench.documents.plain import plain_keys
    from socratic_bench.errors import EXIT_GATE

    from .output import print_document, waiting_for

    parser = build_parser()
    found = parse_strictly(parser, words)
    asked = _asked(found, parser.prog)
    with waiting_for("the stored runs", quiet=found.quiet):
        document = compare(asked, _region)
    words_of = partial(_say, document, quiet=found.quiet)
    if not print_document(plain_keys(document), words=words_of, pretty=found.pretty):
        return EXIT_UNWRITTEN
    return EXIT_GATE if document.error else 0


def build_parser() -> Parser:
    parser = Parser(
        prog="socratic-runner compare",
        description="Compares models by stored runs: means, and differences over pairs of runs of "
        "one sample, opening and repeat. A model that several arguments have is compared with "
        "itself. Intervals and tests need the extra stats.",
        epilog=EPILOG,
    )
    parser.add_argument(
        "runs",
        metavar="RUNS",
        nargs="*",
        help="a run's or a sweep's document, an output folder, s3://BUCKET/PREFIX, or one sweep in "
        "these: DIR/sweeps/SWEEP_ID",
    )
    parser.add_argument("--baseline", metavar="FILE", help="compare all with these runs alone")
    parser.add_argument(
        "--max-drop",
        metavar="METRIC=VALUE",
        action="append",
        help="leave with 5 if a metric is worse than the baseline's by more, or not known; "
        "METRIC.low: if it may be by the interval; repeatable",
    )
    parser.add_argument(
        "--metrics", metavar="NAME", nargs="+", help="compare these in place of the usual ones"
    )
    parser.add_argument(
        "--allow", action="store_true", help="compare runs that were not played or judged alike"
    )
    parser.add_argument("--pretty", action="store_true", help="indent the document")
    parser.add_argument("-q", "--quiet", action="store_true", help="no table on stderr")
    parser.add_argument("--debug", action="store_true", help="tracebacks on stderr")
    return parser


def _asked(found: Namespace, prog: str) -> "Asked":
    """Raises `UsageError` with every mistake."""
    from socratic_bench.comparison.comparing import Asked
    from socratic_bench.comparison.drops import MaxDrop
    from socratic_bench.errors import UsageError

    problems = [] if found.runs else ["Which runs: name files, folders or prefixes of a bucket."]
    if found.baseline in found.runs:
        problems.append("--baseline is one of the compared runs, too: name it once.")
    if found.max_drop and not found.baseline:
        problems.append("--max-drop needs a --baseline.")
    drops = [(word, MaxDrop.parse(word)) for word in found.max_drop or ()]
    problems += [
        f"--max-drop {word!r} is not METRIC=VALUE, with a value of at least 0."
        for word, drop in drops
        if drop is None
    ]
    if problems:
        raise UsageError(problems, hint=f"See {prog} --help.")
    return Asked(
        arguments=tuple(found.runs),
        baseline=found.baseline,
        metrics=tuple(found.metrics or ()),
        drops=tuple(drop for _, drop in drops if drop),
        allows_differences=found.allow,
    )


def _region() -> str:
    """As a run has it, by the environment or a profile."""
    from socratic_bench.benchmarks import RunConfig
    from socratic_bench.settings import OFFLINE_REGION, read_config

    from .sources import sources

    config, _ = read_config(RunConfig, sources({}))
    return config.region or OFFLINE_REGION


def _say(document: "ComparisonDocument", *, quiet: bool) -> None:
    from socratic_bench.errors import BenchError

    from .compare_table import say_comparison
    from .output import say_error

    if not quiet:
        say_comparison(document)
    if document.error:
        say_error(BenchError(document.error.message, hint=document.error.hint))
