"""What can go wrong, each with its code, its end reason and its hint.

BenchError
├── UsageError        the request itself is wrong: every mistake found, before the first call
├── ModelError        a call to a model failed
├── ArtifactError     a store could not keep what it was given
│   └── StoreOutageError  the store did not answer or failed by itself
├── Stopped           the run was told to end: signal, deadline, budget
└── InternalError     a defect in this program
"""

from collections.abc import Callable, Iterable, Sequence
from signal import Signals
from string import Formatter
from typing import Any, Literal, Self

from msgspec import Struct

from socratic_bench.redaction import redact
from socratic_bench.types import Attempt, EndReason

Status = Literal["completed", "partial", "failed"]


class Ending(Struct, frozen=True):
    """How a run is reported; one that is cut short is complete with fewer turns than wanted."""

    status: Status
    exit_code: int
    is_cut_short: bool = False


# How many mistakes of one command or file are shown, and how many characters of each.
MOST_SHOWN = 20
LONGEST_SHOWN = 1000
# Masking needs the whole of a secret, even if only its beginning would be shown.
SEARCHED = 20 * LONGEST_SHOWN
EXIT_GATE = 5
# "failed" becomes "partial" once a turn has been played.
ENDINGS: dict[EndReason, Ending] = {
    "max_turns": Ending("completed", 0),
    "student_closed": Ending("completed", 0),
    "content_filtered": Ending("completed", 0, is_cut_short=True),
    "guardrail": Ending("completed", 0, is_cut_short=True),
    "context_window": Ending("completed", 0, is_cut_short=True),
    "empty_reply": Ending("completed", 0, is_cut_short=True),
    "deadline": Ending("partial", 6),
    "budget": Ending("partial", 6),
    "unavailable": Ending("partial", 4),
    "artifacts": Ending("partial", 4),
    "credentials": Ending("failed", 3),
    "access": Ending("failed", 3),
    "unknown_model": Ending("failed", 3),
    "refused_request": Ending("failed", 3),
    "interrupted": Ending("partial", 130),
    "usage": Ending("failed", 2),
    "internal": Ending("failed", 1),
}


class Problem(Struct, frozen=True):
    """A mistake, or a hint, in words in which settings stand by name: `{turns} is {value}`.

    What is no setting of these names is one of `values`. A `place`, such as a file, is told first.
    Whoever shows it calls settings: the library by their fields, the command by their flags.
    """

    text: str
    values: tuple[tuple[str, object], ...] = ()
    place: str = ""

    @classmethod
    def of(cls, text: str, **values: object) -> "Problem":
        return cls(text, tuple(values.items()))

    @property
    def settings(self) -> tuple[str, ...]:
        """The settings that it names, in order."""
        known = dict(self.values)
        names = [name for _, name, _, _ in Formatter().parse(f"{self.place} {self.text}") if name]
        return tuple(name for name in names if name not in known)

    def told(self, call: Callable[[str], str] = str) -> str:
        """In words, with each setting as `call` has it."""
        lead = f"{self.place}: " if self.place else ""
        return f"{lead}{self.text}".format_map(_Names(self.values, call))


class _Names(dict[str, Any]):
    def __init__(self, values: Sequence[tuple[str, object]], call: Callable[[str], str]) -> None:
        super().__init__(values)
        self._call = call

    def __missing__(self, name: str) -> str:
        return self._call(name)


Words = str | Problem  # a plain sentence, or one that names settings


def followed(words: Words, more: str) -> Problem:
    """The words, and a plain sentence behind them."""
    if isinstance(words, str):
        return Problem.of("{words} {more}", words=words, more=more)
    return Problem(f"{words.text} {{more}}", (*words.values, ("more", more)), words.place)


def in_words(words: Words, call: Callable[[str], str] = str) -> str:
    return words if isinstance(words, str) else words.told(call)


class BenchError(Exception):
    """An error that the document reports.

    `code` is a stable word for machines, `hint` says what to do next, `retryable` whether the same
    command may succeed later, `end_reason` how the run ends by it. `attempts` are the requests of
    the call that it ended, if it ended one, and `signal_number` is that of the signal behind it.
    """

    code: str = "internal"
    end_reason: EndReason = "internal"
    retryable: bool = False
    attempts: tuple[Attempt, ...] = ()
    signal_number: int | None = None

    def __init__(self, *said: Words, hint: Words | None = None) -> None:
        self.said = said
        self.hints: tuple[Words, ...] = () if hint is None else (hint,)
        self.call_settings(str)

    def call_settings(self, call: Callable[[str], str]) -> None:
        """Have it name settings as `call` does, such as by their flags."""
        self._call = call
        # The same mistake may be found in more than one place.
        self._tell(tuple(dict.fromkeys(in_words(words, call) for words in self.said)))
        self.args = (self.message,)

    def _tell(self, sentences: tuple[str, ...]) -> None:
        self.message = redact(" ".join(sentences))

    @property
    def hint(self) -> str | None:
        return redact(" ".join(in_words(words, self._call) for words in self.hints)) or None

    @hint.setter
    def hint(self, words: Words | None) -> None:
        self.hints = () if words is None else (words,)

    @property
    def exit_code(self) -> int:
        number = self.signal_number
        return 128 + number if number else ENDINGS[self.end_reason].exit_code

    def copied(self) -> Self:
        """The same error as an object of its own, for another run to add its hints to."""
        copied = self.__class__.__new__(self.__class__, *self.args)
        copied.__dict__.update(self.__dict__)
        return copied


