"""Checks a sweep before its first cell, and its models and stores before or beside it."""

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from itertools import chain
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.benchmarks import RunConfig, load_benchmark
from socratic_bench.concurrency import start_thread
from socratic_bench.documents.doctor import CheckEntry, DoctorDocument
from socratic_bench.errors import BenchError, InternalError, ModelError, Problem, UsageError, Words
from socratic_bench.models.cancel import CancelToken, run_cancellable
from socratic_bench.models.rate_limiter import RateTargets
from socratic_bench.models.rate_target import RateTarget, target_of
from socratic_bench.runs import doctor_calls, prepare
from socratic_bench.runs.doctor import diagnose
from socratic_bench.runs.services import Services
from socratic_bench.settings import table
from socratic_bench.studies.gates import Feasibility, bound_problems, metrics_of_many, without_extra
from socratic_bench.studies.sweep.grid import MODEL, axis_settings
from socratic_bench.studies.sweep.plan_file import TARGETS
from socratic_bench.studies.sweep.request import SweepRequest, names_any
from socratic_bench.types import plural

if TYPE_CHECKING:
    from socratic_bench.catalogue.prices import PriceTable


def check(
    request: SweepRequest,
    problems: Sequence[Words],
    has_intervals: Callable[[], bool] = lambda: True,
    *,
    is_judge_known: bool = True,
) -> None:
    """Raise `UsageError` with every mistake: those that are given, those of gates whose result is
    certain, and those of any kind of cell. `has_intervals` is asked only if it matters. A limit of
    a model that nobody calls is none where it could be a judge that is named elsewhere.

    Repeats of a kind differ in their seeds alone, so one of each is looked at.
    """
    found: dict[Words, None] = dict.fromkeys([*problems, *_wrong_bounds(request, has_intervals)])
    grid = request.grid
    tables: dict[str, PriceTable] = {}
    with suppress(UsageError):  # each run with such a file tells its mistakes
        tables = request.price_tables()
    targets = RateTargets(request.targets())
    called = {*request.plan.ids} if MODEL in request.unread else set()
    axes = [field.name for field in axis_settings() if field.setting.is_sample]
    feasibility = Feasibility(axes=axes)
    for cell in grid.distinct():
        config = replace(grid.config(cell), max_cost_usd=grid.base.max_cost_usd)
        try:
            plan = prepare(config, price_tables=tables)
            called.update(*plan.requested_models.values())
            feasibility.add(tuple(cell.values.get(axis) for axis in grid.cluster_axes), plan)
        except UsageError as error:
            called.update(_model_ids(config))
            # That an axis has no value is said already where none could be read.
            sentences = (
                sentence for sentence in error.sentences if not names_any(sentence, request.unread)
            )
            found.update(dict.fromkeys(sentences))
        if large := targets.problem(config.model, config.region, config.max_tokens):
            found[large] = None
    if is_judge_known and not _is_model_unread(request, problems):
        found.update(dict.fromkeys(_unused_targets(request, called)))
    if request.bounds and not found:  # what they can come to is known once all can be played
        benchmark = load_benchmark(grid.base.benchmark)
        found.update(dict.fromkeys(feasibility.problems(request.bounds, benchmark)))
    if found:
        raise UsageError([*found], hint="socratic-runner sweep --help lists every flag.")


def _wrong_bounds(request: SweepRequest, has_intervals: Callable[[], bool]) -> Iterator[Words]:
    """What is wrong with bounds on all runs of a model, whatever is played."""
    if not request.bounds:
        return
    try:
        benchmark = load_benchmark(request.grid.base.benchmark)
    except UsageError:  # each cell tells of an unknown benchmark
        return
    if not benchmark.cast.has_item_metrics:
        yield from bound_problems(request.bounds, metrics_of_many(benchmark))
    yield from without_extra(request.bounds, has_intervals)


def _model_ids(config: RunConfig) -> Iterator[str]:
    """Whom a run would call, as far as that is known of one that cannot be played."""
    with suppress(UsageError):  # an unknown benchmark
        parts = load_benchmark(config.benchmark).parts
        yield from chain.from_iterable(parts.requested_models(config, is_judged=True).values())


def _is_model_unread(request: SweepRequest, problems: Sequence[Words]) -> bool:
    """Whether a setting by which a model is called cannot be read."""
    try:
        actors = load_benchmark(request.grid.base.benchmark).parts.everyone
    except UsageError:
        return True
    named = {MODEL} if request.plan.ids else set()
    model_settings = {actor.setting for actor in actors} - {MODEL}
    return not {MODEL, *model_settings}.isdisjoint({*request.unread} - named) or any(
        names_any(problem, model_settings) for problem in problems
    )


