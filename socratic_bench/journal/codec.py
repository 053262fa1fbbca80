"""Answers and requests as a journal has them: answers without loss, requests by their digest."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from typing import Any

import orjson
from msgspec import to_builtins
from msgspec.structs import replace

from socratic_bench.concurrency import decode
from socratic_bench.documents import encode
from socratic_bench.documents.encoding import plain_keys
from socratic_bench.documents.journal import StoredCompletion, StoredMessage
from socratic_bench.generation import GenerateConfig
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


def stored_json(completion: Completion) -> bytes:
    """The JSON of an answer for a journal, with known secrets masked."""
    return encode(plain_keys(StoredCompletion.of(completion)))


def completion_of(stored: bytes) -> Completion:
    """The answer in JSON of `stored_json`. Raises `ValueError` for anything else."""
    return decode(stored, StoredCompletion).completion


def request_sha256(request: Request) -> str:
    """The digest of a request, with known secrets masked as they are in a journal.

    Settings that may change when a run is resumed are left out: they affect speed and price, not
    the answer.
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
    for name, default in _optional_fields(type(config)):
        if getattr(config, name) == default:
            del request["config"][name]
    if request["temperature_if_taken"] is None:
        del request["temperature_if_taken"]
    return request


@cache
def _optional_fields(kind: type[GenerateConfig]) -> tuple[tuple[str, Any], ...]:
    """The fields that are not always in the digest, with their defaults."""
    fields = zip(kind.__struct_fields__, kind.__struct_defaults__, strict=True)
    return tuple((name, default) for name, default in fields if name not in _ALWAYS_IN_DIGEST)
