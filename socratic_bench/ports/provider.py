"""The interfaces of models: a `Model` answers requests, a `Provider` sends single ones."""

import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, Protocol, Self

from msgspec import Struct

from socratic_bench.catalogue.tokens import PromptBlock
from socratic_bench.errors import CheckResult, ModelError, Problem, Stopped, Words
from socratic_bench.settings import CoreConfig
from socratic_bench.types import CallKey, Completion, EndReason, Message, Request, StopReason, Usage

THROTTLED = "throttled"
INVALID_REQUEST = "invalid_request"


class Model(Protocol):
    """Something that answers a request: a model on Bedrock, or a fake in a test."""

    @property
    def model_id(self) -> str: ...

    def complete(self, request: Request, key: CallKey) -> Completion:
        """Answer, or raise `ModelError` (for good) or `Stopped` (the run is ending)."""
        ...


class Answer(Struct, frozen=True, kw_only=True):
    """A model's answer to one request; see `socratic_bench.types.Completion` for the fields.

    Times are from the sending of the request: `latency_ms` to the last byte, `ttft_ms` to the first
    content of a stream.
    """

    message: Message
    stop_reason: StopReason
    provider_stop_reason: str
    usage: Usage | None
    latency_ms: float
    service_latency_ms: float | None = None
    request_id: str | None = None
    streamed: bool = False
    ttft_ms: float | None = None
    first_text_ms: float | None = None
    served_model: str | None = None
    served_tier: str | None = None
    served_latency_profile: str | None = None
    temperature: float | None = None


class ErrorKind(Struct, frozen=True, kw_only=True):
    """The kind of error of one request, and what follows from it.

    Attributes:
        code: its word in documents; `THROTTLED` slows down further requests to the model, and
            `INVALID_REQUEST` concerns one request alone.
        message: what the service said.
        model_id: the model, or else the service, that it concerns; the error names it first.
        called: the kind in a word or two for people, such as "connection lost"; else the code.
        end_reason: how a run ends if the error stays.
        is_retried: whether the call is tried again, within its attempts.
        maybe_billed: whether the request can have cost tokens.
        hint: what to do next.
        retry_after_s: the wait that the service asked for.
        mended: what the provider changes from now on, such as a field that it leaves out. The
            request is sent again at once, but only once for each such change in a call.
        notice: what people should know of that change.
        refused: the setting that the service refuses.
        look_up: finds a better hint, which may take seconds; called once the call has failed.
    """

    code: str
    message: str
    model_id: str = ""
    called: str = ""
    end_reason: EndReason = "unavailable"
    is_retried: bool = False
    maybe_billed: bool = False
    hint: Words | None = None
    retry_after_s: float | None = None
    mended: str | None = None
    notice: str | None = None
    refused: str | None = None
    look_up: Callable[[], Words | None] | None = None

    @classmethod
    def of(cls, error: ModelError, *, is_retried: bool = False) -> Self:
        """The kind of an error that was raised before anything was sent."""
        return cls(
            code=error.code,
            message=error.message,
            end_reason=error.end_reason,
            is_retried=is_retried,
            hint=error.hints[0] if error.hints else None,
        )

    @property
    def words(self) -> str:
        """The kind for people."""
        return self.called or self.code.replace("_", " ")

    @property
    def error(self) -> ModelError:
        """The error of a call that fails by it."""
        lead = [f"{self.model_id}:"] if self.model_id else []
        return ModelError(
            *lead,
            self.message,
            code=self.code,
            end_reason=self.end_reason,
            retryable=self.end_reason == "unavailable",
            hint=self.hint,
        )


class RefusedField(Struct, frozen=True):
    """A field that a model refuses: the code of that error, and what people should know of it."""

    code: str
    notice: str


# Of the request that this context sends: begins as it leaves the machine; cancelled, it never does.
departure: ContextVar["Future[None] | None"] = ContextVar("departure", default=None)


def leave() -> None:
    """Say that the request of this context is sent now. Raises `Stopped` if it was cancelled."""
    future = departure.get()
    if future and not future.running() and not future.set_running_or_notify_cancel():
        raise Stopped("The request was given up.", end_reason="interrupted")


class UnreadableAnswerError(Exception):
    """The answer cannot be read: it is cut off, empty, HTML or of another shape."""


class AnswerTimeoutError(Exception):
    """The answer was not complete within the call's time."""

    def __init__(self, model_id: str, timeout_s: float) -> None:
        super().__init__(f"no whole answer within {timeout_s:g} s")
        self.model_id = model_id


