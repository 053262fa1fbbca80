"""Asks the SDK for credentials separately from the calls that they sign, so that a failure there is
reported as such: nothing was sent to a model.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager

from botocore import exceptions as sdk
from botocore.credentials import DeferredRefreshableCredentials
from botocore.parsers import ResponseParserError
from botocore.session import Session
from urllib3.exceptions import HTTPError

from socratic_bench.models.bedrock.credential_process import PLAIN, ProgramError, frozen
from socratic_bench.models.bedrock.transport import (
    AnswerTooLargeError,
    UnsendableError,
    carried,
    named,
)
from socratic_bench.redaction import learn

# What the SDK's own code raises where it looks for credentials, and nothing else runs in there. The
# plain ones: a file cannot be read or written, new credentials have expired already, nobody is
# there to type a code.
_RAISED = (
    *(sdk.BotoCoreError, sdk.ClientError, ResponseParserError, HTTPError),
    *(AnswerTooLargeError, UnsendableError, ProgramError),
    *(*PLAIN, EOFError),
)
# Failures of a request to STS; all others are found before anything is sent there.
_OF_STS = (
    *(sdk.ClientError, sdk.ConnectionError, sdk.HTTPClientError, ResponseParserError, HTTPError),
    *(AnswerTooLargeError, UnsendableError, EOFError),
)
_NO_JSON = (json.JSONDecodeError, UnicodeDecodeError, RecursionError, AttributeError, TypeError)
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
        self.is_of_process = isinstance(cause, ProgramError)
        if isinstance(cause, ProgramError):
            source, cause = str(cause), cause.cause
        _keep_first_line(cause)
        said = f"{type(cause).__name__}: {cause}"
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


def _keep_first_line(error: Exception) -> None:
    """Show only the first line of a failed credential program's output, since the rest could hold
    secrets.
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
            frozen(credentials)


def learn_credentials(session: Session, role_arn: str | None = None) -> None:
    """Have the session load its credentials, and remember them. Raises `CredentialsError`.

    Those that it fetches by a call of its own are remembered when they come.
    """
    with credentials_of(session, role_arn):
        found = session.get_credentials()
        if found is None or isinstance(found, DeferredRefreshableCredentials):
            return
        keys = frozen(found)
    learn([keys.access_key, keys.secret_key, keys.token])


def _source(session: Session, role_arn: str | None, error: Exception) -> str:
    """The role that was asked for, as far as it is known."""
    try:
        role = role_arn or session.get_scoped_config().get("role_arn")
    except sdk.BotoCoreError:
        return "Credentials"
    role = role or os.environ.get("AWS_ROLE_ARN")
    if not role:
        return "Credentials"
    return f"{'AWS STS,' if isinstance(error, _OF_STS) else 'Credentials'} for the role {role}"
