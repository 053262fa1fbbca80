"""Find the run to resume, or begin a new one; its journals are locked in every store."""

import shlex
from collections.abc import Sequence
from contextlib import ExitStack

import orjson
from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.benchmarks import RunConfig
from socratic_bench.documents.encoding import plain_keys, with_current_keys
from socratic_bench.documents.journal import VERSION, Process, RunEntry
from socratic_bench.errors import (
    ArtifactError,
    BenchError,
    DamagedJournalError,
    InternalError,
    LeaseLostError,
    Problem,
    UsageError,
)
from socratic_bench.journal.identity import Identity
from socratic_bench.journal.log import Log
from socratic_bench.journal.replay import ReplayLog, impossible, read_header
from socratic_bench.judging.verdict import Unreadable, read_verdict
from socratic_bench.models.cancel import CancelToken, run_cancellable
from socratic_bench.ports.store import Entry, Journals
from socratic_bench.runs.context import RunContext
from socratic_bench.runs.prepare import Plan
from socratic_bench.runs.services import Prepared
from socratic_bench.runs.stores import RunStores
from socratic_bench.settings import CoreConfig, from_stored, to_stored
from socratic_bench.storage.delivery import Delivery
from socratic_bench.storage.replicated_journal import ReplicatedJournal, distinct
from socratic_bench.storage.stores import (
    bucket_journals,
    check_stores,
    folder_journals,
    open_bucket,
    owner,
)
from socratic_bench.types import JUDGE, plural
from socratic_bench.version import VERSION as RUNNER_VERSION

# Clocks of two machines differ by less.
CLOCK_TOLERANCE_S = 1.0
NOT_FROM_BRIEF = Problem.of(
    "The short form is not enough to resume this run: next time give {output_dir}, or leave out "
    "{brief}."
)
FROM_DOCUMENT = Problem.of(
    "Resume from this document, saved as a file: socratic-runner {resume_from} FILE."
)
GO_ON = Problem.of("Resume it:")
GO_ON_AS_STORED = Problem.of("Or resume from the store:")
GO_ON_MENDED = Problem.of("Once that is fixed, resume the run:")
AT_LEAST = (
    "At least so many requests were sent as attempts count: those under way when an earlier "
    "process ended were noted in its output folder alone, which is not here."
)
GIVE_AGAIN = "Run the same command again to resume."
STORE_SETTINGS = ("output_dir", "s3_bucket", "s3_prefix", "s3_kms_key_id")


class StartedRun(Struct, frozen=True, kw_only=True):
    """A run that this process plays: begun just now, or resumed. Its journals are locked.

    Attributes:
        context: from now on the run's; of a resumed run it has the id, seed and start of that.
        journal: the run's entries, in all stores.
        replay_log: what earlier processes of the run were answered.
        log: writes what this process does to the journal.
        connection: what a new run's provider has read to connect with, or why it could not.
    """

    context: RunContext
    journal: ReplicatedJournal
    replay_log: ReplayLog
    log: Log
    connection: Prepared = {}

    @property
    def is_resumed(self) -> bool:
        """Whether an earlier process has begun the run."""
        return self.journal.was_there

    @property
    def is_complete(self) -> bool:
        """Whether every store knows that all was played, judged and delivered."""
        return _is_complete(self.context.plan, self.journal, self.replay_log)


