"""Judge stored runs again, within one budget: all mistakes are found before the first call, and the
document tells how the verdicts differ.
"""

import json
import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from statistics import fmean
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import asdict, replace

from socratic_bench.benchmarks import RunConfig
from socratic_bench.catalogue.prices import builtin_prices
from socratic_bench.documents.comparison import (
    Changed,
    Figure,
    JudgingsDocument,
    JudgingsDryRun,
    JudgingSettings,
    JurorSpent,
    RejudgedRun,
)
from socratic_bench.documents.cost import Billing, role_usd
from socratic_bench.documents.document import SCORE_PLACES, TIME_PLACES, ErrorEntry, to_places
from socratic_bench.documents.dry_run import ExpectedJuror
from socratic_bench.documents.run import RunResult
from socratic_bench.documents.turn import Agreement, votes_of
from socratic_bench.documents.usage import CallUsage, RoleUsage, cost_total
from socratic_bench.errors import Mistakes, Problem, UsageError, Words
from socratic_bench.journal.replay import read_header
from socratic_bench.models.batch import BatchJobs
from socratic_bench.models.budget import SpendingLimit
from socratic_bench.models.cancel import CancelToken
from socratic_bench.ports.benchmark import (
    Benchmark,
    Length,
)
from socratic_bench.runs import Plan, perform, prepare
from socratic_bench.runs.batches import ways
from socratic_bench.runs.context import Listener
from socratic_bench.runs.dry_run import Forecaster
from socratic_bench.runs.gates import metric_at
from socratic_bench.runs.prepare import read_prices
from socratic_bench.runs.resume import earlier_config
from socratic_bench.runs.services import Services
from socratic_bench.settings import S3, continued
from socratic_bench.statistics import agreement
from socratic_bench.storage.keys import RunKeys
from socratic_bench.storage.stores import ListedBucket, ListedStore, Region
from socratic_bench.studies.formats.dialogues import Dialogue
from socratic_bench.studies.formats.imported import RecordedBenchmark, import_plan
from socratic_bench.studies.places import FoundRun, find_runs, store_of
from socratic_bench.studies.rows import benchmark_of, validate_run
from socratic_bench.studies.sweep.resume import journal_entries
from socratic_bench.turns import Turn
from socratic_bench.types import JUDGE, Completion

JURY_SETTINGS = ("judge_model", "judge_samples", "quorum", "jury_rule")
_LONGEST = 60


class Rejudging(Struct, frozen=True, kw_only=True):
    """One run to be judged again: its document, its place, and the plan. An import has no document
    yet: its first verdicts are stored as those of a run.
    """

    source: str
    document: Mapping[str, Any]
    plan: Plan
    name: str
    folder: str
    is_import: bool = False

    @property
    def run_id(self) -> str:
        return str(self.plan.run_id)


def prepare_judgings(
    arguments: Sequence[str],
    config: RunConfig,
    flagged: Collection[str],
    region: Region,
    problems: Sequence[Words] = (),
) -> list[Rejudging]:
    """Plan a judging of each run that the arguments name. A setting without a flag keeps the value
    that it has in the run; `flagged` are the settings with a flag. Raises `UsageError` with the
    given problems and all that are found, `ArtifactError` if a store cannot be read.
    """
    mistakes = Mistakes([*problems, *_unpriced(config)])
    sources: dict[str, FoundRun] = {}
    for argument in dict.fromkeys(arguments):
        with mistakes:
            for source in find_runs(argument, region).runs:  # a dialogue of two files counts once
                key = source.dialogue.run_id if source.dialogue else source.name
                sources.setdefault(key, source)
    has_place = bool(config.output_dir or config.s3_bucket)
    if not has_place and any(source.dialogue for source in sources.values()):
        text = "Give {output_dir} or {s3_bucket}, where imported dialogues are stored."
        mistakes.sentences.append(Problem.of(text))
    prepared: list[Rejudging] = []
    for source in sources.values():
        if source.dialogue and not has_place:
            continue
        with mistakes:
            prepared.append(_prepared(source, config, flagged, region))
    mistakes.sentences += _several(prepared)
    if prepared and not any(run.is_import for run in prepared):
        mistakes.sentences += [
            Problem.of(
                f"{{{name}}} is for imported dialogues: verdicts on stored runs stay beside these."
            )
            for name in ("output_dir", "s3_bucket", "s3_prefix")
            if name in flagged
        ]
    if mistakes.sentences:
        raise UsageError(mistakes.sentences, hint="See socratic-runner judge --help.")
    return prepared