def common_kind(error: Exception, model_id: str) -> ErrorKind | None:
    """The kind of an error that means the same for every provider; `None` for any other."""
    if isinstance(error, AnswerTimeoutError):
        code, hint = "read_timeout", "raise {call_timeout_s} or lower {max_tokens}."
    elif isinstance(error, UnreadableAnswerError):
        code, hint = "unreadable_answer", "check the endpoint and any proxy before it."
    else:
        return None
    return ErrorKind(
        code=code,
        message=f"{type(error).__name__}: {error}",
        model_id=model_id,
        is_retried=True,
        maybe_billed=True,
        hint=Problem.of(f"No whole answer came: {hint}"),
    )


class Provider(Protocol):
    """Sends single requests; retries, rates and budgets are not its business. Thread-safe.

    `error_kind` names the errors that `send` raises; any other exception is a defect. Of a provider
    that does not call `leave`, a request counts as sent once it has it.
    """

    calls_leave: bool = False

    def send(self, model_id: str, request: Request, timeout_s: float) -> Answer:
        """Send one request and read the answer.

        It may block for longer than `timeout_s`: the call does not wait for it.
        """
        ...

    def error_kind(self, error: Exception) -> ErrorKind | None:
        """What an error of `send` is; `None` for a defect."""
        ...

    def sizes(self, model_id: str, request: Request) -> Sequence[PromptBlock]:
        """The request's blocks in the order in which the model reads them, tokens estimated."""
        ...

    def cached_prefix(self, model_id: str, request: Request) -> Hashable | None:
        """A key of the prefix that the request has a prompt cache keep; `None` if there is none."""
        return None

    def refused_fields(self, model_id: str) -> Mapping[str, RefusedField]:
        """The fields that are left out of requests to the model, by name, in all runs."""
        return {}

    def batches(self) -> Any:  # noqa: ANN401 -- a `BatchService`, which is above this interface
        """Its batch inference; `None` if it has none."""
        return None

    def capabilities(self, model_id: str) -> Mapping[str, tuple[bool, bool]]:
        """What the model takes, by name: as known without a call, and as observed so far.

        Empty if nothing is known.
        """
        return {}


class Quota(Struct, frozen=True, kw_only=True):
    """A model's quotas in an account; `None`: not known."""

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None


class ProviderModule(Protocol):
    """Opens a provider, and checks settings for it. Its module offers it as `PROVIDER`."""

    name: str

    def problems(self, config: CoreConfig) -> Iterable[Problem]:
        """Mistakes in a configuration for this provider."""
        if config.offline:
            yield Problem.of(
                "{offline} runs mock models only, which this {provider} does not call."
            )

    def notices(self, config: CoreConfig) -> Iterable[str]:
        """What people should know of how settings are applied."""
        return ()

    def sdk_version(self) -> str:
        """Name and version of the SDK or client that sends the requests."""
        return f"python {sys.version.partition(' ')[0]}"

    def prepare(self, config: CoreConfig) -> Any:  # noqa: ANN401 -- the provider's own
        """What `open` is given, such as credentials; it is read before anything is written.

        It remembers the secrets in it. Raises `ModelError`, which ends the run once it has begun.
        """
        del config

    def open(
        self,
        config: CoreConfig,
        prepared: Any,  # noqa: ANN401 -- the provider's own
        monotonic_s: Callable[[], float],
    ) -> AbstractContextManager[Provider]:
        """Connect; the provider measures times by the clock. Raises `ModelError`; may block."""
        ...

    def connection_key(self, config: CoreConfig) -> Hashable:
        """What a connection depends on: runs with equal keys share one, if they share services."""
        return (
            *(config.offline, config.region, config.assume_role_arn, config.call_timeout_s),
            *(config.stream, config.prompt_cache, config.request_metadata),
        )

    def identities(self, config: CoreConfig) -> Iterable[CheckResult]:
        """Check whose the credentials are, and the role; may block."""
        return ()

    def quotas(self, config: CoreConfig, model_ids: Sequence[str]) -> Mapping[str, Quota]:
        """The account's quotas of models, as far as they can be found; may block.

        Raises `ModelError` if none can be found.
        """
        return {}

    def for_run(self, provider: Provider, config: CoreConfig) -> Provider:
        """The opened provider, adapted to one of the runs that share it."""
        return provider
