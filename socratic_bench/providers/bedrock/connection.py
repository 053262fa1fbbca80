"""The one client that all models are called through, and its credentials' renewal."""

import os
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from socratic_bench.errors import ModelError
from socratic_bench.providers.bedrock.credentials import make_ready
from socratic_bench.providers.bedrock.session import (
    Endpoint,
    open_session,
    runtime_client,
    signs_with_token,
)

if TYPE_CHECKING:
    from botocore.session import Session
    from types_boto3_bedrock_runtime import BedrockRuntimeClient

    from socratic_bench.providers.bedrock.listing import Listing

RENEWABLE = ("expired_credentials", "expired_login")


class Connection:
    """Opens a client at once, in a `session` that was opened before, or one of its own.

    Raises `ModelError` where the SDK's environment allows none.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        notice: Callable[[str], None],
        environ: Mapping[str, str] = os.environ,
        session: "Session | None" = None,
    ) -> None:
        self.call_timeout_s = endpoint.call_timeout_s
        self._endpoint = endpoint
        self._notice = notice
        self._environ = environ
        self._lock = threading.Lock()
        self._may_renew = True
        self._listing: Listing | None = None
        self._open(session)

    def make_ready(self) -> None:
        """Get or renew the credentials that the next request is signed with.

        Raises `CredentialsError`. A client that signs with an API key needs none.
        """
        if not signs_with_token(self.client, self._environ):
            make_ready(self._session, self._endpoint.assume_role_arn)

    def answered(self, client: "BedrockRuntimeClient") -> None:
        """A client whose credentials serve may be renewed when they run out later."""
        if client is self.client:
            self._may_renew = True

    def renew(self, spent: "BedrockRuntimeClient") -> bool:
        """Whether there is another client than the one whose credentials have run out.

        The first to ask has the SDK read its credentials afresh, once for all; a client that never
        got an answer is not replaced, so that this comes to an end. Raises `ModelError` where there
        are no credentials any more.
        """
        with self._lock:
            if self.client is not spent:
                return True
            if not self._may_renew:
                return False
            self._may_renew = False
            self._notice("The credentials have run out: the SDK was asked for new ones.")
            self._open()
            return True

    def hint(self, error: ModelError, model_id: str) -> str | None:
        """What to do about a failure of a call, as far as it can be known."""
        from socratic_bench.providers.bedrock.advice import better_hint

        listing = self._known_listing()
        return better_hint(error, model_id=model_id, environ=self._environ, listing=listing)

    def _known_listing(self) -> "Listing":
        """One for all failures, until the credentials are renewed."""
        from socratic_bench.providers.bedrock.listing import Listing

        with self._lock:
            if self._listing is None:
                self._listing = Listing(self._session, self._endpoint)
            return self._listing

    def close(self) -> None:
        self.client.close()

    def _open(self, session: "Session | None" = None) -> None:
        self._session = session or open_session(self._endpoint)
        self.client: BedrockRuntimeClient = runtime_client(
            self._session, self._endpoint, self._environ
        )
        self._listing = None
