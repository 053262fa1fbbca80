"""Gets credentials from the SDK apart from the calls that they sign, and names what fails there.

A failure is reported as that of the credentials: nothing was sent to a model. Whatever the SDK gets
becomes a known secret, which is masked in all that leaves the program.
"""

import json
import os
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import botocore.credentials
from botocore import exceptions as sdk
from botocore.credentials import (
    DeferredRefreshableCredentials,
    ProcessProvider,
    RefreshableCredentials,
)
from botocore.parsers import ResponseParserError
from botocore.session import Session
from urllib3.exceptions import HTTPError

from socratic_bench.models.bedrock.transport import (
    AnswerTooLargeError,
    UnsendableError,
    typed_error,
    unwrapped_error,
)
from socratic_bench.redaction import learn

# What the SDK's code raises over files and JSON of another form than it expects, files that are
# missing or cannot be written, and new credentials that have expired already.
_PLAIN_ERRORS = (
    *(ValueError, ArithmeticError, RuntimeError, OSError),
    *(AttributeError, LookupError, TypeError),
)
_NO_JSON = (json.JSONDecodeError, UnicodeDecodeError, RecursionError, AttributeError, TypeError)
_SETTINGS_FILES = ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE")


class ProgramError(Exception):
    """The program of a profile's `credential_process` gave no credentials. The message names the
    program without its arguments, which may be secret; `cause` is what the SDK raised.
    """

    def __init__(self, command: object, profile: str, cause: Exception) -> None:
        text = command if isinstance(command, str) else ""
        try:
            words = shlex.split(text)
        except ValueError:
            words = text.split(" ")
        super().__init__(" ".join(["credential_process", *words[:1], "of", profile]))
        self.cause = cause


