"""The calls of earlier processes of a run, read from the entries of its journal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.catalogue.prices import BATCH
from socratic_bench.concurrency import convert
from socratic_bench.documents.encoding import place, reason
from socratic_bench.documents.journal import (
    KINDS,
    Answered,
    BatchEntry,
    EndEntry,
    Failed,
    FailedAttemptEntry,
    JournalEntry,
    Keyed,
    Noticed,
    Process,
    RequestEntry,
    RunEntry,
    Timed,
)
from socratic_bench.errors import DamagedJournalError, ModelError, UsageError
from socratic_bench.types import MOST, Attempt, CallKey, Completion, EndReason, Role

# A call refused for its content would be refused again; others may be answered later.
LASTING: tuple[EndReason, ...] = ("context_window", "content_filtered")
# The error of an attempt whose process ended before the answer.
LOST = "process_ended"
# Later times leave a clock no room to go on.
LAST_YEAR = 9000
# Figures that must be right, since damage would show in the checksum. Blocks and times of day may
# be in another version's form.
FIGURE = (
    r"(completion|attempts?)\b(?!\.message).*\.\w+(?<!_at)"
    r"|\w+_tokens_at_most|\w+_s|key\.(index|repeat)"
)


class _Answer(Struct, frozen=True, kw_only=True):
    request_sha256: str
    outcome: Completion | ModelError


class ReplayLog:
    """Every answered call of a run's earlier processes, and what else of them has to be reported.

    `turns` is the largest number of turns that a process was started with, `unreadable` has a
    sentence about each entry that cannot be read, `times` sums up how long the processes took.

    Raises `DamagedJournalError` if the first entry is not of a run, or of an unknown version, or if
    an entry has an impossible value.
    """

    def __init__(self, entries: Sequence[Mapping[str, Any]]) -> None:
        self.header = read_header(entries[0] if entries else {})
        self.turns = self.header.turns
        self.notices: list[str] = []
        self.batches: list[BatchEntry] = []
        self.end: EndEntry | None = None
        self.times = Times(self.header.started_at)
        self.unreadable: tuple[str, ...] = ()
        # Whether requests were answered that no entry had noted before: others may be missing.
        self.lacks_notes = False
        self._answers: dict[CallKey, _Answer] = {}
        self._failed_attempts: list[tuple[Role, Attempt]] = []
        self._failures: dict[CallKey, ModelError] = {}
        self._pending: dict[CallKey, list[Attempt]] = {}
        self._keys: set[CallKey] = set()
        for number, entry in enumerate(entries[1:], start=1):
            try:
                self._read(entry)
            except ValueError as error:
                if re.fullmatch(FIGURE, place(error)):
                    what = f"{reason(error).rstrip('.')} in its entry {number}"
                    raise impossible(self.header.run_id, what) from error
                sentence = f"Entry {number} of the journal tells nothing: {reason(error)}"
                self.unreadable = (*self.unreadable, sentence)
        self._end_process()

    def recall(self, request_sha256: str, key: CallKey) -> Completion | None:
        """The answer to a call that was made before; `None` if it has to be made.

        Raises the `ModelError` with which the call failed for good, and `UsageError` if the call of
        this key had another request: then the journal belongs to another run.
        """
        answer = self._answers.get(key)
        if answer is None:
            return None
        if answer.request_sha256 != request_sha256:
            raise UsageError(
                [f"The journal does not fit: {key.role} {key.index} answers another question."],
                hint="It was changed, or made by another version; start a new run.",
            )
        if isinstance(answer.outcome, ModelError):
            raise answer.outcome
        return answer.outcome

    @property
    def n_answers(self) -> int:
        """Number of calls that need not be made again."""
        return len(self._answers)

    def completions(self, role: Role) -> tuple[Completion, ...]:
        """All answers of a role."""
        outcomes = [answer.outcome for key, answer in self._answers.items() if key.role == role]
        return tuple(outcome for outcome in outcomes if isinstance(outcome, Completion))

    def answers_without_repeat(self, role: Role) -> Iterator[tuple[CallKey, Completion]]:
        """First answers to a role's calls that were not followed by a second call."""
        for key, answer in self._answers.items():
            is_repeated = replace(key, repeat=key.repeat + 1) in self._keys
            is_first = key.role == role and key.repeat % 2 == 0
            if is_first and not is_repeated and isinstance(answer.outcome, Completion):
                yield key, answer.outcome

    def closing_outcomes(self) -> Iterator[tuple[CallKey, Completion | ModelError]]:
        """How calls about the whole episode ended, whatever turns it had when they were made."""
        for key, answer in self._answers.items():
            if key.is_closing:
                yield key, answer.outcome

    def n_closing_answers(self, key: CallKey) -> int:
        """How often such a call was answered, repeats included."""
        return sum(
            isinstance(outcome, Completion) and replace(closing_key, repeat=0) == key
            for closing_key, outcome in self.closing_outcomes()
        )

    def failure(self, key: CallKey) -> ModelError | None:
        """How a call failed that may be made again, if it was not answered since."""
        return self._failures.get(key)

    def failed_attempts(self, role: Role) -> tuple[Attempt, ...]:
        """Requests to a role that got no answer."""
        return tuple(attempt for whose, attempt in self._failed_attempts if whose == role)

    def requests(self) -> Iterator[tuple[Attempt, Completion | None]]:
        """Every request of earlier processes, with the answer that it got."""
        for _, attempt in self._failed_attempts:
            yield attempt, None
        for answer in self._answers.values():
            outcome = answer.outcome
            completion = outcome if isinstance(outcome, Completion) else None
            for attempt in outcome.attempts:
                yield attempt, completion if attempt.error is None else None

    def _read(self, entry: Mapping[str, Any]) -> None:
        if entry.get("kind") not in KINDS:
            return
        if key := convert(entry, Keyed).key:
            self._keys.add(key)
        typed = convert(entry, JournalEntry)
        check_moments(typed)
        self._add(typed)
        self.times.add(typed)

    def _add(self, entry: JournalEntry) -> None:
        match entry:
            case Process():
                self._end_process()
                self.times.begin_process(entry.started_at or self.times.latest)
                self.turns = max(self.turns, entry.turns)
            case Noticed():
                self.notices.append(entry.text)
            case BatchEntry():
                self.end = None
                self.batches.append(entry)
            case EndEntry():
                self.end = replace(entry, duration_s=possible_s(entry.duration_s))
            case RequestEntry() | FailedAttemptEntry():
                self.end = None
                self._add_attempt(entry)
            case Answered() | Failed():
                self._add_outcome(entry)
            case RunEntry():
                return

    def _add_attempt(self, entry: RequestEntry | FailedAttemptEntry) -> None:
        """A request of a call was sent, or has failed and may be followed by another. The entry
        that ends the call lists all its requests again.
        """
        key = entry.key
        if key in self._answers:
            return
        attempts = self._pending.setdefault(key, [])
        is_under_way = bool(attempts) and attempts[-1].error == LOST
        if isinstance(entry, RequestEntry):
            if is_under_way:
                # Sent by another process, whose first entry is missing.
                self._failed_attempts += [(key.role, attempt) for attempt in attempts]
                attempts.clear()
            lost = Attempt(  # if no answer follows, a model may have worked on it
                started_at=entry.at,
                duration_ms=0.0,
                wait_ms=0.0,
                error=LOST,
                may_have_been_billed=True,
                input_tokens_at_most=entry.input_tokens_at_most,
                output_tokens_at_most=entry.output_tokens_at_most,
                model_id=entry.model_id,
            )
            attempts.append(lost)
            return
        attempts[-1:] = [entry.attempt] if is_under_way else [*attempts[-1:], entry.attempt]

    def _end_process(self) -> None:
        """The process that sent these requests is gone, so they will never be answered."""
        for key, attempts in self._pending.items():
            self._failed_attempts += [(key.role, attempt) for attempt in attempts]
        self._pending.clear()

    def _add_outcome(self, entry: Answered | Failed) -> None:
        self.end = None
        key = entry.key
        noted = self._pending.pop(key, None)
        if isinstance(entry, Answered):
            # A record of a batch is noted with its job.
            is_in_batch = entry.completion.served_tier == BATCH
            self.lacks_notes |= noted is None and not is_in_batch
            outcome: Completion | ModelError = entry.completion.completion
        else:
            outcome = _model_error(entry)
            if outcome.end_reason not in LASTING:
                self._failed_attempts += [(key.role, attempt) for attempt in outcome.attempts]
                self._failures[key] = outcome
                return
        self._failures.pop(key, None)
        self._answers[key] = _Answer(request_sha256=entry.request_sha256, outcome=outcome)


