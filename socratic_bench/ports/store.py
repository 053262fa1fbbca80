"""The interfaces of stores: files by key, and the journal of each run."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import Protocol

from msgspec import Struct

from socratic_bench.types import Json


class StoredObject(Struct, frozen=True, kw_only=True):
    """Length and SHA-256 of what a store keeps under a key."""

    n_bytes: int
    sha256: bytes


class ArtifactStore(Protocol):
    """Keeps files by key. A key is a relative path with "/" between its parts."""

    def check(self) -> None:
        """Raise `UsageError` if it is certain that nothing can be kept here. Creates nothing."""
        ...

    def put(self, key: str, body: bytes) -> None:
        """Store `body` or raise `ArtifactError`; a second put of a key replaces the first."""
        ...

    def missing(self, objects: Mapping[str, StoredObject]) -> Sequence[str] | None:
        """The keys whose object is missing or has changed; a bucket compares lengths alone.

        `None` if access to it is denied. Raises `StoreOutageError` if a later try may succeed, else
        `ArtifactError`.
        """
        ...

    def location(self, key: str) -> str:
        """Where a reader finds the key: a URL or an absolute path."""
        ...


Entry = Mapping[str, Json]


class WrittenEntry(dict[str, Json]):
    """An entry with its JSON, `body`, which is encoded once for all stores."""

    def __init__(self, entry: Entry, body: bytes) -> None:
        super().__init__(entry)
        self.body = body


class Journal(Protocol):
    """The journal of one run, entry by entry; one process at a time holds it."""

    @property
    def entries(self) -> Sequence[Entry]:
        """The entries that were there when the journal was opened, oldest first."""
        ...

    @property
    def repairs(self) -> Sequence[str]:
        """The repairs that reading it took, a sentence each."""
        ...

    @property
    def mended(self) -> Sequence[str]:
        """The entries that others removed and that were written again since, a sentence each."""
        ...

    @property
    def is_kept(self) -> bool:
        """Whether every entry that was appended without an error is stored by now."""
        ...

    def writes(self) -> Sequence[Future[None]]:
        """Writes still under way; each future is done once its entry is stored or given up."""
        ...

    def mend(self) -> None:
        """Write again what others removed or changed, unless the run's delivery does that.

        Raises `ArtifactError` if that fails.
        """
        ...

    def body_of(self, key: str) -> bytes | None:
        """The body that a delivery has under `key`; `None` if that is no entry of this journal."""
        ...

    def append(self, entry: Entry, *, durable: bool = True) -> None:
        """Store an entry: on return it is safe in a folder, and under way to a bucket.

        One that is not `durable` may be lost, unless its `writes` are waited for. Raises
        `ArtifactError` if it is certain that the entry cannot be stored.
        """
        ...

    def close(self) -> None:
        """Release the run, so that another process may resume it."""
        ...


class Journals(Protocol):
    """The journals of one store."""

    def exclusive(self, identity: str) -> AbstractContextManager[None]:
        """A context in which no other process begins or resumes a run of this identity digest, as
        far as the store can prevent it.
        """
        ...

    def newest(self, identity: str) -> Iterator[str]:
        """The ids of runs of this identity digest, the newest first."""
        ...

    def first(self, run_id: str) -> Entry:
        """The first entry of a run's journal, which is not locked.

        Raises `UsageError` if there is no journal.
        """
        ...

    def holds(self, run_id: str) -> bool:
        """Whether the store has a journal of this run."""
        ...

    def create(self, run_id: str, identity: str) -> Journal:
        """A new, empty journal, held by this process."""
        ...

    def open(self, run_id: str) -> Journal:
        """The journal of a run, held by this process from now on.

        Raises `UsageError` if there is none, if another process holds it (naming the owner), or if
        it is no journal.
        """
        ...
