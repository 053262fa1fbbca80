"""Writes artifacts to every store in other threads, and knows in the end whether all arrived."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from functools import partial
from typing import Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.concurrency import Workers
from socratic_bench.errors import ArtifactError, Problem, StoreOutageError
from socratic_bench.ports.store import ArtifactStore, StoredObject
from socratic_bench.retrying import RetryPolicy
from socratic_bench.settings import MAX_ATTEMPTS
from socratic_bench.types import plural

MEMORY_BYTES = 256 * 2**20
WRITERS = 4
MAX_NAMES = 5
MISSING_TRIES = 3
OUTAGE_TRIES, OUTAGE_WAIT_MAX_S = 6, 8.0

Result = TypeVar("Result")
WaitFor = Callable[[Sequence[Future[None]]], object]


class BackingStore(ArtifactStore, Protocol):
    """A store that can read what it has, so that the delivery need not keep it in memory."""

    def read(self, key: str) -> bytes:
        """The file under `key`. Raises `ArtifactError`."""
        ...


class UploadPolicy(Struct, frozen=True, kw_only=True):
    """How long writes to a failing store are retried. During the dialogue, without end. After it
    each write gets `tries` more, and all of them are given up once none has arrived for `grace_s`.
    """

    tries: int = MAX_ATTEMPTS
    grace_s: float = 60.0
    monotonic_s: Callable[[], float] = time.monotonic
    retry_policy: RetryPolicy = RetryPolicy()


class Delivery:
    """Writes files to every store, in the background; safe to use from several threads.

    A file that a store does not take is read again from `backing`, if that has it, and else kept in
    memory, up to `memory_bytes`. Beyond that `on_full` is called once, with the reason why the run
    cannot go on.
    """

    def __init__(
        self,
        stores: Sequence[ArtifactStore],
        *,
        backing: BackingStore | None = None,
        policy: UploadPolicy | None = None,
        memory_bytes: int = MEMORY_BYTES,
        on_full: Callable[[ArtifactError], object] = lambda _: None,
    ) -> None:
        self._stores = tuple(stores)
        self._backing = backing
        self._policy = policy or UploadPolicy()
        self._memory_bytes = memory_bytes
        self._on_full = on_full
        self._lock = threading.Lock()
        self._queues: dict[int, UploadQueue] = {}
        self.waiting_bytes = 0  # of files that wait in memory, and are in no store yet
        self._pending: dict[Future[None], Upload] = {}
        self._refused: list[Upload] = []

    @property
    def has_stores(self) -> bool:
        """Whether there is any store to write to."""
        return bool(self._stores)

    @property
    def kept(self) -> dict[str, StoredObject]:
        """What a store has taken, by key; the stores agree once all is settled."""
        return {key: stored for queue in self._all_queues() for key, stored in queue.kept.items()}

    def send(self, key: str, body: bytes) -> None:
        """Start writing `body` to every store; returns at once."""
        uploads = [self._upload(store, key, body) for store in self._stores]
        for upload in uploads:
            siblings = [sibling for sibling in uploads if sibling is not upload]
            self._start(upload, siblings if upload.store is self._backing else [])

    def send_to(self, store: ArtifactStore, key: str, body: bytes) -> Future[None] | None:
        """Start writing `body` to one store, be it one of the run's or another; returns at once.
        The future is done once the store has it; `None` if there is no room to wait.
        """
        return self._start(self._upload(store, key, body))

    def settle(self, wait_for: WaitFor = wait) -> ArtifactError | None:
        """Wait for all files, try once more what failed; an error if a file stays missing.
        `wait_for` returns when all of its futures are done, or raises what ends the waiting.
        """
        self._settle_queues()
        wait_for(self._unsettled())
        with self._lock:  # writes that an outage ended have been retried already
            failed = {
                future: upload
                for future, upload in self._pending.items()
                if future.exception() is not None and not is_outage(upload.error)
            }
            for future in failed:
                del self._pending[future]
        for upload in failed.values():
            self._start(upload)
        wait_for(self._unsettled())
        return self._missing()

    def give_up(self, after_s: float) -> ArtifactError | None:
        """Wait a last moment for pending writes; returns an error if a file is missing then."""
        self._settle_queues()
        wait(self._unsettled(), timeout=after_s)
        return self._missing()

    def verify(
        self, body_of: Callable[[str], bytes | None], notice: Callable[[str], object]
    ) -> ArtifactError | None:
        """Check that every store still has all files, and send again what it lacks.

        Returns an error if a file stays missing, or a store fails to answer. `notice` gets a
        sentence about what was sent again, and about each store that does not allow to check.
        """
        try:
            lost = self._lost(notice)
            if not lost:
                return None
            notice(f"{_lost_message(lost)} What can be restored is written again.")
            for store, key in lost:
                if (body := body_of(key)) is not None:
                    self._start(self._upload(store, key, body))
            error = self.settle()
            lost = [] if error else self._lost(notice)
        except ArtifactError as failure:
            return failure
        if not lost:
            return error
        hint = "Leave the artifacts of a run alone while it is in progress."
        return ArtifactError(_lost_message(lost), hint=hint)

    def _lost(self, notice: Callable[[str], object]) -> list[tuple[ArtifactStore, str]]:
        """Store and key of each file that a store took and no longer has."""
        lost: list[tuple[ArtifactStore, str]] = []
        errors: list[ArtifactError] = []
        for queue in self._all_queues():
            try:
                missing = queue.missing()
            except ArtifactError as error:
                # Ask every store even after a failure, to know more about each.
                errors.append(error)
                continue
            if missing is None:
                notice(
                    f"Whether {queue.store.location('')} still has all that was written there "
                    "could not be told: neither a list (s3:ListBucket) nor HEAD (s3:GetObject) "
                    "says so."
                )
            lost += [(queue.store, key) for key in missing or ()]
        if errors:
            raise errors[0]
        return lost

    def conclude(self, key: str, body: bytes, wait_for: WaitFor = wait) -> ArtifactError | None:
        """Write the file that says that all others are there: to the bucket first, and nowhere
        after a failure. A folder seldom fails after that, so that all stores agree.
        """
        for store in reversed(self._stores):
            self._start(self._upload(store, key, body))
            if error := self.settle(wait_for):
                return error
        return None

    def close(self) -> None:
        """Give up what has not arrived."""
        for queue in self._all_queues():
            queue.close()

    def _all_queues(self) -> list[UploadQueue]:
        with self._lock:
            return list(self._queues.values())

    def _settle_queues(self) -> None:
        for queue in self._all_queues():
            queue.settle()

    def _upload(self, store: ArtifactStore, key: str, body: bytes) -> Upload:
        upload = Upload(store, key, body, self._backing.read if self._backing else None)
        with self._lock:
            is_full = self.waiting_bytes + len(body) > self._memory_bytes
            is_refused = is_full and store is not self._backing
            is_first = is_refused and not self._refused
            if is_refused:
                self._refused.append(upload)
                upload.drop_body()
            else:
                self.waiting_bytes += len(body)
        if is_first:
            self._on_full(
                ArtifactError(
                    f"Over {self._memory_bytes // 2**20} MiB wait for {store.location('')}, which "
                    "does not take them.",
                    hint=Problem.of("Give {output_dir}, too, where artifacts can wait."),
                )
            )
        return upload

    def _start(self, upload: Upload, siblings: Sequence[Upload] = ()) -> Future[None] | None:
        """Write an upload; once it has arrived, its body and those of `siblings` leave memory."""
        with self._lock:
            if upload in self._refused:
                return None
            store = upload.store
            if id(store) not in self._queues:
                self._queues[id(store)] = UploadQueue(store, self._policy)
            queue = self._queues[id(store)]
            future = queue.submit(upload, then=lambda: self._release(upload, *siblings))
            self._pending[future] = upload
        future.add_done_callback(self._forget_arrived)
        return future

    def _forget_arrived(self, future: Future[None]) -> None:
        if not future.cancelled() and future.exception() is None:
            with self._lock:
                self._pending.pop(future, None)

    def _release(self, *uploads: Upload) -> None:
        with self._lock:
            self.waiting_bytes -= sum(upload.drop_body() for upload in uploads)

    def _unsettled(self) -> list[Future[None]]:
        with self._lock:
            return list(self._pending)

    def _missing(self) -> ArtifactError | None:
        with self._lock:
            pending = dict(self._pending)
            missing = list(self._refused)
        for future, upload in pending.items():
            error = future.exception() if future.done() and not future.cancelled() else None
            if error and not isinstance(error, ArtifactError):
                raise error
            if error or not future.done():
                missing.append(upload)
        return _missing_error(missing) if missing else None


class Upload:
    """One file on its way to one store. A dropped body is read again when it is sent."""

    def __init__(
        self, store: ArtifactStore, key: str, body: bytes, reread: Callable[[str], bytes] | None
    ) -> None:
        self.store = store
        self.key = key
        self.error: ArtifactError | None = None
        self.late_tries = 0
        self._body: bytes | None = body
        self.sha256 = hashlib.sha256(body).digest()
        self._reread = reread

    @property
    def body(self) -> bytes:
        """The file's bytes. Raises `ArtifactError` if they are not any more what was sent."""
        body = self._body
        if body is not None:
            return body
        body = self._reread(self.key) if self._reread else b""
        if hashlib.sha256(body).digest() != self.sha256:
            raise ArtifactError(
                f"{self.store.location(self.key)} was not written: the file in the output folder "
                "was changed meanwhile.",
                hint="Leave the output folder of a run alone while it is in progress.",
            )
        return body

    def drop_body(self) -> int:
        """Drop the body from memory; returns the bytes that this frees."""
        n_bytes = len(self._body or b"")
        self._body = None
        return n_bytes


