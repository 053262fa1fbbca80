"""Checks a sweep before its first run, and its models and stores before or beside it; and, alone,
files that users write: no call, no credentials, and all mistakes at once.
"""

import json
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import wait
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from itertools import chain
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.benchmarks import RunConfig, load_benchmark
from socratic_bench.catalogue.price_file import load_prices
from socratic_bench.catalogue.prices import PriceTable, builtin_prices
from socratic_bench.concurrency import start_thread
from socratic_bench.documents.doctor import (
    CheckEntry,
    DoctorDocument,
    FileEntry,
    ValidationDocument,
)
from socratic_bench.documents.sweep_plan import MODELS, plan_keys
from socratic_bench.errors import (
    BenchError,
    InternalError,
    ModelError,
    Naming,
    Problem,
    UsageError,
    Words,
    shorten,
    to_text,
)
from socratic_bench.models.budget import SpendingLimit
from socratic_bench.models.cancel import CancelToken, run_cancellable
from socratic_bench.models.rate_limiter import RateTargets
from socratic_bench.models.rate_target import target_of
from socratic_bench.ports.benchmark import Benchmark
from socratic_bench.runs import doctor_calls, prepare
from socratic_bench.runs.doctor import diagnose
from socratic_bench.runs.services import Services
from socratic_bench.settings import MAX_STORED_BYTES, OFFLINE_REGION, Sources, read_bounded, table
from socratic_bench.settings.files import UnreadableTomlError, parse_toml
from socratic_bench.studies.gates import Feasibility, bound_problems, metrics_of_many, without_extra
from socratic_bench.studies.places import find_runs
from socratic_bench.studies.reading import read_run
from socratic_bench.studies.sweep.grid import MODEL, axis_settings
from socratic_bench.studies.sweep.plan_file import ABOUT, KINDS, TARGETS, read_plan_file
from socratic_bench.studies.sweep.request import SweepRequest, names_any, read_prompts, read_sweep
from socratic_bench.types import plural


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
        raise UsageError([*found], hint="See socratic-runner sweep --help.")


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
    targets = []
    for config in _configs(request):
        if tested is None or config.model in tested:
            for target in doctor_calls.targets_of(prepare(config, price_tables=tables)):
                limit = target_of(limits, target.model_id, target.config.region or "")
                rpm, tpm = limit.requests_per_minute, limit.tokens_per_minute
                targets.append(replace(target, target_rpm=rpm, target_tpm=tpm))
    return targets


def _configs(request: SweepRequest) -> Iterator[RunConfig]:
    """One for all samples: what is played makes no other call of a model."""
    grid, declared = request.grid, table(RunConfig)
    seen: set[tuple[object, ...]] = set()
    for cell in grid.distinct():
        values = (v for name, v in cell.values.items() if not declared[name].setting.is_sample)
        if (kind := tuple(values)) not in seen:
            seen.add(kind)
            yield grid.config(cell)


# How long the first cells have to send their first requests.
SENDING_S = 0.1
# How long the sweep waits for checks that are slower than all cells, and for their end.
PATIENCE_S = 5.0
ENDING_S = 1.0


class Preflight(Struct, frozen=True, kw_only=True):
    """What is looked at: the models of the `tested`, each in its role, and the stores.

    What fails is told by `notice`. If it comes first, the sweep ends by it before any cell begins.
    Nothing is looked at on the embedded endpoint, where nothing can fail, unless it comes first.
    It spends from `new_limit`, if all prices are known.
    """

    request: SweepRequest
    tested: Collection[str]
    notice: Callable[[str], None]
    new_limit: Callable[[], AbstractContextManager[SpendingLimit | None]] = nullcontext
    call: Naming = str

    @contextmanager
    def over(
        self, services: Services, token: CancelToken, called: threading.Event
    ) -> Iterator[None]:
        """Around the playing of cells; `called` tells the first call, or that none will come."""
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
                # What was found by then is told before the sweep's end; a defect ends no sweep.
                wait([looking], ENDING_S)
                if looking.done() and isinstance(defect := looking.exception(), Exception):
                    self.notice(InternalError.of(defect).message)

    def _first(self, services: Services, token: CancelToken) -> None:
        try:
            document = run_cancellable(lambda: self._diagnose(services, token), token)
        except BenchError as error:
            token.end(error)
            return
        if failed := self._report_failures(document):
            first = failed[0]
            refusal = ModelError(
                f"No run was started: {plural(len(failed), 'check')} failed. {first.subject}: "
                f"{first.message}",
                code=first.code or "strict",
                end_reason="access",
                hint=first.hint,
            )
            token.end(refusal)

    def _beside(
        self, services: Services, token: CancelToken, called: threading.Event
    ) -> list[CheckEntry]:
        called.wait()
        with suppress(BenchError):  # what is looked at with a token that has ended is unknown
            token.sleep(SENDING_S)
        return self._report_failures(self._diagnose(services, token))

    def _diagnose(self, services: Services, token: CancelToken) -> DoctorDocument:
        targets = targets_of(self.request, self.tested)
        has_prices = all(
            (target.prices or builtin_prices()).of(target.model_id, target.config.region)
            for target in targets
        )
        with self.new_limit() if has_prices else nullcontext() as limit:
            return diagnose(
                targets,
                stores=[self.request.grid.base],
                services=services,
                cancel_token=token,
                limit=limit,
                call=self.call,
            )

    def _report_failures(self, document: DoctorDocument) -> list[CheckEntry]:
        failed = [check for check in document.all_checks if check.status == "failed"]
        for check in failed:
            message = check.message.rstrip(".")
            self.notice(f"{check.subject}: {message}. {check.hint or ''}".rstrip())
        return failed


