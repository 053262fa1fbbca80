"""The SDK's sessions and clients: with which identity calls go, and to which endpoint.

Every credential that a session gets or sends becomes a known secret.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from botocore.config import Config
from botocore.credentials import (
    AssumeRoleCredentialFetcher,
    CredentialResolver,
    DeferredRefreshableCredentials,
    EnvProvider,
)
from botocore.exceptions import BotoCoreError, ConfigParseError, NoCredentialsError, ProfileNotFound
from botocore.handlers import add_expect_header
from botocore.loaders import create_loader
from botocore.session import Session
from msgspec import Struct

from socratic_bench.errors import ModelError
from socratic_bench.models.bedrock.credentials import (
    CredentialsError,
    learn_credentials,
    watch_programs,
)
from socratic_bench.models.bedrock.errors import error_kind
from socratic_bench.models.bedrock.transport import (
    BoundedParsers,
    UnsendableError,
    bound_answers,
    check_sendable,
    typed_error,
)
from socratic_bench.ports.provider import leave
from socratic_bench.redaction import learn, learn_headers
from socratic_bench.settings import CALL_TIMEOUT_S
from socratic_bench.version import VERSION

if TYPE_CHECKING:
    from types_boto3_bedrock_runtime import BedrockRuntimeClient

CONNECT_TIMEOUT_S = 10
POOL_CONNECTIONS = 400  # kept open, once there were so many calls at a time
RUNTIME = "bedrock-runtime"
ROLE_SESSION_NAME = "socratic-runner"
# AWS's own endpoints, private ones included.
AWS_DOMAINS = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")
BEARER_TOKEN = "AWS_BEARER_TOKEN_BEDROCK"  # noqa: S105 -- the variable's name

# Services that give credentials, or that are called with other secrets than a signature.
_CREDENTIAL_SERVICES = ("sts", "sso", "sso-oidc", "signin")
# Services whose calls are signed with the session's own credentials.
_SIGNED_SERVICES = ("bedrock-runtime", "bedrock-agent-runtime", "bedrock", "s3")
_SECRET_FIELDS = {
    "accesskeyid",
    "secretaccesskey",
    "sessiontoken",
    "webidentitytoken",
    "samlassertion",
    "accesstoken",
    "refreshtoken",
    "idtoken",
    "clientsecret",
}


# What is read of the SDK's data files, by the value of AWS_DATA_PATH, is shared by all sessions.
_loader = cache(create_loader)


class Endpoint(Struct, frozen=True, kw_only=True):
    """Where Bedrock answers. Only the embedded endpoint has a `url`; it gets stand-in keys."""

    region: str
    url: str | None = None
    assume_role_arn: str | None = None
    call_timeout_s: float = CALL_TIMEOUT_S


def new_session(**options: Any) -> Session:  # noqa: ANN401 -- the SDK's own
    """A session of the SDK; `options` are those of `Session`."""
    session = Session(**options)
    folders = session.get_config_variable("data_path")
    session.register_component("data_loader", _loader(folders))
    session.register_component("response_parser_factory", BoundedParsers())
    if os.environ.get(EnvProvider.ACCESS_KEY):
        # The SDK would look there first, too, but prepare to look everywhere before.
        session.register_component("credential_provider", CredentialResolver([EnvProvider()]))
    bound_answers()
    watch_programs()
    # The SDK reads what answers "Expect: 100-continue" without a bound; all requests are small.
    add_expect: Any = add_expect_header
    session.unregister("before-call.s3", add_expect)
    session.register("before-send", partial(_check_request, session))
    for service in _CREDENTIAL_SERVICES:
        session.register(f"before-parameter-build.{service}", _learn_exchange)
        session.register(f"after-call.{service}", _learn_exchange)
    return session


def make_client(session: Session, service: str, **options: Any) -> Any:  # noqa: ANN401 -- the SDK makes its classes while it runs
    """A client of the session. Raises a `BotoCoreError`, or `UnsendableError` for an address."""
    try:
        client = session.create_client(service, **options)
    except ValueError as error:
        raise typed_error(error) from error
    try:
        # The SDK would find a port that is none only by a call.
        _ = urlsplit(client.meta.endpoint_url).port
    except ValueError as error:
        raise UnsendableError(f"{error}: {client.meta.endpoint_url}") from error
    return client


def open_session(endpoint: Endpoint) -> Session:
    """A session with the credentials that calls to the endpoint are signed with, read afresh; they
    are known secrets from now on. Raises `ModelError` where the SDK's own environment allows none.
    """
    if endpoint.url:
        return _stand_in_session()
    with translated_errors():
        arn = endpoint.assume_role_arn
        session = _role_session(arn, endpoint.region) if arn else new_session()
        # The SDK's own requests for credentials go to a region, too.
        session.set_config_variable("region", endpoint.region)
        learn_credentials(session, arn)
        return session


def runtime_client(
    session: Session, endpoint: Endpoint, service: str = RUNTIME
) -> "BedrockRuntimeClient":
    """A client that sends each request once: every retry is decided, counted and seen here. Raises
    `ModelError` where the SDK's own environment allows no client.
    """
    with translated_errors():
        if endpoint.url:
            own = {"use_fips_endpoint": False, "use_dualstack_endpoint": False}
            config = _config(endpoint, proxies={}, auth_scheme_preference="sigv4", **own)
            return _client(session, endpoint, config, service)
        client = _client(session, endpoint, _config(endpoint), service)
        if client.meta.endpoint_url.startswith("http://") and os.environ.get(BEARER_TOKEN):
            # The SDK refuses bearer tokens without TLS, even where keys are at hand.
            config = _config(endpoint, auth_scheme_preference="sigv4")
            client = _client(session, endpoint, config, service)
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
    return (urlsplit(url).hostname or "").endswith(AWS_DOMAINS)


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


def profile_problem() -> str | None:
    """Why the SDK's configuration files cannot be read for the active profile, if so."""
    try:
        new_session().get_scoped_config()
    except BotoCoreError as error:
        return f"{error}: check AWS_PROFILE and AWS_CONFIG_FILE."
    return None


