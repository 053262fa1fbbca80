"""Finds the run to go on with, or begins one, and holds it in every store."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from socratic_bench.artifacts.delivery import Delivery
from socratic_bench.artifacts.places import bucket_journals, folder_journals, open_bucket
from socratic_bench.config import RunConfig, from_stored, to_stored
from socratic_bench.documents import encode
from socratic_bench.errors import ArtifactError, DamagedJournalError, UsageError
from socratic_bench.journal import Identity, Memory
from socratic_bench.journal.memory import VERSION, impossible, read_header
from socratic_bench.judging.verdict import Unreadable, read_verdict
from socratic_bench.ports import Entry, Journal, Journals
from socratic_bench.runner.halt import Halt
from socratic_bench.runner.plan import Plan
from socratic_bench.runner.stores import check_stores
from socratic_bench.types import Json
from socratic_bench.values import dataclass
from socratic_bench.version import VERSION as RUNNER_VERSION

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A run that this process may play: begun just now, or begun earlier."""

    plan: Plan
    run_id: str
    started_at: datetime
    journal: "Everywhere"
    memory: Memory

    @property
    def is_resumed(self) -> bool:
        return self.journal.was_there

    @property
    def is_complete(self) -> bool:
        """Whether every store knows that all was played, judged and delivered."""
        end = self.memory.end
        is_intact = not (self.journal.repairs or self.journal.lagged or self.memory.n_unreadable)
        return end is not None and end.turns == self.plan.config.turns and is_intact


class Everywhere:
    """The journals of one run in several stores as one; a store that lags behind catches up."""

    def __init__(self, journals: Sequence[Journal], entries: Sequence[Entry] = ()) -> None:
        self._journals = tuple(journals)
        self._has_failed = False
        known = _distinct([*entries, *(entry for journal in journals for entry in journal.entries)])
        self.was_there = bool(known)
        self.entries: list[Entry] = [*known.values()]
        self.repairs = tuple(repair for journal in journals for repair in journal.repairs)
        self.lagged = False
        for journal in journals:
            held = _distinct(journal.entries)
            missing = [entry for text, entry in known.items() if text not in held]
            self.lagged = self.lagged or bool(missing)
            for entry in missing:
                journal.append(entry)

    def append(self, entry: Entry, *, durable: bool = True) -> None:
        """Keep an entry everywhere, here first; a store that fails is told by `ArtifactError`."""
        self.entries.append(entry)
        for journal in self._journals:
            try:
                journal.append(entry, durable=durable)
            except ArtifactError:
                self._has_failed = True
                raise

    def writes(self) -> Sequence[Future[None]]:
        """See `socratic_bench.ports.Journal`: to be noted in one store is enough."""
        return min((journal.writes() for journal in self._journals), key=len, default=())

    def mend(self) -> None:
        """See `socratic_bench.ports.Journal`."""
        for journal in self._journals:
            journal.mend()

    @property
    def mended(self) -> Sequence[str]:
        """See `socratic_bench.ports.Journal`."""
        return [told for journal in self._journals for told in journal.mended]

    def body_of(self, key: str) -> bytes | None:
        """See `socratic_bench.ports.Journal`."""
        bodies = (journal.body_of(key) for journal in self._journals)
        return next((body for body in bodies if body is not None), None)

    @property
    def is_kept(self) -> bool:
        """Whether there is a store that holds every entry."""
        return not self._has_failed and any(journal.is_kept for journal in self._journals)

    def close(self) -> None:
        for journal in self._journals:
            journal.close()


def earlier_config(entries: Sequence[Entry]) -> RunConfig:
    """The configuration that a journal began with. Raises `UsageError` if it is none."""
    header = read_header(entries[0] if entries else {})
    try:
        config = from_stored(header.config)
        config.problems()  # what is wrong is told later, but by then it is of the right types
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(
            [f"The journal of {header.run_id} does not tell how the run was asked for."],
            hint="Give the run's own command line with --resume.",
        ) from error
    return config


def stored_config(asked: RunConfig, run_id: str, halt: Halt) -> RunConfig:
    """The configuration that a run of the stores of `asked` began with.

    Raises `UsageError` if there is no such run, and what ends `halt` while a store is asked.
    """

    def look() -> RunConfig:
        bucket = open_bucket(asked)
        in_bucket = bucket_journals(
            bucket, Delivery(()), sleep=halt.sleep, on_lost=halt.end, notice=lambda _: None
        )
        check_stores([bucket] if bucket else [])
        stores = [found for found in (folder_journals(asked), in_bucket) if found]
        holder = next((store for store in stores if store.holds(run_id)), stores[0])
        return earlier_config([holder.first(run_id)])

    return in_time(look, halt)


