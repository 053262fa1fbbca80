"""Models behind endpoints that speak OpenAI's chat protocol, by the package `openai` (the extra
`openai`): OpenAI, Gemini, Azure, vLLM, Ollama, Bedrock's own such endpoint, a tutor of one's own.
"""

import os
import re
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import httpx2
import openai
from msgspec.structs import replace

from socratic_bench.catalogue.tokens import PromptBlock
from socratic_bench.errors import Problem
from socratic_bench.models.bedrock.error_table import ERROR_KINDS
from socratic_bench.models.chat_format import AnswerReader, chat_fields, message_blocks
from socratic_bench.ports.provider import (
    Answer,
    AnswerTimeoutError,
    ErrorKind,
    Provider,
    ProviderModule,
    RefusedField,
    UnreadableAnswerError,
    leave,
)
from socratic_bench.redaction import learn
from socratic_bench.settings import CoreConfig
from socratic_bench.settings.endpoints import (
    BEDROCK,
    CHAT,
    Endpoint,
    endpoint_problems,
    find_endpoint,
    models_of,
    split_id,
)
from socratic_bench.types import Request

NO_KEY = "none"  # the SDK wants one where an endpoint needs none
# Fields that the program adds by itself, by the words that refuse them; left out from then on.
OWN_FIELDS = {
    "max_tokens": r"max_completion_tokens",  # whose name is sent in its place
    "stream_options": r"stream_options|include_usage",
    "tools": r"\btool|function",
    "temperature": r"temperature",
    "stream": r"\bstream(ing)?\b",
}
SETTINGS = {
    "temperature": r"temperature",
    "top_p": r"top_p",
    "thinking": r"reasoning_effort",
    "max_tokens": r"max_(completion_)?tokens",
}
_CONTEXT_WINDOW = r"context.{0,10}(length|window)|too many (input )?tokens|prompt is too long"
_KIND_OF_STATUS = {
    401: "no_credentials",
    403: "access_denied",
    404: "unknown_model",
    408: "model_timeout",
    413: "context_window",
    429: "throttled",
}
_HINTS = {
    "throttled": "Run again later, raise {max_attempts}, or ask for a higher limit there.",
    "daily_quota": "The account has no money or quota left there: add some, then resume.",
    "no_credentials": "Check the key of the endpoint, and whose it is.",
    "access_denied": "Check what the key of the endpoint may call.",
    "unknown_model": "Check the model's id, and the address of the endpoint.",
    "connection": "Check the network, the proxy and the address of the endpoint.",
    "tls": "Check the certificates (SSL_CERT_FILE) and the address of the endpoint.",
    "invalid_endpoint": "The endpoint answers with another address, which is not followed, so that "
    "no key goes there: give that address itself.",
    "unreadable_answer": "What answered was not a chat completion: check the endpoint.",
}
_client_lock = threading.Lock()  # threads that ask for a client at once get the same one


class FailedChatError(Exception):
    """A request failed by the error's cause; `lacks` are the fields that it was sent without, and
    `began` whether an answer had begun.
    """

    def __init__(self, model_id: str, *, lacks: frozenset[str], began: bool) -> None:
        super().__init__(model_id)
        self.model_id = model_id
        self.lacks = lacks
        self.began = began


# By model, the fields that it has refused.
Refused = dict[str, dict[str, RefusedField]]


