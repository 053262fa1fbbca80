"""Whatever a run may be doing when a signal comes: each case waits until it is doing just that.

Nothing of it would be over by itself within `PATIENCE_S`, and what is given up by itself in the end
ends a run otherwise: so a run that was interrupted has not waited for it.
"""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from socratic_bench.emulator import Emulator, Settings, parse_fault
from tests.command import CLAUDE, OFFLINE, OPENING, ROOT, account, begin, environment, printed
from tests.fakes import PATIENCE_S

STUDENT = "other.student-v1:0"
JUDGE = "other.judge-v1:0"
TURNS = 9
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n"
FORBIDDEN = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"


class Tarpit:
    """A server that takes requests and never answers one whole.

    It says nothing at all, or (`drips`) a byte now and then. `refused`: what it denies at once,
    such as HEAD.
    """

    def __init__(self, *, drips: bool = False, refused: bytes = b"none") -> None:
        self.reached = threading.Event()
        self._drips, self._refused = drips, refused
        self._closing = threading.Event()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        with suppress(OSError):
            while not self._closing.is_set():
                connection, _ = self._socket.accept()
                thread = threading.Thread(target=self._serve, args=(connection,))
                self._threads.append(thread)
                thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            while (data := connection.recv(1 << 20)).startswith(self._refused):
                connection.sendall(FORBIDDEN)
            if data:
                self._stall(connection)

    def _stall(self, connection: socket.socket) -> None:
        if self._drips:
            connection.sendall(HEAD)
        self.reached.set()
        while not self._closing.wait(0.02):
            if self._drips:
                connection.sendall(b" ")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for thread in self._threads:
            thread.join()


@dataclass(frozen=True)
class Scene:
    """How the command is started, and how one waits until it is where the signal shall meet it."""

    env: Mapping[str, str]
    is_there: Callable[[], object]
    words: Sequence[str] = ()


@contextmanager
def faulty(*faults: str) -> Iterator[Scene]:
    """The emulator holds a call up, or has it wait."""
    with Emulator(Settings(faults=tuple(map(parse_fault, faults)), any_model=True)) as served:
        yield Scene(
            account(served.url, CLAUDE),
            lambda: any(request.fault for request in served.requests),
        )


@contextmanager
def stalled(**how: Any) -> Iterator[Scene]:
    """The endpoint takes the request, and then nothing comes, or next to nothing."""
    with Tarpit(**how) as pit:
        yield Scene(account(pit.url, CLAUDE), pit.reached.is_set)


@contextmanager
def shaking_hands() -> Iterator[Scene]:
    """Whoever has taken the connection answers nothing to the first words of TLS."""
    with Tarpit() as pit:
        yield Scene(account(pit.url.replace("http:", "https:"), CLAUDE), pit.reached.is_set)


@contextmanager
def deaf() -> Iterator[Scene]:
    """Nobody takes the connection: the queue of those who wait for it is full."""
    with ExitStack() as stack:
        listening = stack.enter_context(socket.socket())
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        port = listening.getsockname()[1]
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(("127.0.0.1", port))
        before = connecting_to(port)
        yield Scene(
            account(f"http://127.0.0.1:{port}", CLAUDE), lambda: connecting_to(port) > before
        )


def connecting_to(port: int) -> int:
    """Connections of this machine to a port that nobody has answered yet."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[2].endswith(f":{port:04X}") and row[3] == "02" for row in rows)


@contextmanager
def run_in_thread(name: str, *words: str, refused: bytes = b"none", **more: str) -> Iterator[Scene]:
    """Another service than Bedrock says nothing: the bucket's, or that of roles."""
    with Emulator(Settings(any_model=True)) as served, Tarpit(refused=refused) as pit:
        env = account(served.url, CLAUDE, **{name: pit.url}, **more)
        yield Scene(env, pit.reached.is_set, words)


@contextmanager
def slow_credentials(folder: Path) -> Iterator[Scene]:
    """A program of the user's own gives no credentials: it waits for a pipe that nobody fills."""
    seen, pipe = folder / "asked", folder / "pipe"
    os.mkfifo(pipe)
    config = folder / "config"
    config.write_text(f"[default]\ncredential_process = sh -c 'touch {seen}; exec cat {pipe}'\n")
    with Emulator(Settings(any_model=True)) as served:
        env = {**account(served.url, CLAUDE), "AWS_CONFIG_FILE": str(config)}
        del env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"]
        yield Scene(env, seen.exists)
    # The program has outlived the run, and ends with its pipe.
    with suppress(OSError):
        os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))