class Times:
    """Sums up how long the processes took, by their monotonic clocks, each up to its last entry.
    `latest` is the latest time of day of any entry, and not before the begin plus the time at work.
    """

    def __init__(self, started_at: datetime) -> None:
        self.latest = started_at
        self._started_at = self._process_started_at = started_at
        self._earlier_s = 0.0
        self._process_s = 0.0

    @property
    def worked_s(self) -> float:
        """Seconds at work of all processes together."""
        return self._earlier_s + self._process_s

    def begin_process(self, at: datetime) -> None:
        """The entries from here on are of another process."""
        self._earlier_s, self._process_s = self.worked_s, 0.0
        self._process_started_at = at
        self._note_moment(at)

    def add(self, entry: JournalEntry) -> None:
        """Count an entry of the current process."""
        if not isinstance(entry, Timed):
            return
        written_at: datetime | None = None
        match entry:
            case RequestEntry(at=moment) | EndEntry(completed_at=moment):
                written_at = moment
            case Answered():
                written_at = entry.completion.finished_at
            case _:
                pass
        elapsed_s = possible_s(entry.elapsed_s)
        if written_at:
            self._note_moment(written_at)
            if elapsed_s is None:  # a clock that was set back, say: the time of day is left
                elapsed_s = possible_s((written_at - self._process_started_at).total_seconds())
        self._process_s = max(self._process_s, elapsed_s or 0.0)
        with suppress(OverflowError):
            self._note_moment(self._started_at + timedelta(seconds=self.worked_s))

    def _note_moment(self, moment: datetime) -> None:
        if moment.year <= LAST_YEAR:
            self.latest = max(self.latest, moment)