def start_run(context: RunContext, stores: RunStores, entries: Sequence[Entry]) -> StartedRun:
    """Begin a new run, or resume an earlier one, from its stores or the `entries` of a document.

    Raises `UsageError` if a store cannot be used, or the run is held by another process, is not
    there, or is another one than asked for; and what ends the run meanwhile.
    """
    stores.open_bucket()
    acquired, connection = run_cancellable(
        lambda: _begin_or_resume(context, stores, entries), context.cancel_token
    )
    replay_log = acquired.replay_log
    header = replay_log.header
    context = replace(
        context, plan=acquired.plan, run_id=header.run_id, started_at=header.started_at
    )
    log = Log(
        acquired.journal,
        elapsed_s=context.clock.elapsed_s,
        on_failure=context.cancel_token.end,
    )
    context.notices.keep_in(log, replay_log.notices)
    if replay_log.lacks_notes and replay_log.end is None:
        context.notices.add(AT_LEAST)
    behind_s = context.clock.advance_to(replay_log.times.latest)
    if behind_s >= CLOCK_TOLERANCE_S:
        context.notices.add_passing(
            f"The clock is {behind_s:.0f} s behind the run's last entry: its times continue from "
            "that entry."
        )
    context.usage_tracker.take_over(replay_log, context.plan.models)
    if acquired.journal.was_there:
        context.listener.on_resume()
    if replay_log.n_answers:
        context.listener.on_notice(
            f"{plural(replay_log.n_answers, 'call')} of {context.run_id} had been answered and "
            f"{'is' if replay_log.n_answers == 1 else 'are'} not repeated."
        )
    return StartedRun(
        context=context,
        journal=acquired.journal,
        replay_log=replay_log,
        log=log,
        connection=connection,
    )


def earlier_config(entries: Sequence[Entry]) -> RunConfig:
    """The configuration that a journal began with. Raises `UsageError` if it is no journal."""
    header = read_header(entries[0] if entries else {})
    try:
        stored = orjson.loads(with_current_keys(orjson.dumps(header.config)))
        return from_stored(RunConfig, stored)
    except (TypeError, ValueError) as error:
        raise UsageError(
            [f"The journal of {header.run_id} does not tell how the run was asked for."],
            hint=Problem.of("Give the run's own command line with {resume}."),
        ) from error


def stored_config(config: RunConfig, run_id: str, cancel_token: CancelToken) -> RunConfig:
    """The configuration that a run in the stores of `config` began with. Raises `UsageError` if
    there is no such run, and what ends the run while a store is asked.
    """

    def read() -> RunConfig:
        bucket = open_bucket(config)
        in_bucket = bucket_journals(
            bucket,
            Delivery(()),
            sleep=cancel_token.sleep,
            on_lost=cancel_token.end,
            notice=lambda _: None,
        )
        check_stores([bucket] if bucket else [])
        stores = [journals for journals in (folder_journals(config), in_bucket) if journals]
        holder = next((journals for journals in stores if journals.holds(run_id)), stores[0])
        return earlier_config([holder.first(run_id)])

    return run_cancellable(read, cancel_token)


def document_entries(document: object) -> Sequence[Entry]:
    """The journal in a partial document. Raises `UsageError` if there is none."""
    journal = document.get("journal") if isinstance(document, dict) else None
    if not isinstance(journal, list) or not all(isinstance(entry, dict) for entry in journal):
        raise UsageError(
            ["The document to resume from carries no journal."],
            hint="Only the document of a run that was cut short and had no store carries one; "
            "a run with a store is resumed from there.",
        )
    read_header(journal[0] if journal else {})
    return journal


def add_resume_hints(
    error: BenchError, started: StartedRun | None, plan: Plan, *, is_journal_shown: bool
) -> None:
    """Add to an error's hints how the run that it ended is resumed, if it can be."""
    is_final = error.end_reason == "usage" or isinstance(error, LeaseLostError)
    if started is None or is_final or plan.order:  # a sweep says how all of it is resumed
        return
    journal = started.journal
    if not any(entry.get("kind") in ("answered", "batch") for entry in journal.entries):
        return
    if plan.is_rejudged:
        error.hints = tuple(dict.fromkeys((*error.hints, GIVE_AGAIN)))
        return
    from_document = FROM_DOCUMENT if is_journal_shown else NOT_FROM_BRIEF
    of_document = () if journal.is_kept else (from_document,)
    of_store: tuple[Problem, ...] = ()
    if plan.config.output_dir or plan.config.s3_bucket:
        introduction = GO_ON if journal.is_kept else GO_ON_AS_STORED
        if isinstance(error, InternalError):
            introduction = GO_ON_MENDED
        # A command to copy stands last, so that nothing runs into it.
        of_store = (introduction, stored_words(plan.config, started.context.run_id))
    if {*of_document, *of_store} & {*error.hints}:
        return
    if isinstance(error, ArtifactError):  # the store is what failed: the document holds all of it
        error.hints = (*of_document, *error.hints, *of_store)
    else:
        error.hints = (*error.hints, *of_document, *of_store)


