"""Calls as plain JSON and back, without loss: a replayed call is the call that was made."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any

import orjson
from msgspec import Struct, to_builtins
from msgspec.structs import replace

from socratic_bench.documents import encode
from socratic_bench.journal.figures import check
from socratic_bench.journal.times import read_moment
from socratic_bench.secrecy import known_secrets
from socratic_bench.types import (
    Attempt,
    Block,
    CallKey,
    Completion,
    Json,
    Message,
    Reasoning,
    Request,
    Text,
    ToolResult,
    ToolUse,
    Usage,
)

BLOCKS: Mapping[str, type[Block]] = {
    "text": Text,
    "reasoning": Reasoning,
    "tool_use": ToolUse,
    "tool_result": ToolResult,
}
TOO_DEEP = "(nested too deeply to be kept)"
_NAMES = {block: name for name, block in BLOCKS.items()}


def request_sha256(request: Request) -> str:
    """The digest of what was asked, with known secrets masked as they are in a journal.

    What may change while a run goes on is left out: it decides how soon and at what price an answer
    comes, and not which.
    """
    config = replace(request.config, service_tier=None, latency_profile=None)
    asked = replace(request, config=config, grows=False)
    try:
        # Between an answer and the next request, with all that was said before: so it is quick.
        written = orjson.dumps(to_builtins(asked))
    except TypeError:  # a lone surrogate, or an integer over 64 bits
        written = encode(_plain(asked))
    if known_secrets().may_be_in(written.decode()):
        # Text by text, as what was answered is masked.
        written = encode(orjson.loads(written))
    return sha256(written).hexdigest()


def write_key(key: CallKey) -> dict[str, Json]:
    return {"role": key.role, "index": key.index, "part": key.part, "repeat": key.repeat}


def read_key(found: Mapping[str, Any]) -> CallKey:
    return CallKey(**_known(CallKey, found))


def write_completion(completion: Completion) -> dict[str, Json]:
    return _plain_fields(completion)


def read_completion(found: Mapping[str, Any]) -> Completion:
    """The reverse of `write_completion`. Raises KeyError, TypeError or ValueError for others, and
    `ImpossibleError` for one with figures that no run writes.
    """
    usage = found["usage"]
    completion = Completion(
        **{
            **_known(Completion, found),
            "message": _read_message(found["message"]),
            "usage": Usage(**_known(Usage, usage)) if usage is not None else None,
            "attempts": read_attempts(found["attempts"]),
            "finished_at": read_moment(found["finished_at"]),
        }
    )
    check(completion)
    if completion.usage:
        check(completion.usage)
    return completion


def write_attempts(attempts: Sequence[Attempt]) -> list[Json]:
    return [_plain(attempt) for attempt in attempts]


def read_attempts(found: Sequence[Mapping[str, Any]]) -> tuple[Attempt, ...]:
    return tuple(map(_read_attempt, found))


def _read_attempt(found: Mapping[str, Any]) -> Attempt:
    attempt = Attempt(
        **{
            **_known(Attempt, found),
            "started_at": read_moment(found["started_at"]),
        }
    )
    check(attempt)
    return attempt


def _read_message(found: Mapping[str, Any]) -> Message:
    return Message(found["role"], tuple(_read_block(block) for block in found["content"]))


def _read_block(found: Mapping[str, Any]) -> Block:
    kind = BLOCKS[found["kind"]]
    values = _known(kind, found)
    if kind is ToolUse:
        values["arguments"] = json.loads(values["arguments"])
    return kind(**values)


def _known(kind: type[Struct], found: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that this version knows: a journal may be of another one."""
    return {name: found[name] for name in kind.__struct_fields__ if name in found}


def _plain(value: Any) -> Json:  # noqa: ANN401 -- any value of a struct
    if isinstance(value, Message):
        return {"role": value.role, "content": [_write_block(block) for block in value.content]}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Struct):
        return _plain_fields(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    plain: Json = value
    return plain


def _write_block(block: Block) -> dict[str, Json]:
    written = {"kind": _NAMES[type(block)], **_plain_fields(block)}
    if isinstance(block, ToolUse):
        written["arguments"] = _as_text(block.arguments)
    return written


def _as_text(arguments: Json) -> str:
    """Whatever a model gave as JSON, also infinities and integers of any length."""
    try:
        return json.dumps(arguments)
    except RecursionError:
        return json.dumps(TOO_DEEP)


def _plain_fields(value: Struct) -> dict[str, Json]:
    own = list(value.__struct_fields__)
    if isinstance(value, ToolUse):
        own.remove("arguments")
    return {name: _plain(getattr(value, name)) for name in own}
