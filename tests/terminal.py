"""A terminal of so many columns around stderr, and what somebody sees there."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping
from contextlib import suppress
from unicodedata import combining, east_asian_width

from tests.command import ROOT, Outcome, environment

COLOUR = re.compile("\x1b\\[(\\d+)m(.*?)\x1b\\[0m")


def run_in_terminal(
    *words: str, columns: int, env: Mapping[str, str] | None = None
) -> tuple[Outcome, list[str]]:
    """The outcome of the command, and the lines on the terminal, the live ones among them."""
    mine, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "cli", *words],
        stdout=subprocess.PIPE,
        stderr=theirs,
        cwd=ROOT,
        env={**(env or environment()), "TERM": "xterm-256color"},
    )
    os.close(theirs)
    seen = b""
    with suppress(OSError):  # how a terminal says that everybody has left it
        while chunk := os.read(mine, 65536):
            seen += chunk
    os.close(mine)
    stdout, _ = process.communicate()
    text = seen.decode()
    return Outcome(process.returncode, stdout, text), re.split(r"\r\x1b\[K|\r\n", text)


def width(line: str) -> int:
    shown = COLOUR.sub(r"\2", line)
    assert "\x1b" not in shown, repr(line)
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in shown)
