"""One stored run: found by its id, file or folder, and what its chart shows."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from socratic_bench.documents.report import ShownDocument, ShownTurn
from socratic_bench.errors import Problem, UsageError
from socratic_bench.ports.benchmark import Benchmark
from socratic_bench.settings import S3
from socratic_bench.storage.keys import RunKeys
from socratic_bench.storage.stores import store_at
from socratic_bench.studies.places import CURATED, SWEEPS, FoundRun, find_runs
from socratic_bench.studies.reading import read_run
from socratic_bench.studies.rows import COMPLETE_IT, RunRow, TurnRow, benchmark_of

MOST_NAMED = 5
# A run's own file or folder in a store.
_OWN = re.compile(r"(?P<root>.*?)/?(?:curated|raw)/runs/(?P<run_id>run-[A-Za-z0-9-]+)(?:\.json|/?)")
_RUN_ID = re.compile(r"run-[A-Za-z0-9-]+")


class Single(Struct, frozen=True, kw_only=True):
    """A run, its place, and the judging whose verdicts are shown, if one is named."""

    run: RunRow
    benchmark: Benchmark
    place: str
    judging: str | None

    @property
    def threshold(self) -> float | None:
        """The score below which a turn falls short, if the benchmark has one."""
        path = self.benchmark.views.threshold
        threshold = self.run.at(path) if path else None
        return float(threshold) if isinstance(threshold, int | float) else None

    def result_of(self, turn: TurnRow) -> str | None:
        """The result of a turn in a benchmark without a judge."""
        name = self.benchmark.views.result
        result = turn.heuristics.get(name) if name else None
        return None if result is None else str(result)

    def falls_short(self, turn: TurnRow) -> bool | None:
        """Whether a turn is below the threshold or wrong; `None` if that is unknown."""
        if (result := self.result_of(turn)) is not None:
            return result != self.benchmark.views.right
        if turn.score is None or self.threshold is None:
            return None
        return turn.score < self.threshold

    @property
    def bounds(self) -> tuple[float, float]:
        """The range of scores in the chart: that of the primary metric, extended to all scores."""
        scores = [turn.score for turn in self.run.turns if turn.score is not None]
        by_name = {metric.name: metric for metric in self.benchmark.metrics}
        metric = by_name[self.benchmark.primary_metric]
        low, high = metric.low or 0.0, metric.high or 0.0
        return min([low, *scores]), max([high, *scores])

    @property
    def document(self) -> ShownDocument:
        primary = self.benchmark.primary_metric
        return ShownDocument(
            run_id=self.run.run_id,
            benchmark=self.benchmark.name,
            model=self.run.model,
            place=self.place,
            judging=self.judging,
            metric=primary,
            value=self.run.metrics[primary],
            threshold=self.threshold,
            n_turns=self.run.n_turns,
            turns=[self._turn(turn) for turn in self.run.turns],
        )

    def _turn(self, turn: TurnRow) -> ShownTurn:
        return ShownTurn(
            turn=turn.turn,
            score=turn.score,
            result=self.result_of(turn),
            falls_short=self.falls_short(turn),
            unjudged_reason=turn.unjudged_reason,
            events=[*(turn.events or ())],
        )


def read_single(
    argument: str, roots: Sequence[str], region: Callable[[], str], judging: str | None
) -> Single:
    """Read the complete run that an argument names; an id is looked up in the `roots` in order.
    With a `judging`, its verdicts replace the first.

    Raises `UsageError` if there is none, or several, and `ArtifactError` if a store cannot be read.
    """
    source = _find_source(argument, roots, region)
    run = read_run(source, region, argument=argument, judging=judging)
    benchmark = benchmark_of(run.document, source.name)
    return Single(run=run, benchmark=benchmark, place=source.name, judging=judging)


def _find_source(argument: str, roots: Sequence[str], region: Callable[[], str]) -> FoundRun:
    is_local = not argument.startswith(S3)
    if _RUN_ID.fullmatch(argument) and not Path(argument).exists():
        if not roots:
            message = "Where {argument} is kept: give {output_dir} or {s3_bucket}."
            raise UsageError([Problem.of(message, argument=argument)])
        return _stored(argument, roots, region)
    if match := _OWN.fullmatch(argument):
        return _stored(match["run_id"], [match["root"] or "."], region)
    if (is_local and not Path(argument).is_dir()) or f"/{SWEEPS}" in argument:
        sources = find_runs(argument, region).runs
        _check([Path(source.name).stem for source in sources], argument)
        return sources[0]
    store = store_at(argument.rstrip("/") or argument, region)
    names = [key.removeprefix(CURATED) for key in store.keys(CURATED) if key.endswith(".json")]
    _check(sorted(name.removesuffix(".json") for name in names), argument)
    return _stored(names[0].removesuffix(".json"), [argument.rstrip("/") or argument], region)


def _stored(run_id: str, roots: Sequence[str], region: Callable[[], str]) -> FoundRun:
    key = RunKeys(run_id).curated
    for root in roots:
        store = store_at(root, region)
        if body := store.get(key):
            expected = {"run_id": run_id}
            return FoundRun(name=store.location(key), body=body, store=store, expected=expected)
    raise UsageError(
        [f"There is no complete run {run_id} in {' or '.join(roots)} ({key})."], hint=COMPLETE_IT
    )


def _check(names: Sequence[str], argument: str) -> None:
    """Raises `UsageError` unless there is exactly one name."""
    if not names:
        raise UsageError(
            [f"{argument} has no complete run (curated/runs/*.json)."], hint=COMPLETE_IT
        )
    if len(names) > 1:
        last = ", ".join(names[-MOST_NAMED:])
        raise UsageError(
            [f"{argument} has {len(names)} runs, and one is shown. The last of them: {last}."],
            hint=Problem.of("Give the id of one, with {output_dir} or {s3_bucket}."),
        )
