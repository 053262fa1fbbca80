"""Reads files of users, which may be anything: regular files of a bounded length, and TOML."""

import errno
import os
import re
import stat
import tomllib
from pathlib import Path

from socratic_bench.errors import UsageError

MAX_TEXT_BYTES = 1_000_000
# Bound for files that runs write and read back: far more than the longest run writes.
MAX_STORED_BYTES = 256 * 2**20
_PIECE_BYTES = 4096
S3 = "s3://"  # begins names of places in buckets


def absolute(name: str) -> str:
    """The absolute path of a file or folder; a name in a bucket stays as it is."""
    return name if name.startswith(S3) else str(Path(name).absolute())


def is_folder(name: Path | str) -> bool:
    """Whether there is such a folder; a name that no folder can have is none."""
    try:
        return Path(name).is_dir()
    except OSError:
        return False


def read_bounded(path: Path | str, *, bound: int = MAX_TEXT_BYTES) -> bytes:
    """The content of a file. Raises `OSError`, also for a device, a pipe, or one over the bound."""
    descriptor = open_regular(path)
    try:
        return read_open(descriptor, bound)
    finally:
        os.close(descriptor)


def read_system_prompt(path: str) -> str:
    """The system prompt in a user's file. Raises `UsageError`."""
    try:
        text = read_bounded(path).decode("utf-8").strip()
    except OSError as error:
        raise UsageError([f"The system prompt {path} cannot be read: {error.strerror}."]) from error
    except UnicodeDecodeError as error:
        raise UsageError([f"The system prompt {path} is not UTF-8 text."]) from error
    if not text:
        raise UsageError([f"The system prompt {path} is empty."])
    return text


def open_regular(
    path: Path | str, flags: int = os.O_RDONLY, *, mode: int = 0o666, folder: int | None = None
) -> int:
    """Open a regular file; returns its descriptor.

    `folder` is the descriptor of the folder to which the path is relative, `mode` the mode of a
    file that the flags create. Raises `OSError`, also for a device or a pipe.
    """
    try:
        # A named pipe without a writer would wait for one.
        descriptor = os.open(path, flags | os.O_NONBLOCK, mode, dir_fd=folder)
    except ValueError as error:
        raise OSError(errno.EINVAL, "no file can have this name") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file")
    return descriptor


def read_open(descriptor: int, bound: int) -> bytes:
    """The whole content of an open file. Raises `OSError` for one over the bound."""
    size = os.fstat(descriptor).st_size
    pieces, at = [], 0
    # A file over the bound shows by its size before it is read; some files have no size.
    while max(size, at) <= bound and at != (size or None):
        piece = os.pread(descriptor, size + _PIECE_BYTES, at)
        if not piece:
            break
        pieces.append(piece)
        at += len(piece)
    if max(size, at) > bound:
        raise OSError(errno.EFBIG, f"it has more than {bound} bytes")
    return b"".join(pieces)


# The parser's time grows with the square of a name's parts. No file that is read here needs more.
MOST_PARTS = 20
_PART = r"""(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
_DEEP_NAME = re.compile(
    r"(?:^[ \t]*+(?:\[{1,2}+[ \t]*+)?+|[{,][ \t]*+)"
    rf"{_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{MOST_PARTS}}}",
    re.MULTILINE,
)


class UnreadableTomlError(ValueError):
    """The file is no TOML; the message says why, and mostly in which line."""


def parse_toml(content: bytes) -> dict[str, object]:
    """The table in a TOML file. Raises `UnreadableTomlError`."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UnreadableTomlError(f"not UTF-8 text (line {line})") from error
    if deep := _DEEP_NAME.search(text):
        line = text.count("\n", 0, deep.start()) + 1
        raise UnreadableTomlError(f"a name of more than {MOST_PARTS} parts (line {line})")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        # ValueError: TOML's own error, and a number too long for Python to read.
        raise UnreadableTomlError(f"not valid TOML: {error}") from error
