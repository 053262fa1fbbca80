"""`socratic-runner judge RUNS ...`: judge stored runs again; the first verdicts stay."""

from collections.abc import Mapping, Sequence
from functools import partial

from socratic_bench.benchmarks import RunConfig
from socratic_bench.documents.comparison import JudgingsDocument, JudgingsDryRun
from socratic_bench.documents.run import RunResult
from socratic_bench.errors import BenchError, Words
from socratic_bench.runs import CancelToken
from socratic_bench.settings import fields_of
from socratic_bench.studies.rejudge import (
    Rejudging,
    document_of,
    forecast,
    judge_again,
    prepare_judgings,
)
from socratic_bench.types import plural

from .arguments import Flags, Parser, parse
from .figure_table import format_cost
from .flags import RUNS, WHICH_RUNS, add_rows, add_runs, judge_rows, settings_parser
from .output import plain, print_document, print_failure, say, say_table, waiting_for
from .progress import ManyRuns, listener_for
from .run_in_thread import run_in_thread, take_signals
from .settings import bucket_region, call_by_flags, read_untested
from .terminal import number

DESCRIPTION = """\
Scores stored runs again with another judge, jury or rubric, and compares the new
scores with the first ones. Both stay stored. This command prints a NAME for the
new scores; compare, report, label and show use them with --judging NAME. Dialogues
of other tools (chats .jsonl, text .txt, Inspect logs .eval) become runs in
--output-dir. To resume, repeat the command.

examples:
  socratic-runner judge results --judge-model ID
  socratic-runner judge dialogues.jsonl --output-dir results
"""
EXIT_CODES = """\
exit codes: 0 complete, 2 usage, 3 credentials or access, 4 service or storage
unavailable, 5 too few turns judged, 6 budget, 7 deadline, 128+N signal N
"""
# Flags of a run that asks the tested model, or is stored anew.
EXCLUDED = {
    *("fail-under", "fail-over", "no-judge", "resume", "resume-from", "brief", "config", "via"),
}
FIGURES = ("first", "second", "mean_difference", "absolute_error", "alpha")
USD = " USD"
HEADS = ("score", "turns", "first", "now", "difference", "mean error", "alpha")


def main(words: Sequence[str]) -> int:
    """Judge what is stored, compare the verdicts with the first ones, print."""
    flags, problems = parse(build_parser(), words)
    cancel_token = take_signals()
    try:
        config, runs = _prepare(flags, problems)
        if flags.get("dry-run"):
            return _print_estimate(runs, config, flags)
        results = _perform(runs, config, flags, cancel_token)
    except BenchError as error:
        error.call_settings(call_by_flags())
        print_failure(error, flags)
        return error.exit_code
    return _print_results(runs, results, flags)


def build_parser() -> Parser:
    """The flags of a run that a judge has."""
    usage = "RUNS ... [--judge-model ID] [options]"
    parser = settings_parser("judge", usage, DESCRIPTION, EXIT_CODES)
    add_runs(parser)
    add_rows(parser, judge_rows(EXCLUDED, of_benchmarks={"rubric"}))
    return parser


def _prepare(flags: Flags, problems: Sequence[Words]) -> tuple[RunConfig, Sequence[Rejudging]]:
    """The settings and the runs to judge. Raises `UsageError` with every mistake."""
    settings = {name: value for name, value in flags.items() if name != RUNS}
    config, misread = read_untested(settings)
    places = flags.get(RUNS, ())
    mistakes: list[Words] = [*problems]
    if not places or isinstance(places, bool):
        mistakes.append(WHICH_RUNS)
        places = ()
    flagged = fields_of(RunConfig, settings)
    mistakes += misread
    if "judge_model" in flagged:  # else each run has its own
        mistakes += [problem for problem in config.problems() if "region" not in problem.settings]
    with waiting_for("the stored runs", quiet=bool(flags.get("quiet"))):
        runs = prepare_judgings([*places], config, flagged, bucket_region, mistakes)
    return config, runs


def _perform(
    runs: Sequence[Rejudging], config: RunConfig, flags: Flags, cancel_token: CancelToken
) -> Mapping[str, RunResult]:
    quiet, many = bool(flags.get("quiet")), ManyRuns(len(runs))
    return run_in_thread(
        partial(
            judge_again,
            runs,
            cancel_token,
            listener=lambda plan: (
                many if len(runs) > 1 and not quiet else listener_for(plan, quiet=quiet)
            ),
            max_cost_usd=config.max_cost_usd,
        )
    )


def _print_estimate(runs: Sequence[Rejudging], config: RunConfig, flags: Flags) -> int:
    quiet = bool(flags.get("quiet"))
    with waiting_for("the endpoint, to count tokens", quiet=quiet):
        document = forecast(runs, config.max_cost_usd)
    words = partial(_say_estimate, document)
    return print_document(document, words=words, flags=flags)


def _print_results(
    runs: Sequence[Rejudging], results: Mapping[str, RunResult], flags: Flags
) -> int:
    for result in results.values():
        if result.error is not None:
            result.error.call_settings(call_by_flags())
    document = document_of(runs, results)
    unwritten = print_document(
        document,
        words=partial(_say_judgings, document),
        flags=flags,
        error=document.error,
    )
    codes = (result.exit_code for result in results.values() if result.exit_code)
    return next(codes, 0) or unwritten


def _say_estimate(document: JudgingsDryRun) -> None:
    """Print a line for each juror, and one for all."""
    for juror in document.jurors:
        calls = plural(juror.usage.calls, "call")
        say(plain(f"{juror.model}: {calls}, {format_cost(juror.cost_usd, [juror.model], USD)}"))
    low, high = number(document.low_usd), number(document.high_usd)
    span = "" if low == high else f" ({low} to {high})"
    scope = f"{plural(document.n_turns, 'turn')} of {plural(document.n_runs, 'run')}"
    cost = format_cost(document.cost_usd, [juror.model for juror in document.jurors], USD)
    say(f"expected {cost}{span} for {scope}; no model was called")


def _say_judgings(document: JudgingsDocument) -> None:
    """Print how verdicts differ by dimension, then what was done."""
    rows = [
        (name, str(change.n_turns), *(number(getattr(change, key)) for key in FIGURES))
        for name, change in document.dimensions.items()
    ]
    if rows:
        say_table(HEADS, rows, HEADS[:3:-1])
    n_missing = document.n_runs - document.n_judged_runs
    missing = f", {plural(n_missing, 'run')} incomplete" if n_missing else ""
    cost = format_cost(document.cost_usd, [juror.model for juror in document.jurors], USD)
    if all(run.is_import for run in document.runs):
        n_done = plural(document.n_judged_runs, "dialogue")
        say(f"{n_done} imported and judged{missing}, {cost}")
        return
    say(f"{plural(document.n_judged_runs, 'run')} judged again{missing}, {cost}")
    say(f"to use the new scores: --judging {plain(document.name)}")
