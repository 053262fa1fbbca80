"""SDK sessions, credentials and clients: with which identity and to which endpoint calls go."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from botocore.config import Config
from botocore.credentials import (
    AssumeRoleCredentialFetcher,
    CredentialProvider,
    CredentialResolver,
    DeferredRefreshableCredentials,
)
from botocore.exceptions import BotoCoreError, ConfigParseError, NoCredentialsError, ProfileNotFound
from botocore.session import Session
from msgspec import Struct

from socratic_bench.errors import ModelError
from socratic_bench.models.bedrock.credentials import CredentialsError, learn_credentials
from socratic_bench.models.bedrock.data import make_client, new_session
from socratic_bench.models.bedrock.error_kinds import error_kind
from socratic_bench.models.bedrock.transport import UnsendableError
from socratic_bench.settings import CALL_TIMEOUT_S
from socratic_bench.version import VERSION

if TYPE_CHECKING:
    from types_boto3_bedrock_runtime import BedrockRuntimeClient

CONNECT_TIMEOUT_S = 10
POOL_CONNECTIONS = 400  # kept open, once there were so many calls at a time
ROLE_SESSION_NAME = "socratic-runner"
SdkSession = Session  # what others pass on and need not look into
# AWS's own endpoints, private ones included.
AWS = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")
BEARER_TOKEN = "AWS_BEARER_TOKEN_BEDROCK"  # noqa: S105 -- the variable's name


class Endpoint(Struct, frozen=True, kw_only=True):
    """Where Bedrock answers. Only the embedded endpoint has a `url`; it gets stand-in keys."""

    region: str
    url: str | None = None
    assume_role_arn: str | None = None
    call_timeout_s: float = CALL_TIMEOUT_S


def open_session(endpoint: Endpoint) -> Session:
    """A session with the credentials that calls to the endpoint are signed with, read afresh; they
    are known secrets from now on.

    Raises `ModelError` where the SDK's own environment allows none.
    """
    with translated_errors():
        return _stand_in_session() if endpoint.url else _users_session(endpoint)


def runtime_client(session: Session, endpoint: Endpoint) -> "BedrockRuntimeClient":
    """A client that sends each request once: every retry is decided, counted and seen here.

    Raises `ModelError` where the SDK's own environment allows no client.
    """
    with translated_errors():
        if endpoint.url:
            return _embedded_client(session, endpoint, endpoint.url)
        client = _client(session, endpoint, _config(endpoint))
        if client.meta.endpoint_url.startswith("http://") and os.environ.get(BEARER_TOKEN):
            # The SDK refuses bearer tokens without TLS, even where keys are at hand.
            config = _config(endpoint, auth_scheme_preference="sigv4")
            client = _client(session, endpoint, config)
        return client


def configured_endpoint(region: str) -> str | None:
    """Where environment and configuration files send calls: a URL, the service's own by default.

    Nobody is asked for credentials. `None` where the SDK allows no client.
    """
    try:
        with translated_errors():
            session = new_session()
            session.set_credentials("nobody", "nobody")
        return runtime_client(session, Endpoint(region=region)).meta.endpoint_url
    except ModelError:
        return None


def single_try_client(
    session: Session,
    service: str,
    region: str,
    max_wait_s: float,
    **more: Any,  # noqa: ANN401 -- the SDK's own options
) -> Any:  # noqa: ANN401 -- the SDK makes its classes while it runs
    """A client for what is good to know and may stay unknown: it tries once, for a short time.

    Raises `ModelError` where the SDK's own environment allows no client.
    """
    config = _one_try(connect_timeout=max_wait_s, read_timeout=max_wait_s, **more)
    with translated_errors():
        return make_client(session, service, region_name=region, config=config)


def is_aws(url: str) -> bool:
    """Whether an endpoint is AWS's own, and not an emulator's, say."""
    return (urlsplit(url).hostname or "").endswith(AWS)


def signs_with_token(client: "BedrockRuntimeClient") -> bool:
    """Whether the client's requests carry an API key, and are signed with no others."""
    return bool(os.environ.get(BEARER_TOKEN)) and not client.meta.endpoint_url.startswith("http://")


@contextmanager
def translated_errors() -> Iterator[None]:
    """For making sessions and clients: the SDK's errors become `ModelError`s."""
    try:
        yield
    except CredentialsError as error:
        raise error_kind(error, model_id="").error from error.cause
    except (ProfileNotFound, ConfigParseError) as error:
        raise error_kind(CredentialsError("Credentials", error), model_id="").error from error
    except (BotoCoreError, UnsendableError) as error:
        raise error_kind(error, model_id="Amazon Bedrock").error from error


