"""The programs that a profile's `credential_process` names: an error names the program, even if a
role's profile asked for its credentials; their output is read up to a bound.

The SDK still starts them, through a wrapper that enforces this.
"""

import os
import selectors
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from botocore.credentials import (
    Credentials,
    ProcessProvider,
    ReadOnlyCredentials,
    RefreshableCredentials,
)
from botocore.exceptions import BotoCoreError, CredentialRetrievalError

from socratic_bench.redaction import learn

PRINTED_MAX_BYTES = 1_000_000
# What the SDK's code raises where what it reads is not what it expects, or a file is not there.
PLAIN = (
    *(ValueError, ArithmeticError, RuntimeError, OSError),
    *(AttributeError, LookupError, TypeError),
)
_PIECE_BYTES = 65_536


class ProgramError(Exception):
    """A program gave no credentials, for what the SDK raised, the `cause`."""

    def __init__(self, command: object, profile: str, cause: Exception) -> None:
        super().__init__(" ".join(["credential_process", *_program(command), "of", profile]))
        self.cause = cause


# The stubs of the SDK leave out what a provider asks its program by.
_Provider: Any = ProcessProvider


class ProgramProvider(_Provider):  # type: ignore[misc]
    """As the SDK's own. Raises `ProgramError` alone."""

    def __init__(self, profile_name: str, load_config: Callable[[], Mapping[str, Any]]) -> None:
        super().__init__(profile_name, load_config)
        self._popen = partial(_Started, vars(self)["_popen"])

    def _retrieve_credentials_using(self, credential_process: object) -> dict[str, Any]:
        """Also called by the SDK whenever the credentials are renewed."""
        given: dict[str, Any] = {}

        def ask() -> dict[str, Any]:
            given.update(super(ProgramProvider, self)._retrieve_credentials_using(command))
            return given

        command = credential_process
        try:
            if not isinstance(command, str) or not command.strip():
                raise _failure("the setting holds no command")
            _check(ask(), ask)
        except (BotoCoreError, *PLAIN) as error:
            profile = f"the profile {self._profile_name}"
            raise ProgramError(command, profile, error) from error
        learn([given["access_key"], given["secret_key"], given["token"]])
        return given


def frozen(credentials: Credentials) -> ReadOnlyCredentials:
    """As requests are signed with them. The SDK does not check that they are texts."""
    found = credentials.get_frozen_credentials()
    for name in ("access_key", "secret_key", "token"):
        value = getattr(found, name)
        if not isinstance(value, str) and (value is not None or name != "token"):
            raise _failure(f"the {name} is no text", credentials.method)
    return found


def _check(given: Mapping[str, Any], ask: Callable[[], dict[str, Any]]) -> None:
    """As the SDK does only later. A program that gives what has expired is asked once more."""
    method = ProcessProvider.METHOD
    if given["expiry_time"] is None:
        keys = (given["access_key"], given["secret_key"], given["token"])
        frozen(Credentials(*keys, method=method))
        return
    made = RefreshableCredentials.create_from_metadata(
        dict(given), ask, method, advisory_timeout=0, mandatory_timeout=0
    )
    frozen(made)


class _Started:
    """A program that was started, as far as the SDK looks at one."""

    def __init__(self, start: Callable[..., Any], words: Sequence[str], **pipes: int) -> None:
        self._process = start(words, **pipes)

    @property
    def returncode(self) -> int:
        code: int = self._process.returncode
        return code

    def communicate(self) -> tuple[bytes, bytes]:
        """What it prints on stdout and on stderr, once it has ended."""
        with self._process as process, selectors.DefaultSelector() as open_pipes:
            printed = {process.stdout.fileno(): b"", process.stderr.fileno(): b""}
            for number in printed:
                open_pipes.register(number, selectors.EVENT_READ)
            while open_pipes.get_map():
                for key, _ in open_pipes.select():
                    piece = os.read(key.fd, _PIECE_BYTES)
                    printed[key.fd] += piece
                    if not piece:
                        open_pipes.unregister(key.fd)
                    if len(printed[key.fd]) > PRINTED_MAX_BYTES:
                        process.kill()
                        raise _failure(f"it printed more than {PRINTED_MAX_BYTES} bytes")
            stdout, stderr = printed.values()
        return stdout, stderr.decode(errors="replace").encode()


def _failure(said: str, provider: str = ProcessProvider.METHOD) -> CredentialRetrievalError:
    return CredentialRetrievalError(provider=provider, error_msg=said)


def _program(command: object) -> list[str]:
    """Its name alone, if it has one: words behind it may be secret."""
    words = str(command) if isinstance(command, str) else ""
    try:
        return shlex.split(words)[:1]
    except ValueError:
        return words.split(" ")[:1]
