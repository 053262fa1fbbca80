"""The lease on a run in a bucket: one object, written conditionally, that expires if not renewed.

No two hosts' clocks are compared. Whether a lease is alive shows by its ETag, which each renewal
changes, over a span of this process's own monotonic time, or by the server's clock alone: its Date
against the object's LastModified.
"""

import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

import orjson
from msgspec import Struct

from socratic_bench.concurrency import convert
from socratic_bench.documents import encode
from socratic_bench.documents.encoding import plain_keys
from socratic_bench.documents.journal import TTL_MAX_S, LeaseFile
from socratic_bench.errors import (
    ArtifactError,
    BenchError,
    InUseError,
    LeaseLostError,
    StoreOutageError,
)
from socratic_bench.storage.s3 import Notice, S3Store

RENEWALS_PER_TTL = 4
RETRIES_PER_RENEWAL = 5
CLOCK_GRAIN_S = 2.0  # LastModified has whole seconds, and so has Date
RELEASE_WAIT_S = 0.5


class LeaseTerms(Struct, frozen=True, kw_only=True):
    """How a lease is held and waited for.

    Attributes:
        on_lost: called from another thread when another process holds the run.
        notice: called with a sentence that says why there is waiting.
        sleep: sleeps, or raises what ends the run meanwhile.
        ttl_s: seconds after which a lease that is not renewed expires, at most 60.
        poll_s: seconds between two reads of another process's lease.
    """

    on_lost: Callable[[BenchError], object]
    notice: Notice
    sleep: Callable[[float], None]
    ttl_s: float = TTL_MAX_S
    poll_s: float = 3.0
    monotonic_s: Callable[[], float] = time.monotonic


class _StoredLease(Struct, frozen=True):
    """A lease as it lies in the bucket; an object that is no lease counts as an empty one."""

    etag: str
    age_s: float
    lease: LeaseFile

    @property
    def remaining_s(self) -> float:
        """Seconds until it has expired by the server's clock, if nobody renews it."""
        return self.lease.ttl_s + CLOCK_GRAIN_S - self.age_s


