"""`socratic-runner compare A B ...`: stored runs side by side, pair by pair."""

from argparse import Namespace
from collections.abc import Collection, Iterator, Sequence
from functools import partial

from socratic_bench.documents.comparison import (
    ComparedPair,
    ComparisonDocument,
    Contender,
    Difference,
    FigureDifference,
)
from socratic_bench.documents.sweep import Estimate
from socratic_bench.errors import EXIT_GATE, UsageError, Words
from socratic_bench.settings import Gate
from socratic_bench.studies.calibrate.corrections import CorrectionRequest
from socratic_bench.studies.compare import ComparisonRequest, compare
from socratic_bench.studies.formats.checks import checks_of_comparison
from socratic_bench.studies.gates import FigureBound, MaxDrop
from socratic_bench.studies.groups import conditions_text
from socratic_bench.types import plural

from .arguments import Parser, parse_strictly
from .corrected import say_corrected
from .figure_table import say_figures
from .flags import (
    MATCH_HELP,
    WHICH_RUNS,
    add_judging,
    add_output,
    add_runs,
    add_switches,
    read_matches,
)
from .output import plain, print_document, say, say_table, waiting_for
from .pipeline import pipeline_problems, write_checks
from .settings import bucket_region, call_by_flags, calling_flags
from .terminal import UNKNOWN, interval, number

DESCRIPTION = """\
Compares models across stored runs: means, and paired differences between runs
of the same scenario and repeat. A model that is in two of the RUNS is compared
with itself (old against new).
Confidence intervals need:
  pip install "socratic-runner[stats]"

examples:
  socratic-runner compare results
  socratic-runner compare new --baseline old --max-drop overall_score=0.5
"""
EPILOG = """\
exit codes: 0 ok, 2 usage, 4 storage cannot be read, 5 a limit you set was missed
"""
# Heads of columns.
INTERVAL, RUNS = "95 % CI", "runs"
MEDIAN, OF_MEDIAN, OF_MEAN = "median", "CI of median", "CI of mean"
LEFT_OUT = (INTERVAL, RUNS)
MOST_TURNS = 9


def main(words: Sequence[str]) -> int:
    """Compare, print; the exit code is 5 if a gate was missed."""
    parser = build_parser()
    flags = parse_strictly(parser, words)
    request, errors = _read_request(flags, parser.prog)
    with waiting_for("the stored runs", quiet=flags.quiet), calling_flags(parser):
        document = compare(request, bucket_region, errors, call_by_flags())
    unwritten = print_document(
        document,
        words=partial(_say_comparison, document),
        flags=vars(flags),
        error=document.error,
    )
    unwritten = write_checks(vars(flags), partial(checks_of_comparison, document)) or unwritten
    return unwritten or (EXIT_GATE if document.error else 0)


def build_parser() -> Parser:
    parser = Parser(
        prog="socratic-runner compare",
        description=DESCRIPTION,
        epilog=EPILOG,
    )
    add_runs(parser)
    add_judging(parser)
    parser.add_argument(
        "--baseline", metavar="RUNS", help="earlier runs to compare each model with"
    )
    parser.add_argument(
        "--max-drop",
        metavar="METRIC=VALUE",
        nargs="+",
        action="extend",
        help="exit 5 if METRIC is worse than in --baseline by more than VALUE, or null; METRIC.low "
        "counts the worse end of the difference's 95%% CI, METRIC.high the better one: only a "
        "significant drop fails",
    )
    parser.add_argument(
        "--fail-under",
        metavar="METRIC=VALUE",
        nargs="+",
        action="extend",
        help="exit 5 if a model's mean METRIC is below VALUE, or null; METRIC.low counts the lower "
        "end of its 95%% CI, turns_held.median the median",
    )
    parser.add_argument(
        "--fail-over",
        metavar="METRIC=VALUE",
        nargs="+",
        action="extend",
        help="exit 5 if a model's mean METRIC is above VALUE, or null; METRIC.high counts the "
        "upper end of its 95%% CI",
    )
    parser.add_argument(
        "--metrics", metavar="NAME", nargs="+", action="extend", help="compare only these metrics"
    )
    parser.add_argument(
        "--labels",
        metavar="FILE",
        nargs="+",
        action="extend",
        help="human labels of some turns (JSONL or CSV): corrects means, rates and differences for "
        "the judge's bias",
    )
    parser.add_argument(
        "--match", metavar="LABEL=QUANTITY", nargs="+", action="extend", help=MATCH_HELP
    )
    parser.add_argument(
        "--rate",
        metavar="SCORE<N",
        nargs="+",
        action="extend",
        help="with --labels: add the corrected rate of turns with such a score: 'purity<2' or "
        "'purity>=3'",
    )
    parser.add_argument(
        "--allow", action="store_true", help="compare runs although judges or settings differ"
    )
    parser.add_argument("--junit", metavar="FILE", help="write a JUnit file: a case per gate")
    add_switches(parser, "github-summary")
    add_output(parser)
    return parser


