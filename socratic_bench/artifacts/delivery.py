"""Writes artifacts beside the dialogue and knows, in the end, whether all of them arrived."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from socratic_bench.errors import ArtifactError
from socratic_bench.ports import ArtifactStore

WRITERS = 4

WaitFor = Callable[[Sequence[Future[None]]], object]


@dataclass(frozen=True, slots=True)
class _Parcel:
    store: ArtifactStore
    key: str
    body: bytes


class Delivery:
    """Hands files to every store, in the background; safe to use from several threads."""

    def __init__(self, stores: Sequence[ArtifactStore]) -> None:
        self._stores = tuple(stores)
        self._pool = ThreadPoolExecutor(WRITERS, thread_name_prefix="delivery")
        self._lock = threading.Lock()
        self._pending: dict[Future[None], _Parcel] = {}

    def send(self, key: str, body: bytes) -> None:
        """Start keeping `body` everywhere; returns at once."""
        for store in self._stores:
            self._start(_Parcel(store, key, body))

    def settle(self, wait_for: WaitFor = wait) -> ArtifactError | None:
        """Wait for all that was sent, try once more what failed; an error if some stays missing.

        `wait_for` returns when all it is given is done, or raises what ends the waiting.
        """
        wait_for(self._unsettled())
        for parcel in self._take_failed():
            self._start(parcel)
        wait_for(self._unsettled())
        return self._missing()

    def give_up(self, after_s: float) -> ArtifactError | None:
        """Wait a last moment for what is on its way; an error if something is missing then."""
        wait(self._unsettled(), timeout=after_s)
        return self._missing()

    def conclude(self, key: str, body: bytes, wait_for: WaitFor = wait) -> ArtifactError | None:
        """Keep the file that vouches for all others: the bucket first, and nowhere after a failure.

        A folder seldom fails where a bucket did not, so that all stores tell the same.
        """
        for store in reversed(self._stores):
            self._start(_Parcel(store, key, body))
            if error := self.settle(wait_for):
                return error
        return None

    def close(self) -> None:
        """Give up what has not started."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _start(self, parcel: _Parcel) -> None:
        future = self._pool.submit(parcel.store.put, parcel.key, parcel.body)
        with self._lock:
            self._pending[future] = parcel

    def _unsettled(self) -> list[Future[None]]:
        with self._lock:
            return list(self._pending)

    def _take_failed(self) -> list[_Parcel]:
        with self._lock:
            failed = {f: p for f, p in self._pending.items() if f.exception() is not None}
            for future in failed:
                del self._pending[future]
        return list(failed.values())

    def _missing(self) -> ArtifactError | None:
        with self._lock:
            pending = dict(self._pending)
        late = [p.store.location(p.key) for f, p in pending.items() if not f.done()]
        errors = [f.exception() for f in pending if f.done() and not f.cancelled()]
        failed = [error for error in errors if isinstance(error, ArtifactError)]
        defect = next((e for e in errors if e and not isinstance(e, ArtifactError)), None)
        if defect:
            raise defect
        if not failed and not late:
            return None
        first = failed[0].message if failed else f"{late[0]} was not delivered in time."
        return ArtifactError(
            f"{len(failed) + len(late)} artifacts are missing. {first}",
            hint=failed[0].hint if failed else "Run again, or give the store more time.",
        )
