"""Errors, each with its code, its end reason and its hint; and results of checks before a run.

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

Naming = Callable[[str], str]  # how texts call a setting, by its field

RunStatus = Literal["completed", "partial", "failed"]
MOST_SHOWN = 20  # mistakes of one command or file that are shown
LONGEST_SHOWN = 1000  # characters of each
# Masking needs the whole of a secret, even if only its beginning would be shown.
_SEARCHED_CHARS = 20 * LONGEST_SHOWN


class Ending(Struct, frozen=True):
    """Status and exit code of a run that ended; `is_cut_short`: it has fewer turns than wanted."""

    status: RunStatus
    exit_code: int
    is_cut_short: bool = False


EXIT_GATE = 5
# "failed" becomes "partial" once a turn has been played.
ENDINGS: dict[EndReason, Ending] = {
    "max_turns": Ending("completed", 0),
    "student_closed": Ending("completed", 0),
    "recorded": Ending("completed", 0),
    "content_filtered": Ending("completed", 0, is_cut_short=True),
    "guardrail": Ending("completed", 0, is_cut_short=True),
    "context_window": Ending("completed", 0, is_cut_short=True),
    "empty_reply": Ending("completed", 0, is_cut_short=True),
    "deadline": Ending("partial", 7),
    "budget": Ending("partial", 6),
    "batch_pending": Ending("partial", 0),
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
    """A mistake or a hint whose text names settings in braces: `{turns} is {value}`.

    A name in braces that is no setting is one of `values`. A `place`, such as a file, is put before
    the text. Whoever shows the text calls settings: the library by their fields, the command by
    their flags.
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
        values = dict(self.values)
        names = [name for _, name, _, _ in Formatter().parse(f"{self.place} {self.text}") if name]
        return tuple(name for name in names if name not in values)

    def render(self, call: Naming = str) -> str:
        """The text with values put in, and each setting called as `call` does."""
        lead = f"{self.place}: " if self.place else ""
        return f"{lead}{self.text}".format_map(_Names(self.values, call))


class _Names(dict[str, Any]):
    def __init__(self, values: Sequence[tuple[str, object]], call: Naming) -> None:
        super().__init__(values)
        self._call = call

    def __missing__(self, name: str) -> str:
        return self._call(name)


Words = str | Problem  # a plain sentence, or one that names settings


def with_sentence(words: Words, sentence: str) -> Problem:
    """The words with a plain sentence after them."""
    if isinstance(words, str):
        return Problem.of("{words} {more}", words=words, more=sentence)
    return Problem(f"{words.text} {{more}}", (*words.values, ("more", sentence)), words.place)


def to_text(words: Words, call: Naming = str) -> str:
    """The words with each setting called as `call` does."""
    return words if isinstance(words, str) else words.render(call)


class BenchError(Exception):
    """An error that the document reports.

    Attributes:
        code: a stable word for machines.
        end_reason: how a run ends by it.
        retryable: whether the same command may succeed later.
        attempts: the requests of the call that failed by it, if one did.
        signal_number: the signal that caused it, if one did.
        sentences: what it says; `message` is their text without secrets.
        hints: what to do next; `hint` is their text.
    """

    code: str = "internal"
    end_reason: EndReason = "internal"
    retryable: bool = False
    attempts: tuple[Attempt, ...] = ()
    signal_number: int | None = None

    def __init__(self, *sentences: Words, hint: Words | None = None) -> None:
        self.sentences = sentences
        self.hints: tuple[Words, ...] = () if hint is None else (hint,)
        self.call_settings(str)

    def call_settings(self, call: Naming) -> None:
        """Have its texts name settings as `call` does, such as by their flags."""
        self._call = call
        # The same mistake may be found in several places.
        texts = dict.fromkeys(to_text(words, call) for words in self.sentences)
        self._set_message(tuple(texts))
        self.args = (self.message,)

    def _set_message(self, texts: tuple[str, ...]) -> None:
        self.message = redact(" ".join(texts))

    @property
    def hint(self) -> str | None:
        return redact(" ".join(to_text(words, self._call) for words in self.hints)) or None

    @hint.setter
    def hint(self, words: Words | None) -> None:
        self.hints = () if words is None else (words,)

    @property
    def exit_code(self) -> int:
        number = self.signal_number
        return 128 + number if number else ENDINGS[self.end_reason].exit_code

    def copied(self) -> Self:
        """A copy, for another run to add its hints to."""
        copy = self.__class__.__new__(self.__class__, *self.args)
        copy.__dict__.update(self.__dict__)
        return copy


class UsageError(BenchError):
    """The request itself is wrong. `problems` has the text of each mistake; the first `MOST_SHOWN`
    are shortened and masked.
    """

    code = "usage"
    end_reason: EndReason = "usage"

    def __init__(self, sentences: Sequence[Words], *, hint: Words | None = None) -> None:
        super().__init__(*sentences, hint=hint)

    def _set_message(self, texts: tuple[str, ...]) -> None:
        lines = shorten(texts)
        self.problems = (*lines[:MOST_SHOWN], *texts[MOST_SHOWN:])
        self.message = " ".join(lines)