def _unused_targets(request: SweepRequest, called: Collection[str]) -> list[Problem]:
    """A limit of a model that no cell calls is a slip. A plan's models need not all be played."""
    model_ids = {*called, *request.plan.ids}
    named = {
        (name, target.model): None
        for name in TARGETS
        for target in getattr(request.settings, name)
        if target.model and target.model not in model_ids
    }
    return [
        Problem.of(
            f"{{{name}}} names {{model!r}}, which no run calls. They call {{called}}.",
            model=model,
            called=", ".join(sorted(filter(None, called))),
        )
        for name, model in named
    ]


def targets_of(
    request: SweepRequest, tested: Collection[str] | None = None
) -> list[doctor_calls.Target]:
    """Every model in each role, region, tier and other setting by which calls differ, with what a
    minute is to have of it; those of the `tested` alone, if some are named. Raises `UsageError`.
    """
    tables, limits = request.price_tables(), request.targets()
    return [
        _with_limits(target, limits)
        for config in _configs(request)
        if tested is None or config.model in tested
        for target in doctor_calls.targets_of(prepare(config, price_tables=tables))
    ]


def _configs(request: SweepRequest) -> Iterator[RunConfig]:
    """One for all samples: what is played makes no other call of a model."""
    grid, declared = request.grid, table(RunConfig)
    seen: set[tuple[object, ...]] = set()
    for cell in grid.distinct():
        values = (v for name, v in cell.values.items() if not declared[name].setting.is_sample)
        if (kind := tuple(values)) not in seen:
            seen.add(kind)
            yield grid.config(cell)


def _with_limits(target: doctor_calls.Target, limits: Sequence[RateTarget]) -> doctor_calls.Target:
    limit = target_of(limits, target.model_id, target.config.region or "")
    return replace(target, target_rpm=limit.requests_per_minute, target_tpm=limit.tokens_per_minute)


# How long the first cells have to send their first requests.
SENDING_S = 0.1
# How long the sweep waits for checks that are slower than all cells, and for their end.
PATIENCE_S = 5.0
ENDING_S = 1.0


class Preflight(Struct, frozen=True, kw_only=True):
    """What is looked at: the models of the `tested`, each in its role, and the stores.

    What fails is told by `notice`. If it comes first, the sweep ends by it before any cell begins.
    Nothing is looked at on the embedded endpoint, where nothing can fail, unless it comes first.
    """

    request: SweepRequest
    tested: Collection[str]
    notice: Callable[[str], None]
    call: Callable[[str], str] = str

    @contextmanager
    def over(
        self, services: Services, token: CancelToken, called: threading.Event
    ) -> Iterator[None]:
        """Around the playing of cells with these services, of which `called` tells the first call,
        or that none is to be waited for.
        """
        if self.request.settings.strict:
            self._first(services, token)
            yield
            return
        if self.request.grid.base.offline:
            yield
            return
        sibling = token.sibling()
        with token.parent_of(sibling):
            looking = start_thread(lambda: self._beside(services, sibling, called))
            try:
                yield
            finally:
                called.set()
                if token.error is None:
                    wait([looking], PATIENCE_S)
                sibling.end(ModelError("The sweep is over.", code="over", end_reason="interrupted"))
                self._await(looking)

    def _first(self, services: Services, token: CancelToken) -> None:
        try:
            document = run_cancellable(lambda: self._diagnose(services, token), token)
        except BenchError as error:
            token.end(error)
            return
        failed = self._report_failures(document)
        if failed:
            token.end(_refusal(failed))

    def _beside(
        self, services: Services, token: CancelToken, called: threading.Event
    ) -> list[CheckEntry]:
        called.wait()
        with suppress(BenchError):  # what is looked at with a token that has ended is unknown
            token.sleep(SENDING_S)
        return self._report_failures(self._diagnose(services, token))

    def _await(self, looking: "Future[list[CheckEntry]]") -> None:
        """What was found by then is told before the sweep's end; a defect ends no sweep."""
        wait([looking], ENDING_S)
        if looking.done() and isinstance(defect := looking.exception(), Exception):
            self.notice(InternalError.of(defect).message)

    def _diagnose(self, services: Services, token: CancelToken) -> DoctorDocument:
        return diagnose(
            targets_of(self.request, self.tested),
            stores=[self.request.grid.base],
            services=services,
            cancel_token=token,
            call=self.call,
        )

    def _report_failures(self, document: DoctorDocument) -> list[CheckEntry]:
        failed = [check for check in document.all_checks if check.status == "failed"]
        for check in failed:
            message = check.message.rstrip(".")
            self.notice(f"{check.subject}: {message}. {check.hint or ''}".rstrip())
        return failed


def _refusal(failed: list[CheckEntry]) -> ModelError:
    first = failed[0]
    return ModelError(
        f"Nothing was played: {plural(len(failed), 'check')} failed. {first.subject}: "
        f"{first.message}",
        code=first.code or "strict",
        end_reason="access",
        hint=first.hint,
    )