def _unpriced(config: RunConfig) -> Iterator[Words]:
    """Problems of models without a price. Only judges are called."""
    if not config.max_cost_usd:
        return
    table = read_prices(config) or builtin_prices()
    for model in config.jurors:
        if table.of(model, config.region) is None:
            yield Problem.of(
                "{max_cost_usd} needs the price of {judge_model} {id}, which is not known: give it "
                "with {prices_file}.",
                id=model,
            )


def _prepared(
    source: FoundRun, requested: RunConfig, flagged: Collection[str], region: Region
) -> Rejudging:
    if source.dialogue:
        return _prepared_import(source.dialogue, requested)
    document = source.document()
    inner = benchmark_of(document, source.name)
    validate_run(document, inner, source.name)
    run_id = str(document["run_id"])
    store = source.store or store_of(document, region)
    if store is None:
        raise UsageError(
            [f"{source.name}: its files are not here: name its folder or s3:// prefix."]
        )
    entries = journal_entries(store, run_id)
    if not entries:
        raise UsageError([f"{source.name}: its journal is missing, which has its settings."])
    stored = replace(earlier_config(entries), seed=read_header(entries[0]).seed)
    config = _config(stored, requested, flagged)
    # How the calls are made is this command's own.
    ways = ("judge_via", "batch_role_arn", "batch_s3", "wait")
    config = replace(config, via="now", **{name: getattr(requested, name) for name in ways})
    benchmark = cast("Benchmark", RecordedBenchmark(inner, inner.recorded(document)))
    plan = prepare(replace(config, s3_bucket=None, output_dir=None), benchmark=benchmark)
    if plan.rubric is None:
        raise UsageError([f"{source.name}: {inner.name} has no judge."])
    name = name_of(settings_of(plan))
    folder = RunKeys(run_id).judgings(name)
    config = _in_folder(plan.config, store, folder, requested)
    return Rejudging(
        source=source.name,
        document=document,
        plan=replace(plan, config=config, run_id=run_id, is_rejudged=True),
        name=name,
        folder=store.location(folder),
    )


def _prepared_import(dialogue: Dialogue, requested: RunConfig) -> Rejudging:
    plan = import_plan(dialogue, replace(requested, max_cost_usd=None))
    keys, bucket = RunKeys(dialogue.run_id), f"{S3}{requested.s3_bucket}"
    root = requested.output_dir or "/".join(filter(None, (bucket, requested.s3_prefix)))
    return Rejudging(
        source=dialogue.place,
        document={"turns": ()},
        plan=plan,
        name=name_of(settings_of(plan)),
        folder=f"{root.rstrip('/')}/{keys.raw}",
        is_import=True,
    )


def _config(stored: RunConfig, requested: RunConfig, flagged: Collection[str]) -> RunConfig:
    """The run's configuration with the requested judge, which does not inherit the run's jury."""
    config = continued(stored, requested, {name.replace("_", "-") for name in flagged})
    if "judge_model" in flagged or not stored.jurors:
        config = replace(config, **{name: getattr(requested, name) for name in JURY_SETTINGS})
    return replace(
        config,
        model_ids=None,
        gates=(),
        resume=False,
        resume_run_id=None,
        max_cost_usd=None,  # all runs spend from one limit
        prices_file=requested.prices_file,
        region=requested.region if "region" in flagged else stored.region or requested.region,
    )


def _in_folder(
    config: RunConfig, store: ListedStore, folder: str, requested: RunConfig
) -> RunConfig:
    """Store a judging in its own folder below the run."""
    if isinstance(store, ListedBucket):
        bucket, _, prefix = store.location(folder).removeprefix("s3://").partition("/")
        return replace(
            config,
            s3_bucket=bucket,
            s3_prefix=prefix.strip("/"),
            s3_kms_key_id=requested.s3_kms_key_id or config.s3_kms_key_id,
        )
    return replace(config, output_dir=store.location(folder).rstrip("/"), s3_kms_key_id=None)


def _several(prepared: Sequence[Rejudging]) -> Iterator[Words]:
    names = sorted({judging.plan.benchmark.name for judging in prepared})
    if len(names) > 1:
        yield f"Runs of several benchmarks cannot be judged together: {', '.join(names)}."
    judged = sorted({judging.name for judging in prepared})
    if len(names) == 1 and len(judged) > 1:
        yield (
            f"The runs had several judges or rubrics, and so would have several now: "
            f"{', '.join(judged)}. Say with flags how all of them are judged."
        )


