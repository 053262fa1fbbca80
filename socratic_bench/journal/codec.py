"""Answers as a journal keeps them, without loss: a replayed call is the call that was made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from sys import intern
from typing import Annotated, Any

import orjson
from msgspec import to_builtins
from msgspec.structs import asdict, replace

from socratic_bench.converting import decode
from socratic_bench.documents import encode
from socratic_bench.documents.plain import entry_keys, plain_keys
from socratic_bench.generation import GenerateConfig
from socratic_bench.redaction import known_secrets
from socratic_bench.types import (
    Block,
    Completion,
    Json,
    Message,
    Reasoning,
    Request,
    Text,
    ToolResult,
    ToolUse,
    doc,
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
_REPEATED = ("stop_reason", "provider_stop_reason", "model_id")
TOO_DEEP = "(nested too deeply to be kept)"


class StoredText(Text, frozen=True, tag_field="kind", tag="text"):
    """A block of text."""


class StoredReasoning(Reasoning, frozen=True, tag_field="kind", tag="reasoning"):
    """A block of thought."""


class StoredToolUse(ToolUse, frozen=True, tag_field="kind", tag="tool_use"):
    """A call of a tool."""

    arguments: Annotated[
        str, doc("JSON as the model gave it, infinities and long integers included")
    ]


class StoredToolResult(ToolResult, frozen=True, tag_field="kind", tag="tool_result"):
    """An answer to a call of a tool."""


STORED: Mapping[type[Block], type[Block]] = {
    Text: StoredText,
    Reasoning: StoredReasoning,
    ToolUse: StoredToolUse,
    ToolResult: StoredToolResult,
}
_KINDS = {stored: kind for kind, stored in STORED.items()}


class StoredMessage(Message, frozen=True):
    """A message in blocks that say what they are."""

    content: Annotated[
        tuple[StoredText | StoredReasoning | StoredToolUse | StoredToolResult, ...],
        doc("its blocks, in order"),
    ]

    @classmethod
    def of(cls, message: Message) -> StoredMessage:
        return cls(message.role, tuple(_stored(block) for block in message.content))


class StoredCompletion(Completion, frozen=True, kw_only=True):
    """A model's answer to one call."""

    message: Annotated[StoredMessage, doc("the reply")]

    @classmethod
    def of(cls, completion: Completion) -> StoredCompletion:
        return cls(**{**asdict(completion), "message": StoredMessage.of(completion.message)})

    @property
    def completion(self) -> Completion:
        """The answer as it was made. Raises `ValueError` if a tool's arguments are damaged."""
        blocks = tuple(_block(block) for block in self.message.content)
        values = asdict(self) | {"message": Message(self.message.role, blocks)}
        # The same words in each answer, of which there are many in memory.
        values |= {name: intern(values[name]) for name in _REPEATED if values[name]}
        return Completion(**values)


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


def _stored(block: Block) -> Any:  # noqa: ANN401 -- one of the four
    values = asdict(block)
    if isinstance(block, ToolUse):
        values["arguments"] = _as_text(block.arguments)
    return STORED[type(block)](**values)


def _block(block: Block) -> Block:
    values = asdict(block)
    if isinstance(block, StoredToolUse):
        values["arguments"] = json.loads(block.arguments)
    return _KINDS[type(block)](**values)


def _as_text(arguments: Json) -> str:
    """Whatever a model gave as JSON, also infinities and integers of any length."""
    try:
        return json.dumps(arguments)
    except RecursionError:
        return json.dumps(TOO_DEEP)
