"""Asks the SDK for credentials apart from the calls that they sign, so that what fails there is
told for what it is: nothing of it was sent to a model.
"""

import json
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager

from botocore import exceptions as sdk
from botocore.credentials import (
    Credentials,
    DeferredRefreshableCredentials,
    ReadOnlyCredentials,
)
from botocore.parsers import ResponseParserError
from botocore.session import Session
from urllib3.exceptions import HTTPError

from socratic_bench.bedrock.transport import AnswerTooLargeError, UnsendableError, carried, named
from socratic_bench.secrecy import learn

# What the SDK's own code raises where it looks for credentials, and nothing else runs in there. The
# plain ones: what a program printed is no JSON, its command is none, a file cannot be read or
# written, new credentials have expired already, nobody is there to type a code.
_RAISED = (
    *(sdk.BotoCoreError, sdk.ClientError, ResponseParserError, HTTPError),
    *(AnswerTooLargeError, UnsendableError),
    *(
        ValueError,
        ArithmeticError,
        RuntimeError,
        OSError,
        EOFError,
        AttributeError,
        KeyError,
        TypeError,
    ),
)
# What a program that gives credentials cannot be to blame for.
_OF_OTHERS = (
    *(sdk.ProfileNotFound, sdk.ConfigParseError, sdk.PartialCredentialsError),
    *(sdk.ConnectionError, sdk.HTTPClientError),
)
_NO_JSON = (json.JSONDecodeError, UnicodeDecodeError, RecursionError, AttributeError, TypeError)
_PROCESS = "credential_process"
_PROCESS_HINT = (
    "Run the command of credential_process by itself: it has to print JSON with Version 1, "
    "AccessKeyId and SecretAccessKey."
)
_HINTS: tuple[tuple[type[Exception], str], ...] = (
    (
        sdk.ProfileNotFound,
        "Set AWS_PROFILE to a profile that is there (aws configure list-profiles), or make it.",
    ),
    (
        sdk.ConfigParseError,
        "Mend the file, or name another by AWS_CONFIG_FILE or AWS_SHARED_CREDENTIALS_FILE.",
    ),
    (
        UnsendableError,
        "Nothing was sent: check the endpoint of AWS STS (AWS_ENDPOINT_URL_STS) and the proxy.",
    ),
    (EOFError, "Nobody is there to type the code of an MFA device: get keys of a session before."),
)


class CredentialsError(Exception):
    """The SDK could get no credentials; `cause` is what it raised. `source`: where it looked."""

    def __init__(self, source: str, cause: Exception) -> None:
        keep_first_line(cause)
        said = f"{type(cause).__name__}: {cause}"
        self.is_of_process = source.startswith(_PROCESS)
        if self.is_of_process and isinstance(cause, _NO_JSON):
            said = f"it printed no credentials in JSON ({said})"
        super().__init__(f"{source}: {said}")
        self.cause = cause

    @property
    def hint(self) -> str | None:
        """What to do, where the kind of the failure does not tell it all."""
        if self.is_of_process and not isinstance(self.cause, RuntimeError):
            return _PROCESS_HINT
        return next((hint for kind, hint in _HINTS if isinstance(self.cause, kind)), None)


def keep_first_line(error: Exception) -> None:
    """Have what a program that gives credentials said end with its first line, wherever it is
    shown: nobody knows what else it tells when it fails.
    """
    if isinstance(error, sdk.CredentialRetrievalError):
        whole = str(error)
        told = str(dict(error.kwargs).get("error_msg", ""))
        first = (told.strip().splitlines() or [""])[0]
        error.args = (whole.removesuffix(told) + first,)


@contextmanager
def credentials_of(session: Session, role_arn: str | None = None) -> Iterator[None]:
    """Where only the SDK looks for credentials of the session. Raises `CredentialsError` alone."""
    try:
        yield
    except CredentialsError:
        raise
    except _RAISED as error:
        cause = carried(error)
        if type(cause) is ValueError and isinstance(named(cause), UnsendableError):
            cause = named(cause)
        raise CredentialsError(_source(session, role_arn, cause), cause) from error


def make_ready(session: Session, role_arn: str | None = None) -> None:
    """Have the SDK get or renew what it signs with, if there is something. Raises
    `CredentialsError`; that there are none at all is the call's to say.
    """
    with credentials_of(session, role_arn):
        credentials = session.get_credentials()
        if credentials is not None:
            _frozen(credentials)


def learn_credentials(session: Session, role_arn: str | None = None) -> None:
    """Have the session load its credentials, and remember them. Raises `CredentialsError`.

    Those that it fetches by a call of its own are remembered when they come.
    """
    with credentials_of(session, role_arn):
        found = session.get_credentials()
        if found is None or isinstance(found, DeferredRefreshableCredentials):
            return
        frozen = _frozen(found)
    learn([frozen.access_key, frozen.secret_key, frozen.token])


def _frozen(credentials: Credentials) -> ReadOnlyCredentials:
    """As requests are signed with them. The SDK takes whatever stands where a text should."""
    found = credentials.get_frozen_credentials()
    for name in ("access_key", "secret_key", "token"):
        value = getattr(found, name)
        if not isinstance(value, str) and (value is not None or name != "token"):
            raise sdk.CredentialRetrievalError(
                provider=credentials.method, error_msg=f"the {name} is no text"
            )
    return found


def _source(session: Session, role_arn: str | None, error: Exception) -> str:
    """The role or the program that was asked, as far as it is known."""
    if role_arn:
        return f"AWS STS, for the role {role_arn}"
    try:
        profile = session.get_scoped_config()
    except sdk.BotoCoreError:
        return "Credentials"
    command = profile.get(_PROCESS)
    if command and not isinstance(error, (sdk.ClientError, HTTPError, *_OF_OTHERS)):
        return f"{_PROCESS} {_program(command)}"
    role = profile.get("role_arn") or os.environ.get("AWS_ROLE_ARN")
    return f"AWS STS, for the role {role}" if role else "Credentials"


def _program(command: str) -> str:
    """Its name alone: words behind it may be secret."""
    try:
        return shlex.split(command)[0]
    except (ValueError, IndexError):
        return command.partition(" ")[0]