class ChatProvider(Provider):
    """See `Provider`. It makes the client of an endpoint when a model of it is called first."""

    calls_leave = True

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        *,
        timeout_s: float,
        monotonic_s: Callable[[], float],
        clients: dict[str, openai.OpenAI],
        stream: bool = True,
        refused: Refused | None = None,
    ) -> None:
        self._endpoints, self._timeout_s = tuple(endpoints), timeout_s
        self._monotonic_s, self._stream = monotonic_s, stream
        self._clients = clients
        self._refused = {} if refused is None else refused

    def with_stream(self, stream: bool) -> "ChatProvider":  # noqa: FBT001 -- the setting itself
        """One with the same clients, which shares what is observed of models."""
        return ChatProvider(
            self._endpoints,
            timeout_s=self._timeout_s,
            monotonic_s=self._monotonic_s,
            stream=stream,
            clients=self._clients,
            refused=self._refused,
        )

    def send(self, model_id: str, request: Request, timeout_s: float) -> Answer:
        """See `Provider.send`. Raises `FailedChatError`."""
        lacks = frozenset(self.refused_fields(model_id))
        fields = chat_fields(split_id(model_id)[1], request, lacks, stream=self._stream)
        reader = AnswerReader(model_id, timeout_s, self._monotonic_s)
        try:
            answer = reader.read(self._client(model_id), fields)
        except (
            openai.OpenAIError,
            httpx2.HTTPError,
            AnswerTimeoutError,
            UnreadableAnswerError,
        ) as error:
            raise FailedChatError(model_id, lacks=lacks, began=reader.began) from error
        return replace(answer, temperature=fields.get("temperature"))

    def error_kind(self, error: Exception) -> ErrorKind | None:
        if not isinstance(error, FailedChatError):
            return None
        cause = error.__cause__
        assert isinstance(cause, Exception)  # noqa: S101 -- `send` raises it from one
        code, message = _classify(cause)
        row = ERROR_KINDS[code]
        kind = ErrorKind(
            code=code,
            message=message,
            model_id=error.model_id,
            called=row.label,
            end_reason=row.end_reason,
            is_retried=row.retried,
            maybe_billed=error.began or row.maybe_billed,
            hint=Problem.of(_HINTS.get(code, row.hint)),
            retry_after_s=_retry_after_s(cause),
            refused=_match(SETTINGS, message) if code == "invalid_request" else None,
        )
        dropped = _match(OWN_FIELDS, message) if code == "invalid_request" else None
        if dropped is None or dropped in error.lacks:
            return kind
        notice = (
            f"{error.model_id} refuses {dropped.replace('_', ' ')}: the run continues without it."
        )
        self._refused.setdefault(error.model_id, {})[dropped] = RefusedField(code, notice)
        return replace(kind, mended=dropped, notice=notice)

    def sizes(self, model_id: str, request: Request) -> Sequence[PromptBlock]:
        del model_id
        return message_blocks(request)

    def refused_fields(self, model_id: str) -> Mapping[str, RefusedField]:
        return dict(self._refused.get(model_id, {}))

    def _client(self, model_id: str) -> openai.OpenAI:
        name = split_id(model_id)[0]
        with _client_lock:
            if name not in self._clients:
                endpoint = find_endpoint(model_id, self._endpoints, os.environ)
                assert endpoint  # noqa: S101 -- `problems` has looked for it
                self._clients[name] = _new_client(endpoint, self._timeout_s, self._monotonic_s)
            return self._clients[name]


class _TimedStream(httpx2.SyncByteStream):
    """The bytes of an answer until a moment, also where they are only comments that keep a
    connection open.
    """

    def __init__(
        self, stream: httpx2.SyncByteStream, end_s: float, now_s: Callable[[], float]
    ) -> None:
        self._stream, self._end_s, self._now_s = stream, end_s, now_s

    def __iter__(self) -> Iterator[bytes]:
        for part in self._stream:
            if self._now_s() > self._end_s:
                raise httpx2.ReadTimeout("The answer took too long.")
            yield part

    def close(self) -> None:
        self._stream.close()


def _new_client(
    endpoint: Endpoint, timeout_s: float, monotonic_s: Callable[[], float]
) -> openai.OpenAI:
    """A client that tries once, follows no redirect and sends the key to no other host."""
    key = os.environ.get(endpoint.key_variable, "") if endpoint.key_variable else ""
    learn([key])

    def before_sending(request: httpx2.Request) -> None:
        if not key:
            del request.headers["Authorization"]
        if endpoint.name != CHAT:  # variables name them, for OpenAI's own endpoint
            for name in ("OpenAI-Organization", "OpenAI-Project"):
                request.headers.pop(name, None)
        leave()

    def before_reading(response: httpx2.Response) -> None:
        assert isinstance(response.stream, httpx2.SyncByteStream)  # noqa: S101 -- a sync client's
        end_s = monotonic_s() + timeout_s
        response.stream = _TimedStream(response.stream, end_s, monotonic_s)

    return openai.OpenAI(
        api_key=key or NO_KEY,
        base_url=endpoint.base_url,
        max_retries=0,
        timeout=timeout_s,
        http_client=openai.DefaultHttpx2Client(
            follow_redirects=False,
            event_hooks={"request": [before_sending], "response": [before_reading]},
        ),
    )


