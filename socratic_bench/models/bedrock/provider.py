"""Bedrock as a `Provider`: sends a request in the shape that its model takes, reads the answer, and
names what went wrong.
"""

import os
import shlex
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from botocore.exceptions import LoginError
from botocore.session import Session
from msgspec.structs import replace

from socratic_bench.catalogue.models import Capabilities, base_id, capabilities_of
from socratic_bench.catalogue.tokens import PromptBlock, packed_schema
from socratic_bench.errors import ModelError, Words, with_sentence
from socratic_bench.models.bedrock.batch import BedrockBatches
from socratic_bench.models.bedrock.capabilities import (
    OWN_FIELDS,
    ObservedCapabilities,
    Options,
)
from socratic_bench.models.bedrock.converse import ConverseCall
from socratic_bench.models.bedrock.credentials import CredentialsError, make_ready
from socratic_bench.models.bedrock.errors import TRANSLATED, error_kind
from socratic_bench.models.bedrock.optimise import (
    SERVICE,
    OptimisedPrompts,
    hint_on_optimising,
    optimise,
)
from socratic_bench.models.bedrock.request import caches_system, request_parts
from socratic_bench.models.bedrock.session import (
    Endpoint,
    open_session,
    runtime_client,
    signs_with_token,
    single_try_client,
)
from socratic_bench.ports.provider import (
    Answer,
    AnswerTimeoutError,
    ErrorKind,
    Provider,
    RefusedField,
)
from socratic_bench.types import OPTIMIZER, Request

if TYPE_CHECKING:
    from types_boto3_bedrock_runtime import BedrockRuntimeClient


Result = TypeVar("Result")

# Kinds of errors for which `better_hint` may have one.
HINTED_KINDS = frozenset(
    (
        *("expired_login", "needs_profile", "unknown_model", "legacy_model"),
        *("connection", "connection_lost", "read_timeout", "tls"),
    )
)
MAX_WAIT_S = 2
N_IDS_SHOWN = 5
PAGE_SIZE = 1000

# Errors after which a listing is unknown.
_LISTING_ERRORS = (*TRANSLATED, ModelError, KeyError, TypeError, AttributeError)

RENEWABLE = ("expired_credentials", "expired_login")
RENEWED = "The credentials have expired: the SDK was asked for new ones."


class FailedRequestError(Exception):
    """A request failed by the error's cause. `assumed` is what the model was assumed to take,
    `began` whether a stream had begun.
    """

    def __init__(
        self,
        model_id: str,
        *,
        assumed: Capabilities,
        client: "BedrockRuntimeClient | None",
        began: bool,
    ) -> None:
        super().__init__(model_id)
        self.model_id = model_id
        self.assumed = assumed
        self.client = client
        self.began = began