class UsageError(BenchError):
    """What is asked for is wrong; `problems` has a sentence each, those shown without secrets."""

    code = "usage"
    end_reason: EndReason = "usage"

    def __init__(self, said: Sequence[Words], *, hint: Words | None = None) -> None:
        super().__init__(*said, hint=hint)

    def _tell(self, sentences: tuple[str, ...]) -> None:
        shown = in_short(sentences)
        self.problems = (*shown[:MOST_SHOWN], *sentences[MOST_SHOWN:])
        self.message = " ".join(shown)


def in_short(problems: Sequence[str]) -> tuple[str, ...]:
    """The first mistakes as they may be shown, and how many there are besides."""
    shown = tuple(map(_one_shown, problems[:MOST_SHOWN]))
    rest = len(problems) - MOST_SHOWN
    return (*shown, f"And {rest} more.") if rest > 0 else shown


def _one_shown(problem: str) -> str:
    text = redact(problem[:SEARCHED])
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"


class Mistakes:
    """Gathers what is wrong: a `UsageError` raised in `with mistakes:` ends nothing else."""

    def __init__(self, said: Iterable[Words] = ()) -> None:
        self.said = [*said]
        self._hints: list[Words] = []

    def __enter__(self) -> None:
        """Raises nothing."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        if not isinstance(error, UsageError):
            return False
        self.said += error.said  # the same one twice is told once, see `call_settings`
        self._hints += [one for one in error.hints if one not in self._hints]
        return True

    def error(self, usual: Words | None = None) -> UsageError:
        """With every mistake, and with the hints that came with them, or else the `usual`."""
        error = UsageError(self.said, hint=usual)
        error.hints = (*self._hints,) or error.hints
        return error


class DamagedJournalError(UsageError):
    """What should be a run's journal does not begin like one; nothing of it was used or changed."""


class ModelError(BenchError):
    """A model call failed, for now if `retryable`; `retry_after_s`: the wait that was asked for."""

    def __init__(
        self,
        *said: Words,
        code: str,
        end_reason: EndReason,
        retryable: bool = False,
        hint: Words | None = None,
    ) -> None:
        super().__init__(*said, hint=hint)
        self.code = code
        self.end_reason = end_reason
        self.retryable = retryable
        self.retry_after_s: float | None = None


class ArtifactError(BenchError):
    """A store refused or lost its connection; `retryable` says whether a later try may pass."""

    code = "artifacts"
    end_reason: EndReason = "artifacts"
    retryable = True


class LeaseLostError(ArtifactError):
    """Another process holds this run now: only that one goes on with it."""


class StoreOutageError(ArtifactError):
    """The store cannot be reached, or fails for now: the same write may pass when it is back."""


class StoreDeniedError(ArtifactError):
    """The store refuses this to the credentials in use: what it holds stays unknown."""


class Stopped(BenchError):  # noqa: N818 -- an order to end, not a fault
    """The run was told to end. `code` is `interrupted`, `deadline` or `budget`."""

    retryable = True

    def __init__(
        self,
        message: str,
        *,
        end_reason: EndReason,
        hint: Words | None = None,
        signal_number: int | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.code = end_reason
        self.end_reason = end_reason
        self.signal_number = signal_number

    @classmethod
    def by_signal(cls, number: int, sentence: str, *, hint: str) -> "Stopped":
        """The order of a signal; the sentence has a room `{signal}` for its number and name."""
        name = next((f" ({one.name})" for one in Signals if one == number), "")
        message = sentence.format(signal=f"signal {number}{name}")
        return cls(message, end_reason="interrupted", hint=hint, signal_number=number)

    @classmethod
    def of(cls, ended: BenchError) -> "Stopped":
        """A copy of what ended the run, for one call to raise with its own `attempts`."""
        number = ended.signal_number
        stopped = cls(ended.message, end_reason=ended.end_reason, signal_number=number)
        stopped.hints = ended.hints
        return stopped


class InternalError(BenchError):
    """A defect of this program. Names the exception; never carries secrets or model text."""

    @classmethod
    def of(cls, defect: Exception) -> "InternalError":
        """What a run or a command ends by when something was raised that nobody expected."""
        error = cls(
            f"A defect in this program: {type(defect).__name__}.",
            hint=Problem.of("Run again with {debug} for the traceback, and report it."),
        )
        error.__cause__ = defect
        return error


# `warning`: a run works, and not quite as somebody may expect. `unknown`: it could not be told, or
# what is lacking is not needed. `failed`: a run would fail by it.
CheckStatus = Literal["ok", "warning", "unknown", "failed"]
CheckName = Literal[
    "credentials",
    "role",
    "region",
    "folder",
    "bucket_write",
    "bucket_read",
    "bucket_delete",
    "answer",
    "streaming",
    "tools",
    "cache_points",
    "service_tier",
    "system_prompt",
    "temperature",
    "price",
    "quota",
]


class CheckResult(Struct, frozen=True, kw_only=True):
    """What came of a look at `subject`; `code` and `hint` are those of an error."""

    check: CheckName
    status: CheckStatus
    subject: str
    message: str
    code: str | None = None
    hint: Words | None = None

    @classmethod
    def of(cls, check: CheckName, status: CheckStatus, subject: str, error: BenchError) -> Self:
        """What an error says of it."""
        return cls(
            check=check,
            status=status,
            subject=subject,
            message=message_about(subject, error),
            code=error.code,
            hint=error.hints[0] if error.hints else None,
        )


def message_about(subject: str, error: BenchError) -> str:
    """What an error says of a subject, which it may name first, as words of their own."""
    first, *rest = error.said or ("",)
    if not rest or first not in (subject, f"{subject}:"):
        return error.message
    return redact(" ".join(map(in_words, rest)))