# What the SDK's code raises while it looks for credentials; nothing else runs meanwhile.
# `EOFError`: nobody is there to type the code of an MFA device.
_LOOKUP_ERRORS = (
    *(sdk.BotoCoreError, sdk.ClientError, ResponseParserError, HTTPError),
    *(AnswerTooLargeError, UnsendableError, ProgramError),
    *(*_PLAIN_ERRORS, EOFError),
)
# Of these, failures of a request to STS; all others happen before anything is sent there.
_STS_ERRORS = (
    *(sdk.ClientError, sdk.ConnectionError, sdk.HTTPClientError, ResponseParserError, HTTPError),
    *(AnswerTooLargeError, UnsendableError, EOFError),
)
_PROGRAM_HINT = (
    "Run the command of credential_process by hand, as it stands in the profile (AWS_CONFIG_FILE, "
    "else ~/.aws/config): it has to print JSON with Version 1, AccessKeyId and SecretAccessKey."
)
_HINTS: tuple[tuple[type[Exception], str], ...] = (
    (
        sdk.ProfileNotFound,
        "Set AWS_PROFILE to a profile that is there (aws configure list-profiles), or make it.",
    ),
    (
        sdk.ConfigParseError,
        "Fix the file, or name another by AWS_CONFIG_FILE or AWS_SHARED_CREDENTIALS_FILE.",
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
        self.is_of_program = isinstance(cause, ProgramError)
        if isinstance(cause, ProgramError):
            source, cause = str(cause), cause.cause
        reason = f"{type(cause).__name__}: {cause}"
        if self.is_of_program and isinstance(cause, _NO_JSON):
            reason = f"it printed no credentials in JSON ({reason})"
        super().__init__(f"{source}: {reason}")
        self.cause = cause

    @property
    def hint(self) -> str | None:
        """What to do, where the kind of the failure does not say enough."""
        if self.is_of_program and not isinstance(self.cause, RuntimeError):
            return _PROGRAM_HINT
        return next((hint for kind, hint in _HINTS if isinstance(self.cause, kind)), None)


def make_ready(session: Session, role_arn: str | None = None) -> None:
    """Have the SDK get or renew the credentials that the session signs with. Raises
    `CredentialsError`; a session without any credentials is left for the call to report.
    """
    with _lookup_errors(session, role_arn):
        credentials = session.get_credentials()
        if credentials is not None:
            credentials.get_frozen_credentials()


def learn_credentials(session: Session, role_arn: str | None = None) -> None:
    """Have the session load its credentials, and remember them as secrets. Credentials that it
    fetches by a call of its own are remembered when they come. Raises `CredentialsError`.
    """
    with _lookup_errors(session, role_arn):
        credentials = session.get_credentials()
        if credentials is None or isinstance(credentials, DeferredRefreshableCredentials):
            return
        keys = credentials.get_frozen_credentials()
    learn([keys.access_key, keys.secret_key, keys.token])


def unread_settings_file() -> str | None:
    """Which variable names a credentials file that the SDK silently ignores, such as a folder."""
    for name in _SETTINGS_FILES:
        path = os.environ.get(name, os.devnull)
        full = os.path.expanduser(os.path.expandvars(path))  # noqa: PTH111 -- as the SDK does
        if full != os.devnull and not os.path.isfile(full):  # noqa: PTH113
            return f"{name} names no regular file, and was not read: {path}"
    return None


def watch_programs() -> None:
    """Have all sessions of this process run a `credential_process` by the class below."""
    vars(botocore.credentials).update(ProcessProvider=_ProgramProvider)


# The stubs of the SDK leave out the method by which a provider asks its program.
_Provider: Any = ProcessProvider


class _ProgramProvider(_Provider):  # type: ignore[misc]
    """The SDK's own, but it names the program in errors and remembers the credentials. Nothing that
    the program prints is in an error: it may be what it was about to give.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 -- the SDK's own
        super().__init__(*args, **kwargs, popen=self._start)
        self._exit_code: Callable[[], int | None] = lambda: None

    def _start(self, *args: Any, **kwargs: Any) -> "subprocess.Popen[bytes]":  # noqa: ANN401 -- likewise
        process = subprocess.Popen(*args, **kwargs)  # noqa: S603 -- the user's own program
        self._exit_code = process.poll
        return process

    def _retrieve_credentials_using(self, credential_process: object) -> dict[str, Any]:
        """Also called by the SDK whenever the credentials are renewed. Raises `ProgramError`."""
        try:
            if not isinstance(credential_process, str) or not credential_process.strip():
                raise _program_failure("the setting holds no command")
            fields: dict[str, Any] = super()._retrieve_credentials_using(credential_process)
            for name in ("access_key", "secret_key", "token"):
                # The SDK itself would fail later, when it signs a request.
                is_none = fields[name] is None and name == "token"
                if not (is_none or isinstance(fields[name], str)):
                    raise _program_failure(f"the {name} is not text")
            _check_expiry(fields)
        except (sdk.BotoCoreError, *_PLAIN_ERRORS) as error:
            cause: Exception = error
            if code := self._exit_code():
                cause = _program_failure(f"it ended with exit code {code}; what it said is secret")
            elif "Unsupported version" in str(error):
                cause = _program_failure("what it printed has no Version 1")
            profile = f"the profile {self._profile_name}"
            raise ProgramError(credential_process, profile, cause) from None
        learn([fields["access_key"], fields["secret_key"], fields["token"]])
        return fields


def _check_expiry(fields: Mapping[str, Any]) -> None:
    """The SDK itself would notice only when it signs a request, and would not name the program."""
    if fields["expiry_time"] is not None:
        try:
            keys = RefreshableCredentials.create_from_metadata(
                dict(fields), lambda: dict(fields), ProcessProvider.METHOD
            )
        except (ValueError, TypeError, OverflowError):
            raise _program_failure("the Expiration is not a time") from None
        if keys.refresh_needed(refresh_in=0):
            raise RuntimeError("the credentials that it printed have expired already")


def _program_failure(message: str) -> sdk.CredentialRetrievalError:
    return sdk.CredentialRetrievalError(provider=ProcessProvider.METHOD, error_msg=message)


@contextmanager
def _lookup_errors(session: Session, role_arn: str | None) -> Iterator[None]:
    """Around code that only has the SDK look for credentials. Raises `CredentialsError` alone."""
    try:
        yield
    except _LOOKUP_ERRORS as error:
        cause = unwrapped_error(error)
        if type(cause) is ValueError and isinstance(typed_error(cause), UnsendableError):
            cause = typed_error(cause)
        raise CredentialsError(_source(session, role_arn, cause), cause) from error


def _source(session: Session, role_arn: str | None, error: Exception) -> str:
    """Where credentials were looked for, with the role that was requested, if it is known."""
    try:
        role = role_arn or session.get_scoped_config().get("role_arn")
    except sdk.BotoCoreError:
        return "Credentials"
    role = role or os.environ.get("AWS_ROLE_ARN")
    if not role:
        return "Credentials"
    return f"{'AWS STS,' if isinstance(error, _STS_ERRORS) else 'Credentials'} for the role {role}"
