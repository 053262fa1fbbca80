"""`socratic-runner judge RUNS ...`: stored runs judged again; the first verdicts stay."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from .arguments import Flags, Parser, parse
from .flags import add_rows, judge_rows, settings_parser
from .stored_runs import RUNS, WHICH_RUNS, add_runs

if TYPE_CHECKING:
    from socratic_bench.benchmarks import RunConfig
    from socratic_bench.documents.comparison import JudgingsDryRun
    from socratic_bench.documents.run import RunResult
    from socratic_bench.errors import Words
    from socratic_bench.runs import CancelToken
    from socratic_bench.studies.rejudge.prepare import Rejudging

DESCRIPTION = """\
Judges stored runs again, with another judge, jury or edition of the rubric, and prints one JSON
document with how the verdicts differ. The first ones stay: the new ones lie beside them, in
raw/runs/RUN_ID/judgings/NAME/, for compare --judging NAME and the like. Given again, it goes on
where it was cut short.
"""
EXIT_CODES = """\
exit codes: 0 complete, 2 usage, 3 credentials or access, 4 service or store unavailable, 5 too few
turns were judged, 6 deadline or budget, 129 SIGHUP, 130 SIGINT, 143 SIGTERM.
"""
# Of a run that plays something, or is kept anew.
NOT_HERE = {
    *("fail-under", "no-judge", "resume", "resume-from", "brief"),
    *("output-dir", "s3-bucket", "s3-prefix"),
}


def main(words: Sequence[str]) -> int:
    """Judge what is stored, compare, print."""
    from socratic_bench.errors import BenchError

    from .output import print_failure
    from .run_in_thread import take_signals
    from .sources import call_by_flags

    flags, problems = parse(build_parser(), words)
    cancel_token = take_signals()
    try:
        config, runs = prepared(flags, problems)
        if flags.get("dry-run"):
            return _estimate(runs, config, flags)
        results = _perform(runs, config, flags, cancel_token)
    except BenchError as error:
        error.call_settings(call_by_flags())
        print_failure(error)
        return error.exit_code
    return _report(runs, results, flags)


def build_parser() -> Parser:
    """The flags of a run that a judge has."""
    usage = "RUN|DIR|s3://BUCKET/PREFIX ... [--judge-model ID] [options]"
    parser = settings_parser("judge", usage, DESCRIPTION, EXIT_CODES)
    add_runs(parser)
    add_rows(parser, judge_rows(NOT_HERE, of_benchmarks={"rubric"}))
    return parser


def prepared(flags: Flags, problems: "Sequence[Words]") -> "tuple[RunConfig, Sequence[Rejudging]]":
    """What is asked for, and the runs. Raises `UsageError` with every mistake."""
    from socratic_bench.benchmarks import RunConfig
    from socratic_bench.settings import fields_of
    from socratic_bench.studies.rejudge.prepare import prepare_judgings

    from .output import waiting_for
    from .sources import bucket_region, read_untested

    own = {name: value for name, value in flags.items() if name != RUNS}
    config, misread = read_untested(own)
    named = flags.get(RUNS, ())
    found: list[Words] = [*problems]
    if not named or isinstance(named, bool):
        found.append(WHICH_RUNS)
        named = ()
    flagged = fields_of(RunConfig, own)
    found += misread
    if "judge_model" in flagged:  # else each run has its own
        found += [one for one in config.problems() if "region" not in one.settings]
    with waiting_for("the stored runs", quiet=bool(flags.get("quiet"))):
        runs = prepare_judgings([*named], config, flagged, bucket_region, found)
    return config, runs


def _perform(
    runs: "Sequence[Rejudging]", config: "RunConfig", flags: Flags, cancel_token: "CancelToken"
) -> "Mapping[str, RunResult]":
    from socratic_bench.studies.rejudge.judge import judge_again

    from .progress import listener_for
    from .run_in_thread import run_in_thread

    judging = partial(
        judge_again,
        runs,
        cancel_token,
        listener=partial(listener_for, quiet=bool(flags.get("quiet"))),
        max_cost_usd=config.max_cost_usd,
    )
    return run_in_thread(judging)


def _estimate(runs: "Sequence[Rejudging]", config: "RunConfig", flags: Flags) -> int:
    from socratic_bench.studies.rejudge.judge import forecast

    from .judge_table import say_forecast
    from .output import print_document, waiting_for

    quiet = bool(flags.get("quiet"))
    with waiting_for("the endpoint, to count tokens", quiet=quiet):
        document: JudgingsDryRun = forecast(runs, config.max_cost_usd)
    words, pretty = partial(say_forecast, document), bool(flags.get("pretty"))
    return print_document(document, words=words, quiet=quiet, pretty=pretty)


def _report(runs: "Sequence[Rejudging]", results: "Mapping[str, RunResult]", flags: Flags) -> int:
    from socratic_bench.studies.rejudge.judge import document_of

    from .judge_table import say_judgings
    from .output import print_document
    from .sources import call_by_flags

    for result in results.values():
        if result.error is not None:
            result.error.call_settings(call_by_flags())
    document = document_of(runs, results)
    unwritten = print_document(
        document,
        words=partial(say_judgings, document),
        quiet=bool(flags.get("quiet")),
        error=document.error,
        pretty=bool(flags.get("pretty")),
    )
    code = next((one.exit_code for one in results.values() if one.exit_code), 0)
    return code or unwritten
