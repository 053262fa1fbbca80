"""Sweeps that the dashboard has started or will start: plan files in the store, one process each.

`dashboard/jobs/{id}.json` has a job. Whoever starts one has claimed it in that file before, so that
of several dashboards one starts it. A process of a job has a session of its own: it outlives the
dashboard, and its log and document lie beside the plan on its host.
"""

import os
import re
import shlex
import signal
import socket
import subprocess
import time
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from ulid import ULID

from socratic_bench.documents import encode
from socratic_bench.documents.encoding import plain_keys
from socratic_bench.errors import ArtifactError, UsageError
from socratic_bench.settings import S3
from socratic_bench.storage.folder import FolderStore
from socratic_bench.storage.stores import ListedBucket, ListedStore

JOBS = "dashboard/jobs/"
QUEUE_LEASE = "dashboard/queue.lock"
_SWEEP_LINE = re.compile(r"^(sweep-[0-9A-Z]{26}): ", re.MULTILINE)
LOG_BYTES = 20_000
# A claimed job has no process for a moment, which may be another dashboard's moment.
STARTING_S = 15.0


class Job(Struct, frozen=True, kw_only=True):
    """A plan to play.

    Attributes:
        plan: the plan file's text.
        retries_failed: whether failed runs are repeated, too.
        started_ticks: the start of its process by the host's own clock, which tells it from a
            later process of the same number; `None`: unknown.
    """

    id: str
    name: str
    plan: str
    added_at: str
    state: Literal["queued", "running", "ended"] = "queued"
    retries_failed: bool = False
    host: str | None = None
    pid: int | None = None
    started_ticks: int | None = None
    exit_code: int | None = None
    sweep_id: str | None = None

    @property
    def is_here(self) -> bool:
        """Whether its process was started on this host."""
        return self.host == socket.gethostname()

    @property
    def settings(self) -> Mapping[str, Any]:
        """The keys of its plan; none of a plan that cannot be read."""
        with suppress(tomllib.TOMLDecodeError):
            return tomllib.loads(self.plan)
        return {}