def stored_words(config: CoreConfig, run_id: str, command: str = "resume") -> Problem:
    """The command line that resumes a run of a store; a complete one is printed again. Another
    `command` takes the same flags.
    """
    values = {name: getattr(config, name) for name in STORE_SETTINGS}
    words = "".join(f" {{{name}}} {{of_{name}}}" for name, value in values.items() if value)
    quoted = {f"of_{name}": shlex.quote(value) for name, value in values.items() if value}
    return Problem.of(f"socratic-runner {command} {run_id}{words}", **quoted)


class _AcquiredRun(Struct, frozen=True, kw_only=True):
    """A run whose journals this process has locked, with the plan as the run began with it."""

    plan: Plan
    journal: ReplicatedJournal
    replay_log: ReplayLog


def _begin_or_resume(
    context: RunContext, stores: RunStores, entries: Sequence[Entry]
) -> tuple[_AcquiredRun, Prepared]:
    journals = stores.checked_journals()
    connection: Prepared = {}
    if not entries and context.config.resume_run_id is None:
        # Before anything is written: the credentials that are read are masked in the journal.
        connection = context.services.prepare(context.config)
    acquired = _Acquisition(context, stores, journals).acquire(context.plan, entries)
    plan, replay_log = acquired.plan, acquired.replay_log
    if _is_complete(plan, acquired.journal, replay_log) and not plan.is_damaged:
        stores.skip_bucket_if_delivered(plan.keys(replay_log.header.run_id).curated)
    return acquired, connection


def _is_complete(plan: Plan, journal: ReplicatedJournal, replay_log: ReplayLog) -> bool:
    is_intact = not (journal.repairs or journal.lagged or replay_log.unreadable)
    return replay_log.end is not None and replay_log.end.turns == plan.config.turns and is_intact