def settings_of(plan: Plan) -> JudgingSettings:
    """The settings that identify a judging: who judges, and how."""
    config, rubric = plan.config, plan.rubric
    assert rubric is not None  # noqa: S101 -- `_prepared` has seen to it
    return JudgingSettings(
        jurors=[*config.jurors],
        samples=config.judge_samples,
        quorum=config.needed_votes,
        rule=config.jury_rule if len(config.jurors) > 1 else None,
        context=config.judge_context,
        rubric=rubric.id,
        rubric_sha256=rubric.sha256,
    )


def name_of(settings: JudgingSettings) -> str:
    """Name of a judging: judge, rubric, and 8 hex digits of all settings."""
    text = json.dumps(asdict(settings), sort_keys=True)
    digits = sha256(text.encode()).hexdigest()[:8]
    return f"{_plain('+'.join(settings.jurors))}_{_plain(settings.rubric)}_{digits}"


def _plain(text: str) -> str:
    """Text as part of a file's name, shortened."""
    return re.sub(r"[^A-Za-z0-9.+-]+", "-", text).strip("-.+")[:_LONGEST]


# How a judging ends that would befall the next one, too.
_OF_ALL = ("interrupted", "deadline", "budget", "credentials", "access", "unknown_model")
Told = Callable[[Plan], Listener]
SCORE = "overall_score"
# By turn, the score of each dimension, and their sum, by the first verdict and by the new one.
Pairs = Sequence[tuple[Mapping[str, float], Mapping[str, float]]]


def judge_again(
    runs: Sequence[Rejudging],
    cancel_token: CancelToken,
    *,
    listener: Told = lambda _: Listener(),
    max_cost_usd: float | None = None,
) -> Mapping[str, RunResult]:
    """The results by run id. After an error that would end every run the remaining ones are not
    started and are missing. A judging that an earlier process began is resumed.
    """
    results: dict[str, RunResult] = {}
    spending = None if max_cost_usd is None else SpendingLimit(max_cost_usd)
    # Runs whose verdicts may go by batch jobs wait for each other, so that all have one job.
    at_once = len(runs) if any(ways(run.plan)[1] == "batch" for run in runs) else 1
    is_over = threading.Event()

    def judge(services: Services, run: Rejudging) -> None:
        if is_over.is_set():
            return
        token = cancel_token.sibling()
        with cancel_token.parent_of(token):
            result = perform(
                run.plan,
                listener=listener(run.plan),
                cancel_token=token,
                is_journal_shown=False,
                services=services,
            )
        services.batch_jobs.leave(run.run_id)
        results[run.run_id] = result
        if result.end_reason in _OF_ALL and result.status != "completed":
            is_over.set()

    with (
        Services(
            monotonic_s=cancel_token.monotonic_s, spending=spending, batch_jobs=BatchJobs(at_once)
        ) as services,
        ThreadPoolExecutor(at_once) as pool,
    ):
        for future in [pool.submit(judge, services, run) for run in runs]:
            future.result()
    return {run.run_id: results[run.run_id] for run in runs if run.run_id in results}


def forecast(runs: Sequence[Rejudging], max_cost_usd: float | None = None) -> JudgingsDryRun:
    """The expected calls, tokens, cost and duration. Turns that were judged before are included."""
    forecaster = Forecaster()
    forecasts = [forecaster.forecast(run.plan) for run in runs]
    plan, billing = runs[0].plan, _billing(runs[0].plan)
    calls: dict[Length, Sequence[Completion]] = {
        length: [call for forecast in forecasts for call in forecast.expected[length].calls[JUDGE]]
        for length in ("short", "likely", "long")
    }
    usd = {length: role_usd(billing, JUDGE, made) for length, made in calls.items()}
    return JudgingsDryRun(
        benchmark=plan.benchmark.name,
        name=runs[0].name,
        settings=settings_of(plan),
        n_runs=len(runs),
        n_turns=sum(n_due(forecast.expected["likely"].turns) for forecast in forecasts),
        jurors=[ExpectedJuror.of(juror, billing, calls) for juror in plan.config.jurors],
        cost_usd=usd["likely"],
        low_usd=usd["short"],
        high_usd=usd["long"],
        duration_seconds=round(
            sum(forecast.expected["likely"].duration_s for forecast in forecasts), TIME_PLACES
        ),
        covers_high=None
        if max_cost_usd is None or usd["long"] is None
        else usd["long"] <= max_cost_usd,
    )


def _billing(plan: Plan) -> Billing:
    return Billing.of(plan.config, plan.benchmark.parts, plan.models, plan.prices)


def _spent(plan: Plan, results: Sequence[RunResult]) -> Iterator[JurorSpent]:
    """Calls, tokens and cost of each juror, those of earlier processes included."""
    calls = [call for result in results for call in result.tallies[JUDGE].completions]
    for name in plan.config.jurors:
        own_calls = tuple(call for call in calls if call.model_id == name)
        yield JurorSpent(
            model=name,
            usage=CallUsage.of_all([RoleUsage(completions=own_calls)]),
            cost_usd=role_usd(_billing(plan), JUDGE, own_calls),
        )


