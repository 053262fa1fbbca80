"""The journals of one run in several stores as one."""

from collections.abc import Sequence
from concurrent.futures import Future

import orjson

from socratic_bench.documents import encode
from socratic_bench.errors import ArtifactError
from socratic_bench.ports.store import Entry, Journal, WrittenEntry


class ReplicatedJournal:
    """See `Journal`: those of one run in several stores as one. A store that lags catches up."""

    def __init__(self, journals: Sequence[Journal], entries: Sequence[Entry] = ()) -> None:
        self._journals = tuple(journals)
        self._has_failed = False
        entries_by_text = distinct(
            [*entries, *(entry for journal in journals for entry in journal.entries)]
        )
        self.was_there = bool(entries_by_text)
        self._lines = [encode(dict(entry)) for entry in entries_by_text.values()]
        self.repairs = tuple(repair for journal in journals for repair in journal.repairs)
        self.lagged = False
        for journal in journals:
            stored = distinct(journal.entries)
            missing = [entry for text, entry in entries_by_text.items() if text not in stored]
            self.lagged = self.lagged or bool(missing)
            for entry in missing:
                journal.append(entry)

    @property
    def entries(self) -> Sequence[Entry]:
        """All of them, oldest first, as they would be read from a store."""
        return [orjson.loads(line) for line in self._lines]

    def append(self, entry: Entry, *, durable: bool = True) -> None:
        """Keep an entry in memory, then in every store. Raises `ArtifactError` if a store fails."""
        written = WrittenEntry(entry, encode(dict(entry)))
        self._lines.append(written.body)
        for journal in self._journals:
            try:
                journal.append(written, durable=durable)
            except ArtifactError:
                self._has_failed = True
                raise

    def writes(self) -> Sequence[Future[None]]:
        return [write for journal in self._journals for write in journal.writes()]

    def mend(self) -> None:
        for journal in self._journals:
            journal.mend()

    @property
    def mended(self) -> Sequence[str]:
        return [message for journal in self._journals for message in journal.mended]

    def body_of(self, key: str) -> bytes | None:
        bodies = (journal.body_of(key) for journal in self._journals)
        return next((body for body in bodies if body is not None), None)

    @property
    def is_kept(self) -> bool:
        """Whether there is a store that holds every entry."""
        return not self._has_failed and any(journal.is_kept for journal in self._journals)

    def close(self) -> None:
        for journal in self._journals:
            journal.close()


def distinct(entries: Sequence[Entry]) -> dict[bytes, Entry]:
    """Each entry once, in order, by its text."""
    return {encode(dict(sorted(entry.items()))): entry for entry in entries}