class Connection:
    """The one client through which all models are called, with the renewal of its credentials.

    It is opened at once, in `session` or in one of its own; safe to use from several threads.
    Raises `ModelError` where the SDK's environment allows no client.
    """

    def __init__(self, endpoint: Endpoint, *, session: Session | None = None) -> None:
        self._endpoint = endpoint
        self._lock = threading.Lock()
        # Held while a program gives credentials: threads of requests wait for it, and no run does.
        self._opening = threading.Lock()
        self._may_renew = True
        self._has_expired = False
        self._agent_client: BedrockRuntimeClient | None = None
        self.optimised = OptimisedPrompts()
        self._open(session)

    def current_client(self) -> "BedrockRuntimeClient":
        """The client, with credentials that are read afresh if they have run out. Raises
        `ModelError` where there are none any more.
        """
        if self._has_expired:
            with self._opening:
                if self._has_expired:
                    self._open()
        return self.client

    def optimise_client(self) -> "BedrockRuntimeClient":
        """A client for OptimizePrompt, in the same session."""
        with self._opening:
            if self._agent_client is None:
                self._agent_client = runtime_client(self._session, self._endpoint, SERVICE)
            return self._agent_client

    def make_ready(self, client: "BedrockRuntimeClient") -> None:
        """Get or renew the credentials that the client's next request is signed with. Raises
        `CredentialsError`. A client that signs with an API key needs none.
        """
        if not signs_with_token(client):
            make_ready(self._session, self._endpoint.assume_role_arn)

    def batches(self, options: Options) -> BedrockBatches:
        """Batch inference with the session's credentials, which renew themselves."""
        return BedrockBatches(self._session, self._endpoint, options)

    def note_answer(self, client: "BedrockRuntimeClient") -> None:
        """Note that the client's credentials are good, so that they may be renewed later."""
        if client is self.client:
            self._may_renew = True

    def renewed(self, kind: ErrorKind, client: "BedrockRuntimeClient | None") -> ErrorKind | None:
        """The same kind, marked as mended, if the client's credentials have run out and others will
        serve the next request; `None` for any other error.

        A client that never got an answer is not replaced, so that this comes to an end.
        """
        if kind.code not in RENEWABLE or client is None:
            return None
        with self._lock:
            if client is self.client and not self._has_expired:
                if not self._may_renew:
                    return None
                self._may_renew, self._has_expired = False, True
        return replace(kind, mended="credentials", notice=RENEWED)

    def hint(self, kind: ErrorKind, cause: Exception, model_id: str) -> Words | None:
        """See `better_hint`; it may take seconds."""
        listing = self._listing
        return better_hint(kind, cause, model_id=model_id, environ=os.environ, listing=listing)

    def close(self) -> None:
        self.client.close()

    def _open(self, session: Session | None = None) -> None:
        self._session = session or open_session(self._endpoint)
        self.client: BedrockRuntimeClient = runtime_client(self._session, self._endpoint)
        self._agent_client = None
        # One for all failures, until the credentials are renewed.
        self._listing = Listing(self._session, self._endpoint)
        self._has_expired = False


