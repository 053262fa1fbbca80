"""Which models the account could call instead, from the control plane's listings. They are used for
hints only, and may be forbidden or unreachable.
"""

import threading
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from functools import cached_property
from typing import Any, TypeVar

from botocore.session import Session

from socratic_bench.catalogue.models import base_id
from socratic_bench.errors import ModelError
from socratic_bench.models.bedrock.error_kinds import TRANSLATED
from socratic_bench.models.bedrock.session import Endpoint, single_try_client

Result = TypeVar("Result")

MAX_WAIT_S = 2
NAMES = 5
PAGE = 1000

_UNKNOWN = (*TRANSLATED, ModelError, KeyError, TypeError, AttributeError)


class Listing:
    """The models and inference profiles of an account; each is asked for once, when needed."""

    def __init__(self, session: Session, endpoint: Endpoint) -> None:
        self._session = session
        self._endpoint = endpoint
        self._lock = threading.Lock()

    def profiles_of(self, model_id: str) -> tuple[str, ...]:
        """The inference profiles through which a model is called."""
        with self._lock:
            of_model = [name for name, models in self._profiles if base_id(model_id) in models]
        return tuple(of_model[:NAMES])

    def near(self, model_id: str) -> tuple[str, ...]:
        """The callable ids that resemble `model_id`, the nearest first."""
        with self._lock:
            names = [*self._models, *(name for name, _ in self._profiles)]
        asked = model_id.rpartition("/")[2]
        others = [name for name in dict.fromkeys(names) if name != asked]
        return tuple(get_close_matches(asked, others, n=NAMES))

    @cached_property
    def _profiles(self) -> tuple[tuple[str, frozenset[str]], ...]:
        """Each profile by the name to call it with, and the ids of its models."""
        return self._listed(_profiles)

    @cached_property
    def _models(self) -> tuple[str, ...]:
        """The ids that can be called as they stand."""
        return self._listed(_model_ids)

    def _listed(self, read: Callable[[Any], Iterator[Result]]) -> tuple[Result, ...]:
        if self._client is None:
            return ()
        try:
            return tuple(read(self._client))
        except _UNKNOWN:
            return ()

    @cached_property
    def _client(self) -> Any:  # noqa: ANN401 -- the SDK makes its classes while it runs
        """`None` if models are called at another endpoint and no endpoint for its listings is
        configured.
        """
        if self._endpoint.url:
            return None
        try:
            if self._is_elsewhere("bedrock-runtime") and not self._is_elsewhere("bedrock"):
                return None
            return self._connect("bedrock")
        except _UNKNOWN:
            return None

    def _is_elsewhere(self, service: str) -> bool:
        own = self._connect(service, ignore_configured_endpoint_urls=True)
        given = self._connect(service)
        return bool(own.meta.endpoint_url != given.meta.endpoint_url)

    def _connect(self, service: str, **more: Any) -> Any:  # noqa: ANN401 -- see `_client`
        return single_try_client(self._session, service, self._endpoint.region, MAX_WAIT_S, **more)


def _profiles(client: Any) -> Iterator[tuple[str, frozenset[str]]]:  # noqa: ANN401 -- see `_client`
    for row in client.list_inference_profiles(maxResults=PAGE)["inferenceProfileSummaries"]:
        if row["status"] == "ACTIVE":
            is_own = row.get("type") == "APPLICATION"
            name: str = row["inferenceProfileArn" if is_own else "inferenceProfileId"]
            yield name, frozenset(base_id(model["modelArn"]) for model in row["models"])


def _model_ids(client: Any) -> Iterator[str]:  # noqa: ANN401 -- see `_client`
    for row in client.list_foundation_models(byInferenceType="ON_DEMAND")["modelSummaries"]:
        is_text = "TEXT" in row.get("outputModalities", ("TEXT",))
        if is_text and row.get("modelLifecycle", {}).get("status") != "LEGACY":
            yield row["modelId"]
