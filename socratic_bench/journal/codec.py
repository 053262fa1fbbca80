"""Answers as a journal keeps them, without loss: a replayed call is the call that was made."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from typing import Any

import orjson
from msgspec import to_builtins
from msgspec.structs import replace

from socratic_bench.concurrency import decode
from socratic_bench.documents import encode
from socratic_bench.documents.journal import StoredCompletion, StoredMessage
from socratic_bench.documents.plain import entry_keys, plain_keys
from socratic_bench.generation import GenerateConfig
from socratic_bench.redaction import known_secrets
from socratic_bench.types import (
    Completion,
    Request,
)

# The fields of a `GenerateConfig` that are always in the digest, set or not.
_FIRST = (
    "max_tokens",
    "temperature",
    "top_p",
    "service_tier",
    "latency_profile",
    "thinking_budget_tokens",
    "guardrail",
)
# For more at a time the interpreter is let go of, for which the threads of many runs wait.
HASHED_BYTES = 2000


def stored_json(completion: Completion) -> bytes:
    """An answer as it is kept, with known secrets masked."""
    return encode(entry_keys(StoredCompletion.of(completion)))


def completion_of(stored: bytes) -> Completion:
    """The answer that is kept so. Raises `ValueError` for what is none."""
    return decode(stored, StoredCompletion).completion


def request_sha256(request: Request) -> str:
    """The digest of what was asked, with known secrets masked as they are in a journal.

    Settings that may change when a run is resumed are left out: they affect speed and price, not
    the answer.
    """
    config = replace(request.config, service_tier=None, latency_profile=None)
    asked = replace(request, config=config, is_cacheable_prefix=False)
    try:
        # This delays the next request, and has the whole dialogue in it: so it has to be quick.
        written = orjson.dumps(_without_unset(to_builtins(asked), config))
    except TypeError:  # a lone surrogate, or an integer over 64 bits
        messages = tuple(StoredMessage.of(message) for message in asked.messages)
        written = encode(_without_unset(plain_keys(replace(asked, messages=messages)), config))
    if known_secrets().may_be_in(written.decode()):
        # Masked text by text, as answers are.
        written = encode(orjson.loads(written))
    return _hexdigest(written)


def _hexdigest(content: bytes) -> str:
    digest = sha256()
    for at in range(0, len(content), HASHED_BYTES):
        digest.update(content[at : at + HASHED_BYTES])
    return digest.hexdigest()


def _without_unset(asked: dict[str, Any], config: GenerateConfig) -> dict[str, Any]:
    """Without newer fields of the configuration that nobody set: as it was before they came."""
    for name, default in _newer(type(config)):
        if getattr(config, name) == default:
            del asked["config"][name]
    if asked["temperature_if_taken"] is None:
        del asked["temperature_if_taken"]
    return asked


@cache
def _newer(kind: type[GenerateConfig]) -> tuple[tuple[str, Any], ...]:
    """The fields that are newer than the first ones, with their defaults."""
    defaults = zip(kind.__struct_fields__, kind.__struct_defaults__, strict=True)
    return tuple((name, default) for name, default in defaults if name not in _FIRST)