class _Acquisition(Struct, frozen=True):
    """Begins or resumes runs in the journals of the stores."""

    context: RunContext
    stores: RunStores
    journals: Sequence[Journals]

    def acquire(self, plan: Plan, entries: Sequence[Entry]) -> _AcquiredRun:
        """Begin or resume the run that `plan` describes, and lock its journals."""
        if entries:
            return self._resume(plan, read_header(entries[0]).run_id, entries)
        if plan.config.resume_run_id is not None:
            return self._resume(plan, plan.config.resume_run_id)
        if plan.run_id and any(journals.holds(plan.run_id) for journals in self.journals):
            return self._resume(plan, plan.run_id)
        if not plan.config.resume:
            return self._begin(plan)
        with ExitStack() as stack:
            for journals in self.journals:
                stack.enter_context(journals.exclusive(plan.identity.digest))
            return self._resume_newest(plan) or self._begin(plan)

    def _begin(self, plan: Plan) -> _AcquiredRun:
        run_id, identity = self.context.run_id, plan.identity
        header = plain_keys(
            RunEntry(
                version=VERSION,
                run_id=run_id,
                digest=identity.digest,
                identity=dict(identity.parts),
                config={**to_stored(plan.config), "seed": plan.seed if plan.seed_given else None},
                seed=plan.seed,
                started_at=self.context.started_at,
                runner_version=RUNNER_VERSION,
                max_turns=plan.benchmark.cast.max_turns,
            )
        )
        journal = ReplicatedJournal(
            [journals.create(run_id, identity.digest) for journals in self.journals]
        )
        journal.append(header)
        acquired = _AcquiredRun(plan=plan, journal=journal, replay_log=ReplayLog([header]))
        return self._with_process(acquired)

    def _resume_newest(self, plan: Plan) -> _AcquiredRun | None:
        """The newest run of the plan's identity that is not longer than asked for."""
        digest = plan.identity.digest
        run_ids = {run_id for journals in self.journals for run_id in journals.newest(digest)}
        for run_id in sorted(run_ids, reverse=True):
            try:
                acquired = self._open(plan, run_id)
            except DamagedJournalError as error:
                self.context.listener.on_notice(f"{run_id} is skipped. {error.message}")
                continue
            if acquired.replay_log.turns <= plan.config.turns:
                return self._with_process(acquired)
            self.context.listener.on_notice(
                f"{run_id} is skipped: it has {plural(acquired.replay_log.turns, 'turn')}, "
                f"and {plural(plan.config.turns, 'is', 'are')} asked for."
            )
            acquired.journal.close()
        return None

    def _resume(self, plan: Plan, run_id: str, entries: Sequence[Entry] = ()) -> _AcquiredRun:
        acquired = self._open(plan, run_id, entries)
        header, n_turns = acquired.replay_log.header, acquired.replay_log.turns
        if plan.seed == header.seed:
            plan = replace(plan, seed_given="seed" in header.identity)
        if plan.config.turns == header.config.get("turns"):
            # What it began with was asked for, or nothing was: it may have grown since.
            acquired = replace(acquired, plan=acquired.plan.resumed(header.seed, n_turns))
            plan = replace(plan, config=replace(plan.config, turns=n_turns))
        problems = [*Identity(header.identity).differences(plan.identity)]
        if plan.config.turns < n_turns:
            problems.append(
                f"The run has {plural(n_turns, 'turn')}, which may become more, "
                f"but {plural(plan.config.turns, 'is', 'are')} asked for."
            )
        if problems:
            acquired.journal.close()
            raise UsageError(
                [f"{run_id} cannot be resumed with these settings.", *problems],
                hint="Leave these as they were, or start a new run without resuming.",
            )
        return self._with_process(acquired)

    def _open(self, plan: Plan, run_id: str, entries: Sequence[Entry] = ()) -> _AcquiredRun:
        """Lock and read a run's journals, and create those of stores that have none of it."""
        holders = [journals for journals in self.journals if journals.holds(run_id)]
        if not holders and not entries:
            self.journals[0].open(run_id)  # raises the error that says what is missing
        with ExitStack() as stack:
            opened = {}
            for journals in holders:
                opened[journals] = journals.open(run_id)
                stack.callback(opened[journals].close)
            known = [*entries, *(entry for each in opened.values() for entry in each.entries)]
            replay_log = ReplayLog([*distinct(known).values()])
            self._refuse_impossible_scores(plan, replay_log)
            for journals in self.journals:
                if journals not in opened:
                    opened[journals] = journals.create(run_id, str(known[0].get("digest")))
                    stack.callback(opened[journals].close)
            journal = ReplicatedJournal([*opened.values()], entries)
            stack.pop_all()
        for repair in (*journal.repairs, *replay_log.unreadable):
            self.context.listener.on_notice(repair)
        return _AcquiredRun(
            plan=plan.resumed(replay_log.header.seed, plan.config.turns),
            journal=journal,
            replay_log=replay_log,
        )

    def _with_process(self, acquired: _AcquiredRun) -> _AcquiredRun:
        """Note in the journal that this process plays the run from now on."""
        spending = self.context.services.spending
        entry = Process(
            **owner(),  # type: ignore[arg-type]
            started_at=self.context.started_at,
            turns=acquired.plan.config.turns,
            runner_version=RUNNER_VERSION,
            in_ledger=spending.process if spending else None,
        )
        acquired.journal.append(plain_keys(entry))
        return acquired

    def _refuse_impossible_scores(self, plan: Plan, replay_log: ReplayLog) -> None:
        """Raise for an invalid verdict without a repair, although its turn's file is there.

        No run leaves one. A process may be killed between verdict and repair, but then it has
        stored no file of that turn, and the run has not ended.
        """
        folder, run_id = self.stores.folder, replay_log.header.run_id
        for key, answer in replay_log.answers_without_repeat(JUDGE):
            rubric = plan.rubric_of(key.index)
            if rubric is None or key.is_closing:
                continue
            verdict = read_verdict(answer, rubric, judge_model="")
            if not isinstance(verdict, Unreadable) or verdict.reason != "invalid_verdict":
                continue
            is_stored = folder is not None and folder.holds(plan.keys(run_id).judge(key.index))
            if replay_log.end is not None or is_stored:
                what = f"a verdict on turn {key.index} that the rubric does not allow"
                raise impossible(run_id, f"{what} ({verdict.problem.rstrip('.')})")