class BedrockProvider(Provider):
    """See `Provider`. A field that a model refuses is left out of what is sent to it later."""

    calls_leave = True

    def __init__(
        self,
        connection: Connection,
        options: Options,
        *,
        monotonic_s: Callable[[], float],
        observed: dict[str, ObservedCapabilities] | None = None,
    ) -> None:
        self._connection = connection
        self._options = options
        self._monotonic_s = monotonic_s
        self._observed = {} if observed is None else observed

    def with_options(self, options: Options) -> "BedrockProvider":
        """One on the same connection, which shares what is observed of models."""
        return BedrockProvider(
            self._connection, options, monotonic_s=self._monotonic_s, observed=self._observed
        )

    def send(self, model_id: str, request: Request, timeout_s: float) -> Answer:
        """See `Provider.send`. Raises `FailedRequestError`."""
        if model_id == OPTIMIZER:
            return self._optimise(request)
        shaped = self._capabilities(model_id).shaped(request, self._options)
        client: BedrockRuntimeClient | None = None
        call: ConverseCall | None = None
        try:
            client = self._connection.current_client()
            self._connection.make_ready(client)
            call = ConverseCall(
                client, shaped.arguments, timeout_s=timeout_s, monotonic_s=self._monotonic_s
            )
            answer = call.answer(streamed=shaped.is_streamed)
        except (*TRANSLATED, ModelError) as error:
            began = call is not None and call.began
            raise FailedRequestError(
                model_id, assumed=shaped.capabilities, client=client, began=began
            ) from error
        self._connection.note_answer(client)
        temperature = shaped.arguments["inferenceConfig"].get("temperature")
        return replace(answer, temperature=temperature)

    def batches(self) -> BedrockBatches:
        """Batch inference in the run's session."""
        return self._connection.batches(self._options)

    def _optimise(self, request: Request) -> Answer:
        assumed = self._capabilities(OPTIMIZER).now
        current = None
        try:
            current = self._connection.current_client()
            client = self._connection.optimise_client()
            self._connection.make_ready(client)
            answer = self._connection.optimised.answer(
                request, lambda: optimise(client, request, self._monotonic_s)
            )
        except (*TRANSLATED, ModelError) as error:
            raise FailedRequestError(
                OPTIMIZER, assumed=assumed, client=current, began=False
            ) from error
        self._connection.note_answer(current)
        return answer

    def error_kind(self, error: Exception) -> ErrorKind | None:
        if isinstance(error, AnswerTimeoutError):
            return error_kind(error, model_id=error.model_id)
        if not isinstance(error, FailedRequestError):
            return None
        cause = error.__cause__
        assert isinstance(cause, Exception)  # noqa: S101 -- `send` raises it from one
        kind = error_kind(cause, model_id=error.model_id, began=error.began)
        if error.model_id == OPTIMIZER and kind.hint:
            kind = replace(kind, hint=hint_on_optimising(kind.hint))
        kind = (
            self._capabilities(error.model_id).mended(kind, error.assumed)
            or self._connection.renewed(kind, error.client)
            or kind
        )
        look_up = partial(self._connection.hint, kind, _sdk_error(cause), error.model_id)
        return replace(kind, look_up=look_up if kind.code in HINTED_KINDS else None)

    def sizes(self, model_id: str, request: Request) -> Sequence[PromptBlock]:
        shaped = self._capabilities(model_id).shaped(request, self._options)
        return request_parts(shaped.arguments)

    def cached_prefix(self, model_id: str, request: Request) -> Hashable | None:
        if not caches_system(request, self._options.limited(self._capabilities(model_id).now)):
            return None
        tool = request.tool
        return (
            model_id,
            request.system,
            tool and (tool.name, tool.description, packed_schema(tool)),
        )

    def refused_fields(self, model_id: str) -> Mapping[str, RefusedField]:
        return self._capabilities(model_id).refused

    def capabilities(self, model_id: str) -> Mapping[str, tuple[bool, bool]]:
        """See `Provider.capabilities`; what a run's own options leave out counts as not taken."""
        listed = self._options.limited(capabilities_of(model_id))
        now = self._options.limited(self._capabilities(model_id).now)
        return {name: (getattr(listed, name), getattr(now, name)) for name in OWN_FIELDS}

    def _capabilities(self, model_id: str) -> ObservedCapabilities:
        observed = self._observed.get(model_id)
        # Another thread may be quicker.
        return observed or self._observed.setdefault(model_id, ObservedCapabilities(model_id))


def _sdk_error(error: Exception) -> Exception:
    """What the SDK raised."""
    if isinstance(error, CredentialsError):
        return error.cause
    cause = error.__cause__ if isinstance(error, ModelError) else None
    return cause if isinstance(cause, Exception) else error