class UploadQueue:
    """The writes of one store. A store that hangs does not delay another one."""

    def __init__(self, store: ArtifactStore, policy: UploadPolicy) -> None:
        self.store = store
        self._policy = policy
        self._workers = Workers(WRITERS)
        self._settling = threading.Event()
        self._closed = threading.Event()
        # When the final wait began, or the store last took something.
        self._since_s = 0.0
        self._outage: StoreOutageError | None = None
        self.kept: dict[str, StoredObject] = {}

    def submit(self, upload: Upload, then: Callable[[], None]) -> Future[None]:
        """Write a file, and call `then` once the store has it."""
        return self._workers.submit(partial(self._deliver, upload, then))

    def settle(self) -> None:
        """From now on the policy's bounds hold; writers that sleep try at once."""
        self._since_s = self._policy.monotonic_s()
        self._settling.set()

    def missing(self) -> Sequence[str] | None:
        """The keys that the store took and no longer has; `None` if it does not allow to check.
        Raises `ArtifactError` if the store fails to answer.
        """
        policy = replace(self._policy.retry_policy, max_attempts=MISSING_TRIES)
        request = partial(self.store.missing, self.kept)
        return policy.call(request, passes=is_outage, sleep=self._sleep)

    def close(self) -> None:
        self._closed.set()
        self._settling.set()
        self._workers.close()

    def _deliver(self, upload: Upload, then: Callable[[], None]) -> None:
        upload.late_tries = 0
        self._policy.retry_policy.call(
            partial(self._try, upload),
            passes=is_outage,
            sleep=self._sleep,
            is_enough=partial(self._is_enough, upload),
        )
        then()

    def _try(self, upload: Upload) -> None:
        if self._outage and self._is_out_of_time():
            # Other writes have failed already: each need not wait in vain by itself.
            upload.error = upload.error or self._outage
            raise upload.error
        upload.late_tries += self._settling.is_set()
        try:
            body = upload.body
            self.store.put(upload.key, body)
        except ArtifactError as error:
            upload.error = error
            if isinstance(error, StoreOutageError):
                self._outage = error
            raise
        self.kept[upload.key] = StoredObject(n_bytes=len(body), sha256=upload.sha256)
        upload.error = self._outage = None
        self._since_s = self._policy.monotonic_s()

    def _is_enough(self, upload: Upload) -> bool:
        has_no_tries_left = upload.late_tries >= self._policy.tries
        return self._closed.is_set() or has_no_tries_left or self._is_out_of_time()

    def _is_out_of_time(self) -> bool:
        if not self._settling.is_set():
            return False
        waited_s = self._policy.monotonic_s() - self._since_s
        return self._closed.is_set() or waited_s > self._policy.grace_s

    def _sleep(self, seconds: float) -> None:
        (self._closed if self._settling.is_set() else self._settling).wait(seconds)