def shorten(problems: Sequence[str]) -> tuple[str, ...]:
    """The first `MOST_SHOWN` mistakes, shortened and masked, and how many more there are."""
    texts = [redact(problem[:_SEARCHED_CHARS]) for problem in problems[:MOST_SHOWN]]
    lines = tuple(
        text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…" for text in texts
    )
    n_more = len(problems) - MOST_SHOWN
    return (*lines, f"And {n_more} more.") if n_more > 0 else lines


class Mistakes:
    """Collects mistakes: a `UsageError` raised in `with mistakes:` is added, and not raised."""

    def __init__(self, sentences: Iterable[Words] = ()) -> None:
        self.sentences = [*sentences]
        self._hints: list[Words] = []

    def __enter__(self) -> None:
        """Does nothing."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        if isinstance(error, UsageError):
            self.add(error)
        return isinstance(error, UsageError)

    def add(self, *errors: UsageError) -> None:
        for error in errors:
            self.sentences += error.sentences  # `call_settings` leaves out repeated ones
            self._hints += [hint for hint in error.hints if hint not in self._hints]

    def error(self, default_hint: Words | None = None) -> UsageError:
        """An error with all mistakes and their hints, or else with the default hint."""
        error = UsageError(self.sentences, hint=default_hint)
        error.hints = (*self._hints,) or error.hints
        return error


class InUseError(UsageError):
    """Another process, which is alive, plays this run."""


class DamagedJournalError(UsageError):
    """A file is no journal of a run, by its beginning; nothing of it was used or changed."""


class ModelError(BenchError):
    """A model call failed."""

    def __init__(
        self,
        *sentences: Words,
        code: str,
        end_reason: EndReason,
        retryable: bool = False,
        hint: Words | None = None,
    ) -> None:
        super().__init__(*sentences, hint=hint)
        self.code = code
        self.end_reason = end_reason
        self.retryable = retryable


class ArtifactError(BenchError):
    """A store refused something, or its connection was lost."""

    code = "artifacts"
    end_reason: EndReason = "artifacts"
    retryable = True


class LeaseLostError(ArtifactError):
    """Another process has taken over this run; this one must stop."""


class StoreOutageError(ArtifactError):
    """The store cannot be reached, or fails for now; the same write may succeed later."""


class StoreDeniedError(ArtifactError):
    """The store denies access to the credentials in use, so its content is unknown."""


class Stopped(BenchError):  # noqa: N818 -- an order to end, not a fault
    """The run was told to end. `code` is `interrupted`, `deadline` or `budget`."""

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
        self.retryable = end_reason != "budget"
        self.signal_number = signal_number

    @classmethod
    def by_signal(cls, number: int, sentence: str, *, hint: str) -> "Stopped":
        """A stop by a signal; `{signal}` in the sentence stands for its number and name."""
        name = next((f" ({signal.name})" for signal in Signals if signal == number), "")
        message = sentence.format(signal=f"signal {number}{name}")
        return cls(message, end_reason="interrupted", hint=hint, signal_number=number)

    @classmethod
    def of(cls, error: BenchError) -> "Stopped":
        """A copy of the error that ended the run, for one call to raise with its own `attempts`."""
        number = error.signal_number
        stopped = cls(error.message, end_reason=error.end_reason, signal_number=number)
        stopped.hints = error.hints
        return stopped


class InternalError(BenchError):
    """A defect of this program; it names the exception, and holds no secrets or model text."""

    @classmethod
    def of(cls, defect: Exception) -> "InternalError":
        """The error of an unexpected exception, which is kept as its cause."""
        error = cls(
            f"Internal error (a bug in this program): {type(defect).__name__}.",
            hint=Problem.of("Run again with {debug} for the traceback, and report it."),
        )
        error.__cause__ = defect
        return error


# `warning`: a run works, but maybe not as expected. `unknown`: it could not be checked, or a run
# does not need it. `failed`: a run would fail.
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


class CheckResult(Struct, frozen=True):
    """The result of checking `subject` before a run; `code` and `hint` are those of an error."""

    check: CheckName
    status: CheckStatus
    subject: str
    message: str
    code: str | None = None
    hint: Words | None = None

    @classmethod
    def of(cls, check: CheckName, status: CheckStatus, subject: str, error: BenchError) -> Self:
        """The result that an error gives."""
        hint = error.hints[0] if error.hints else None
        message = message_without_subject(subject, error)
        return cls(check, status, subject, message, error.code, hint)


def message_without_subject(subject: str, error: BenchError) -> str:
    """The error's message, without the subject where it begins with that."""
    first, *sentences = error.sentences or ("",)
    if not sentences or first not in (subject, f"{subject}:"):
        return error.message
    return redact(" ".join(map(to_text, sentences)))
