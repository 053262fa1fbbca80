"""The calls of an agent in one item, and logs of lines that survive the death of the process."""

import os
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

from socratic_bench.journal.log import request_sha256
from socratic_bench.ports.provider import Model
from socratic_bench.types import CallKey, Completion, Request, Role

ROLE: Role = "model"
DIGEST_CHARACTERS = 16

Entry = TypeVar("Entry", bound=Struct)


class LineLog(Generic[Entry]):
    """Entries in a file, each written through to the disk before `add` returns."""

    def __init__(self, path: Path, kind: type[Entry]) -> None:
        self._path = path
        self._kind = kind

    def read(self) -> Iterator[Entry]:
        """The entries up to the first that was not written whole."""
        if not self._path.exists():
            return
        for line in self._path.read_bytes().splitlines(keepends=True):
            if not line.endswith(b"\n"):
                break
            yield msgspec.json.decode(line, type=self._kind)

    def rewrite(self, entries: Sequence[Entry]) -> None:
        """Keep these entries alone."""
        self._write("wb", entries)

    def add(self, entry: Entry) -> None:
        self._write("ab", (entry,))

    def _write(self, mode: str, entries: Sequence[Entry]) -> None:
        with self._path.open(mode) as file:
            file.writelines(msgspec.json.encode(entry) + b"\n" for entry in entries)
            file.flush()
            os.fsync(file.fileno())


class Conversation:
    """An agent's calls in one item: each is named by its content, so that a resumed or repeated
    agent is answered from the journal as long as it sends the same.
    """

    def __init__(self, model: Model, index: int) -> None:
        self._model = model
        self._index = index
        self._lock = threading.Lock()
        self._n_sent: Counter[str] = Counter()
        self.calls: list[Completion] = []

    def complete(self, request: Request) -> Completion:
        """Answer a request of the agent's. Raises `ModelError` or `Stopped`."""
        part = _digest(request)
        with self._lock:
            repeat = self._n_sent[part]
            self._n_sent[part] += 1
        key = CallKey(role=ROLE, index=self._index, part=part, repeat=repeat)
        completion = self._model.complete(request, key)
        self.calls.append(completion)
        return completion

    def count_earlier(self, attempts: Iterable[Iterable[Request]]) -> None:
        """Count answered calls of earlier attempts that were not made again."""
        for requests in attempts:
            n_seen: Counter[str] = Counter()
            for request in requests:
                part = _digest(request)
                n_seen[part] += 1
                if n_seen[part] > self._n_sent[part]:
                    self.complete(request)

    @property
    def n_tokens(self) -> int:
        """Tokens of all answered calls; those that the service did not count are missing."""
        usages = [call.usage for call in self.calls if call.usage]
        return sum(usage.input_tokens + usage.output_tokens for usage in usages)


def _digest(request: Request) -> str:
    return request_sha256(request)[:DIGEST_CHARACTERS]
