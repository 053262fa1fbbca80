"""The SDK's sessions: with one loader of its data files, and with every credential noted.

The loader is quicker than the one that the SDK comes with. The SDK lets a session have a loader of
its own, and a loader its own reader of files:
https://docs.aws.amazon.com/botocore/latest/reference/loaders.html. What is read stays the same.
"""

import gzip
import os
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import botocore.session
import orjson
from botocore.credentials import CredentialResolver, EnvProvider
from botocore.handlers import add_expect_header
from botocore.loaders import JSONFileLoader, Loader, instance_cache

from socratic_bench.models.bedrock.credential_sources import install_credential_readers
from socratic_bench.models.bedrock.credentials import learn_credentials
from socratic_bench.models.bedrock.parsers import Parsers
from socratic_bench.models.bedrock.transport import (
    UnsendableError,
    bound_answers,
    check_sendable,
    named,
)
from socratic_bench.redaction import learn, learn_headers

# Services that give credentials, or that are asked with other secrets than a signature.
_GIVERS = ("sts", "sso", "sso-oidc", "signin")
# Clients whose credentials are the session's own, and have been loaded by the time they send.
_USERS = ("bedrock-runtime", "bedrock", "s3")
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


class _Files(JSONFileLoader):
    """Reads JSON files, packed or plain, with orjson. Paths come without their endings."""

    def exists(self, file_path: str) -> bool:
        return os.path.isfile(f"{file_path}.json") or os.path.isfile(f"{file_path}.json.gz")  # noqa: PTH113

    def load_file(self, file_path: str) -> Any:  # noqa: ANN401 -- any JSON
        """The file's content, `None` if there is no such file."""
        try:
            return orjson.loads(Path(f"{file_path}.json").read_bytes())
        except FileNotFoundError:
            pass
        try:
            return orjson.loads(gzip.decompress(Path(f"{file_path}.json.gz").read_bytes()))
        except FileNotFoundError:
            return None


class _QuickLoader(Loader):
    """Takes every folder for a service; the SDK's own loader searches each of some 400 folders."""

    @instance_cache
    def list_available_services(self, type_name: str) -> list[str]:  # noqa: ARG002 -- the SDK's
        found: set[str] = set()
        for folder in self.search_paths:
            if os.path.isdir(folder):  # noqa: PTH112 -- as the SDK does
                found.update(entry.name for entry in os.scandir(folder) if entry.is_dir())
        return sorted(found)


def new_session(**options: Any) -> botocore.session.Session:  # noqa: ANN401 -- the SDK's own
    """A session of the SDK. All sessions share the data files that were read, and all credentials
    that they get or send become known secrets. Making a client fills defaults into the shared data;
    they are the same for every session.
    """
    session = botocore.session.Session(**options)
    folders = session.get_config_variable("data_path")
    session.register_component("data_loader", _loader(folders))
    session.register_component("response_parser_factory", Parsers())
    if os.environ.get(EnvProvider.ACCESS_KEY):
        # The SDK looks there first, but prepares to look everywhere before.
        session.register_component("credential_provider", CredentialResolver([EnvProvider()]))
    bound_answers()
    install_credential_readers()
    # The SDK reads what answers "Expect: 100-continue" without a bound; what is sent is small.
    expect: Any = add_expect_header
    session.unregister("before-call.s3", expect)
    session.register("before-send", partial(_note_request, session))
    for service in _GIVERS:
        session.register(f"before-parameter-build.{service}", _note_exchange)
        session.register(f"after-call.{service}", _note_exchange)
    return session


def make_client(session: botocore.session.Session, service: str, **options: Any) -> Any:  # noqa: ANN401 -- the SDK makes its classes while it runs
    """A client of the session. Raises a `BotoCoreError`, or `UnsendableError` for an address."""
    try:
        client = session.create_client(service, **options)
    except ValueError as error:
        raise named(error) from error
    try:
        # A port that is none would only be found by a call.
        _ = urlsplit(client.meta.endpoint_url).port
    except ValueError as error:
        raise UnsendableError(f"{error}: {client.meta.endpoint_url}") from error
    return client


def _note_request(session: botocore.session.Session, **event: Any) -> None:  # noqa: ANN401 -- the SDK's own fields
    request = event["request"]
    is_new = learn_headers(dict(request.headers))
    check_sendable(request.url, request.headers)
    if is_new and event["event_name"].split(".")[1] in _USERS:
        learn_credentials(session)


def _note_exchange(**event: Any) -> None:  # noqa: ANN401 -- likewise
    learn(_secret_fields({"params": event.get("params"), "parsed": event.get("parsed")}))


def _secret_fields(found: object, name: str = "") -> Iterator[str]:
    if isinstance(found, dict):
        for key, value in found.items():
            yield from _secret_fields(value, str(key).lower())
    elif isinstance(found, str) and name in _SECRET_FIELDS:
        yield found


@cache
def _loader(folders: str | None) -> Loader:
    """The loader for the value of AWS_DATA_PATH, or of `data_path` in the user's configuration."""
    own = [
        str(Path(os.path.expandvars(folder)).expanduser())
        for folder in (folders or "").split(os.pathsep)
        if folder
    ]
    return _QuickLoader(extra_search_paths=own, file_loader=_Files())
