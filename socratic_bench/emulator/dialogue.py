"""A Converse request as a simulated model reads it: roles, texts, turn, and tokens."""

import json
import re
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from msgspec import Struct

from socratic_bench.emulator.models import Role, role_of

JsonObject = dict[str, Any]

# Tokens are counted by a rough rule, the same for every call: characters a token, tokens of a block
# beside its text, and tokens of an image or a document.
CHARACTERS = 4
_BLOCK = 3
_MEDIA = 1000
_AS_JSON = {"toolUse", "toolResult", "toolSpec", "reasoningContent"}
# What an inference profile's id has before its model's own.
PROFILE_PREFIXES = frozenset(
    ("af", "apac", "au", "ca", "eu", "global", "il", "in", "jp", "me", "mx", "sa", "us", "us-gov")
)
_SHOWN_END = re.compile(r"\n</(reply|record)-([0-9a-fA-F]{16})>")


class Record(Struct, frozen=True):
    """A whole dialogue as a judge is shown it, in marks with a code, and what is asked about it."""

    question: str
    text: str
    code: str


class Dialogue(Struct, frozen=True, kw_only=True):
    """A request as its model sees it; a judge is shown a `reply` or a `record` of a dialogue."""

    model_id: str
    system: str
    messages: tuple[tuple[str, str], ...]
    role: Role
    reply: str | None
    record: Record | None = None

    @property
    def base_id(self) -> str:
        return base_model_id(self.model_id)

    @property
    def user_texts(self) -> list[str]:
        return [text for role, text in self.messages if role == "user"]

    @property
    def latest(self) -> str:
        """The last words of the other side; empty if there are none."""
        return next((text for role, text in reversed(self.messages) if role == "user"), "")

    @property
    def own_texts(self) -> list[str]:
        return [text for role, text in self.messages if role == "assistant"]

    @property
    def turn(self) -> int:
        """Counts this model's replies from 0; a judge, too, is at turn 0 with its first one."""
        return sum(role == "user" for role, _ in self.messages) - 1

    def seed(self, salt: str = "") -> int:
        """A number for what was said and who is asked, whatever else the request has."""
        parts = [salt, self.base_id, self.system]
        parts += [text for message in self.messages for text in message]
        return hashed("\x1f".join(parts))


def hashed(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "replace"), digest_size=8).digest())


def read_dialogue(model_id: str, body: JsonObject) -> Dialogue:
    messages = tuple((m["role"], _text_of(m["content"])) for m in body.get("messages") or ())
    system = "\n".join(block["text"] for block in body.get("system") or () if "text" in block)
    users = [text for role, text in messages if role == "user"]
    judged = _text_to_judge(users)
    reply = judged if isinstance(judged, str) else None
    return Dialogue(
        model_id=model_id,
        system=system,
        messages=messages,
        role=role_of(system, users, is_judge=judged is not None),
        reply=reply,
        record=judged if isinstance(judged, Record) else None,
    )


def base_model_id(model_id: str) -> str:
    """The foundation model's id behind an ARN, a profile id, or itself."""
    name = model_id.rpartition("/")[2]
    prefix, _, name_after_prefix = name.partition(".")
    return name_after_prefix if prefix in PROFILE_PREFIXES else name


def _text_to_judge(user_texts: list[str]) -> str | Record | None:
    """What stands between the delimiters that a judge is given; `None` if this is no judge's
    request.

    The last message counts, else the first (a judge asked again after an unreadable verdict).
    That text may hold delimiters too, but it cannot guess the number, and what encloses it
    ends last.
    """
    for text in (*user_texts[-1:], *user_texts[:1]):
        for match in reversed(list(_SHOWN_END.finditer(text)) if "</re" in text else ()):
            kind, code = match.groups()
            opening = f"<{kind}-{code}>\n"
            # One line end may serve both delimiters where the reply is empty.
            start = text.rfind(opening, 0, match.start() + 1)
            if start >= 0:
                enclosed = text[start + len(opening) : max(match.start(), start + len(opening))]
                return enclosed if kind == "reply" else Record(text[:start], enclosed, code)
    return None


def read_context(user_texts: list[str]) -> tuple[tuple[str, str], ...]:
    """What was said before the reply that a judge is shown, by the name of who said it."""
    for text in (*user_texts[-1:], *user_texts[:1]):
        for match in reversed(list(_SHOWN_END.finditer(text))):
            code = match[2]
            _, opening, after_opening = text.partition(f"<context-{code}>\n")
            exchanges, closing, _ = after_opening.partition(f"\n</context-{code}>")
            if opening and closing:
                parts = re.split(rf"(?:^|\n\n)\[([^\]\n]+)-{code}\]\n", exchanges)
                return tuple(zip(parts[1::2], parts[2::2], strict=True))
    return ()


def _text_of(content: list[JsonObject]) -> str:
    return "\n".join(_block_text(block) for block in content if "cachePoint" not in block)


def _block_text(block: JsonObject) -> str:
    if "text" in block:
        return str(block["text"])
    if "toolResult" in block:
        return "\n".join(str(part.get("text", "")) for part in block["toolResult"]["content"])
    return ""


def text_tokens(text: str) -> int:
    return (len(text) + CHARACTERS - 1) // CHARACTERS


def block_tokens(block: JsonObject) -> int:
    """Tokens of a content, system or tool block; a cache point has none."""
    if "text" in block:
        return text_tokens(block["text"]) + _BLOCK
    if "cachePoint" in block:
        return 0
    if block.keys() & _AS_JSON:
        return text_tokens(json.dumps(block, separators=(",", ":"))) + _BLOCK
    return _MEDIA


def input_tokens(body: JsonObject) -> int:
    blocks = [*(body.get("toolConfig") or {}).get("tools", ()), *(body.get("system") or ())]
    total = sum(map(block_tokens, blocks))
    for message in body.get("messages") or ():
        total += sum(map(block_tokens, message["content"]))
    return total


def output_tokens(content: Sequence[JsonObject]) -> int:
    """What a reply is billed for: at least one, also for an empty text."""
    return max(1, sum(block_tokens(block) - _BLOCK for block in content))