def check_moments(value: object) -> None:
    """Raise `ValueError` for a time of day in a value that cannot be converted to UTC."""
    if isinstance(value, datetime):
        try:
            value.astimezone(UTC)
        except OverflowError as error:
            raise ValueError("a year that cannot be told in UTC") from error
    elif isinstance(value, Struct):
        for name in value.__struct_fields__:
            check_moments(getattr(value, name))
    elif isinstance(value, tuple):
        for item in value:
            check_moments(item)


def possible_s(seconds: float | None) -> float | None:
    """The seconds if they are possible; `None` for others, such as after a clock was set back."""
    return seconds if seconds is not None and 0 <= seconds <= MOST else None


def read_header(entry: Mapping[str, Any]) -> RunEntry:
    """The first entry of a journal. Raises `DamagedJournalError` for anything else."""
    try:
        header = convert(entry, RunEntry)
        header.turns  # noqa: B018 -- raises if they are impossible
        check_moments(header.started_at)
        if header.started_at.year > LAST_YEAR:
            raise ValueError("started_at is too late")  # noqa: TRY301 -- like all that is wrong
    except ValueError as error:
        what = "This is not a journal of a run, or one of another version of this program"
        raise DamagedJournalError(
            [f"{what}: {reason(error)}"],
            hint="Start a new run without resuming, or with another output folder.",
        ) from error
    return header


def impossible(run_id: str, what: str) -> DamagedJournalError:
    """The error for a journal with valid checksums but impossible values: it was edited and
    re-signed.
    """
    return DamagedJournalError(
        [f"The journal of {run_id} holds {what}, which no run writes. It was not resumed."],
        hint="It was changed since it was written: start a new run without resuming.",
    )


def _model_error(entry: Failed) -> ModelError:
    error = ModelError(
        entry.message,
        code=entry.code,
        end_reason=entry.end_reason,
        retryable=entry.retryable,
        hint=entry.hint,
    )
    error.attempts = entry.attempts
    return error
