"""The seam to those who answer: a provider sends one request, and names what went wrong with it."""

import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, Self

from msgspec import Struct

from socratic_bench.catalogue.cache_pricing import Part
from socratic_bench.errors import CheckResult, ModelError, Problem, Words
from socratic_bench.settings import CoreConfig
from socratic_bench.types import CallKey, Completion, EndReason, Message, Request, StopReason, Usage

THROTTLED = "throttled"
SERVER_ERROR = "server_error"
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
    served_model: str | None = None
    served_tier: str | None = None
    served_latency_profile: str | None = None
    temperature: float | None = None


class ErrorKind(Struct, frozen=True, kw_only=True):
    """What the error of one request is.

    Attributes:
        code: the word for it in documents; `THROTTLED` slows down who sends to the model next, and
            `SERVER_ERROR` keeps them from going faster for a while. `INVALID_REQUEST` is one
            request's own: it says nothing of others.
        message: what was said.
        model_id: the model, or else the service, that it was said of; the error names it first.
        called: the kind in a word or two for people, such as "connection lost"; by itself the code.
        end_reason: how a run ends if it stays.
        is_retried: whether the call is tried again, within its attempts.
        maybe_billed: whether the request can have cost tokens.
        hint: what to do next.
        retry_after_s: the wait that the service asked for.
        mended: what the provider does otherwise from now on, such as a field that it leaves out.
            The request is sent again at once, but once for each such word in a call.
        notice: what people should know of that.
        refused: the setting that the service refuses.
        look_up: finds a better hint, which may take seconds; asked once the call has failed.
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
        """The kind of an error that tells all by itself; nothing was sent."""
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
        """What a call fails by."""
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
    """What a model does not take: the code of the error that said so, and what people should know
    of it.
    """

    code: str
    notice: str


class UnreadableAnswerError(Exception):
    """What came back as an answer is none: cut off, empty, HTML or of another shape."""


class AnswerTimeoutError(Exception):
    """An answer of a model that was not there, to its last byte, within the call's time."""

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
    """Sends requests; knows nothing of retries, pace, money and attempts. Safe to use from several
    threads.

    What `send` raises is looked up with `error_kind`; whatever else it raises is a defect.
    """

    def send(self, model_id: str, request: Request, timeout_s: float) -> Answer:
        """Send one request and read the answer; it may block for longer, since nobody has to wait
        for it.
        """
        ...

    def error_kind(self, error: Exception) -> ErrorKind | None:
        """What an error of `send` is; `None` for a defect."""
        ...

    def sizes(self, model_id: str, request: Request) -> Sequence[Part]:
        """About how many tokens each block of the request has, in the order of reading."""
        ...

    def cached_prefix(self, model_id: str, request: Request) -> Hashable | None:
        """What the request has a prompt cache keep for other requests that begin so."""
        del model_id, request
        return None

    def refused_fields(self, model_id: str) -> Mapping[str, RefusedField]:
        """What all requests to the model lack, by name, whichever run has found it out."""
        del model_id
        return {}

    def capabilities(self, model_id: str) -> Mapping[str, tuple[bool, bool]]:
        """What the model takes by what is known of it without a call, and as seen so far, by name;
        nothing where nothing is known.
        """
        del model_id
        return {}


class Quota(Struct, frozen=True, kw_only=True):
    """A model's quotas in an account; `None`: not known."""

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None


class ProviderModule(Protocol):
    """How a provider is come by. Its module offers it as `PROVIDER`."""

    name: str

    def problems(self, config: CoreConfig) -> Iterable[Problem]:
        """What is wrong with a configuration for this provider, a sentence each."""
        if config.offline:
            yield Problem.of("{offline} plays on an endpoint that this {provider} does not call.")

    def notices(self, config: CoreConfig) -> Iterable[str]:
        """What people should know of what becomes of settings."""
        del config
        return ()

    def sdk_version(self) -> str:
        """Name and version of what sends the requests."""
        return f"python {sys.version.partition(' ')[0]}"

    def prepare(self, config: CoreConfig) -> Any:  # noqa: ANN401 -- the provider's own
        """What `open` gets, read before anything is written; it learns the secrets in it.

        Raises `ModelError`, by which the run ends once it has begun.
        """
        del config

    def open(
        self,
        config: CoreConfig,
        prepared: Any,  # noqa: ANN401 -- the provider's own
        monotonic_s: Callable[[], float],
    ) -> AbstractContextManager[Provider]:
        """The provider, connected, which measures by the clock. Raises `ModelError`; may block."""
        ...

    def connection_key(self, config: CoreConfig) -> Hashable:
        """What a connection depends on: runs of one key share one, if they share services."""
        return (
            *(config.offline, config.region, config.assume_role_arn, config.call_timeout_s),
            *(config.stream, config.prompt_cache, config.request_metadata),
        )

    def identities(self, config: CoreConfig) -> Iterable[CheckResult]:
        """Whose the credentials are, and the role; it may block."""
        del config
        return ()

    def quotas(self, config: CoreConfig, model_ids: Sequence[str]) -> Mapping[str, Quota]:
        """What the account may have of models, as far as it can be told; it may block.

        Raises `ModelError` where nothing can be told.
        """
        del config, model_ids
        return {}

    def for_run(self, provider: Provider, config: CoreConfig) -> Provider:
        """The provider that was opened, as one of the runs that share it wants it."""
        del config
        return provider