def n_due(turns: Iterable[Turn]) -> int:
    """Number of turns that the judge must score."""
    return sum(not turn.replayed and turn.unscorable is None for turn in turns)


def document_of(runs: Sequence[Rejudging], results: Mapping[str, RunResult]) -> JudgingsDocument:
    """The document: what was judged, and how it differs from the first verdicts."""
    plan, made = runs[0].plan, [*results.values()]
    pairs = [pair for run in runs if run.run_id in results for pair in _pairs(run, results)]
    judged_runs = [_run(run, results.get(run.run_id)) for run in runs]
    jurors = [*_spent(plan, made)]
    error = next((result.error for result in made if result.error), None)
    return JudgingsDocument(
        benchmark=plan.benchmark.name,
        name=runs[0].name,
        settings=settings_of(plan),
        n_runs=len(runs),
        n_judged_runs=sum(run.status == "completed" for run in judged_runs),
        dimensions=_changes(pairs),
        agreement=Agreement.of(
            votes.scores for result in made for turn in result.turns if (votes := votes_of(turn))
        ),
        figures={
            name: _figure(name, judged_runs)
            for name in dict.fromkeys(name for run in judged_runs for name in run.second)
        },
        runs=judged_runs,
        jurors=jurors,
        cost_usd=cost_total(juror.cost_usd for juror in jurors),
        notices=[
            *([] if agreement.is_available() else [agreement.NO_ALPHA]),
            *dict.fromkeys(text for result in made for text in result.notices),
        ],
        error=ErrorEntry.of(error) if error else None,
    )


def _pairs(run: Rejudging, results: Mapping[str, RunResult]) -> Iterator[Any]:
    """First and new scores of the turns that have both."""
    first = {entry["turn"]: entry.get("scores") or {} for entry in run.document["turns"]}
    for turn in results[run.run_id].turns:
        old = first.get(turn.index, {})
        if turn.verdict and old and None not in old.values():
            yield _with_sum(old), _with_sum(turn.verdict.scores)


def _with_sum(scores: Mapping[str, float]) -> dict[str, float]:
    return {**scores, SCORE: sum(scores.values())}


def _run(run: Rejudging, result: RunResult | None) -> RejudgedRun:
    if result is None:
        return RejudgedRun(
            run_id=run.run_id,
            source=run.source,
            judging=None,
            status="left",
            end_reason=None,
            is_import=run.is_import,
        )
    names = [metric.name for metric in run.plan.benchmark.metrics]
    old = run.document.get("metrics") or {}
    return RejudgedRun(
        run_id=run.run_id,
        source=run.source,
        is_import=run.is_import,
        judging=run.folder,
        status=result.status,
        end_reason=result.end_reason,
        n_turns=n_due(result.turns),
        n_judged=result.n_judged,
        first={name: metric_at(name, old) for name in names},
        second={name: metric_at(name, result.metrics) for name in names},
    )


def _changes(pairs: Pairs) -> dict[str, Changed]:
    """Changes of each dimension that both rubrics have."""
    by_name: dict[str, list[tuple[float, float]]] = {}
    for old, new in pairs:
        for name in (name for name in new if name in old):
            by_name.setdefault(name, []).append((old[name], new[name]))
    return {name: _changed(score_pairs) for name, score_pairs in by_name.items()}


def _changed(pairs: Sequence[tuple[float, float]]) -> Changed:
    first, second = [old for old, _ in pairs], [new for _, new in pairs]
    alpha = agreement.ordinal_alpha([first, second]) if agreement.is_available() else None
    return Changed(
        n_turns=len(pairs),
        first=to_places(fmean(first), SCORE_PLACES),
        second=to_places(fmean(second), SCORE_PLACES),
        mean_difference=to_places(fmean(new - old for old, new in pairs), SCORE_PLACES),
        absolute_error=to_places(agreement.absolute_error([first, second]), SCORE_PLACES),
        alpha=to_places(alpha, SCORE_PLACES),
    )


def _figure(name: str, runs: Sequence[RejudgedRun]) -> Figure:
    pairs = [(run.first.get(name), run.second.get(name)) for run in runs]
    known_pairs = [(old, new) for old, new in pairs if old is not None and new is not None]
    means = [to_places(fmean(side), SCORE_PLACES) for side in zip(*known_pairs, strict=True)]
    first, second = means or (None, None)
    return Figure(n_runs=len(known_pairs), first=first, second=second)
