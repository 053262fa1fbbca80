"""Hints that need more than a failure's kind: which login, which endpoint, similar model ids."""

import shlex
import threading
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from functools import cached_property
from typing import Any, TypeVar
from urllib.parse import urlsplit

from botocore.exceptions import LoginError
from botocore.session import Session

from socratic_bench.catalogue.models import base_id
from socratic_bench.errors import ModelError, Words, with_sentence
from socratic_bench.models.bedrock.errors import TRANSLATED
from socratic_bench.models.bedrock.session import Endpoint, single_try_client
from socratic_bench.ports.provider import ErrorKind

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
    """The hint that fits this very failure; `None` if no more is known than its kind.

    `cause` is what the SDK raised.
    """
    match error.code:
        case "expired_login":
            return _login_hint(cause, environ)
        case "needs_profile":
            return _profile_hint(listing.profiles_of(model_id))
        case "unknown_model" | "legacy_model":
            ids = listing.similar_ids(model_id)
            return _followed(error, f"Near matches here: {', '.join(ids)}." if ids else None)
        case "connection" | "connection_lost" | "read_timeout" | "tls":
            origin = _origin(cause)
            return _followed(error, f"The endpoint is {origin}" if origin else None)
        case _:
            return None


def _followed(error: ErrorKind, sentence: str | None) -> Words | None:
    """The hint of the error's kind, and the sentence behind it."""
    return with_sentence(error.hint or "", sentence) if sentence else None


def _login_hint(cause: Exception, environ: Mapping[str, str]) -> str:
    command = "aws login" if isinstance(cause, LoginError) else "aws sso login"
    profile = environ.get("AWS_PROFILE") or environ.get("AWS_DEFAULT_PROFILE")
    return f"Log in again with: {command}" + (
        f" --profile {shlex.quote(profile)}" if profile else ""
    )


def _profile_hint(profiles: tuple[str, ...]) -> str | None:
    if not profiles:
        return None
    return f"Use an inference profile of the model in place of its id: {', '.join(profiles)}."


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
