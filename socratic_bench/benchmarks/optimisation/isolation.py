"""Runs commands of agents, tests and workloads apart from the harness, its home and the network."""

from __future__ import annotations

import json
import os
import re
import selectors
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Literal, cast
from uuid import uuid4

from msgspec import Struct

from socratic_bench.benchmarks.optimisation.task import BenchConfig
from socratic_bench.errors import Problem, UsageError

Level = Literal["container", "bwrap", "unshare", "none"]
GRACE_S = 10.0  # between asking processes to end and killing them
MAX_OUTPUT_BYTES = 1_000_000  # of one command that are kept
_POLL_S = 0.05
_PIECE_BYTES = 65_536
_LAUNCHER = Path(__file__).with_name("launcher.py")
# Whatever belongs to the user or to other processes, sockets of services among it.
_HIDDEN = ("/home", "/root", "/tmp", "/var/tmp", "/dev/shm", "/run", "/mnt", "/media")  # noqa: S108
_SYSTEM = {"/", "/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/sys", "/usr"}
_CREDENTIALS_FILES = ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE")
_UNSHARE = ("unshare", "-Urnm", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc", "--")
_END_WITH_HARNESS = ("setpriv", "--pdeathsig", "KILL", "--")
_CONTAINER_NAME = re.compile(r"optimisation-[0-9a-f]{12}")
_MARKER = "OPTIMISATION_WORKSPACE"
_DEFAULT_ENVIRONMENT = {
    "PATH": f"{sys.base_prefix}/bin:/usr/local/bin:/usr/bin:/bin",
    "HOME": "/tmp",  # noqa: S108 -- private where there is isolation
    "LANG": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
}


class CommandResult(Struct, frozen=True, kw_only=True):
    """What a command did. `stopped` says why the harness ended it; `None`: it ended by itself."""

    exit_code: int
    stdout: str
    stderr: str
    duration_s: float
    stopped: str | None = None


class Isolation(Struct, frozen=True, kw_only=True):
    """How commands are confined: the level, and what they see.

    Attributes:
        template: a container engine's command line, with `{workdir}`, `{mode}`, `{command}`.
        stop_template: the command line that ends the container `{name}`.
        hidden: folders that commands must not see, such as the source repository.
        visible: folders that they may read although they lie in hidden ones.
        environment: all environment variables of commands.
    """

    level: Level
    template: str = ""
    stop_template: str = ""
    hidden: tuple[str, ...] = ()
    visible: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}
    cpus: int | None = None
    memory_mb: int | None = None

    def command_line(
        self, command: str, workspace: Path, *, folder: Path | None = None, writable: bool = True
    ) -> list[str]:
        """The words that run a shell command in `folder`, which is in the workspace."""
        place = str(folder or workspace / "repo")
        if self.level != "container":
            command = self._limited(command)
        match self.level:
            case "container":
                exports = (
                    f"export {shlex.quote(f'{name}={value}')};"
                    for name, value in self.environment.items()
                )
                inner = f"{' '.join(exports)} cd {shlex.quote(place)} && {command}"
                name = f"optimisation-{uuid4().hex[:12]}"
                return self._fill(self.template, inner, workspace, name=name, writable=writable)
            case "bwrap":
                words = self._bwrap(workspace, writable=writable)
                return [*words, "--chdir", place, "/bin/sh", "-c", command]
            case "unshare":
                own = [str(workspace)]
                order = {
                    "hidden": self.hidden_from(workspace),
                    "visible": [*self.visible, *([] if writable else own)],
                    "writable": own if writable else [],
                    "folder": place,
                    "command": command,
                }
                launcher = (sys.executable, "-I", str(_LAUNCHER), json.dumps(order))
                return [*_END_WITH_HARNESS, *_UNSHARE, *launcher]
            case "none":
                return ["/bin/sh", "-c", f"cd {shlex.quote(place)} && {command}"]

    def _limited(self, command: str) -> str:
        """The command within its memory and on its cores, which are the same for all samples."""
        if self.memory_mb is not None:
            command = f"ulimit -v {self.memory_mb * 1024} && {command}"
        if self.cpus is not None:
            cores = sorted(os.sched_getaffinity(0))[-self.cpus :]
            words = ("taskset", "-c", ",".join(map(str, cores)), "/bin/sh", "-c", command)
            command = f"exec {shlex.join(words)}"
        return command

    def hidden_from(self, workspace: Path) -> list[str]:
        """The folders that commands in a workspace do not see, the outer ones first."""
        folders = [Path(os.path.realpath(name)) for name in (*_HIDDEN, *self.hidden)]
        folders = [f for f in folders if f.is_dir() and not f.is_relative_to(workspace)]
        return sorted({str(f) for f in folders if not any(other in f.parents for other in folders)})

    @contextmanager
    def start(  # noqa: PLR0913 -- pipes as `Popen` takes them
        self,
        command: str,
        workspace: Path,
        *,
        folder: Path | None = None,
        writable: bool = True,
        stdin: int | IO[bytes] = subprocess.DEVNULL,
        stdout: int | IO[bytes] = subprocess.PIPE,
        stderr: int | IO[bytes] = subprocess.PIPE,
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Start a command; when the block ends, so do all processes that it has started."""
        words = self.command_line(command, workspace, folder=folder, writable=writable)
        marker = {_MARKER: f"{workspace}"} if self.level == "none" else {}
        # The client of a container engine needs the harness's environment; its command does not.
        is_container = self.level == "container"
        process = subprocess.Popen(  # noqa: S603 -- all words are ours, but for the command
            words,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env=dict(os.environ) if is_container else {**self.environment, **marker},
            cwd=workspace,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            self.end(process, workspace, grace_s=0.0)
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe:
                    with suppress(BrokenPipeError):
                        pipe.close()

    def run(
        self,
        command: str,
        workspace: Path,
        *,
        timeout_s: float,
        folder: Path | None = None,
        writable: bool = True,
        should_stop: Callable[[], str | None] = lambda: None,
    ) -> CommandResult:
        """Run a command to its end, its timeout, or until `should_stop` gives a reason."""
        start = time.monotonic()
        stopped: str | None = None
        with self.start(command, workspace, folder=folder, writable=writable) as process:
            output = _Output(process)
            while process.poll() is None:
                output.read(_POLL_S)
                is_late = time.monotonic() - start > timeout_s
                stopped = "timeout" if is_late else should_stop()
                if stopped:
                    self.end(process, workspace, grace_s=GRACE_S, while_waiting=output.read)
            duration_s = time.monotonic() - start
            self.end(process, workspace, grace_s=0.0)
            output.read_rest()
        return CommandResult(
            exit_code=process.returncode,
            stdout=output.text(process.stdout),
            stderr=output.text(process.stderr),
            duration_s=duration_s,
            stopped=stopped,
        )

    def end(
        self,
        process: subprocess.Popen[bytes],
        workspace: Path,
        *,
        grace_s: float,
        while_waiting: Callable[[float], object] = time.sleep,
    ) -> None:
        """End all processes of a command: ask them, wait up to `grace_s`, then kill them."""
        members = self._members(process, workspace)
        if grace_s > 0:
            for member in members:
                _signal(member, signal.SIGTERM)
            deadline = time.monotonic() + grace_s
            while process.poll() is None and time.monotonic() < deadline:
                while_waiting(_POLL_S)
        if self.level == "container" and self.stop_template and process.poll() is None:
            name = _CONTAINER_NAME.search(" ".join(map(str, process.args)))  # type: ignore[arg-type]
            words = self._fill(self.stop_template, "", workspace, name=name[0] if name else "")
            subprocess.run(words, check=False, capture_output=True, timeout=60)  # noqa: S603
        # Processes that were started meanwhile, too.
        for member in [*members, *self._members(process, workspace)]:
            _signal(member, signal.SIGKILL)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def _members(self, process: subprocess.Popen[bytes], workspace: Path) -> list[int]:
        """The processes of a command, without the program that confines them; parents first, or
        else a parent might end before it is asked.
        """
        import psutil  # of the extra `optimisation`

        members: list[int] = []
        with suppress(psutil.NoSuchProcess):
            children = psutil.Process(process.pid).children(recursive=True)
            members = [child.pid for child in children]
        if self.level == "container":
            return [process.pid]  # an engine's client passes signals on
        return (
            [process.pid, *members, *_marked(str(workspace))] if self.level == "none" else members
        )

    def _fill(
        self, template: str, command: str, workspace: Path, *, name: str, writable: bool = True
    ) -> list[str]:
        """The words of a template; the command is one word, whatever it holds."""
        values = {
            "workdir": str(workspace),
            "mode": "rw" if writable else "ro",
            "name": name,
            "cpus": str(self.cpus or 1),
            "memory": f"{self.memory_mb or 4096}m",
            "command": command,
        }
        pattern = re.compile(r"\{(" + "|".join(values) + r")\}")
        return [pattern.sub(lambda match: values[match[1]], word) for word in shlex.split(template)]

    def _bwrap(self, workspace: Path, *, writable: bool) -> Iterator[str]:
        yield from ("bwrap", "--unshare-all", "--die-with-parent", "--new-session")
        yield from ("--cap-drop", "ALL", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
        for folder in self.hidden_from(workspace):
            yield from ("--tmpfs", folder)
        for folder in self.visible:
            yield from ("--ro-bind", folder, folder)
        yield from ("--bind" if writable else "--ro-bind", str(workspace), str(workspace))


class _Output:
    """Reads a process's output as it comes, and keeps the beginning and the end of it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._selector = selectors.DefaultSelector()
        self._kept: dict[object, bytearray] = {}
        self._n_dropped: dict[object, int] = {}
        for pipe in (process.stdout, process.stderr):
            if pipe:
                self._selector.register(pipe, selectors.EVENT_READ)
                self._kept[pipe], self._n_dropped[pipe] = bytearray(), 0

    def read(self, wait_s: float) -> bool:
        """Read what there is, after waiting for it at most so long; whether there was any."""
        if not self._selector.get_map():
            time.sleep(wait_s)
            return False
        ready = self._selector.select(wait_s)
        for key, _ in ready:
            piece = os.read(key.fd, _PIECE_BYTES)
            if not piece:
                self._selector.unregister(key.fileobj)
            kept = self._kept[key.fileobj]
            kept += piece
            if len(kept) > 2 * MAX_OUTPUT_BYTES:
                n_over = len(kept) - MAX_OUTPUT_BYTES
                half = MAX_OUTPUT_BYTES // 2
                del kept[half : half + n_over]
                self._n_dropped[key.fileobj] += n_over
        return bool(ready)

    def read_rest(self) -> None:
        while self.read(0):
            pass
        self._selector.close()

    def text(self, pipe: object) -> str:
        if pipe not in self._kept:
            return ""
        text = self._kept[pipe].decode(errors="replace")
        n_dropped = self._n_dropped[pipe]
        return text if not n_dropped else f"[{n_dropped} bytes in the middle left out]\n{text}"


def make_isolation(
    config: BenchConfig, requested: str, *, hidden: Sequence[str], environment: Mapping[str, str]
) -> Isolation:
    """The requested isolation, or with "auto" the first that works here. Raises `UsageError`."""
    container = config.container
    visible = (sys.base_prefix, *config.paths.visible)
    variables = {**_DEFAULT_ENVIRONMENT, **environment}
    order: tuple[Level, ...] = ("container",) if container.command else ("bwrap", "unshare")
    levels = order if requested == "auto" else (cast("Level", requested),)
    failures: list[str] = []
    for level in levels:
        isolation = Isolation(
            level=level,
            template=container.command,
            stop_template=container.stop,
            hidden=(*hidden, *_folders_of_user()),
            visible=tuple(os.path.realpath(folder) for folder in visible),
            environment=variables,
            cpus=container.cpus,
            memory_mb=container.memory_mb,
        )
        if (failure := _try(isolation)) is None:
            return isolation
        failures.append(f"{level}: {failure}")
    raise UsageError(
        [f"Commands of agents cannot be isolated here ({'; '.join(failures)})."],
        hint=Problem.of(
            "Install bubblewrap, allow user namespaces, give a command template of a container "
            "engine in {bench_cfg}, or accept no isolation: {isolation} none."
        ),
    )


def _folders_of_user() -> Iterator[str]:
    """The user's home, wherever it is, and the folders of credentials' files, but none that has
    programs of the system in it.
    """
    files = filter(None, map(os.environ.get, _CREDENTIALS_FILES))
    homes = ("~", "~/.aws")
    for place in (*homes, *map(os.path.dirname, files)):
        folder = os.path.realpath(os.path.expanduser(place))  # noqa: PTH111 -- as the SDK does
        if not _SYSTEM & {folder, f"/{folder.split('/')[1]}"}:
            yield folder


def _try(isolation: Isolation) -> str | None:
    """Why a command cannot be run so; `None` if it can."""
    if isolation.level == "container" and not {"{workdir}", "{command}"} <= set(
        re.findall(r"\{\w+\}", isolation.template)
    ):
        return "the template needs {workdir} and {command}"
    with TemporaryDirectory(prefix="optimisation-") as folder:
        (Path(folder) / "repo").mkdir()
        try:
            command = "read line && echo $line"
            with isolation.start(command, Path(folder), stdin=subprocess.PIPE) as process:
                out, errors = process.communicate(b"works\n", timeout=120.0)
        except OSError as error:
            return f"{error.filename or ''} {error.strerror}".strip()
        except subprocess.TimeoutExpired:
            return "it does not answer"
    if out.strip() == b"works":
        return None
    said = (errors.strip() or out.strip()).decode(errors="replace").splitlines()
    return said[-1] if said else "it gives a command no input, as docker run does without -i"


def _marked(workspace: str) -> set[int]:
    """Processes of a workspace by their environment, as those have it that left their group."""
    import psutil  # of the extra `optimisation`

    marked: set[int] = set()
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get(_MARKER) == workspace:
                marked.add(process.pid)
    return marked


def _signal(pid: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