class Lease:
    """The lease of this process on one run, renewed by a thread of its own."""

    def __init__(self, bucket: S3Store, key: str, run_id: str, terms: LeaseTerms) -> None:
        self._bucket = bucket
        self._key = key
        self._run_id = run_id
        self._terms = terms
        self._holder = secrets.token_hex(8)
        self._since = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        self._beats = 0
        self._etag: str | None = None
        self._first_seen: tuple[_StoredLease, float] | None = None
        self._ending = threading.Event()
        self._is_lost = False
        self._has_noticed = False
        self._thread = threading.Thread(target=self._keep_renewing, name="lease", daemon=True)

    def start(self) -> None:
        """Hold a run as soon as S3 answers; returns at once. Another thread waits for an existing
        lease; the run is lost if that lease is alive.
        """
        self._thread.start()

    def take(self) -> None:
        """Hold a run that was there before, after a dead process's lease has expired. Raises
        `InUseError` naming the owner if it is alive, and `ArtifactError` if S3 fails.
        """
        etag = self._write(None)
        while etag is None:
            current = self._fetch()
            if current and current.lease.holder == self._holder:
                # An earlier try arrived, and only its answer was lost.
                etag = current.etag
            else:
                etag = self._write(self._etag_of_expired(current) if current else None)
        self._etag = etag
        self._thread.start()

    def release(self) -> None:
        """Release the lease. If S3 does not answer within a moment, it expires by itself."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join(RELEASE_WAIT_S)

    def is_held(self) -> bool:
        """Whether this process holds the run, by the bucket's current lease. Raises
        `StoreOutageError` while that is not settled, and `ArtifactError` if S3 fails.
        """
        # First: the run may become this process's while S3 answers for the moment before.
        is_awaited = self._etag is None and not self._is_lost
        current = self._fetch()
        if current and current.lease.holder == self._holder:
            return True
        if is_awaited:
            raise StoreOutageError(
                f"{self._run_id} is not held yet: a lease of another process has not run out.",
                hint="Run again in a minute.",
            )
        return False

    def mark_lost(self) -> ArtifactError:
        """Call `on_lost`; returns the error that says that another process has the run."""
        self._is_lost = True
        owner = "its lease is gone"
        with suppress(ArtifactError):
            if current := self._fetch():
                owner = current.lease.owner
        error = LeaseLostError(
            f"Another process holds {self._run_id} now: {owner}.",
            hint="Let the other process end it. Nothing more was written by this one.",
        )
        self._terms.on_lost(error)
        return error

    def _etag_of_expired(self, current: _StoredLease) -> str:
        """The ETag of a lease, once it has been released or has expired. Raises `InUseError`."""
        if current.lease.released or current.remaining_s <= 0:
            return current.etag
        ttl_s = current.lease.ttl_s
        self._terms.notice(
            f"{self._run_id} is held by {current.lease.owner}: waiting up to {ttl_s:.0f} s for a "
            "sign of life."
        )
        until_s = self._terms.monotonic_s() + min(current.remaining_s, ttl_s)
        while (left_s := until_s - self._terms.monotonic_s()) > 0:
            self._terms.sleep(min(self._terms.poll_s, left_s))
            latest = self._fetch()
            if latest is None or latest.lease.released:
                return latest.etag if latest else current.etag
            if latest.etag != current.etag:
                raise InUseError(
                    [f"{self._run_id} is in progress: {latest.lease.owner} holds it."],
                    hint="Wait for that process to end, or end it, then try again.",
                )
        return current.etag

    def _keep_renewing(self) -> None:
        every_s = self._terms.ttl_s / RENEWALS_PER_TTL
        while not self._is_lost:
            is_renewed = self._renew()
            if self._ending.wait(every_s if is_renewed else every_s / RETRIES_PER_RENEWAL):
                break
        if self._etag is not None and not self._is_lost:
            self._renew(released=True)

    def _renew(self, *, released: bool = False) -> bool:
        """Renew once. A failure is tried again by the next one: only a lost lease ends the run."""
        try:
            etag = self._write(self._etag, released=released)
            if etag is None:
                etag = self._recover_renewal(released=released)
        except ArtifactError as error:
            is_expected = isinstance(error, (StoreOutageError, LeaseLostError))
            if not (is_expected or self._has_noticed):
                self._has_noticed = True
                what = "Others cannot see that this run is in progress"
                self._terms.notice(f"{what}: {error.message} {error.hint or ''}")
            return False
        self._etag = etag or self._etag
        return self._etag is not None

    def _recover_renewal(self, *, released: bool) -> str | None:
        """The ETag after a renewal whose answer was lost; `None` if another process has the run. A
        lease that somebody removed is written again.
        """
        current = self._fetch()
        if current is None:
            return self._write(None, released=released)
        if current.lease.holder == self._holder:
            is_done = current.lease.released or not released
            return current.etag if is_done else self._write(current.etag, released=True)
        if self._etag is None and self._has_expired(current):
            return self._write(current.etag)
        if self._etag is not None:
            self.mark_lost()
        return None

    def _has_expired(self, current: _StoredLease) -> bool:
        """Whether a lease that was there before is a dead process's; it is alive if it changes."""
        now_s = self._terms.monotonic_s()
        first, since_s = self._first_seen or (current, now_s)
        if current.lease.released:
            return True
        if current.etag != first.etag:
            self.mark_lost()
            return False
        self._first_seen = first, since_s
        return current.remaining_s < 0 or now_s - since_s > current.lease.ttl_s

    def _write(self, etag: str | None, *, released: bool = False) -> str | None:
        self._beats += 1
        lease = LeaseFile(
            run_id=self._run_id,
            holder=self._holder,
            host=socket.gethostname(),
            pid=os.getpid(),
            since=self._since,
            ttl_s=self._terms.ttl_s,
            beat=self._beats,
            released=released,
        )
        return self._bucket.put_if(self._key, encode(plain_keys(lease)), etag=etag)

    def _fetch(self) -> _StoredLease | None:
        stored = self._bucket.get(self._key)
        if stored is None:
            return None
        try:
            lease = convert(orjson.loads(stored.body), LeaseFile)
        except ValueError:
            lease = LeaseFile()
        return _StoredLease(stored.etag, max(0.0, stored.age_s or 0.0), lease)