HANGING = """
import os


def hanging(sync):
    def wait(descriptor):
        if "/raw/" in os.readlink(f"/proc/self/fd/{descriptor}"):
            open(os.environ["TEST_GATE"]).close()
        sync(descriptor)

    return wait


os.fsync, os.fdatasync = hanging(os.fsync), hanging(os.fdatasync)
"""


@contextmanager
def hanging_folder(folder: Path) -> Iterator[Scene]:
    """The output folder takes the journal, and no other file before this has ended: each waits for
    a pipe that nobody fills. Yet all else is done.
    """
    gate, before = folder / "gate", folder / "before"
    os.mkfifo(gate)
    before.mkdir()
    (before / "sitecustomize.py").write_text(HANGING)
    with Emulator(Settings(any_model=True)) as served:
        env = account(served.url, CLAUDE, TEST_GATE=str(gate), PYTHONPATH=f"{before}:{ROOT}")
        yield Scene(env, lambda: sum(r.role == "judge" for r in served.requests) >= TURNS)


ROLE = "arn:aws:iam::123456789012:role/Runner"
SCENES: dict[str, Callable[[Path], Any]] = {
    "connecting": lambda _: deaf(),
    "tutor silent": lambda _: faulty("hang:role=tutor:after=1:ms=6000000"),
    "student silent": lambda _: faulty("hang:role=student:ms=6000000"),
    "judge silent": lambda _: faulty("hang:role=judge:ms=6000000"),
    "first call silent": lambda _: stalled(),
    "answer drips": lambda _: stalled(drips=True),
    "waiting for the next attempt": lambda _: faulty("throttled:role=tutor:ms=6000000"),
    "waiting for its turn": lambda _: faulty("throttled:role=judge:ms=6000000"),
    "bucket silent": lambda _: run_in_thread(
        "AWS_ENDPOINT_URL_S3", "--s3-bucket", "bucket", refused=b"HEAD"
    ),
    "check of the bucket silent": lambda _: run_in_thread(
        "AWS_ENDPOINT_URL_S3", "--s3-bucket", "bucket"
    ),
    "role silent": lambda _: run_in_thread("AWS_ENDPOINT_URL_STS", BEDROCK_ASSUME_ROLE_ARN=ROLE),
    "credentials slow": slow_credentials,
    "shaking hands": lambda _: shaking_hands(),
}


@contextmanager
def writing(stderr: int = subprocess.DEVNULL) -> Iterator["subprocess.Popen[bytes]"]:
    """A command at its document, which the pipe does not hold and of which one byte was read."""
    with subprocess.Popen(
        [sys.executable, "-m", "cli", *OFFLINE, "--turns", "9", "--quiet"],
        stdout=subprocess.PIPE,
        stderr=stderr,
        bufsize=0,
        pipesize=4096,
        cwd=ROOT,
        env=environment(),
    ) as process:
        assert process.stdout
        assert process.stdout.read(1) == b"{"
        yield process


@dataclass(frozen=True)
class Interrupted:
    """How the command ended: how long it took to where the signal met it, and from there on."""

    exit_code: int
    document: dict[str, Any]
    stderr: str
    started_s: float
    ended_s: float


def interrupt(
    scene: Scene, number: signal.Signals, *words: str, then: signal.Signals | None = None
) -> Interrupted:
    """Start the command, wait until it is there, send the signal, and another one with it."""
    began_s = time.monotonic()
    with begin(
        *("--model", CLAUDE, "--prompt", OPENING),
        *("--student-model", STUDENT, "--judge-model", JUDGE, "--turns", str(TURNS)),
        *(*scene.words, *words),
        env=scene.env,
    ) as process:
        try:
            while not scene.is_there():
                assert process.poll() is None
                assert time.monotonic() - began_s < PATIENCE_S
                time.sleep(0.01)
            sent_s = time.monotonic()
            process.send_signal(number)
            if then:
                process.send_signal(then)
            stdout, stderr = process.communicate(timeout=PATIENCE_S)
        except (AssertionError, subprocess.TimeoutExpired):
            process.kill()
            raise
        ended_s = time.monotonic()
    return Interrupted(
        process.wait(),
        printed(stdout),
        (stderr or b"").decode(),
        started_s=sent_s - began_s,
        ended_s=ended_s - sent_s,
    )
