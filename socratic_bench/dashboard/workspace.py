"""What all pages share: the store, its jobs, and the state of its sweeps, read no oftener than is
useful.
"""

import asyncio
import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from socratic_bench.dashboard.jobs import Jobs
from socratic_bench.documents.sweep import SweepFile
from socratic_bench.errors import ArtifactError, Naming
from socratic_bench.settings import S3
from socratic_bench.storage.folder import FolderStore
from socratic_bench.storage.keys import index_of
from socratic_bench.storage.stores import ListedStore, Region, store_at
from socratic_bench.studies.places import (
    CURATED,
    RAW,
    SWEEPS,
    begun_sweeps,
    run_ids_begin_with,
    sweep_key,
)
from socratic_bench.studies.sweep.request import SweepRequest
from socratic_bench.studies.sweep.status import JOURNALS, SweepReader, SweepStatus

# How old a page's state may be: a bucket is paid by the request.
FOLDER_POLL_S, BUCKET_POLL_S = 0.6, 8.0
NAMES = "dashboard/names.json"
IDENTITIES = "journal/identities/"
COMMAND_TIMEOUT_S = 900.0


class Command(Struct, frozen=True, kw_only=True):
    """What the dashboard is given by the command that serves it.

    Attributes:
        program: the command without its arguments, which are added to it.
        read_plan: reads a plan file; raises `UsageError` with every mistake.
        call: the flag of a setting, for messages.
    """

    program: Sequence[str]
    read_plan: Callable[[str], SweepRequest]
    call: Naming
    region: Region


class Output(Struct, frozen=True, kw_only=True):
    """What a command has printed: its document, if there is one, and the words for people."""

    exit_code: int
    document: Mapping[str, Any]
    words: str

    @property
    def error(self) -> str:
        """What went wrong, in a sentence."""
        error = self.document.get("error") or {}
        return str(error.get("message") or self.words.strip() or f"exit code {self.exit_code}")


class _Shared:
    """A reader whose state all pages share."""

    def __init__(self, reader: SweepReader) -> None:
        self.reader = reader
        self.lock = asyncio.Lock()
        self.status: SweepStatus | None = None
        self.read_s = 0.0


class Workspace:
    """A store as the dashboard sees it."""

    def __init__(self, place: str, command: Command) -> None:
        """Raises `UsageError` for a bucket that is not there."""
        is_bucket = place.startswith(S3)
        self.place = place.rstrip("/") if is_bucket else str(Path(place).absolute())
        self.command = command
        self.store: ListedStore = store_at(self.place, command.region)
        self.files = _state_folder(self.place) if is_bucket else Path(self.place) / "dashboard"
        self.jobs = Jobs(self.store, self.place, self.files, command.program)
        self.poll_s = BUCKET_POLL_S if is_bucket else FOLDER_POLL_S
        self._shared: dict[str, _Shared] = {}

    async def status(self, sweep_id: str) -> SweepStatus | None:
        """The state of a sweep, at most as old as `poll_s`; `None` if there is none of this id."""
        shared = self._shared.get(sweep_id)
        if shared is None:
            sweep = await asyncio.to_thread(self._find, sweep_id)
            if sweep is None:
                return None
            shared = self._shared.setdefault(sweep_id, _Shared(SweepReader(self.store, sweep)))
        async with shared.lock:
            if shared.status is None or time.monotonic() - shared.read_s > self.poll_s * 0.9:
                shared.status = await asyncio.to_thread(shared.reader.read)
                shared.read_s = time.monotonic()
            return shared.status

    async def sweeps(self) -> list[SweepStatus]:
        """All sweeps, the newest first."""
        begun = await asyncio.to_thread(lambda: [*begun_sweeps(self.store)])
        statuses = [await self.status(sweep.sweep_id) for sweep in begun]
        return [status for status in statuses if status]

    def sweep_place(self, sweep_id: str) -> str:
        """What names a sweep to commands that read runs."""
        return f"{self.place}/sweeps/{sweep_id}"

    def names(self) -> Mapping[str, str]:
        """The names of sweeps: those that people have given them, or of their jobs."""
        names = {job.sweep_id: job.name for job in self.jobs.all() if job.sweep_id}
        try:
            return names | msgspec.json.decode(self.store.get(NAMES) or b"{}", type=dict[str, str])
        except msgspec.DecodeError as error:
            raise ArtifactError(f"{self.store.location(NAMES)} is damaged: {error}") from error

    def rename(self, sweep_id: str, name: str) -> None:
        """Give a sweep a name that people see; an empty one removes it."""

        def change(body: bytes | None) -> bytes:
            names = msgspec.json.decode(body or b"{}", type=dict[str, str])
            changed = {**names, sweep_id: name}
            return msgspec.json.encode({key: text for key, text in changed.items() if text})

        self.store.update(NAMES, change)

    def delete(self, sweep_id: str) -> None:
        """Remove a sweep with its runs, rows and journals. Raises `UsageError` while it is played
        into a folder.
        """
        sweep = self._find(sweep_id)
        if sweep is None:
            return
        runs = run_ids_begin_with(sweep)
        places = [f"{folder}{runs}" for folder in (CURATED, RAW, JOURNALS)]
        places += [index_of(sweep.identity), f"{SWEEPS}{sweep_id}/"]
        with self._exclusive(f"{SWEEPS}{sweep_id}/lock", "The sweep is running: stop it first."):
            keys = [key for place in places for key in self.store.sizes(place)]
            keys += [key for key in self.store.sizes(IDENTITIES) if f"/{runs}" in key]
            for key in keys:
                self.store.remove(key)
        self._shared.pop(sweep_id, None)
        self.rename(sweep_id, "")

    def _exclusive(self, key: str, refusal: str) -> AbstractContextManager[None]:
        """A bucket has no lock of a sweep, but a lease on each run."""
        store = self.store
        return store.exclusive(key, refusal) if isinstance(store, FolderStore) else nullcontext()

    async def run(self, *arguments: str) -> Output:
        """Run a command that reads and writes files, and wait for it."""
        return await asyncio.to_thread(self._run, arguments)

    def _run(self, arguments: Sequence[str]) -> Output:
        try:
            process = subprocess.run(
                [*self.command.program, *arguments],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=COMMAND_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            text = f"{arguments[0]} took more than {COMMAND_TIMEOUT_S:g} s and was ended."
            raise ArtifactError(text) from error
        try:
            document = msgspec.json.decode(process.stdout or b"{}", type=dict[str, Any])
        except msgspec.DecodeError:
            document = {}
        words = process.stderr.decode(errors="replace")
        return Output(exit_code=process.returncode, document=document, words=words)

    def _find(self, sweep_id: str) -> SweepFile | None:
        if "/" in sweep_id or self.store.get(sweep_key(sweep_id)) is None:
            return None
        return next((s for s in begun_sweeps(self.store) if s.sweep_id == sweep_id), None)


def _state_folder(place: str) -> Path:
    """Where this host keeps plan files and logs of a bucket's jobs."""
    root = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return root / "socratic-runner" / sha256(place.encode()).hexdigest()[:16]