class Listing:
    """The models and inference profiles that an account may call, from the control plane.

    Each list is fetched once, when it is first needed; one that is forbidden or unreachable is
    empty. Safe to use from several threads.
    """

    def __init__(self, session: Session, endpoint: Endpoint) -> None:
        self._session = session
        self._endpoint = endpoint
        self._lock = threading.Lock()

    def profiles_of(self, model_id: str) -> tuple[str, ...]:
        """The inference profiles through which a model is called."""
        with self._lock:
            profiles = [name for name, models in self._profiles if base_id(model_id) in models]
        return tuple(profiles[:N_IDS_SHOWN])

    def similar_ids(self, model_id: str) -> tuple[str, ...]:
        """The callable ids that resemble `model_id`, the nearest first."""
        with self._lock:
            names = [*self._models, *(name for name, _ in self._profiles)]
        wanted = model_id.rpartition("/")[2]
        candidates = [name for name in dict.fromkeys(names) if name != wanted]
        return tuple(get_close_matches(wanted, candidates, n=N_IDS_SHOWN))

    @cached_property
    def _profiles(self) -> tuple[tuple[str, frozenset[str]], ...]:
        """Each profile by the name to call it with, and the ids of its models."""
        return self._fetch(_profiles)

    @cached_property
    def _models(self) -> tuple[str, ...]:
        """The ids that can be called as they stand."""
        return self._fetch(_model_ids)

    def _fetch(self, read: Callable[[Any], Iterator[Result]]) -> tuple[Result, ...]:
        if self._client is None:
            return ()
        try:
            return tuple(read(self._client))
        except _LISTING_ERRORS:
            return ()

    @cached_property
    def _client(self) -> Any:  # noqa: ANN401 -- the SDK makes its classes while it runs
        """`None` if models are called at an endpoint of one's own and listings have none."""
        if self._endpoint.url:
            return None
        try:
            if self._has_own_endpoint("bedrock-runtime") and not self._has_own_endpoint("bedrock"):
                return None
            return self._connect("bedrock")
        except _LISTING_ERRORS:
            return None

    def _has_own_endpoint(self, service: str) -> bool:
        default = self._connect(service, ignore_configured_endpoint_urls=True)
        configured = self._connect(service)
        return bool(default.meta.endpoint_url != configured.meta.endpoint_url)

    def _connect(self, service: str, **options: Any) -> Any:  # noqa: ANN401 -- see `_client`
        region = self._endpoint.region
        return single_try_client(self._session, service, region, MAX_WAIT_S, **options)


def better_hint(
    error: ErrorKind,
    cause: Exception,
    *,
    model_id: str,
    environ: Mapping[str, str],
    listing: Listing,
) -> Words | None:
    """The hint that fits this very failure; `None` if no more is known than its kind. `cause` is
    what the SDK raised.
    """
    match error.code:
        case "expired_login":
            command = "aws login" if isinstance(cause, LoginError) else "aws sso login"
            profile = environ.get("AWS_PROFILE") or environ.get("AWS_DEFAULT_PROFILE")
            flag = f" --profile {shlex.quote(profile)}" if profile else ""
            return f"Log in again with: {command}{flag}"
        case "needs_profile":
            profiles = ", ".join(listing.profiles_of(model_id))
            sentence = f"Use an inference profile of the model in place of its id: {profiles}."
            return sentence if profiles else None
        case "unknown_model" | "legacy_model":
            ids = ", ".join(listing.similar_ids(model_id))
            return with_sentence(error.hint or "", f"Near matches here: {ids}.") if ids else None
        case "connection" | "connection_lost" | "read_timeout" | "tls":
            origin = _origin(cause)
            more = f"The endpoint is {origin}"
            return with_sentence(error.hint or "", more) if origin else None
        case _:
            return None


def _origin(cause: Exception) -> str | None:
    """Scheme, host and port of what did not answer: Bedrock, or the service that gives the role."""
    fields: Mapping[str, object] = getattr(cause, "kwargs", {})
    url = urlsplit(str(fields.get("endpoint_url", "")))
    return f"{url.scheme}://{url.netloc.rpartition('@')[2]}" if url.netloc else None


def _profiles(client: Any) -> Iterator[tuple[str, frozenset[str]]]:  # noqa: ANN401 -- see `_client`
    for row in client.list_inference_profiles(maxResults=PAGE_SIZE)["inferenceProfileSummaries"]:
        if row["status"] == "ACTIVE":
            is_own = row.get("type") == "APPLICATION"
            name: str = row["inferenceProfileArn" if is_own else "inferenceProfileId"]
            yield name, frozenset(base_id(model["modelArn"]) for model in row["models"])


def _model_ids(client: Any) -> Iterator[str]:  # noqa: ANN401 -- see `_client`
    for row in client.list_foundation_models(byInferenceType="ON_DEMAND")["modelSummaries"]:
        is_text = "TEXT" in row.get("outputModalities", ("TEXT",))
        if is_text and row.get("modelLifecycle", {}).get("status") != "LEGACY":
            yield row["modelId"]
