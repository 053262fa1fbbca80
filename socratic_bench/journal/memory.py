"""What an earlier process of a run left behind, as the entries of its journal tell it."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.config import MAX_SEED, MAX_TURNS
from socratic_bench.errors import DamagedJournalError, ModelError, UsageError
from socratic_bench.journal.codec import read_attempts, read_completion, read_key
from socratic_bench.journal.figures import ImpossibleError
from socratic_bench.journal.times import LAST_YEAR, Times, read_duration_s, read_moment
from socratic_bench.types import Attempt, CallKey, Completion, EndReason, Role

# A call that the service refuses for what it says is refused again; others may be answered later.
LASTING: tuple[EndReason, ...] = ("context_window",)
VERSION = 2
# What began in an earlier version goes on in that one: what it asks must stay the same.
VERSIONS = (1, VERSION)
LOST = "process_ended"


class Header(Struct, frozen=True, kw_only=True):
    """The first entry: which run this is, and how it was asked for.

    `version` 1 had a judge's delimiters made of the seed and the call alone.
    """

    version: int
    run_id: str
    seed: int
    identity: Mapping[str, Any]
    config: Mapping[str, Any]
    started_at: datetime

    @property
    def turns(self) -> int:
        """The turns that the run began with."""
        return _number(self.config["turns"], 1, MAX_TURNS)


class End(Struct, frozen=True, kw_only=True):
    """How and when a process completed the run, and with how many turns at most.

    `duration_s` is `None` where it was told by a clock that had been set back.
    """

    turns: int
    completed_at: datetime
    duration_s: float | None


class _Answer(Struct, frozen=True, kw_only=True):
    request_sha256: str
    outcome: Completion | ModelError


class Memory:
    """Every call that was answered, and what else of earlier processes has to be reported.

    `turns` is the most that was asked for, `n_unreadable` counts entries that tell nothing, `times`
    sums up how long its processes took.

    Raises `DamagedJournalError` if the first entry is not of a run, or of a version that is not
    known, or if an entry tells what cannot be.
    """

    def __init__(self, entries: Sequence[Mapping[str, Any]]) -> None:
        self.header = read_header(entries[0] if entries else {})
        self.turns = self.header.turns
        self.notices: list[str] = []
        self._answers: dict[CallKey, _Answer] = {}
        self._failures: list[tuple[Role, Attempt]] = []
        self.end: End | None = None
        self.times = Times(self.header.started_at)
        self._pending: dict[CallKey, list[Attempt]] = {}
        self.n_unreadable = 0
        self._named: set[CallKey] = set()
        self._last_of_processes: set[CallKey] = set()
        self._last: CallKey | None = None
        for entry in entries[1:]:
            try:
                self._take(entry)
                self.times.take(entry)
            except ImpossibleError as error:
                raise impossible(self.header.run_id, str(error)) from error
            except (KeyError, TypeError, ValueError, AttributeError):
                self.n_unreadable += 1
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
        """First answers to a role's calls that were not followed by a second one, although the
        process that got them went on.
        """
        for key, answer in self._answers.items():
            followed = replace(key, repeat=1) in self._named or key in self._last_of_processes
            is_first = key.role == role and not key.repeat
            if is_first and not followed and isinstance(answer.outcome, Completion):
                yield key, answer.outcome

    def failed(self, role: Role) -> tuple[Attempt, ...]:
        """Requests of earlier processes to a role that got no answer."""
        return tuple(attempt for whose, attempt in self._failures if whose == role)

    def _take(self, entry: Mapping[str, Any]) -> None:
        kind = entry.get("kind")
        if "key" in entry:
            self._last = read_key(entry["key"])
            self._named.add(self._last)
        if kind == "process":
            self._end_process()
            self.times.begin(read_moment(entry["started_at"]))
            self.turns = max(self.turns, _number(entry["turns"], 1, MAX_TURNS))
        elif kind == "notice":
            self.notices.append(entry["text"])
        elif kind == "end":
            self.end = End(
                turns=entry["turns"],
                completed_at=read_moment(entry["completed_at"]),
                duration_s=read_duration_s(entry["duration_s"]),
            )
        elif kind in ("asked", "attempt"):
            self.end = None
            self._note(kind, read_key(entry["key"]), entry)
        elif kind in ("answered", "failed"):
            self.end = None
            key = read_key(entry["key"])
            self._pending.pop(key, None)
            self._keep(kind, key, entry)

    def _note(self, kind: str, key: CallKey, entry: Mapping[str, Any]) -> None:
        """A request of a call is on its way, or has failed and may be followed by another.

        What ends the call tells all of them once more, and so does what was answered before.
        """
        if key in self._answers:
            return
        attempts = self._pending.setdefault(key, [])
        is_under_way = bool(attempts) and attempts[-1].error == LOST
        if kind == "asked":
            if is_under_way:
                # Another process asked, whose beginning is not told.
                self._failures += [(key.role, attempt) for attempt in attempts]
                attempts.clear()
            attempts.append(_lost(entry))
            return
        (attempt,) = read_attempts([entry["attempt"]])
        attempts[-1:] = [attempt] if is_under_way else [*attempts[-1:], attempt]

    def _end_process(self) -> None:
        """The process that made the calls before is gone, and no other one gets their answers."""
        if self._last:
            self._last_of_processes.add(self._last)
        for key, attempts in self._pending.items():
            self._failures += [(key.role, attempt) for attempt in attempts]
        self._pending.clear()

    def _keep(self, kind: str, key: CallKey, entry: Mapping[str, Any]) -> None:
        if kind == "answered":
            outcome: Completion | ModelError = read_completion(entry["completion"])
        else:
            outcome = _read_error(entry)
            if outcome.end_reason not in LASTING:
                self._failures += [(key.role, attempt) for attempt in outcome.attempts]
                return
        self._answers[key] = _Answer(request_sha256=entry["request_sha256"], outcome=outcome)


def read_header(entry: Mapping[str, Any]) -> Header:
    """What a journal begins with. Raises `DamagedJournalError` for anything else."""
    try:
        if entry["kind"] != "run" or entry["version"] not in VERSIONS:
            return _no_header()
        header = Header(
            version=_number(entry["version"], *VERSIONS),
            run_id=_text(entry["run_id"]),
            seed=_number(entry["seed"], 0, MAX_SEED),
            identity=dict(entry["identity"]),
            config=dict(entry["config"]),
            started_at=read_moment(entry["started_at"]),
        )
        is_sound = header.turns and header.started_at.year <= LAST_YEAR
        return header if is_sound else _no_header()
    except (KeyError, TypeError, ValueError) as error:
        return _no_header(error)


def _text(found: object) -> str:
    if isinstance(found, str):
        return found
    raise ValueError("no text")


def _number(found: object, low: int, high: int) -> int:
    if isinstance(found, int) and not isinstance(found, bool) and low <= found <= high:
        return found
    raise ValueError("no number, or one out of bounds")


def _no_header(error: Exception | None = None) -> NoReturn:
    raise DamagedJournalError(
        ["This is no journal of a run, or one of another version of this program."],
        hint="Start a new run without resuming, or with another output folder.",
    ) from error


def impossible(run_id: str, what: str) -> DamagedJournalError:
    """A journal whose seals are right and whose contents cannot be: somebody sealed it anew."""
    return DamagedJournalError(
        [f"The journal of {run_id} holds {what}, which no run writes. It was not gone on with."],
        hint="It was changed since it was written: start a new run without resuming.",
    )


def _read_error(entry: Mapping[str, Any]) -> ModelError:
    error = ModelError(
        entry["message"],
        code=entry["code"],
        end_reason=entry["end_reason"],
        retryable=entry["retryable"],
        hint=entry["hint"],
    )
    error.attempts = read_attempts(entry["attempts"])
    return error


def _lost(asked: Mapping[str, Any]) -> Attempt:
    """A request whose process ended before its answer: a model may have worked on it."""
    return Attempt(
        started_at=read_moment(asked["at"]),
        duration_ms=0.0,
        wait_ms=0.0,
        error=LOST,
        may_have_been_billed=True,
        input_tokens_at_most=_count(asked.get("input_tokens_at_most")),
        output_tokens_at_most=_count(asked.get("output_tokens_at_most")),
    )


def _count(found: object) -> int | None:
    if found is None or (isinstance(found, int) and not isinstance(found, bool) and found >= 0):
        return found
    raise ValueError("no number of tokens")