def _users_session(endpoint: Endpoint) -> Session:
    arn = endpoint.assume_role_arn
    session = _role_session(arn, endpoint.region) if arn else new_session()
    # The SDK's own requests for credentials go to a region, too.
    session.set_config_variable("region", endpoint.region)
    learn_credentials(session, arn)
    return session


def profile_problem() -> str | None:
    """Why the SDK's configuration files tell nothing of the active profile, if that is so."""
    try:
        new_session().get_scoped_config()
    except BotoCoreError as error:
        return f"{error}: check AWS_PROFILE and AWS_CONFIG_FILE."
    return None


def profile_region() -> str | None:
    """The region of the SDK's configuration files for the active profile, if there is one."""
    try:
        region = new_session().get_config_variable("region")
    except BotoCoreError:
        return None
    return region if isinstance(region, str) else None


def _stand_in_session() -> Session:
    # Nothing of the user's is sent there: no profile, no keys, no token, no proxy.
    nobody = {
        "profile": (None, None, None, None),
        "config_file": (None, None, os.devnull, None),
        "credentials_file": (None, None, os.devnull, None),
    }
    session = new_session(session_vars=nobody)
    # Too short to be taken for a secret, and masked where the word stands in a text.
    session.set_credentials("offline", "offline")
    return session


def _embedded_client(session: Session, endpoint: Endpoint, url: str) -> "BedrockRuntimeClient":
    config = _config(
        endpoint,
        proxies={},
        auth_scheme_preference="sigv4",
        use_fips_endpoint=False,
        use_dualstack_endpoint=False,
    )
    return _client(session, endpoint, config, url=url)


def _client(
    session: Session, endpoint: Endpoint, config: Config, *, url: str | None = None
) -> "BedrockRuntimeClient":
    # Given once, since the SDK would put it together anew for each request.
    named = config.merge(Config(user_agent=session.user_agent()))
    client: BedrockRuntimeClient = make_client(
        session, "bedrock-runtime", region_name=endpoint.region, config=named, endpoint_url=url
    )
    return client


def _one_try(**options: Any) -> Config:  # noqa: ANN401 -- the SDK's own options
    return Config(retries={"total_max_attempts": 1, "mode": "standard"}, **options)


def _config(endpoint: Endpoint, **more: Any) -> Config:  # noqa: ANN401 -- likewise
    return _one_try(
        connect_timeout=min(CONNECT_TIMEOUT_S, endpoint.call_timeout_s),
        read_timeout=endpoint.call_timeout_s,
        max_pool_connections=POOL_CONNECTIONS,
        tcp_keepalive=True,
        # A third of the SDK's work on a long dialogue; the shapes are made in `wire` alone.
        parameter_validation=False,
        user_agent_extra=f"socratic-runner/{VERSION}",
        **more,
    )


def _one_request() -> Config:
    """For STS: a call that fails is tried again by the run, which counts it."""
    return _one_try(
        connect_timeout=CONNECT_TIMEOUT_S, user_agent_extra=f"socratic-runner/{VERSION}"
    )


class _AssumeRole(CredentialProvider):
    """The role's credentials, fetched on first use and again before they expire."""

    METHOD = "assume-role"

    def __init__(self, fetcher: AssumeRoleCredentialFetcher) -> None:
        super().__init__()
        self._fetcher = fetcher

    def load(self) -> DeferredRefreshableCredentials:
        return DeferredRefreshableCredentials(
            refresh_using=self._fetcher.fetch_credentials, method=self.METHOD
        )


def _role_session(role_arn: str, region: str) -> Session:
    own = new_session()
    own.set_config_variable("region", region)
    learn_credentials(own)
    credentials = own.get_credentials()
    if credentials is None:
        raise NoCredentialsError
    # The session length is left to the service: near 15 min, the SDK refreshes on every call.
    fetcher = AssumeRoleCredentialFetcher(
        client_creator=partial(make_client, own, region_name=region, config=_one_request()),
        source_credentials=credentials,
        role_arn=role_arn,
        extra_args={"RoleSessionName": ROLE_SESSION_NAME},
    )
    session = new_session()
    session.register_component("credential_provider", CredentialResolver([_AssumeRole(fetcher)]))
    return session
