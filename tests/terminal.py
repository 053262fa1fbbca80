"""A terminal of so many columns around stderr, and what somebody sees there."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from contextlib import suppress
from unicodedata import combining, east_asian_width

from tests.command import ROOT, Outcome, environment

COLOUR = re.compile("\x1b\\[(\\d+)m(.*?)\x1b\\[0m")


def run_in_terminal(
    *words: str, columns: int, env: Mapping[str, str] | None = None
) -> tuple[Outcome, list[str]]:
    """The outcome of the command, and the lines on the terminal, the live ones among them."""
    (outcome,) = run_all_in_terminal([words], columns=columns, env=env)
    return outcome, re.split(r"\r\x1b\[K|\r\n", outcome.stderr)


def run_all_in_terminal(
    commands: Sequence[Sequence[str]],
    *,
    columns: int,
    env: Mapping[str, str] | None = None,
    with_stdout: bool = False,
) -> list[Outcome]:
    """The outcomes of commands on one terminal at the same time, each with all that came there."""
    mine, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "cli", *words],
            stdout=theirs if with_stdout else subprocess.PIPE,
            stderr=theirs,
            cwd=ROOT,
            env={**(env or environment()), "TERM": "xterm-256color"},
        )
        for words in commands
    ]
    os.close(theirs)
    seen = b""
    with suppress(OSError):  # how a terminal says that everybody has left it
        while chunk := os.read(mine, 65536):
            seen += chunk
    os.close(mine)
    printed = [process.communicate()[0] or b"" for process in processes]
    text = seen.decode()
    return [
        Outcome(process.returncode, stdout, text)
        for process, stdout in zip(processes, printed, strict=True)
    ]


def screen(text: str) -> list[str]:
    """The lines that somebody sees in the end, without colours."""
    lines, at = [""], 0
    for part in re.split(r"(\r|\n|\x1b\[K)", COLOUR.sub(r"\2", text)):
        if part == "\n":
            lines.append("")
        elif part == "\x1b[K":
            lines[-1] = lines[-1][:at]
        elif part != "\r":
            lines[-1] = lines[-1][:at] + part + lines[-1][at + len(part) :]
        at = 0 if part in "\r\n" else at + len(part) if part != "\x1b[K" else at
    return lines


def width(line: str) -> int:
    shown = COLOUR.sub(r"\2", line)
    assert "\x1b" not in shown, repr(line)
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in shown)
