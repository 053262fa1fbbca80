"""Finds the run to resume, or begins a new one, and locks its journal in every store."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from itertools import takewhile
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.benchmarks import RunConfig
from socratic_bench.documents.journal import VERSION, Process, RunEntry
from socratic_bench.documents.plain import plain_keys
from socratic_bench.errors import (
    ArtifactError,
    BenchError,
    DamagedJournalError,
    InternalError,
    LeaseLostError,
    Problem,
    UsageError,
)
from socratic_bench.journal import Identity, ReplayLog
from socratic_bench.journal.replay import impossible, read_header
from socratic_bench.models.cancel_token import CancelToken, in_time
from socratic_bench.ports.store import Entry, Journals
from socratic_bench.runs.prepare import Plan
from socratic_bench.settings import CoreConfig, from_stored, to_stored
from socratic_bench.storage.delivery import Delivery
from socratic_bench.storage.replicated_journal import ReplicatedJournal, distinct
from socratic_bench.storage.stores import (
    bucket_journals,
    check_stores,
    folder_journals,
    open_bucket,
)
from socratic_bench.types import JUDGE, counted
from socratic_bench.version import VERSION as RUNNER_VERSION


class AcquiredRun(Struct, frozen=True, kw_only=True):
    """A run that this process may play: begun just now, or begun earlier."""

    plan: Plan
    run_id: str
    started_at: datetime
    journal: ReplicatedJournal
    replay_log: ReplayLog

    @property
    def is_complete(self) -> bool:
        """Whether every store knows that all was played, judged and delivered."""
        end = self.replay_log.end
        is_intact = not (self.journal.repairs or self.journal.lagged or self.replay_log.unreadable)
        return end is not None and end.turns == self.plan.config.turns and is_intact


def earlier_config(entries: Sequence[Entry]) -> RunConfig:
    """The configuration that a journal began with. Raises `UsageError` if it is none."""
    header = read_header(entries[0] if entries else {})
    try:
        return from_stored(RunConfig, header.config)
    except (TypeError, ValueError) as error:
        raise UsageError(
            [f"The journal of {header.run_id} does not tell how the run was asked for."],
            hint=Problem.of("Give the run's own command line with {resume}."),
        ) from error


def stored_config(asked: RunConfig, run_id: str, cancel_token: CancelToken) -> RunConfig:
    """The configuration that a run of the stores of `asked` began with.

    Raises `UsageError` if there is no such run, and what ends the run while a store is asked.
    """
    return in_time(lambda: _config_in_stores(asked, run_id, cancel_token), cancel_token)


def _config_in_stores(asked: RunConfig, run_id: str, cancel_token: CancelToken) -> RunConfig:
    bucket = open_bucket(asked)
    in_bucket = bucket_journals(
        bucket,
        Delivery(()),
        sleep=cancel_token.sleep,
        on_lost=cancel_token.end,
        notice=lambda _: None,
    )
    check_stores([bucket] if bucket else [])
    stores = [found for found in (folder_journals(asked), in_bucket) if found]
    holder = next((store for store in stores if store.holds(run_id)), stores[0])
    return earlier_config([holder.first(run_id)])


def document_entries(document: object) -> Sequence[Entry]:
    """The journal that a partial document carries. Raises `UsageError` if it carries none."""
    journal = document.get("journal") if isinstance(document, dict) else None
    if not isinstance(journal, list) or not all(isinstance(entry, dict) for entry in journal):
        raise UsageError(
            ["The document to resume from carries no journal."],
            hint="Only the document of a run that was cut short and had no store carries one; "
            "a run with a store is resumed from there.",
        )
    read_header(journal[0] if journal else {})
    return journal


class RunAcquisition(Struct, frozen=True, kw_only=True):
    """What it takes to begin or resume a run: stores, an id for a new run, process and time.

    `is_kept` says whether a file of the run is surely in its folder.
    """

    stores: Sequence[Journals]
    is_kept: Callable[[str], bool] = lambda _: False
    new_run_id: str
    now: datetime
    owner: Mapping[str, Any]
    notice: Callable[[str], None]

    def acquire_run(self, plan: Plan, entries: Sequence[Entry] = ()) -> AcquiredRun:
        """Begin or resume the run that `plan` describes, and lock its journals.

        Raises `UsageError` if it is held elsewhere, is not there, or is another run than asked for.
        """
        if entries:
            return self._continue(plan, read_header(entries[0]).run_id, entries)
        if plan.config.resume_run_id is not None:
            return self._continue(plan, plan.config.resume_run_id)
        if plan.run_id is not None and any(_is_begun(store, plan.run_id) for store in self.stores):
            return self._continue(plan, plan.run_id)
        if not plan.config.resume:
            return self._begin(plan)
        with ExitStack() as stack:
            for store in self.stores:
                stack.enter_context(store.exclusive(plan.identity.digest))
            return self._newest(plan) or self._begin(plan)

    def _newest(self, plan: Plan) -> AcquiredRun | None:
        found = {run for store in self.stores for run in store.newest(plan.identity.digest)}
        for run_id in sorted(found, reverse=True):
            try:
                acquired = self._open(plan, run_id)
            except DamagedJournalError as error:
                self.notice(f"{run_id} is passed over. {error.message}")
                continue
            if acquired.replay_log.turns <= plan.config.turns:
                return self._started(acquired)
            self.notice(
                f"{run_id} is passed over: it has {counted(acquired.replay_log.turns, 'turn')}, "
                f"and {counted(plan.config.turns, 'is', 'are')} asked for."
            )
            acquired.journal.close()
        return None

    def _continue(self, plan: Plan, run_id: str, entries: Sequence[Entry] = ()) -> AcquiredRun:
        acquired = self._open(plan, run_id, entries)
        header = acquired.replay_log.header
        if plan.seed == header.seed:
            plan = replace(plan, seed_given="seed" in header.identity)
        if plan.config.turns == header.config.get("turns"):
            # What it began with was asked for, or nothing was: it may have grown since.
            acquired = replace(
                acquired, plan=acquired.plan.going_on(header.seed, acquired.replay_log.turns)
            )
            plan = replace(plan, config=replace(plan.config, turns=acquired.replay_log.turns))
        problems = [*Identity(header.identity).differences(plan.identity)]
        if plan.config.turns < acquired.replay_log.turns:
            problems.append(
                f"The run has {counted(acquired.replay_log.turns, 'turn')}, which may become more, "
                f"but {counted(plan.config.turns, 'is', 'are')} asked for."
            )
        if problems:
            acquired.journal.close()
            raise UsageError(
                [f"{run_id} cannot go on as asked.", *problems],
                hint="Leave these as they were, or start a new run without resuming.",
            )
        return self._started(acquired)

    def _open(self, plan: Plan, run_id: str, entries: Sequence[Entry] = ()) -> AcquiredRun:
        holders = [store for store in self.stores if store.holds(run_id)]
        if not holders and not entries:
            self.stores[0].open(run_id)  # raises the error that says what is missing
        with ExitStack() as stack:
            opened = {}
            for store in holders:
                opened[store] = store.open(run_id)
                stack.callback(opened[store].close)
            known = [*entries, *(e for journal in opened.values() for e in journal.entries)]
            replay_log = ReplayLog([*distinct(known).values()])
            _refuse_impossible_scores(replay_log, plan, self.is_kept)
            for store in self.stores:
                if store not in opened:
                    opened[store] = store.create(run_id, str(known[0].get("digest")))
                    stack.callback(opened[store].close)
            journal = ReplicatedJournal([*opened.values()], entries)
            stack.pop_all()
        for repair in (*journal.repairs, *replay_log.unreadable):
            self.notice(repair)
        return AcquiredRun(
            plan=plan.going_on(replay_log.header.seed, plan.config.turns),
            run_id=run_id,
            started_at=replay_log.header.started_at,
            journal=journal,
            replay_log=replay_log,
        )

    def _begin(self, plan: Plan) -> AcquiredRun:
        identity = plan.identity
        header = plain_keys(
            RunEntry(
                version=VERSION,
                run_id=self.new_run_id,
                digest=identity.digest,
                identity=dict(identity.parts),
                config={**to_stored(plan.config), "seed": plan.seed if plan.seed_given else None},
                seed=plan.seed,
                started_at=self.now,
                runner_version=RUNNER_VERSION,
                max_turns=plan.benchmark.cast.max_turns,
            )
        )
        journal = ReplicatedJournal(
            [store.create(self.new_run_id, identity.digest) for store in self.stores]
        )
        journal.append(header)
        acquired = AcquiredRun(
            plan=plan,
            run_id=self.new_run_id,
            started_at=self.now,
            journal=journal,
            replay_log=ReplayLog([header]),
        )
        return self._started(acquired)

    def _started(self, acquired: AcquiredRun) -> AcquiredRun:
        entry = Process(
            **self.owner,
            started_at=self.now,
            turns=acquired.plan.config.turns,
            runner_version=RUNNER_VERSION,
        )
        acquired.journal.append(plain_keys(entry))
        return acquired


def _is_begun(store: Journals, run_id: str) -> bool:
    """Whether there is more of a run than a name: its first entry."""
    try:
        store.first(run_id)
    except UsageError:
        return False
    return True


def _refuse_impossible_scores(
    replay_log: ReplayLog, plan: Plan, is_kept: Callable[[str], bool]
) -> None:
    """Raise for an invalid verdict that was not followed by a repair, although its turn's file is
    kept or the run has ended: no run leaves one. A process may be killed between the two, and other
    calls may be answered meanwhile.
    """
    run_id = replay_log.header.run_id
    for key, answer in replay_log.answers_without_repeat(JUDGE):
        rubric = plan.rubric_of(key.index)
        if rubric is None or key.is_closing:
            continue
        # Not needed for a run that begins.
        from socratic_bench.judging.verdict import Unreadable, read_verdict

        found = read_verdict(answer, rubric, judge_model="")
        if not isinstance(found, Unreadable) or found.reason != "invalid_verdict":
            continue
        if replay_log.end is not None or is_kept(plan.keys(run_id).judge(key.index)):
            what = f"a verdict on turn {key.index} that the rubric does not allow"
            raise impossible(run_id, f"{what} ({found.problem.rstrip('.')})")


# What people are told of going on with a run that was cut short.

NOT_FROM_BRIEF = Problem.of(
    "The short form is not enough to go on with this run: next time give {output_dir}, or no "
    "{brief}."
)
FROM_DOCUMENT = Problem.of(
    "Go on with this document, kept in a file: socratic-runner {resume_from} FILE."
)
GO_ON = Problem.of("Go on with it:")
GO_ON_AS_STORED = Problem.of("Or go on with what the store has:")
GO_ON_MENDED = Problem.of("Once that is mended, go on with the run:")
GIVE_AGAIN = "Give the same command again: it goes on where it was cut short."
STORED = ("output_dir", "s3_bucket", "s3_prefix", "s3_kms_key_id")


def say_how_to_go_on(
    error: BenchError, acquired: AcquiredRun | None, plan: Plan, *, is_journal_shown: bool
) -> None:
    """Add it to the hints of what ended a run, if there is something to go on with."""
    if acquired is None or error.end_reason == "usage":
        return
    if isinstance(error, LeaseLostError):
        return
    if not any(entry.get("kind") == "answered" for entry in acquired.journal.entries):
        return
    if plan.is_rejudged:
        error.hints = tuple(dict.fromkeys((*error.hints, GIVE_AGAIN)))
        return
    is_kept = acquired.journal.is_kept
    first = () if is_kept else (FROM_DOCUMENT if is_journal_shown else NOT_FROM_BRIEF,)
    # A command to copy stands last, so that nothing runs into it.
    said = GO_ON if is_kept else GO_ON_AS_STORED
    if isinstance(error, InternalError):
        said = GO_ON_MENDED
    has_store = bool(plan.config.output_dir or plan.config.s3_bucket)
    last = (said, stored_words(plan.config, acquired.run_id)) if has_store else ()
    if {*first, *last} & {*error.hints}:
        return
    # If the store is what failed, the document holds all of it.
    is_of_store = isinstance(error, ArtifactError)
    told = (*first, *error.hints) if is_of_store else (*error.hints, *first)
    error.hints = (*told, *last)


def of_no_run(error: BenchError) -> BenchError:
    """The same error for those who play many runs: without the hints on going on with this one."""
    told = error.copied()
    told.hints = tuple(
        takewhile(lambda hint: hint not in (GO_ON, GO_ON_MENDED, GO_ON_AS_STORED), error.hints)
    )
    told.hints = tuple(hint for hint in told.hints if hint not in (FROM_DOCUMENT, NOT_FROM_BRIEF))
    return told


def stored_words(config: CoreConfig, run_id: str, command: str = "resume") -> Problem:
    """The command line that goes on with a run of a store; one that is complete is printed. Another
    `command` takes the same words.
    """
    values = {name: getattr(config, name) for name in STORED}
    words = "".join(f" {{{name}}} {{of_{name}}}" for name, value in values.items() if value)
    quoted = {f"of_{name}": shlex.quote(value) for name, value in values.items() if value}
    return Problem.of(f"socratic-runner {command} {run_id}{words}", **quoted)