def in_time(look: Callable[[], Result], halt: Halt) -> Result:
    """What `look` returns, or raise what ends `halt` before it is there."""
    pool = ThreadPoolExecutor(1, thread_name_prefix="look")
    try:
        return halt.result(pool.submit(look))
    finally:
        pool.shutdown(wait=False)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Taking:
    """What taking up a run needs: its stores, an id for a new one, and who and when this is."""

    stores: Sequence[Journals]
    new_run_id: str
    now: datetime
    owner: Mapping[str, Json]
    notice: Callable[[str], None]

    def hold(self, plan: Plan, entries: Sequence[Entry] = ()) -> Held:
        """The run that `plan` means, held until its journal is closed.

        Raises `UsageError` if it is held elsewhere, is not there, or is another run than asked for.
        """
        if entries:
            return self._continue(plan, read_header(entries[0]).run_id, entries)
        if plan.config.resume_run_id is not None:
            return self._continue(plan, plan.config.resume_run_id)
        if not plan.config.resume:
            return self._begin(plan)
        with ExitStack() as stack:
            for store in self.stores:
                stack.enter_context(store.alone(plan.identity.digest))
            return self._newest(plan) or self._begin(plan)

    def _newest(self, plan: Plan) -> Held | None:
        found = {run for store in self.stores for run in store.newest(plan.identity.digest)}
        for run_id in sorted(found, reverse=True):
            try:
                held = self._open(plan, run_id)
            except DamagedJournalError as error:
                self.notice(f"{run_id} is passed over. {error.message}")
                continue
            if held.memory.turns <= plan.config.turns:
                return self._started(held)
            self.notice(
                f"{run_id} is passed over: it has {held.memory.turns} turns, "
                f"and {plan.config.turns} are asked for."
            )
            held.journal.close()
        return None

    def _continue(self, plan: Plan, run_id: str, entries: Sequence[Entry] = ()) -> Held:
        held = self._open(plan, run_id, entries)
        header = held.memory.header
        if plan.seed == header.seed:
            plan = replace(plan, seed_given="seed" in header.identity)
        if plan.config.turns == header.config.get("turns"):
            # What it began with was asked for, or nothing was: it may have grown since.
            held = replace(held, plan=held.plan.going_on(header.seed, held.memory.turns))
            plan = replace(plan, config=replace(plan.config, turns=held.memory.turns))
        problems = [*Identity(header.identity).differences(plan.identity)]
        if plan.config.turns < held.memory.turns:
            problems.append(
                f"The run has {held.memory.turns} turns, which may become more, "
                f"but {plan.config.turns} are asked for."
            )
        if problems:
            held.journal.close()
            raise UsageError(
                [f"{run_id} cannot go on as asked.", *problems],
                hint="Leave these as they were, or start a new run without resuming.",
            )
        return self._started(held)

    def _open(self, plan: Plan, run_id: str, entries: Sequence[Entry] = ()) -> Held:
        holders = [store for store in self.stores if store.holds(run_id)]
        if not holders and not entries:
            self.stores[0].open(run_id)  # it says best what is not there
        with ExitStack() as stack:
            opened = {}
            for store in holders:
                opened[store] = store.open(run_id)
                stack.callback(opened[store].close)
            known = [*entries, *(e for journal in opened.values() for e in journal.entries)]
            memory = Memory([*_distinct(known).values()])
            _refuse_impossible_scores(memory, plan)
            for store in self.stores:
                if store not in opened:
                    opened[store] = store.create(run_id, str(known[0].get("digest")))
                    stack.callback(opened[store].close)
            journal = Everywhere([*opened.values()], entries)
            stack.pop_all()
        for repair in journal.repairs:
            self.notice(repair)
        return Held(
            plan=plan.going_on(memory.header.seed, plan.config.turns),
            run_id=run_id,
            started_at=memory.header.started_at,
            journal=journal,
            memory=memory,
        )

    def _begin(self, plan: Plan) -> Held:
        identity = plan.identity
        header: dict[str, Json] = {
            "kind": "run",
            "version": VERSION,
            "run_id": self.new_run_id,
            "digest": identity.digest,
            "identity": dict(identity.parts),
            "config": {**to_stored(plan.config), "seed": plan.seed if plan.seed_given else None},
            "seed": plan.seed,
            "started_at": self.now.isoformat(),
            "runner_version": RUNNER_VERSION,
        }
        journal = Everywhere(
            [store.create(self.new_run_id, identity.digest) for store in self.stores]
        )
        journal.append(header)
        held = Held(
            plan=plan,
            run_id=self.new_run_id,
            started_at=self.now,
            journal=journal,
            memory=Memory([header]),
        )
        return self._started(held)

    def _started(self, held: Held) -> Held:
        entry: dict[str, Any] = {
            "kind": "process",
            **self.owner,
            "started_at": self.now.isoformat(),
            "turns": held.plan.config.turns,
            "runner_version": RUNNER_VERSION,
        }
        held.journal.append(entry)
        return held


def _refuse_impossible_scores(memory: Memory, plan: Plan) -> None:
    """A judge may say anything, but is asked once more for a verdict that no rubric allows."""
    rubric = plan.episode.rubric
    if rubric is None:
        return
    for key, answer in memory.unrepeated("judge"):
        found = read_verdict(answer, rubric, judge_model="")
        if isinstance(found, Unreadable) and found.reason == "invalid_verdict":
            what = f"a verdict on turn {key.index} that the rubric does not allow"
            raise impossible(memory.header.run_id, f"{what} ({found.problem.rstrip('.')})")


def _distinct(entries: Sequence[Entry]) -> dict[bytes, Entry]:
    """Each entry once, in order, by its text."""
    return {encode(dict(sorted(entry.items()))): entry for entry in entries}