def _classify(error: Exception) -> tuple[str, str]:
    """The code of an error, and what it says."""
    if isinstance(error, AnswerTimeoutError | openai.APITimeoutError | httpx2.TimeoutException):
        return "read_timeout", str(error)
    if isinstance(error, UnreadableAnswerError | openai.APIResponseValidationError):
        return "unreadable_answer", str(error)
    if isinstance(error, openai.APIStatusError):
        return _classify_status(error.status_code, str(error.message), error.code)
    if isinstance(error, openai.APIConnectionError):
        cause = f"{type(error.__cause__).__name__}: {error.__cause__}"
        is_tls = "certificate" in cause.lower()
        is_unsent = type(error.__cause__).__name__ in ("ConnectError", "ConnectTimeout")
        code = "tls" if is_tls else "connection" if is_unsent else "connection_lost"
        return code, cause
    if isinstance(error, openai.APIError):  # an error within a stream
        return _classify_status(500, str(error.message), error.code)
    return "connection_lost", f"{type(error).__name__}: {error}"


def _classify_status(status: int, message: str, code: object) -> tuple[str, str]:
    if code == "content_filter":  # Azure's, of the prompt
        return "content_filtered", message
    if code == "insufficient_quota":
        return "daily_quota", message
    if re.search(_CONTEXT_WINDOW, message, re.IGNORECASE) or code == "context_length_exceeded":
        return "context_window", message
    if 300 <= status < 400:  # noqa: PLR2004
        return "invalid_endpoint", f"HTTP {status}"
    usual = "server_error" if status >= 500 else "invalid_request"  # noqa: PLR2004
    return _KIND_OF_STATUS.get(status, usual), message


def _retry_after_s(error: Exception) -> float | None:
    """The wait that the endpoint asks for, in seconds."""
    headers: Mapping[str, str] = getattr(getattr(error, "response", None), "headers", None) or {}
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        word = headers.get(name, "")
        if re.fullmatch(r"\d+(\.\d+)?", word):
            return float(word) * unit
    return None


def _match(patterns: Mapping[str, str], message: str) -> str | None:
    return next(
        (name for name, pattern in patterns.items() if re.search(pattern, message, re.IGNORECASE)),
        None,
    )


class Chat(ProviderModule):
    """Endpoints of OpenAI's protocol as a `ProviderModule`."""

    name = CHAT

    def problems(self, config: CoreConfig) -> Iterator[Problem]:
        """No such endpoint, no key, and settings that only Bedrock has."""
        models = [model for model in models_of(config) if split_id(model)[0] != BEDROCK]
        if config.offline:
            yield Problem.of(
                "{offline} runs mock models only: leave it out, or {id}.", id=models[0]
            )
            return
        yield from endpoint_problems(models, config.endpoints, os.environ)
        for name in ("guardrail", "latency_profile"):
            if config.model in models and getattr(config, name) is not None:
                text = f"{{{name}}} is Bedrock's own, and {{id}} is not on Bedrock: leave it out."
                yield Problem.of(text, id=config.model)

    def sdk_version(self) -> str:
        return f"openai {openai.__version__}"

    def connection_key(self, config: CoreConfig) -> Hashable:
        return (config.endpoints, config.call_timeout_s)

    def for_run(self, provider: Provider, config: CoreConfig) -> Provider:
        assert isinstance(provider, ChatProvider)  # noqa: S101 -- `open` gave it
        return provider.with_stream(config.stream)

    @contextmanager
    def open(
        self, config: CoreConfig, prepared: object, monotonic_s: Callable[[], float]
    ) -> Iterator[Provider]:
        del prepared
        clients: dict[str, openai.OpenAI] = {}
        try:
            yield ChatProvider(
                config.endpoints,
                timeout_s=config.call_timeout_s,
                monotonic_s=monotonic_s,
                clients=clients,
            )
        finally:
            for client in clients.values():
                client.close()


PROVIDER = Chat()
