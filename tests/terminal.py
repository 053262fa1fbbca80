"""A terminal of so many columns around stderr, and what somebody sees there."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import tempfile
import termios
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO
from unicodedata import combining, east_asian_width

from tests.command import ROOT, Outcome, begin, can_share_this_process, environment, run_on_streams

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
    """The outcomes of commands on one terminal at the same time, each with all that came there.

    A single one runs in this process.
    """
    env = {**(env or environment()), "TERM": "xterm-256color"}
    mine, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    seen: list[bytes] = []
    reader = threading.Thread(target=_read_all, args=(mine, seen))
    reader.start()
    is_here = len(commands) == 1 and can_share_this_process(env)
    run = _run_here if is_here else _run_beside_each_other
    ended = run(commands, theirs, env, with_stdout=with_stdout)
    reader.join()
    os.close(mine)
    return [Outcome(code, stdout, b"".join(seen).decode()) for code, stdout in ended]


def _read_all(mine: int, seen: list[bytes]) -> None:
    with suppress(OSError):  # how a terminal says that everybody has left it
        while chunk := os.read(mine, 65536):
            seen.append(chunk)


def _run_here(
    commands: Sequence[Sequence[str]], theirs: int, env: Mapping[str, str], *, with_stdout: bool
) -> list[tuple[int, bytes]]:
    (words,) = commands
    if not with_stdout:
        with Path(os.devnull).open("rb") as stdin:
            return [run_at_terminal(words, theirs, env=env, stdin=stdin)]
    with _descriptor(1, theirs), Path(os.devnull).open("rb") as stdin:
        return [run_at_terminal(words, theirs, env=env, stdin=stdin, stdout=theirs)]


def run_at_terminal(
    words: Sequence[str],
    theirs: int,
    *,
    env: Mapping[str, str],
    stdin: IO[bytes],
    stdout: int | None = None,
) -> tuple[int, bytes]:
    """Run a command in this process whose stderr is this terminal, which it closes: its exit code,
    and what it printed elsewhere. The terminal's width is asked of the descriptors.
    """
    with _descriptor(2, theirs), tempfile.TemporaryFile() as file:
        streams = [os.dup(file.fileno() if stdout is None else stdout), theirs]
        opened = [os.fdopen(one, "wb") for one in streams]
        code = run_on_streams(words, stdin, *opened, env=env, cwd=ROOT)
        file.seek(0)
        return code, file.read()


@contextmanager
def _descriptor(number: int, other: int) -> Iterator[None]:
    kept = os.dup(number)
    os.dup2(other, number)
    try:
        yield
    finally:
        os.dup2(kept, number)
        os.close(kept)


def _run_beside_each_other(
    commands: Sequence[Sequence[str]], theirs: int, env: Mapping[str, str], *, with_stdout: bool
) -> list[tuple[int, bytes]]:
    stdout = theirs if with_stdout else subprocess.PIPE
    processes = [begin(*words, stdout=stdout, stderr=theirs, env=env) for words in commands]
    os.close(theirs)
    printed = [process.communicate()[0] or b"" for process in processes]
    return [(process.wait(), one) for process, one in zip(processes, printed, strict=True)]


def screen(text: str) -> list[str]:
    """The lines that somebody sees in the end, without colours."""
    return frames(text, 1_000_000)[-1]


def width(line: str) -> int:
    shown = COLOUR.sub(r"\2", line)
    assert "\x1b" not in shown, repr(line)
    return sum(map(_width, shown))


def _width(character: str) -> int:
    return 0 if combining(character) else 2 if east_asian_width(character) in "WF" else 1


REDRAWN = re.compile("(\r(?:\x1b\\[2K)?(?:\x1b\\[1A\x1b\\[2K)+)")


def frames(text: str, columns: int) -> list[list[str]]:
    """What somebody sees, without colours: before lines are drawn anew, and in the end."""
    screen, seen = _Screen(columns), []
    for n, part in enumerate(REDRAWN.split(text)):
        screen.obey(part)
        if n % 2 == 0:
            seen.append(screen.lines)
    return seen


class _Screen:
    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._rows: list[list[str]] = [[]]
        self._y = self._x = 0

    @property
    def lines(self) -> list[str]:
        return ["".join(row) for row in self._rows]

    def obey(self, text: str) -> None:
        for code, character in re.findall(r"\x1b\[([?\d;]*[A-Za-z])|(.)", text, re.DOTALL):
            if code == "1A":
                self._y -= 1
            elif code in ("K", "2K"):
                del self._rows[self._y][0 if code == "2K" else self._x :]
            elif code:
                assert code[-1] == "m" or code in ("?25h", "?25l"), code
            elif character == "\r":
                self._x = 0
            elif character == "\n":
                self._down()
            else:
                self._put(character)

    def _down(self) -> None:
        self._y += 1
        if self._y == len(self._rows):
            self._rows.append([])

    def _put(self, character: str) -> None:
        cells = [character, *[""] * (_width(character) - 1)]
        if self._x + len(cells) > self._columns:
            self._x = 0
            self._down()
        row = self._rows[self._y]
        row += " " * (self._x - len(row))
        row[self._x : self._x + len(cells)] = cells
        self._x += len(cells)
