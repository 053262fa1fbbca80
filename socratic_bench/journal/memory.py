"""What an earlier process of a run left behind, as the entries of its journal tell it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn

from socratic_bench.errors import ModelError, UsageError
from socratic_bench.journal.codec import read_attempts, read_completion, read_key
from socratic_bench.types import Attempt, CallKey, Completion, EndReason, Role
from socratic_bench.values import dataclass

# A call that the service refuses for what it says is refused again; others may be answered later.
LASTING: tuple[EndReason, ...] = ("context_window",)
VERSION = 1
LOST = "process_ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The first entry: which run this is, and how it was asked for."""

    run_id: str
    seed: int
    identity: Mapping[str, Any]
    config: Mapping[str, Any]
    started_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How and when a process completed the run, and with how many turns at most."""

    turns: int
    completed_at: datetime
    duration_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    request_sha256: str
    outcome: Completion | ModelError


class Memory:
    """Every call that was answered, and what else of earlier processes has to be reported.

    `turns` is the most that was asked for, `n_unreadable` counts entries that tell nothing.

    Raises `UsageError` if the first entry is not of a run, or of a version that is not known.
    """

    def __init__(self, entries: Sequence[Mapping[str, Any]]) -> None:
        self.header = read_header(entries[0] if entries else {})
        self.turns = 0
        self.notices: tuple[str, ...] = ()
        self._answers: dict[CallKey, _Answer] = {}
        self._failures: list[tuple[Role, Attempt]] = []
        self.end: End | None = None
        asked: dict[CallKey, Attempt] = {}
        self.n_unreadable = 0
        for entry in entries[1:]:
            try:
                self._take(entry, asked)
            except (KeyError, TypeError, ValueError, AttributeError):
                self.n_unreadable += 1
        self._failures += [(key.role, lost) for key, lost in asked.items()]

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

    def failed(self, role: Role) -> tuple[Attempt, ...]:
        """Requests of earlier processes to a role that got no answer."""
        return tuple(attempt for whose, attempt in self._failures if whose == role)

    def _take(self, entry: Mapping[str, Any], asked: dict[CallKey, Attempt]) -> None:
        kind = entry.get("kind")
        if kind == "process":
            self.turns = max(self.turns, entry["turns"])
        elif kind == "notice":
            self.notices = (*self.notices, entry["text"])
        elif kind == "end":
            self.end = End(
                turns=entry["turns"],
                completed_at=datetime.fromisoformat(entry["completed_at"]),
                duration_s=entry["duration_s"],
            )
        elif kind == "asked":
            self.end = None
            self._ask(read_key(entry["key"]), _lost(entry), asked)
        elif kind in ("answered", "failed"):
            self.end = None
            key = read_key(entry["key"])
            asked.pop(key, None)
            self._keep(kind, key, entry)

    def _ask(self, key: CallKey, lost: Attempt, asked: dict[CallKey, Attempt]) -> None:
        """A process asks a call once: if nothing followed the last time, that process was lost.

        The same entry may come again from another store; and what is answered was not lost.
        """
        earlier = asked.get(key)
        if key in self._answers or earlier == lost:
            return
        if earlier is not None:
            self._failures.append((key.role, earlier))
        asked[key] = lost

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
    """What a journal begins with. Raises `UsageError` for anything else."""
    try:
        if (entry["kind"], entry["version"]) != ("run", VERSION):
            return _no_header()
        return Header(
            run_id=entry["run_id"],
            seed=entry["seed"],
            identity=entry["identity"],
            config=entry["config"],
            started_at=datetime.fromisoformat(entry["started_at"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        return _no_header(error)


def _no_header(error: Exception | None = None) -> NoReturn:
    raise UsageError(
        ["This is no journal of a run, or one of another version of this program."]
    ) from error


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
        started_at=datetime.fromisoformat(asked["at"]),
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
