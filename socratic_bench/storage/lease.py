"""The lease on a run in a bucket: one object, written conditionally, that lapses if not renewed.

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
from datetime import UTC, datetime

import orjson
from msgspec import Struct

from socratic_bench.concurrency import convert
from socratic_bench.documents import encode
from socratic_bench.documents.journal import TTL_MAX_S, LeaseFile
from socratic_bench.documents.plain import plain_keys
from socratic_bench.errors import (
    ArtifactError,
    BenchError,
    LeaseLostError,
    StoreOutageError,
    UsageError,
)
from socratic_bench.storage.s3 import Bucket, Notice, Stored

RENEWALS_PER_TTL = 4
RETRIES_PER_RENEWAL = 5
CLOCK_GRAIN_S = 2.0  # LastModified has whole seconds, and so has Date
LAST_WORDS_S = 0.5


class LeaseTerms(Struct, frozen=True, kw_only=True):
    """How a lease is held and waited for.

    Attributes:
        on_lost: hears from another thread that somebody else holds the run now.
        notice: hears why there is waiting.
        sleep: sleeps, or raises what ends the run meanwhile.
        waits: wait for a lease that may be a dead process's; else it is refused at once.
        ttl_s: seconds after which a lease that is not renewed lapses, at most 60.
        poll_s: seconds between two looks at somebody else's lease.
    """

    on_lost: Callable[[BenchError], object]
    notice: Notice
    sleep: Callable[[float], None]
    waits: bool = True
    ttl_s: float = TTL_MAX_S
    poll_s: float = 3.0
    monotonic_s: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        if not 0 < self.ttl_s <= TTL_MAX_S:
            raise ValueError(f"a lease of {self.ttl_s} s, not of at most {TTL_MAX_S:g}")


class _Seen(Struct, frozen=True):
    """A lease as it lies in the bucket; of what is no lease only the ETag is known."""

    etag: str
    age_s: float
    lease: LeaseFile


class Lease:
    """The hold that one process has on one run."""

    def __init__(self, bucket: Bucket, key: str, run_id: str, terms: LeaseTerms) -> None:
        self._bucket = bucket
        self._key = key
        self._run_id = run_id
        self._terms = terms
        self._holder = secrets.token_hex(8)
        self._since = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        self._beats = 0
        self._etag: str | None = None
        self._watched: tuple[_Seen, float] | None = None
        self._ending = threading.Event()
        self._is_lost = False
        self._has_complained = False
        self._thread = threading.Thread(target=self._hold, name="lease", daemon=True)

    def start(self) -> None:
        """Hold a run as soon as S3 takes it; returns at once.

        An existing lease is waited for in another thread; the run is lost if that lease is alive.
        """
        self._thread.start()

    def take(self) -> None:
        """Hold a run that was there before, and wait for a dead process's lease, if asked to.

        Raises `UsageError` naming the owner if it is alive, and `ArtifactError` if S3 does not let
        itself be asked.
        """
        etag = self._put(None)
        while etag is None:
            seen = self._look()
            if seen and seen.lease.holder == self._holder:
                # An earlier try arrived, and only its answer was lost.
                etag = seen.etag
            else:
                etag = self._put(self._outwaited(seen) if seen else None)
        self._etag = etag
        self._thread.start()

    def release(self) -> None:
        """Release the lease. If S3 does not take that within a moment, it lapses by itself."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join(LAST_WORDS_S)

    def is_held(self) -> bool:
        """Whether this process holds the run, as the bucket says now.

        Raises `StoreOutageError` while that is not settled, and `ArtifactError` if S3 cannot be
        asked.
        """
        # Before the look: the run may become this process's while S3 answers for the moment before.
        is_awaited = self._etag is None and not self._is_lost
        seen = self._look()
        if seen and seen.lease.holder == self._holder:
            return True
        if is_awaited:
            raise StoreOutageError(
                f"{self._run_id} is not held yet: a lease of another process has not run out.",
                hint="Run again in a minute.",
            )
        return False

    def lost(self) -> ArtifactError:
        """Tell the run that it has been taken over; the error that says so."""
        self._is_lost = True
        error = LeaseLostError(
            f"Another process holds {self._run_id} now: {self._owner()}.",
            hint="Let the other process end it. Nothing more was written by this one.",
        )
        self._terms.on_lost(error)
        return error

    def _outwaited(self, seen: _Seen) -> str:
        """The ETag of a lease that nobody renews any more."""
        if seen.lease.released:
            return seen.etag
        rest_s = seen.lease.ttl_s + CLOCK_GRAIN_S - seen.age_s
        if rest_s <= 0:
            return seen.etag
        if not self._terms.waits:
            raise self._refusal(seen)
        self._terms.notice(
            f"{self._run_id} is held by {seen.lease.owner}: waiting up to {seen.lease.ttl_s:.0f} s "
            "for a sign of life."
        )
        until_s = self._terms.monotonic_s() + min(rest_s, seen.lease.ttl_s)
        while (left_s := until_s - self._terms.monotonic_s()) > 0:
            self._terms.sleep(min(self._terms.poll_s, left_s))
            now = self._look()
            if now is None or now.lease.released:
                return now.etag if now else seen.etag
            if now.etag != seen.etag:
                raise self._refusal(now)
        return seen.etag

    def _refusal(self, seen: _Seen) -> UsageError:
        return UsageError(
            [f"{self._run_id} is under way: {seen.lease.owner} holds it."],
            hint="Wait for that process to end, or end it, then try again.",
        )

    def _hold(self) -> None:
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
            etag = self._put(self._etag, released=released)
            if etag is None:
                etag = self._own_again(released=released)
        except ArtifactError as error:
            self._say_once(error)
            return False
        self._etag = etag or self._etag
        return self._etag is not None

    def _own_again(self, *, released: bool) -> str | None:
        """The ETag of a renewal whose answer was lost on its way, unless the run is lost.

        A lease that somebody removed is put back, as one that is let go if it is the last beat.
        """
        seen = self._look()
        if seen is None:
            return self._put(None, released=released)
        if seen.lease.holder == self._holder:
            is_done = seen.lease.released or not released
            return seen.etag if is_done else self._put(seen.etag, released=True)
        if self._etag is None and self._has_lapsed(seen):
            return self._put(seen.etag)
        if self._etag is not None:
            self.lost()
        return None

    def _has_lapsed(self, seen: _Seen) -> bool:
        """Whether a lease that was there before is a dead process's; one that changes is alive."""
        now_s = self._terms.monotonic_s()
        first, since_s = self._watched or (seen, now_s)
        if seen.lease.released:
            return True
        if seen.etag != first.etag:
            self.lost()
            return False
        self._watched = first, since_s
        return seen.age_s > seen.lease.ttl_s + CLOCK_GRAIN_S or now_s - since_s > seen.lease.ttl_s

    def _say_once(self, error: ArtifactError) -> None:
        is_passing = isinstance(error, (StoreOutageError, LeaseLostError))
        if not is_passing and not self._has_complained:
            self._has_complained = True
            self._terms.notice(
                f"Others cannot see that this run is under way: {error.message} {error.hint or ''}"
            )

    def _put(self, etag: str | None, *, released: bool = False) -> str | None:
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

    def _look(self) -> _Seen | None:
        stored = self._bucket.get(self._key)
        return _read(stored) if stored else None

    def _owner(self) -> str:
        try:
            seen = self._look()
        except ArtifactError:
            seen = None
        return seen.lease.owner if seen else "its lease is gone"


def _read(stored: Stored) -> _Seen:
    try:
        lease = convert(orjson.loads(stored.body), LeaseFile)
    except ValueError:
        lease = LeaseFile()
    return _Seen(stored.etag, max(0.0, stored.age_s or 0.0), lease)
