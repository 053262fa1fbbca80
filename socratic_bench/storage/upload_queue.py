"""What waits for one store: its writers, and how long they try."""

import hashlib
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.errors import ArtifactError, StoreOutageError
from socratic_bench.retrying import RetryPolicy
from socratic_bench.settings import MAX_ATTEMPTS
from socratic_bench.store_ports import ArtifactStore, StoredObject
from socratic_bench.threads import RequestThreads, Workers

WRITERS = 4
LOOKS = 3
OUTAGE_TRIES, OUTAGE_WAIT_MAX_S = 6, 8.0

Result = TypeVar("Result")


class UploadPolicy(Struct, frozen=True, kw_only=True):
    """How long writes to a failing store are retried.

    While the dialogue goes on, without end. After it each write gets `tries` more, and all of them
    are given up once none has arrived for `grace_s`.
    """

    tries: int = MAX_ATTEMPTS
    grace_s: float = 60.0
    monotonic_s: Callable[[], float] = time.monotonic
    retry_policy: RetryPolicy = RetryPolicy()


def is_outage(error: BaseException) -> bool:
    """Whether the store may be back for another try."""
    return isinstance(error, StoreOutageError)


def with_retries(ask: Callable[[], Result], sleep: Callable[[float], None]) -> Result:
    """What a store answers, a short outage waited out. Raises `ArtifactError`."""
    policy = RetryPolicy(max_attempts=OUTAGE_TRIES, wait_max_s=OUTAGE_WAIT_MAX_S)
    return policy.call(ask, passes=is_outage, sleep=sleep)


class Upload:
    """One file on its way to one store; what has been let go is read again when it is sent."""

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
    def was_outage(self) -> bool:
        return isinstance(self.error, StoreOutageError)

    @property
    def body(self) -> bytes:
        """The file's bytes. Raises `ArtifactError` if they are not any more what was sent."""
        body = self._body
        if body is not None:
            return body
        read = self._reread(self.key) if self._reread else b""
        if hashlib.sha256(read).digest() != self.sha256:
            raise ArtifactError(
                f"{self.store.location(self.key)} was not written: the file in the output folder "
                "was changed meanwhile.",
                hint="Leave the output folder of a run alone while it is under way.",
            )
        return read

    def let_go(self) -> int:
        """Drop the body from memory; how many bytes that frees."""
        freed = len(self._body or b"")
        self._body = None
        return freed


class UploadQueue:
    """The writers of one store. A store that hangs does not delay another one; nobody waits for
    one that `is_quick`, as a folder is, for longer than for a thread.
    """

    def __init__(
        self,
        store: ArtifactStore,
        policy: UploadPolicy,
        threads: RequestThreads,
        *,
        is_quick: bool = False,
    ) -> None:
        self.store = store
        self._policy = policy
        self._pool = Workers(threads, WRITERS, is_brief=is_quick)
        self._settling = threading.Event()
        self._closed = threading.Event()
        # Since the final wait began, or the store last took something.
        self._since_s = 0.0
        self._outage: StoreOutageError | None = None
        self._kept: dict[str, StoredObject] = {}

    def submit(self, upload: Upload, then: Callable[[], None]) -> Future[None]:
        """Deliver, and call `then` once the store has it."""
        return self._pool.submit(partial(self._deliver, upload, then))

    def settle(self) -> None:
        """From now on the policy's bounds hold; writers that sleep try at once."""
        self._since_s = self._policy.monotonic_s()
        self._settling.set()

    def missing(self) -> Sequence[str] | None:
        """What the store took and no longer has; `None` if it is not allowed to ask.

        Raises `ArtifactError` if the store fails to tell.
        """
        policy = replace(self._policy.retry_policy, max_attempts=LOOKS)
        look = partial(self.store.missing, self._kept)
        return policy.call(look, passes=is_outage, sleep=self._sleep)

    def close(self) -> None:
        self._closed.set()
        self._settling.set()
        self._pool.close()

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
            # Other writes have failed already: each need not wait in vain on its own.
            upload.error = upload.error or self._outage
            raise upload.error
        upload.late_tries += self._settling.is_set()
        try:
            self._put(upload)
        except ArtifactError as error:
            upload.error = error
            if isinstance(error, StoreOutageError):
                self._outage = error
            raise

    def _put(self, upload: Upload) -> None:
        """Have the store take it, and note that it did."""
        body = upload.body
        self.store.put(upload.key, body)
        self._kept[upload.key] = StoredObject(n_bytes=len(body), sha256=upload.sha256)
        upload.error = self._outage = None
        self._since_s = self._policy.monotonic_s()

    def _is_enough(self, upload: Upload) -> bool:
        is_tried_out = upload.late_tries >= self._policy.tries
        return self._closed.is_set() or is_tried_out or self._is_out_of_time()

    def _is_out_of_time(self) -> bool:
        if not self._settling.is_set():
            return False
        waited_s = self._policy.monotonic_s() - self._since_s
        return self._closed.is_set() or waited_s > self._policy.grace_s

    def _sleep(self, seconds: float) -> None:
        (self._closed if self._settling.is_set() else self._settling).wait(seconds)