def _read_request(flags: Namespace, prog: str) -> tuple[ComparisonRequest, list[UsageError]]:
    """What to compare, and what is wrong on the command line."""
    problems: list[Words] = [] if flags.runs else [WHICH_RUNS]
    problems += pipeline_problems(vars(flags))
    if flags.max_drop and not flags.baseline:
        problems.append("--max-drop needs a --baseline.")
    drops = [(word, MaxDrop.parse(word)) for word in flags.max_drop or ()]
    problems += [
        f"--max-drop {word!r} is not METRIC=VALUE, with a value of at least 0."
        for word, drop in drops
        if drop is None
    ]
    gates = [("under", word, Gate.parse(word)) for word in flags.fail_under or ()]
    gates += [("over", word, Gate.parse_over(word)) for word in flags.fail_over or ()]
    problems += [
        f"--fail-{side} {word!r} is not METRIC=VALUE." for side, word, gate in gates if not gate
    ]
    matches = read_matches(flags.match or (), problems)
    if (flags.match or flags.rate) and not flags.labels:
        problems.append("--match and --rate need --labels.")
    corrections = CorrectionRequest(
        labels=tuple(flags.labels or ()), matches=matches, rates=tuple(flags.rate or ())
    )
    request = ComparisonRequest(
        arguments=tuple(flags.runs),
        baseline=flags.baseline,
        metrics=tuple(flags.metrics or ()),
        drops=tuple(drop for _, drop in drops if drop),
        bounds=tuple(FigureBound.of(gate) for *_, gate in gates if gate),
        allows_differences=flags.allow,
        judging=flags.judging,
        corrections=corrections if flags.labels else None,
    )
    return request, [UsageError(problems, hint=f"See {prog} --help.")] if problems else []


def _say_comparison(document: ComparisonDocument) -> None:
    """Print who holds longer, tables of the models, then one for each pair."""
    for difference in document.differences:
        say(plain(f"{difference.summary}."))
    say("")
    contenders = document.contenders
    own_metric = next(iter(contenders[0].metrics))
    say_figures(
        {
            "model": [contender.name for contender in contenders],
            RUNS: [str(contender.n_runs) for contender in contenders],
        },
        contenders,
        (document.primary_metric.name, own_metric),
        differences=document.differences,
    )
    _say_turns(contenders)
    for metric in contenders[0].metrics:
        if timed := [contender for contender in contenders if metric in contender.survival]:
            _say_times(metric, timed)
    # The first sentences have the primary figure, whose interval is that of its own test.
    primary = {difference.metric for difference in document.differences}
    with_values = {
        metric
        for contender in contenders
        for metric, mean in contender.metrics.items()
        if mean.mean is not None and metric not in primary
    }
    for pair in document.pairs:
        _say_pair(pair, with_values)
    if document.corrected:
        say_corrected(document.corrected)
    for line in _closing_lines(document):
        say(plain(line))


def _say_turns(contenders: Sequence[Contender]) -> None:
    """Print the scores of some turns, the first and the last among them."""
    scores = {
        contender.name: {turn.turn: turn.mean for turn in contender.score_by_turn}
        for contender in contenders
    }
    judged = sorted({turn for by_turn in scores.values() for turn in by_turn})
    if not judged:
        return
    n_columns = min(len(judged), MOST_TURNS)
    turns = [judged[n * (len(judged) - 1) // max(1, n_columns - 1)] for n in range(n_columns)]
    rows = [
        (name, *(number(by_turn.get(turn)) for turn in turns)) for name, by_turn in scores.items()
    ]
    heads = [str(turn) for turn in turns]
    say("")
    # Every other turn is left out first.
    left_out = f" ({n_columns} of {len(judged)})" if n_columns < len(judged) else ""
    say_table((f"score by turn{left_out}", *heads), rows, (*heads[1:-1:2], *heads[2:-1:2]))


def _say_times(metric: str, contenders: Sequence[Contender]) -> None:
    """Print the times until an event."""
    survivals = {contender.name: contender.survival[metric] for contender in contenders}
    mean = f"KM mean (max {next(iter(survivals.values())).horizon:g})"
    rows = [
        (name, *_estimate_cells(times.median), *_estimate_cells(times.restricted_mean))
        for name, times in survivals.items()
    ]
    say("")
    heads = (metric, MEDIAN, OF_MEDIAN, mean, OF_MEAN)
    say_table(heads, rows, (OF_MEDIAN, OF_MEAN, MEDIAN))


def _say_pair(pair: ComparedPair, with_values: Collection[str]) -> None:
    """Print the differences of two models in the metrics that some model has a value of."""
    say("")
    say(f"{plain(pair.first)} minus {plain(pair.second)}: {', '.join(_pair_parts(pair))}")
    rows = [
        (metric, *_difference_cells(difference))
        for metric, difference in pair.differences.items()
        if metric in with_values
    ]
    for metric in (metric for metric in pair.differences if metric in pair.survival):
        times = pair.survival[metric]
        for head, difference in (
            (f"KM mean (max {times.horizon:g})", times.restricted_mean),
            (MEDIAN, times.median),
        ):
            rows.append((f"{metric}, {head}", *_estimate_cells(difference)))
    say_table(("metric", "difference", INTERVAL), rows, LEFT_OUT)


def _pair_parts(pair: ComparedPair) -> Iterator[str]:
    yield f"{plural(pair.n_pairs, 'pair')}, matched by {pair.paired_by}"
    if pair.n_unpaired:
        yield f"{plural(pair.n_unpaired, 'run')} without a pair"


def _difference_cells(difference: Difference) -> tuple[str, str]:
    return number(difference.mean), interval(difference.low, difference.high)


def _estimate_cells(estimate: Estimate | FigureDifference) -> tuple[str, str]:
    """The value and its limits, of which one may be unknown."""
    if estimate.low is None and estimate.high is None:
        return number(estimate.value), UNKNOWN
    return number(estimate.value), f"{number(estimate.low)} to {number(estimate.high)}"


def _closing_lines(document: ComparisonDocument) -> Iterator[str]:
    for condition in document.conditions:
        yield f"warning: {condition.name} differs: {conditions_text(condition.values)}"
    for notice in document.notices:
        yield f"note: {notice}"
