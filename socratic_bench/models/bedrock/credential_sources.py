"""The files that the SDK reads to get credentials: regular ones only, and up to a bound; so are
the programs that it asks.

Put in at the SDK's own seams: each of its readers takes another `open`.
"""

import io
import os
from functools import partial
from typing import IO

import botocore.credentials
from botocore.exceptions import CredentialRetrievalError
from botocore.utils import FileWebIdentityTokenLoader, parse_key_val_file

from socratic_bench.models.bedrock.credential_process import ProgramProvider
from socratic_bench.redaction.sources import MAX_TOKEN_BYTES
from socratic_bench.settings import read_bounded

_FILES = ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE")


def install_credential_readers() -> None:
    """Have the SDK use the readers of this module, in all sessions of this process."""
    vars(botocore.credentials).update(
        ProcessProvider=ProgramProvider,
        open=_open_regular,  # the token of a container
        FileWebIdentityTokenLoader=partial(FileWebIdentityTokenLoader, _open=_open_regular),
        parse_key_val_file=partial(parse_key_val_file, _open=_open_regular),
    )


def unread_file() -> str | None:
    """The variable that names a file of credentials which the SDK passes over without a word."""
    for name in _FILES:
        path = os.environ.get(name, os.devnull)
        full = os.path.expanduser(os.path.expandvars(path))  # noqa: PTH111 -- as the SDK does
        if full != os.devnull and not os.path.isfile(full):  # noqa: PTH113
            return f"{name} names no regular file, and was not read: {path}"
    return None


def _open_regular(path: str) -> IO[str]:
    try:
        return io.StringIO(read_bounded(path, bound=MAX_TOKEN_BYTES).decode())
    except FileNotFoundError:
        raise  # by its own name
    except OSError as error:
        said = f"{path}: {error.strerror}"
        raise CredentialRetrievalError(provider="a file", error_msg=said) from error