def profile_region() -> str | None:
    """The active profile's region in the SDK's configuration files, if there is one."""
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


def _client(
    session: Session, endpoint: Endpoint, config: Config, service: str
) -> "BedrockRuntimeClient":
    # Otherwise the SDK would build the text anew for each request.
    config = config.merge(Config(user_agent=session.user_agent()))
    place = {"region_name": endpoint.region, "endpoint_url": endpoint.url}
    client: BedrockRuntimeClient = make_client(session, service, config=config, **place)
    return client


def _one_try(**options: Any) -> Config:  # noqa: ANN401 -- the SDK's own options
    return Config(retries={"total_max_attempts": 1, "mode": "standard"}, **options)


def _config(endpoint: Endpoint, **more: Any) -> Config:  # noqa: ANN401 -- likewise
    return _one_try(
        connect_timeout=min(CONNECT_TIMEOUT_S, endpoint.call_timeout_s),
        read_timeout=endpoint.call_timeout_s,
        max_pool_connections=POOL_CONNECTIONS,
        tcp_keepalive=True,
        # A third of the SDK's work on a long dialogue; `request` alone makes the shapes.
        parameter_validation=False,
        user_agent_extra=f"socratic-runner/{VERSION}",
        **more,
    )


def _role_session(role_arn: str, region: str) -> Session:
    """With the role's credentials, fetched on first use and again before they expire."""
    callers_session = new_session()
    callers_session.set_config_variable("region", region)
    learn_credentials(callers_session)
    credentials = callers_session.get_credentials()
    if credentials is None:
        raise NoCredentialsError
    # A call that fails is tried again by the run, which counts it.
    config = _one_try(
        connect_timeout=CONNECT_TIMEOUT_S, user_agent_extra=f"socratic-runner/{VERSION}"
    )
    # The session length is left to the service: near 15 min, the SDK refreshes on every call.
    fetcher = AssumeRoleCredentialFetcher(
        client_creator=partial(make_client, callers_session, region_name=region, config=config),
        source_credentials=credentials,
        role_arn=role_arn,
        extra_args={"RoleSessionName": ROLE_SESSION_NAME},
    )
    role = DeferredRefreshableCredentials(
        refresh_using=fetcher.fetch_credentials, method="assume-role"
    )
    session = new_session()
    session.register_component(
        "credential_provider", SimpleNamespace(load_credentials=lambda: role)
    )
    return session


def _check_request(session: Session, **event: Any) -> None:  # noqa: ANN401 -- the SDK's own fields
    request = event["request"]
    is_new = learn_headers(dict(request.headers))
    check_sendable(request.url, request.headers)
    service = event["event_name"].split(".")[1]
    if is_new and service in _SIGNED_SERVICES:
        learn_credentials(session)
    if service == "bedrock-runtime":
        leave()


def _learn_exchange(**event: Any) -> None:  # noqa: ANN401 -- likewise
    learn(_secret_fields({"params": event.get("params"), "parsed": event.get("parsed")}))


def _secret_fields(value: object, name: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _secret_fields(item, str(key).lower())
    elif isinstance(value, str) and name in _SECRET_FIELDS:
        yield value
