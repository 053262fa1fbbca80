"""Prepare stored runs to be judged again: find all mistakes before the first call."""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import asdict, replace

from socratic_bench.benchmarks import RunConfig
from socratic_bench.catalogue.prices import builtin_prices
from socratic_bench.documents.comparison import JudgingSettings
from socratic_bench.errors import Problem, UsageError, Words
from socratic_bench.journal.replay import read_header
from socratic_bench.ports.benchmark import (
    Benchmark,
    ClosingQuestion,
    Episode,
    EpisodeContext,
    EpisodeResult,
    JudgeInput,
    Length,
    Recorded,
)
from socratic_bench.runs import Plan, prepare
from socratic_bench.runs.prepare import read_prices
from socratic_bench.runs.resume import earlier_config
from socratic_bench.settings import CoreConfig, continued
from socratic_bench.storage.keys import RunKeys
from socratic_bench.storage.stores import ListedBucket, ListedStore
from socratic_bench.studies.places import FoundRun, find_runs, store_of
from socratic_bench.studies.rows import benchmark_of, validate_run
from socratic_bench.studies.sweep.resume import journal_entries
from socratic_bench.turns import ClosingAnswer, Turn
from socratic_bench.types import Role

JURY_SETTINGS = ("judge_model", "judge_samples", "quorum", "jury_rule")
_LONGEST = 60


class Rejudging(Struct, frozen=True, kw_only=True):
    """One run to be judged again: its document, its place, and the plan."""

    source: str
    document: Mapping[str, Any]
    plan: Plan
    name: str
    folder: str

    @property
    def run_id(self) -> str:
        return str(self.plan.run_id)


class RecordedEpisode(Episode, frozen=True, kw_only=True):
    """An episode of `inner` that publishes the `recorded` turns."""

    inner: Episode
    recorded: Recorded

    def play(self, context: EpisodeContext) -> EpisodeResult:
        for turn in self.recorded.turns:
            context.publish(turn)
        return self.recorded.ended

    def judge_input(self, turns: Sequence[Turn], index: int) -> JudgeInput:
        return self.inner.judge_input(turns, index)

    def closing_question(
        self, turns: Sequence[Turn], closing: str | None
    ) -> ClosingQuestion | None:
        return self.inner.closing_question(turns, closing)

    def with_findings(self, turns: Sequence[Turn], findings: ClosingAnswer) -> Sequence[Turn]:
        return self.inner.with_findings(turns, findings)

    def expected_reply(self, role: Role, length: Length) -> str:
        return self.inner.expected_reply(role, length)


class RecordedBenchmark:
    """The benchmark `inner` for one stored run: its turns are published as they are, and no model
    answers. All else is the inner one's.
    """

    def __init__(self, inner: Benchmark, document: Mapping[str, Any]) -> None:
        self._inner = inner
        self._recorded = inner.recorded(document)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 -- as the inner one has it
        return getattr(self._inner, name)

    def prepare(self, config: CoreConfig) -> RecordedEpisode:
        inner = self._inner.prepare(replace(config, **self._recorded.settings))
        return RecordedEpisode(
            opening=replace(inner.opening, notices=()),
            rubric=inner.rubric,
            inner=inner,
            recorded=self._recorded,
        )


def prepare_judgings(
    arguments: Sequence[str],
    config: RunConfig,
    flagged: Collection[str],
    region: Callable[[], str],
    problems: Sequence[Words] = (),
) -> list[Rejudging]:
    """Plan a judging of each run that the arguments name. A setting without a flag keeps the value
    that it has in the run; `flagged` are the settings with a flag.

    Raises `UsageError` with the given problems and all that are found, `ArtifactError` if a store
    cannot be read.
    """
    mistakes: list[Words] = [*problems, *_unpriced(config)]
    sources: dict[str, FoundRun] = {}
    for argument in dict.fromkeys(arguments):
        try:
            sources |= {source.name: source for source in find_runs(argument, region).runs}
        except UsageError as error:
            mistakes += error.sentences
    prepared: list[Rejudging] = []
    for source in sources.values():
        try:
            prepared.append(_prepared(source, config, flagged, region))
        except UsageError as error:
            mistakes += (sentence for sentence in error.sentences if sentence not in mistakes)
    mistakes += _several(prepared)
    if mistakes:
        raise UsageError(mistakes, hint="See socratic-runner judge --help.")
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
    source: FoundRun, requested: RunConfig, flagged: Collection[str], region: Callable[[], str]
) -> Rejudging:
    document = source.document()
    inner = benchmark_of(document, source.name)
    validate_run(document, inner, source.name)
    run_id = str(document["run_id"])
    store = source.store or store_of(document, region)
    if store is None:
        raise UsageError(
            [f"{source.name}: no store keeps this run: name its folder, or prefix of a bucket."]
        )
    entries = journal_entries(store, run_id)
    if not entries:
        raise UsageError([f"{source.name}: its journal is missing, which says how it was played."])
    stored = replace(earlier_config(entries), seed=read_header(entries[0]).seed)
    config = _config(stored, requested, flagged)
    benchmark = cast("Benchmark", RecordedBenchmark(inner, document))
    plan = prepare(replace(config, s3_bucket=None, output_dir=None), benchmark=benchmark)
    if plan.rubric is None:
        raise UsageError([f"{source.name}: nobody judges in {inner.name}."])
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


def _config(stored: RunConfig, requested: RunConfig, flagged: Collection[str]) -> RunConfig:
    """The run's configuration with the requested judge. A new judge does not inherit settings of
    the run's jury.
    """
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
