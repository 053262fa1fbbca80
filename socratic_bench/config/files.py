"""Reads texts of the user's own: regular files of a bounded length, and nothing else."""

import errno
import os
import stat
from pathlib import Path

MAX_TEXT_BYTES = 1_000_000


def read_bounded(path: Path | str, *, bound: int = MAX_TEXT_BYTES) -> bytes:
    """The file's bytes. Raises `OSError`, also for a device, a pipe, or a file over the bound."""
    try:
        # A named pipe without a writer would wait for one.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except ValueError as error:
        raise OSError(errno.EINVAL, "no file can have this name") from error
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        content = file.read(bound + 1)
    if len(content) > bound:
        raise OSError(errno.EFBIG, f"it has more than {bound} bytes")
    return content