OWN = "own"  # a file of the benchmark's, which has its own word for it
UNKNOWN = "unknown"  # what it is cannot be told, since it cannot be read


def validate(files: Sequence[str], benchmark: Benchmark) -> ValidationDocument:
    """Check each file as what its name and content show it to be."""
    kinds = {file: _kind(file, benchmark) for file in files}
    own_report = benchmark.check_files([file for file, kind in kinds.items() if kind == OWN])
    problems_by_file = {
        file: [
            *_lines(file, kind, own_report.problems[file] if kind == OWN else _mistakes(file, kind))
        ]
        for file, kind in kinds.items()
    }
    n_problems = len(own_report.together) + sum(map(len, problems_by_file.values()))
    return ValidationDocument(
        ok=not n_problems,
        n_problems=n_problems,
        files=[
            FileEntry(
                file=file,
                file_kind=benchmark.file_kind if kind == OWN else kind,
                ok=not problems_by_file[file],
                problems=[*shorten(problems_by_file[file])],
            )
            for file, kind in kinds.items()
        ],
        problems=[*shorten(own_report.together)],
    )


def _kind(file: str, benchmark: Benchmark) -> str:
    """JSON is a run's document or prices, TOML a plan or the benchmark's own, and text prompts."""
    match Path(file).suffix.lower():
        case ".json":
            with suppress(OSError, ValueError):
                document = json.loads(read_bounded(file, bound=MAX_STORED_BYTES))
                if isinstance(document, dict) and document.get("kind") in ("run", "curated"):
                    return "run"
            return "prices"
        case ".toml":
            try:
                keys = {key.replace("-", "_") for key in parse_toml(read_bounded(file))}
            except (OSError, UnreadableTomlError):
                return UNKNOWN
            # What it has more keys of.
            n_of_plan = len(keys & {*plan_keys(KINDS, benchmark.name), *ABOUT, MODELS})
            is_plan = not benchmark.file_kind or n_of_plan > len(keys & benchmark.file_keys)
            return "plan" if is_plan else OWN
        case _:
            return "prompts"


def _mistakes(file: str, kind: str) -> Sequence[Words]:
    try:
        _READERS[kind](file)
    except UsageError as error:
        return tuple(dict.fromkeys(error.sentences))
    return ()


def _lines(file: str, kind: str, problems: Sequence[Words]) -> Iterator[str]:
    """Without the name of the file, which is told beside them."""
    names = (file, f"prices_file {file}", Path(file).name)
    call = _by_key if kind in ("plan", "prompts") else str
    for problem in problems:
        if (
            isinstance(problem, Problem)
            and Problem(problem.place, problem.values).render() in names
        ):
            yield replace(problem, place="").render(call)
        else:
            yield to_text(problem, call)


def _read_prices(file: str) -> None:
    try:
        content = read_bounded(file)
    except OSError as error:
        raise UsageError([f"it cannot be read: {error.strerror}."]) from error
    load_prices(content, file)


def _read_run(file: str) -> None:
    """A complete run, and the verdicts that are stored beside it."""
    for run in find_runs(file, lambda: OFFLINE_REGION).runs:
        read_run(run, lambda: OFFLINE_REGION)


def _read_plan(file: str) -> None:
    """The plan, and the runs that it asks for."""
    plan = read_plan_file(file)
    # What an environment says besides is taken to be as it should.
    models = plan.flags.get(MODELS) or ["any"]
    sources = Sources(
        flags=plan.flags,
        environ={"BEDROCK_MODEL_IDS": json.dumps([models] if isinstance(models, str) else models)},
        read_stdin=lambda _: b"-",
        profile_region=lambda: OFFLINE_REGION,
        offline_models=tuple,
    )
    request, problems = read_sweep({}, sources, plan, keeps=False)
    is_judge_known = not {"judge-model", "no-judge"}.isdisjoint(plan.flags)
    check(request, problems, is_judge_known=is_judge_known)


def _by_key(name: str) -> str:
    """How a plan calls a setting: what is an axis alone by the axis, such as an opening."""
    called = next((key.name for key in plan_keys(KINDS).values() if key.setting.name == name), None)
    declared = table(RunConfig).get(name)
    return called or (declared and declared.setting.axis) or name


_READERS: dict[str, Callable[[str], object]] = {
    "plan": _read_plan,
    "prompts": read_prompts,
    "prices": _read_prices,
    "run": _read_run,
    UNKNOWN: read_plan_file,  # which says why it cannot be read
}
