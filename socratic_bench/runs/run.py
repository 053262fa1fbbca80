"""One run on one page: prepare, begin or resume, play, judge beside it, finish.

What each step does stands in the module that it is imported from.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager

from socratic_bench.benchmarks import RunConfig
from socratic_bench.documents.run import RunResult
from socratic_bench.errors import BenchError, InternalError, ModelError, Stopped, UsageError
from socratic_bench.models.cancel import CancelToken
from socratic_bench.ports.benchmark import Benchmark
from socratic_bench.ports.store import Entry
from socratic_bench.runs.batches import collect_batches
from socratic_bench.runs.context import Listener, RunContext, new_context
from socratic_bench.runs.finish import finish_run
from socratic_bench.runs.judge_turns import Outcome, PlayedTurns, TurnRecord
from socratic_bench.runs.models import RunModels
from socratic_bench.runs.prepare import Plan, prepare
from socratic_bench.runs.resume import StartedRun, document_entries, start_run
from socratic_bench.runs.services import Services
from socratic_bench.runs.stores import RunStores

# How long a run that was told to end waits for abandoned calls to report what they had sent.
ABANDONED_CALLS_S = 0.3


def run(
    config: RunConfig,
    *,
    benchmark: Benchmark | None = None,
    listener: Listener | None = None,
    cancel_token: CancelToken | None = None,
    document: Mapping[str, object] | None = None,
    services: Services | None = None,
) -> RunResult:
    """Perform one run, from any thread; argv, signals and stdout are left alone.

    Raises `UsageError` for a configuration that cannot be run; all later errors are in the result.

    Args:
        config: what is asked for.
        benchmark: takes the place of the one that the configuration names.
        listener: hears of the run while it goes on.
        cancel_token: ends the run early; it must use the clock of the `services`.
        document: the partial document of a run without a store, which is resumed.
        services: shared with other runs that are played at the same time in other threads; without
            any, the run makes its own.
    """
    price_tables = services.price_tables if services else None
    plan = prepare(config, benchmark=benchmark, price_tables=price_tables)
    entries = () if document is None else document_entries(document)
    return perform(
        plan, listener=listener, cancel_token=cancel_token, entries=entries, services=services
    )


def perform(
    plan: Plan,
    *,
    listener: Listener | None = None,
    cancel_token: CancelToken | None = None,
    entries: Sequence[Entry] = (),
    is_journal_shown: bool = True,
    services: Services | None = None,
) -> RunResult:
    """Perform a prepared run; with the `entries` of a journal, resume the run they belong to.

    Whatever happens, the result holds every finished turn. `is_journal_shown`: people see the
    journal of a run without a store, so hints may tell them to resume from it. Raises `UsageError`
    if a store is sure to be unusable, or the run cannot be resumed as asked.
    """
    with _shared_services(services, cancel_token) as (shared, token):
        token.start_deadline(plan.config.deadline_s, plan.benchmark.shorter)
        listener = listener or Listener()
        context = new_context(plan, listener, token, shared, is_journal_shown=is_journal_shown)
        try:
            with closing(RunStores(context)) as stores:
                return _start_and_finish(context, stores, entries)
        finally:
            listener.on_end()


def _start_and_finish(
    context: RunContext, stores: RunStores, entries: Sequence[Entry]
) -> RunResult:
    context.listener.on_wait("stores, credentials and a connection")
    try:
        started = start_run(context, stores, entries)
    except Exception as error:  # noqa: BLE001 -- the boundary: the result tells what ended the run
        return finish_run(context, None, stores, PlayedTurns(), _to_outcome(error))
    with closing(started.log):
        return _play_and_finish(started, stores)


def _play_and_finish(started: StartedRun, stores: RunStores) -> RunResult:
    context = started.context
    record = TurnRecord(context, stores)
    try:
        outcome = _play(started, stores, record)
    except Exception as error:  # noqa: BLE001 -- the boundary: finished turns are reported
        outcome = _to_outcome(error)
        if started.is_resumed and isinstance(error, BenchError):
            record.wait_for_replayed()
    finally:
        record.close()
    if context.cancel_token.error is not None:
        context.usage_tracker.settle(ABANDONED_CALLS_S)
    return finish_run(context, started, stores, record.freeze(), outcome)


def _play(started: StartedRun, stores: RunStores, record: TurnRecord) -> Outcome:
    """Play the episode, and wait for the verdicts that are given beside it."""
    context = started.context
    context.listener.on_start(context.run_id, context.config, context.plan.episode.opening)
    for text in context.plan.notices:
        context.notices.add(text)
    for text in stores.warnings():
        context.notices.add_passing(text)
    models = RunModels(started, stores, record.add)  # connects
    context.listener.on_wait("")
    collect_batches(started, models)
    record.jury = models.jury()
    outcome: Outcome
    try:
        outcome = context.plan.episode.play(models)
        for text in outcome.notices:
            context.notices.add_passing(text)
    except (ModelError, Stopped) as error:
        if isinstance(error, Stopped) and error.end_reason != "budget":
            raise
        # Verdicts on what was played are still wanted: some are paid for, others may still fit.
        outcome = error
    record.wait(outcome)
    return record.unless_incomplete(outcome)


def _to_outcome(error: Exception) -> BenchError:
    """How the run ended. A mistake of the caller's is raised, and anything unforeseen a defect."""
    if isinstance(error, UsageError):
        raise error
    return error if isinstance(error, BenchError) else InternalError.of(error)


@contextmanager
def _shared_services(
    services: Services | None, cancel_token: CancelToken | None
) -> Iterator[tuple[Services, CancelToken]]:
    """The services and a token that ends with them; both are made where none are given. Services
    and token use one clock, since rate limiters are told when a call was sent.
    """
    token = cancel_token or (services.cancel_token.sibling() if services else CancelToken())
    if services is not None:
        with services.cancel_token.parent_of(token):
            yield services, token
        return
    with Services(monotonic_s=token.monotonic_s) as made, made.cancel_token.parent_of(token):
        yield made, token
