"""The one client that all models are called through, and its credentials' renewal."""

import os
import threading
from typing import TYPE_CHECKING

from msgspec.structs import replace

from socratic_bench.errors import Words
from socratic_bench.models.bedrock.credentials import make_ready
from socratic_bench.models.bedrock.session import (
    Endpoint,
    open_session,
    runtime_client,
    signs_with_token,
)
from socratic_bench.ports.provider import ErrorKind

if TYPE_CHECKING:
    from botocore.session import Session
    from types_boto3_bedrock_runtime import BedrockRuntimeClient

    from socratic_bench.models.bedrock.listing import Listing

RENEWABLE = ("expired_credentials", "expired_login")
# Kinds of errors that there may be a better hint for (`advice`).
ADVISED = frozenset(
    (
        *("expired_login", "needs_profile", "unknown_model", "legacy_model"),
        *("connection", "connection_lost", "read_timeout", "tls"),
    )
)
RENEWED = "The credentials have run out: the SDK was asked for new ones."


class Connection:
    """Opens a client at once, in a `session` that was opened before, or one of its own.

    Raises `ModelError` where the SDK's environment allows none.
    """

    def __init__(self, endpoint: Endpoint, *, session: "Session | None" = None) -> None:
        self._endpoint = endpoint
        self._lock = threading.Lock()
        # Held while a program gives credentials: threads of requests wait for it, and no run.
        self._opening = threading.Lock()
        self._may_renew = True
        self._listing: Listing | None = None
        self._is_spent = False
        self._open(session)

    def current_client(self) -> "BedrockRuntimeClient":
        """The client, with credentials that are read afresh if they have run out.

        Raises `ModelError` where there are none any more.
        """
        if self._is_spent:
            self._open_again()
        return self.client

    def make_ready(self, client: "BedrockRuntimeClient") -> None:
        """Get or renew the credentials that the client's next request is signed with.

        Raises `CredentialsError`. A client that signs with an API key needs none.
        """
        if not signs_with_token(client):
            make_ready(self._session, self._endpoint.assume_role_arn)

    def answered(self, client: "BedrockRuntimeClient") -> None:
        """Marks the client's credentials as good, so that they may be renewed once they expire."""
        if client is self.client:
            self._may_renew = True

    def renewed(self, kind: ErrorKind, client: "BedrockRuntimeClient | None") -> ErrorKind | None:
        """The kind of an error by which the client's credentials have run out, if others will serve
        the next request; `None` for any other.

        The SDK reads its credentials afresh once for all; a client that never got an answer is not
        replaced, so that this comes to an end.
        """
        if kind.code not in RENEWABLE or client is None:
            return None
        with self._lock:
            if client is self.client and not self._is_spent:
                if not self._may_renew:
                    return None
                self._may_renew, self._is_spent = False, True
        return replace(kind, mended="credentials", notice=RENEWED)

    def hint(self, kind: ErrorKind, cause: Exception, model_id: str) -> Words | None:
        """What to do about a failure of a call, as far as it can be known."""
        from socratic_bench.models.bedrock.advice import better_hint

        listing = self._known_listing()
        return better_hint(kind, cause, model_id=model_id, environ=os.environ, listing=listing)

    def _known_listing(self) -> "Listing":
        """One for all failures, until the credentials are renewed."""
        from socratic_bench.models.bedrock.listing import Listing

        with self._lock:
            if self._listing is None:
                self._listing = Listing(self._session, self._endpoint)
            return self._listing

    def close(self) -> None:
        self.client.close()

    def _open_again(self) -> None:
        with self._opening:
            if self._is_spent:
                self._open()

    def _open(self, session: "Session | None" = None) -> None:
        self._session = session or open_session(self._endpoint)
        self.client: BedrockRuntimeClient = runtime_client(self._session, self._endpoint)
        self._listing = None
        self._is_spent = False
