"""What earlier processes of a run have done, read from the entries of its journal."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.concurrency import convert
from socratic_bench.documents.journal import (
    KINDS,
    Answered,
    EndEntry,
    Failed,
    FailedAttemptEntry,
    JournalEntry,
    Keyed,
    Noticed,
    Process,
    RequestEntry,
    RunEntry,
)
from socratic_bench.documents.plain import place, reason
from socratic_bench.errors import DamagedJournalError, ModelError, UsageError
from socratic_bench.journal.times import LAST_YEAR, Times, check_moments, possible_s
from socratic_bench.types import Attempt, CallKey, Completion, EndReason, Role

# A call refused for its content would be refused again; others may be answered later.
LASTING: tuple[EndReason, ...] = ("context_window",)
LOST = "process_ended"
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
    """Every call that was answered, and what else of earlier processes has to be reported.

    `turns` is the most that was asked for, `unreadable` names the entries that tell nothing, with
    path and reason, `times` sums up how long its processes took.

    Raises `DamagedJournalError` if the first entry is not of a run, or of a version that is not
    known, or if an entry tells what cannot be.
    """

    def __init__(self, entries: Sequence[Mapping[str, Any]]) -> None:
        self.header = read_header(entries[0] if entries else {})
        self.turns = self.header.turns
        self.notices: list[str] = []
        self._answers: dict[CallKey, _Answer] = {}
        self._failures: list[tuple[Role, Attempt]] = []
        self._failed: dict[CallKey, ModelError] = {}
        self.end: EndEntry | None = None
        self.times = Times(self.header.started_at)
        self._pending: dict[CallKey, list[Attempt]] = {}
        self.unreadable: tuple[str, ...] = ()
        self._named: set[CallKey] = set()
        for number, entry in enumerate(entries[1:], start=1):
            try:
                self._read(entry)
            except ValueError as error:
                if re.fullmatch(FIGURE, place(error)):
                    what = f"{reason(error).rstrip('.')} in its entry {number}"
                    raise impossible(self.header.run_id, what) from error
                said = f"Entry {number} of the journal tells nothing: {reason(error)}"
                self.unreadable = (*self.unreadable, said)
        self._end_process()

    def recall(self, request_sha256: str, key: CallKey) -> Completion | None:
        """The answer to a call that was made before; `None` if it has to be made.

        Raises the `ModelError` that answered it for good, and `UsageError` if the call of this name
        was asked something else: then the journal is not of this run, and nothing of it counts.
        """
        found = self._answers.get(key)
        if found is None:
            return None
        if found.request_sha256 != request_sha256:
            raise UsageError(
                [f"The journal does not fit: {key.role} {key.index} answers another question."],
                hint="It was changed, or made by another version; start a new run.",
            )
        if isinstance(found.outcome, ModelError):
            raise found.outcome
        return found.outcome

    @property
    def n_answers(self) -> int:
        return len(self._answers)

    def completions(self, role: Role) -> tuple[Completion, ...]:
        """What a role answered in earlier processes."""
        answers = [a.outcome for key, a in self._answers.items() if key.role == role]
        return tuple(answer for answer in answers if isinstance(answer, Completion))

    def unrepeated(self, role: Role) -> Iterator[tuple[CallKey, Completion]]:
        """First answers to a role's calls that were not followed by a second one."""
        for key, answer in self._answers.items():
            followed = replace(key, repeat=key.repeat + 1) in self._named
            is_first = key.role == role and key.repeat % 2 == 0
            if is_first and not followed and isinstance(answer.outcome, Completion):
                yield key, answer.outcome

    def closing(self) -> Iterator[tuple[CallKey, Completion | ModelError]]:
        """How calls about the episode as a whole ended, wherever it ended when they were made."""
        for key, answer in self._answers.items():
            if key.is_closing:
                yield key, answer.outcome

    def n_closing(self, key: CallKey) -> int:
        """How often such a call was answered, also where the answer was asked for once more."""
        return sum(
            isinstance(outcome, Completion) and replace(asked, repeat=0) == key
            for asked, outcome in self.closing()
        )

    def failure(self, key: CallKey) -> ModelError | None:
        """How a call failed that may be made again, if it was not answered since."""
        return self._failed.get(key)

    def failed(self, role: Role) -> tuple[Attempt, ...]:
        """Requests of earlier processes to a role that got no answer."""
        return tuple(attempt for whose, attempt in self._failures if whose == role)

    def requests(self) -> Iterator[tuple[Attempt, Completion | None]]:
        """Every request of earlier processes, with the answer that it got."""
        for _, attempt in self._failures:
            yield attempt, None
        for answer in self._answers.values():
            outcome = answer.outcome
            got = outcome if isinstance(outcome, Completion) else None
            for attempt in outcome.attempts:
                yield attempt, got if attempt.error is None else None

    def _read(self, entry: Mapping[str, Any]) -> None:
        if entry.get("kind") not in KINDS:
            return
        if key := convert(entry, Keyed).key:
            self._named.add(key)
        found = convert(entry, JournalEntry)
        check_moments(found)
        self._take(found)
        self.times.take(found)

    def _take(self, entry: JournalEntry) -> None:
        match entry:
            case Process():
                self._end_process()
                self.times.begin(entry.started_at or self.times.latest)
                self.turns = max(self.turns, entry.turns)
            case Noticed():
                self.notices.append(entry.text)
            case EndEntry():
                self.end = replace(entry, duration_s=possible_s(entry.duration_s))
            case RequestEntry() | FailedAttemptEntry():
                self.end = None
                self._note(entry)
            case Answered() | Failed():
                self._keep(entry)
            case RunEntry():
                return

    def _note(self, entry: RequestEntry | FailedAttemptEntry) -> None:
        """A request of a call is on its way, or has failed and may be followed by another.

        The entry that ends the call lists all its requests again.
        """
        key = entry.key
        if key in self._answers:
            return
        attempts = self._pending.setdefault(key, [])
        is_under_way = bool(attempts) and attempts[-1].error == LOST
        if isinstance(entry, RequestEntry):
            if is_under_way:
                # Asked by another process, whose first entry is missing.
                self._failures += [(key.role, attempt) for attempt in attempts]
                attempts.clear()
            attempts.append(_lost(entry))
            return
        attempts[-1:] = [entry.attempt] if is_under_way else [*attempts[-1:], entry.attempt]

    def _end_process(self) -> None:
        """The process that sent these requests is gone, so they will never be answered."""
        for key, attempts in self._pending.items():
            self._failures += [(key.role, attempt) for attempt in attempts]
        self._pending.clear()

    def _keep(self, entry: Answered | Failed) -> None:
        self.end = None
        key = entry.key
        self._pending.pop(key, None)
        if isinstance(entry, Answered):
            outcome: Completion | ModelError = entry.completion.completion
        else:
            outcome = _error(entry)
            if outcome.end_reason not in LASTING:
                self._failures += [(key.role, attempt) for attempt in outcome.attempts]
                self._failed[key] = outcome
                return
        self._failed.pop(key, None)
        self._answers[key] = _Answer(request_sha256=entry.request_sha256, outcome=outcome)