class Jobs:
    """The jobs of a store."""

    def __init__(self, store: ListedStore, place: str, files: Path, program: Sequence[str]) -> None:
        """`files` is a folder of this host, `program` the command without its arguments."""
        self._store = store
        self._place = place
        self._files = files
        self._program = program
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._starting: dict[str, float] = {}  # when a claimed job was first seen without a process
        self._queue = ExitStack()
        self._holds_queue = False

    def add(self, name: str, plan: str) -> Job:
        """Put a plan at the end of the queue."""
        job_id = str(ULID())
        added_at = datetime.now(UTC).isoformat(timespec="seconds")
        job = Job(id=job_id, name=name, plan=plan, added_at=added_at)
        self._store.put(_key(job.id), encode(plain_keys(job)))
        return job

    def all(self) -> list[Job]:
        """Every job, the oldest first."""
        jobs = (self.get(key.removeprefix(JOBS).removesuffix(".json")) for key in self._keys())
        return [job for job in jobs if job]

    def get(self, job_id: str) -> Job | None:
        with suppress(msgspec.DecodeError):
            if body := self._store.get(_key(job_id)):
                return msgspec.json.decode(body, type=Job)
        return None

    def of_sweep(self, sweep_id: str) -> Job | None:
        """The newest job that has played a sweep."""
        return next((job for job in self.all()[::-1] if job.sweep_id == sweep_id), None)

    def remove(self, job: Job) -> None:
        """Remove a job that is not running; what it has played stays."""
        stored = self.get(job.id)
        if stored and stored.state != "running":
            self._store.remove(_key(job.id))

    def start(self, job: Job, *, retries_failed: bool = False) -> bool:
        """Start a job, or go on with it. `False` if it runs or another process has claimed it.
        Raises `ArtifactError` if its process cannot be started; then it stays as it was.
        """
        if job.state == "running":  # a second click, or another page's
            return False
        claimed = replace(
            job,
            state="running",
            host=socket.gethostname(),
            pid=None,
            exit_code=None,
            retries_failed=retries_failed,
        )
        if not self._change(job, claimed):
            return False
        try:
            process = self._begin(claimed)
        except OSError as error:
            self._change(claimed, job)
            text = f"{job.name} cannot be started: {error.strerror}: {error.filename}."
            raise ArtifactError(text) from error
        self._processes[job.id] = process
        ticks = _start_ticks(process.pid)
        self._change(claimed, replace(claimed, pid=process.pid, started_ticks=ticks))
        return True

    def stop(self, job: Job) -> None:
        """Ask the process of a running job to end, as Ctrl-C would; the job can go on later."""
        if job.is_here and job.pid and self._is_alive(job):
            os.kill(job.pid, signal.SIGTERM)

    def forget(self, job: Job) -> None:
        """Note that a job of another host has ended, which only a person can know."""
        self._change(job, replace(job, state="ended"))

    def command(self, job: Job) -> list[str]:
        """The command line that plays a job or goes on with it."""
        repeats = ["--retry-failed"] if job.retries_failed else []
        plan = str(self.plan_path(job))
        return [*self._program, "sweep", plan, *store_flags(self._place), "--resume", *repeats]

    def command_text(self, job: Job) -> str:
        """The command line, to copy."""
        return shlex.join(self.command(job))

    def plan_path(self, job: Job) -> Path:
        return self._file(job, "toml")

    def log_path(self, job: Job) -> Path:
        return self._file(job, "log")

    def log(self, job: Job) -> str:
        """The end of its log, which is on the host that has started it."""
        with suppress(OSError), self.log_path(job).open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - LOG_BYTES))
            return file.read().decode(errors="replace")
        return ""

    def error(self, job: Job) -> str | None:
        """What ended it early, by the document that its process has printed."""
        with suppress(OSError, msgspec.DecodeError, AttributeError):
            document = msgspec.json.decode(self._file(job, "json").read_bytes(), type=dict)
            return str(document["error"]["message"]) if document.get("error") else None
        return None

    def advance(self) -> None:
        """Note which processes have ended, and start the next job if none is running."""
        jobs = [self._note_progress(job) for job in self.all()]
        waiting = next((job for job in jobs if job.state == "queued"), None)
        if waiting and not any(job.state == "running" for job in jobs) and self._take_queue():
            self.start(waiting)

    def close(self) -> None:
        """Let another dashboard go on with the queue. Running commands go on."""
        self._queue.close()

    @property
    def leads_queue(self) -> bool:
        """Whether this dashboard starts what waits; another one may do so."""
        return self._holds_queue

    def _begin(self, job: Job) -> subprocess.Popen[bytes]:
        """Start the process of a job. Raises `OSError`."""
        self.plan_path(job).parent.mkdir(parents=True, exist_ok=True)
        self.plan_path(job).write_text(job.plan, encoding="utf-8")
        with self._file(job, "json").open("wb") as document, self.log_path(job).open("ab") as log:
            return subprocess.Popen(
                self.command(job),
                stdin=subprocess.DEVNULL,
                stdout=document,
                stderr=log,
                start_new_session=True,
            )

    def _note_progress(self, job: Job) -> Job:
        if job.state != "running" or not job.is_here:
            return job
        process = self._processes.get(job.id)
        exit_code = process.poll() if process else None
        line = None if job.sweep_id else _SWEEP_LINE.search(self._log_start(job))
        noted = replace(job, sweep_id=line[1]) if line else job
        if job.pid or process:
            self._starting.pop(job.id, None)
        is_starting = not process and not job.pid and not self._is_overdue(job)
        if not self._is_alive(job) and not is_starting and (job.pid or not process):
            noted = replace(noted, state="ended", exit_code=exit_code)
        return noted if noted == job or self._change(job, noted) else job

    def _is_overdue(self, job: Job) -> bool:
        """Whether a claimed job has had no process for so long that whoever claimed it is gone."""
        now = time.monotonic()
        return now - self._starting.setdefault(job.id, now) > STARTING_S

    def _is_alive(self, job: Job) -> bool:
        process = self._processes.get(job.id)
        if process is not None:
            return process.poll() is None
        if job.pid is None:
            return False
        try:
            os.kill(job.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return job.started_ticks is None
        return _start_ticks(job.pid) == job.started_ticks

    def _take_queue(self) -> bool:
        """Hold the queue as long as this dashboard runs, unless another one does."""
        if not self._holds_queue:
            with suppress(UsageError):
                self._queue.enter_context(_exclusive(self._store, QUEUE_LEASE))
                self._holds_queue = True
        return self._holds_queue

    def _change(self, before: Job, after: Job) -> bool:
        """Replace a job unless another process has changed it."""
        is_changed = False

        def change(body: bytes | None) -> bytes | None:
            nonlocal is_changed
            is_changed = body is not None and msgspec.json.decode(body, type=Job) == before
            return encode(plain_keys(after)) if is_changed else None

        self._store.update(_key(before.id), change)
        return is_changed

    def _keys(self) -> Sequence[str]:
        return sorted(key for key in self._store.keys(JOBS) if key.endswith(".json"))

    def _file(self, job: Job, ending: str) -> Path:
        return self._files / "commands" / f"{job.id}.{ending}"

    def _log_start(self, job: Job) -> str:
        with suppress(OSError), self.log_path(job).open("rb") as file:
            return file.read(LOG_BYTES).decode(errors="replace")
        return ""


def store_flags(place: str) -> list[str]:
    """The flags by which a command keeps its runs in a folder, or at s3://BUCKET/PREFIX."""
    if not place.startswith(S3):
        return ["--output-dir", place]
    bucket, _, prefix = place.removeprefix(S3).partition("/")
    return ["--s3-bucket", bucket, *(["--s3-prefix", prefix] if prefix else [])]


def _exclusive(store: ListedStore, key: str) -> AbstractContextManager[None]:
    assert isinstance(store, FolderStore | ListedBucket)  # noqa: S101 -- there are two kinds
    return store.exclusive(key, "Another dashboard of this store starts what waits in the queue.")


def _key(job_id: str) -> str:
    return f"{JOBS}{job_id}.json"


def _start_ticks(pid: int) -> int | None:
    """When a process began, in ticks since its host did; `None` where that is not known."""
    with suppress(OSError, ValueError, IndexError):
        # The second field is a name in parentheses, which may hold spaces.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        # Of one that has ended its parent, maybe another dashboard, has the exit code to note.
        return None if fields[0] == "Z" and fields[1] == "1" else int(fields[19])
    return None