def is_outage(error: BaseException | None) -> bool:
    """Whether the store may answer a later try."""
    return isinstance(error, StoreOutageError)


def with_retries(request: Callable[[], Result], sleep: Callable[[float], None]) -> Result:
    """The answer of a store, after a short outage has passed. Raises `ArtifactError`."""
    policy = RetryPolicy(max_attempts=OUTAGE_TRIES, wait_max_s=OUTAGE_WAIT_MAX_S)
    return policy.call(request, passes=is_outage, sleep=sleep)


def _missing_error(missing: Sequence[Upload]) -> ArtifactError:
    """How many files are missing, why the first one is, and where the next ones belong."""
    first = next((upload for upload in missing if upload.error), missing[0])
    further = [(upload.store, upload.key) for upload in missing if upload is not first]
    error = first.error or ArtifactError(
        f"{first.store.location(first.key)} was not delivered in time.",
        hint="Run again, or give the store more time.",
    )
    message = f"{plural(len(missing), 'artifact is', 'artifacts are')} missing. {error.message}"
    missing_error = ArtifactError(
        f"{message} Missing, too: {_locations(further)}." if further else message
    )
    missing_error.hints = error.hints
    return missing_error


def _lost_message(lost: Sequence[tuple[ArtifactStore, str]]) -> str:
    n_lost = plural(len(lost), "artifact was", "artifacts were")
    return f"{n_lost} removed or changed by others: {_locations(lost)}."


def _locations(files: Sequence[tuple[ArtifactStore, str]]) -> str:
    """The locations of the first few files, for a sentence."""
    n_more = len(files) - MAX_NAMES
    names = ", ".join(store.location(key) for store, key in files[:MAX_NAMES])
    return f"{names} and {n_more} more" if n_more > 0 else names
