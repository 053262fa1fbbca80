"""A sweep of the command: from its flags to its document, its tables and its exit code."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from os.path import relpath
from shlex import quote

from msgspec.structs import replace

from socratic_bench.benchmarks import RunConfig
from socratic_bench.documents.dry_run import SweepDryRun
from socratic_bench.documents.sweep import SweepDocument
from socratic_bench.documents.turn import SCORE, Agreement
from socratic_bench.errors import ENDINGS, BenchError, Problem, UsageError, Words
from socratic_bench.runs import CancelToken, run_cancellable
from socratic_bench.settings import S3, flag_names, table
from socratic_bench.statistics import agreement
from socratic_bench.statistics.intervals import is_available
from socratic_bench.studies.figures import danger
from socratic_bench.studies.formats.checks import checks_of_error, checks_of_sweep
from socratic_bench.studies.sweep.document import document_of, exit_code
from socratic_bench.studies.sweep.engine import untraced
from socratic_bench.studies.sweep.estimate import forecast_sweep
from socratic_bench.studies.sweep.plan_file import NO_PLAN, PlanFile, read_plan_file
from socratic_bench.studies.sweep.preflight import check
from socratic_bench.studies.sweep.profiles import SUFFIX, read_profiles
from socratic_bench.studies.sweep.request import SweepRequest, read_sweep
from socratic_bench.studies.sweep.settings import SweepSettings
from socratic_bench.studies.sweep.sweep import SweepResult, perform_sweep
from socratic_bench.types import JUDGE, plural

from .arguments import Flags
from .config_file import below_variables
from .figure_table import SIMULATED, say_figures
from .output import (
    plain,
    print_document,
    print_failure,
    print_traceback,
    say,
    say_table,
    waiting_for,
)
from .pipeline import pipeline_problems, write_checks
from .run_in_thread import run_in_thread, take_signals
from .settings import Options, bucket_region, export_variables, sources
from .sweep_display import display_for
from .terminal import count, duration, marked, number
from .tracing import close_traces, open_traces, trace_problems

NO_MODEL_PROFILES = Problem.of(
    "{judge_profiles} needs 360-Eval's profiles of models as the config file (.jsonl)."
)
EXIT_REFUSED = ENDINGS["refused_request"].exit_code
NO_PROCESSES = (
    "--processes was removed: one process does --max-connections runs in parallel. To use several "
    "machines, give each a shard (--shard I/N)."
)
NO_INTERVALS = 'No confidence intervals: scipy is missing (pip install "socratic-runner[stats]").'


def perform(flags: Flags, problems: Sequence[Words]) -> int:
    """Play the sweep that the flags ask for, or estimate it; prints it, returns the exit code.

    `problems` are the mistakes that parsing has found.
    """
    cancel_token = take_signals()
    try:
        request = read_request(flags, problems)
        if flags.get("dry-run"):
            return _print_estimate(request, flags, cancel_token)
        display = display_for(request.grid.factors, quiet=bool(flags.get("quiet")))
        traces = open_traces(flags)
        result = run_in_thread(
            lambda: perform_sweep(
                request,
                display=display,
                cancel_token=cancel_token,
                call=flag_of,
                traced=traces.traced if traces else untraced,
            )
        )
    except BenchError as error:
        error.call_settings(flag_of)
        if error.end_reason == "interrupted":  # before there was a sweep
            error.hint = "Nothing was run or stored: run the command again."
        print_failure(error, flags)
        write_checks(flags, partial(checks_of_error, "sweep", error))
        return error.exit_code
    code = _print_result(result, flags)
    close_traces(traces, flags)
    return code


def read_request(flags: Flags, problems: Sequence[Words]) -> SweepRequest:
    """The sweep that flags and their plan ask for.

    Raises `UsageError` with the given problems and all others.
    """
    if "processes" in flags:
        problems = [*problems, NO_PROCESSES]
    plan = read_plan(flags, problems)
    keeps = not flags.get("dry-run")
    request, misread = read_sweep(flags, sources({**plan.flags, **flags}), plan, keeps=keeps)
    problems = [*problems, *misread, *pipeline_problems(flags), *trace_problems(flags)]
    check(request, problems, is_available)
    return request


def read_plan(flags: Flags, problems: Sequence[Words]) -> PlanFile:
    """The plan that the flags name, with the mistakes in it.

    Raises `UsageError` with the given problems and its own if none of it can be read.
    """
    path, judges = flags.get("plan", flags.get("config")), flags.get("judge-profiles")
    is_profiles = isinstance(path, str) and path.lower().endswith(SUFFIX)
    if judges and not is_profiles:
        raise UsageError([*problems, NO_MODEL_PROFILES])
    if not isinstance(path, str):
        return NO_PLAN
    if {"plan", "config"} <= flags.keys():
        raise UsageError([*problems, f"{path} and --config are two config files: keep one."])
    try:
        export_variables(flags)
        if is_profiles:
            plan = read_profiles(path, judges if isinstance(judges, str) else None)
        else:
            plan = read_plan_file(path)
    except UsageError as error:
        raise UsageError([*problems, *error.sentences]) from error
    return replace(plan, flags=below_variables(plan.flags))


def flag_of(name: str) -> str:
    """The flag of a setting in the commands of sweeps: that of its axis, if it is one."""
    return _flag_names()(name)


def document_and_exit_code(result: SweepResult) -> tuple[SweepDocument, int]:
    """The document of a sweep, which names flags for settings, and its exit code."""
    if result.error is not None:
        result.error.call_settings(flag_of)
    document = document_of(result, has_intervals=is_available(), call=flag_of)
    return document, exit_code(result, document.figure_gates)


def _print_result(result: SweepResult, flags: Flags) -> int:
    document, code = document_and_exit_code(result)
    if result.error is not None and flags.get("debug"):
        print_traceback(result.error)
    unwritten = print_document(
        document,
        words=partial(say_result, document, result),
        flags=flags,
        error=result.error or document.error,
    )
    checks_of = partial(checks_of_sweep, document, result, bucket_region)
    unwritten = write_checks(flags, checks_of) or unwritten
    return code or unwritten


def say_result(document: SweepDocument, result: SweepResult) -> None:
    """Print a table of the models, the best first, and a line for the whole."""
    if document.sweep_id is None or document.primary_metric is None:
        return
    score, groups = result.benchmark.primary_metric, document.groups["model"]
    used = [(group.usage.input_tokens or 0) + (group.usage.output_tokens or 0) for group in groups]
    say_figures(
        {
            "model": [str(group.value) for group in groups],
            "done": [f"{group.n_completed}/{group.n_runs}" for group in groups],
            "failed": [marked(group.n_failed) for group in groups],
        },
        groups,
        (document.primary_metric.name, score),
        {"tokens": [*map(count, used)], "USD": [number(group.cost_usd) for group in groups]},
        document.differences,
    )
    if not is_available() and document.n_completed:
        say(NO_INTERVALS)
    for line in _agreement_lines(document.agreement):
        say(line)
    for difference in document.differences:
        say(plain(f"{difference.summary}."))
    for warning in _warnings(document, result):
        say(f"~ {plain(warning)}")
    parts = _result_parts(document, is_simulated=result.request.grid.base.offline)
    say(f"{document.sweep_id[-4:]} {document.status}: {', '.join(parts)}")
    for place in filter(None, (document.output_artifacts, document.s3_artifacts)):
        root = place.index.partition("/sweeps/")[0]
        command = f"socratic-runner report {quote(root if S3 in root else relpath(root))} --open"
        say(f"{document.sweep_id[-4:]} view: {plain(command)}")


def _warnings(document: SweepDocument, result: SweepResult) -> Iterator[str]:
    score = result.benchmark.primary_metric
    for group in document.groups["model"]:
        mean = group.metrics.get(score)
        yield from danger(str(group.value), score, mean.two_groups if mean else None)
    yield from document.notices[len(result.notices) :]  # the others were said in time


def _agreement_lines(by_dimension: Mapping[str, Agreement]) -> Iterator[str]:
    """How far jurors agree on the score, and what alpha needs if it is not installed."""
    score = by_dimension.get(SCORE)
    if score is None or score.absolute_error is None:
        return
    alpha = "" if score.alpha is None else f", alpha {number(score.alpha)}"
    yield (
        f"{plural(score.n_jurors, 'judge')} differ by {number(score.absolute_error)} points on "
        f"{plural(score.n_turns, 'turn')}{alpha}"
    )
    if not agreement.is_available():
        yield agreement.NO_ALPHA


def _result_parts(document: SweepDocument, *, is_simulated: bool) -> Iterator[str]:
    yield f"{document.n_completed} of {plural(document.n_runs, 'run')} done"
    if document.n_failed:
        yield f"{document.n_failed} failed"
    if document.n_missing:
        yield f"{document.n_missing} missing"
    simulated = SIMULATED if is_simulated else ""
    known = f"{number(document.cost_usd)} USD{simulated}" if document.cost_usd is not None else ""
    yield known or "cost unknown"
    if document.n_missing and document.spent_usd is not None:
        yield f"at most {number(document.spent_usd)} USD with runs in progress"
        if document.n_paid is not None:
            yield f"the budget pays for {document.n_paid} of {plural(document.n_runs, 'run')}"
    if (seconds := document.timestamps.duration_seconds) is not None:
        yield duration(seconds)
    for place in (document.output_artifacts, document.s3_artifacts):
        if place:
            yield f"stored in {plain(place.index)}"


def _print_estimate(request: SweepRequest, flags: Flags, cancel_token: CancelToken) -> int:
    """Print the dry run of a sweep; returns the exit code."""
    quiet = bool(flags.get("quiet"))
    # The network is used: to see which endpoint this is, and to count tokens.
    estimate = partial(forecast_sweep, request, flag_of, cancel_token.sleep)
    with waiting_for("the estimate", quiet=quiet):
        document = run_in_thread(lambda: run_cancellable(estimate, cancel_token))
    error = document.error
    if error:
        n_cells = sum(refusal.n_runs for refusal in document.refused)
        message = f"{plural(n_cells, 'run')} would be refused. {error.message}"
        error = replace(error, message=message)
    unwritten = print_document(
        document,
        words=partial(_say_estimate, document),
        flags=flags,
        error=error,
    )
    return EXIT_REFUSED if document.refused else unwritten


def _say_estimate(document: SweepDryRun) -> None:
    """Print a table of the models under test, a line for the whole, and what would save money."""
    heads = ("model", "runs", "calls", "in", "out", "USD")
    rows = [
        (
            str(group.value),
            str(group.n_runs),
            count(group.usage.calls),
            count(group.usage.input_tokens or 0),
            count(group.usage.output_tokens or 0),
            _usd_or_unknown(group.cost_usd),
        )
        for group in document.groups["model"]
    ]
    say_table(heads, rows)
    _say_jurors(document)
    _say_times_at_targets(document)
    _say_savings(document)
    _say_total(document)


def _say_jurors(document: SweepDryRun) -> None:
    jurors = document.cost_by_model.get(JUDGE, {})
    for model, cost_usd in jurors.items() if len(jurors) > 1 else ():
        say(f"{model}: {_usd_or_unknown(cost_usd)} USD as a judge")


def _say_times_at_targets(document: SweepDryRun) -> None:
    n_regions = Counter(load.model for load in document.models)
    for load in document.models:
        if load.seconds_at_targets is not None:
            name = f"{load.model} in {load.region}" if n_regions[load.model] > 1 else load.model
            targets = [(load.target_rpm, "requests"), (load.target_tpm, "tokens")]
            rates = " and ".join(f"{n:,d} {unit}" for n, unit in targets if n)
            say(f"{name}: {duration(load.seconds_at_targets)} at {rates} a minute")


def _say_savings(document: SweepDryRun) -> None:
    with_usd, without_usd = (
        _usd_or_unknown(amount)
        for amount in (document.caching.with_usd, document.caching.without_usd)
    )
    say(f"prompt caching: {with_usd} USD with it, {without_usd} without")
    flex = document.flex
    if flex.cost_usd is not None:
        exception = f" (no price for {', '.join(flex.unpriced)})" if flex.unpriced else ""
        say(f"service tier flex: {number(flex.cost_usd)} USD{exception}, maybe slower")
    else:
        say("service tier flex: no price known for these models")


def _say_total(document: SweepDryRun) -> None:
    low, high = document.low, document.high
    if document.end_reason == "budget":
        n_paid = document.budget.n_paid if document.budget else 0
        n_cells = plural(document.n_runs, "run")
        say(f"warning: the budget covers only {n_paid} of {n_cells}")
    if document.deadline and not document.deadline.covers_expected:
        say(f"warning: the deadline of {document.deadline.deadline_s:g} s is too early")
    amount = f"{_usd_or_unknown(document.cost_usd['total'])} USD"
    amount += SIMULATED if document.stand_in else ""
    if low.cost_usd != high.cost_usd:
        amount += f" ({_usd_or_unknown(low.cost_usd)} to {_usd_or_unknown(high.cost_usd)})"
    span = [duration(end.duration_seconds) for end in (low, high)]
    time = duration(document.duration_seconds) + (
        f" ({' to '.join(span)})" if len({*span}) > 1 else ""
    )
    say(f"{plural(document.n_runs, 'run')}: expected {amount}, {time}; no model was called")


def _usd_or_unknown(amount: float | None) -> str:
    return "unknown" if amount is None else number(amount)


@cache
def _flag_names() -> Callable[[str], str]:
    fields = table(RunConfig).values()
    axes = {field.name: field.setting.axis for field in fields if field.setting.axis}
    run_flag_of = flag_names((SweepSettings, RunConfig, Options))
    return lambda name: f"--{axes[name]}" if name in axes else run_flag_of(name)
