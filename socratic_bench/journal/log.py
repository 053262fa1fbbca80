"""Writes the calls of a run into its journal, as they happen.

Answers are kept without loss, requests by their digest.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from hashlib import sha256
from typing import Any

import orjson
from msgspec import to_builtins
from msgspec.structs import replace

from socratic_bench.concurrency import decode
from socratic_bench.documents import encode
from socratic_bench.documents.encoding import plain_keys
from socratic_bench.documents.journal import (
    EndEntry,
    Noticed,
    StoredCompletion,
    StoredMessage,
    Timed,
)
from socratic_bench.errors import ArtifactError
from socratic_bench.generation import GenerateConfig
from socratic_bench.ports.store import Journal
from socratic_bench.redaction import known_secrets
from socratic_bench.types import Completion, Request

# The fields of a `GenerateConfig` that are always in the digest, set or not. Others are in it only
# if they differ from their defaults, so that a new setting leaves earlier digests as they are.
_ALWAYS_IN_DIGEST = (
    "max_tokens",
    "temperature",
    "top_p",
    "service_tier",
    "latency_profile",
    "thinking_budget_tokens",
    "guardrail",
)


class Log:
    """Adds the entries of this process, each with the seconds since it began.

    If a store fails, `on_failure` is called and may end the run; the answer itself is still used.
    `has_calls` says whether this process has made any call. Safe to use from several threads.
    """

    def __init__(
        self,
        journal: Journal,
        *,
        elapsed_s: Callable[[], float],
        on_failure: Callable[[ArtifactError], None],
    ) -> None:
        self._journal = journal
        self._elapsed_s = elapsed_s
        self._on_failure = on_failure
        self._lock = threading.Lock()
        self._is_open = True
        self.has_calls = False

    def writes(self) -> Sequence[Future[None]]:
        return self._journal.writes()

    def add(self, entry: Timed, *, durable: bool = True) -> None:
        with self._lock:
            if not self._is_open:
                return
            self.has_calls |= not isinstance(entry, Noticed | EndEntry)
            try:
                timed = replace(entry, elapsed_s=round(self._elapsed_s(), 3))
                self._journal.append(plain_keys(timed), durable=durable)
            except ArtifactError as error:
                self._on_failure(error)

    def close(self) -> None:
        """No entry is written after this, even if a call that was given up is answered."""
        with self._lock:
            self._is_open = False
            self._journal.close()


def stored_json(completion: Completion) -> bytes:
    """The JSON of an answer for a journal, with known secrets masked."""
    return encode(plain_keys(StoredCompletion.of(completion)))


def completion_of(stored: bytes) -> Completion:
    """The answer in JSON of `stored_json`. Raises `ValueError` for anything else."""
    return decode(stored, StoredCompletion).completion


def request_sha256(request: Request) -> str:
    """The digest of a request, with known secrets masked as they are in a journal. Settings that
    may change when a run is resumed are left out: they affect speed and price, not the answer.
    """
    config = replace(request.config, service_tier=None, latency_profile=None)
    digested = replace(request, config=config, is_cacheable_prefix=False)
    try:
        body = orjson.dumps(_without_defaults(to_builtins(digested), config))
    except TypeError:  # a lone surrogate, or an integer over 64 bits
        messages = tuple(StoredMessage.of(message) for message in digested.messages)
        body = encode(_without_defaults(plain_keys(replace(digested, messages=messages)), config))
    if known_secrets().may_be_in(body.decode()):
        # Masked text by text, as answers are.
        body = encode(orjson.loads(body))
    return sha256(body).hexdigest()


def _without_defaults(request: dict[str, Any], config: GenerateConfig) -> dict[str, Any]:
    fields = zip(config.__struct_fields__, config.__struct_defaults__, strict=True)
    for name, default in fields:
        if name not in _ALWAYS_IN_DIGEST and getattr(config, name) == default:
            del request["config"][name]
    if request["temperature_if_taken"] is None:
        del request["temperature_if_taken"]
    if not request["tools"]:
        del request["tools"]
    return request
