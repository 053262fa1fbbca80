"""What the SDK reads to get credentials: files that are regular ones, and programs, to an end.

Put in at the SDK's own seams: each of its readers takes another `open`, or another `Popen`.
"""

import io
import os
import selectors
import subprocess
from functools import partial
from typing import IO, Any

import botocore.credentials
from botocore.exceptions import CredentialRetrievalError
from botocore.utils import FileWebIdentityTokenLoader, parse_key_val_file

from socratic_bench.config import read_bounded
from socratic_bench.secrecy.sources import MAX_TOKEN_BYTES

_FILES = ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE")
_CHUNK_BYTES = 65_536


def hold_credential_sources() -> None:
    """Have the SDK read by the functions below, in all sessions of this process."""
    vars(botocore.credentials).update(
        open=_open_regular,  # the token of a container
        FileWebIdentityTokenLoader=partial(FileWebIdentityTokenLoader, _open=_open_regular),
        parse_key_val_file=partial(parse_key_val_file, _open=_open_regular),
        ProcessProvider=partial(_ProcessProvider, popen=_Program),
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


_ProcessProvider = botocore.credentials.ProcessProvider


class _Program(subprocess.Popen[bytes]):
    """A program that gives credentials: it is killed when it prints far more than they have."""

    def communicate(self, *_: Any, **__: Any) -> tuple[bytes, bytes]:  # noqa: ANN401 -- the base's
        pipes = [pipe for pipe in (self.stdout, self.stderr) if pipe]
        told = [bytearray() for _ in pipes]
        with selectors.DefaultSelector() as waiting:
            for pipe, so_far in zip(pipes, told, strict=True):
                waiting.register(pipe, selectors.EVENT_READ, so_far)
            while waiting.get_map():
                for key, _events in waiting.select():
                    new = os.read(key.fd, _CHUNK_BYTES)
                    key.data.extend(new)
                    if not new:
                        waiting.unregister(key.fileobj)
                    elif len(key.data) > MAX_TOKEN_BYTES:
                        self._give_up(pipes)
        self.wait()
        stdout, stderr = map(bytes, told)
        return stdout, stderr

    def _give_up(self, pipes: list[IO[bytes]]) -> None:
        self.kill()
        for pipe in pipes:
            pipe.close()  # which ends what it has started, too
        self.wait()
        said = f"it printed more than {MAX_TOKEN_BYTES} bytes"
        raise CredentialRetrievalError(provider="custom-process", error_msg=said)