def read_header(entry: Mapping[str, Any]) -> RunEntry:
    """What a journal begins with. Raises `DamagedJournalError` for anything else."""
    try:
        header = convert(entry, RunEntry)
        header.turns  # noqa: B018 -- it is looked at
        check_moments(header.started_at)
        if header.started_at.year > LAST_YEAR:
            raise ValueError("started_at is too late")  # noqa: TRY301 -- like all that is wrong
    except ValueError as error:
        what = "This is no journal of a run, or one of another version of this program"
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
        [f"The journal of {run_id} holds {what}, which no run writes. It was not gone on with."],
        hint="It was changed since it was written: start a new run without resuming.",
    )


def _error(failed: Failed) -> ModelError:
    error = ModelError(
        failed.message,
        code=failed.code,
        end_reason=failed.end_reason,
        retryable=failed.retryable,
        hint=failed.hint,
    )
    error.attempts = failed.attempts
    return error


def _lost(asked: RequestEntry) -> Attempt:
    """A request whose process ended before its answer: a model may have worked on it."""
    return Attempt(
        started_at=asked.at,
        duration_ms=0.0,
        wait_ms=0.0,
        error=LOST,
        may_have_been_billed=True,
        input_tokens_at_most=asked.input_tokens_at_most,
        output_tokens_at_most=asked.output_tokens_at_most,
        model_id=asked.model_id,
    )
