"""What a simulated model reads of a Converse request: who it is, what was said, and when."""

import re
from hashlib import blake2b
from typing import Any, Literal

from msgspec import Struct

from socratic_bench.emulator.model_ids import PROFILE_PREFIXES

JsonObject = dict[str, Any]
Role = Literal["tutor", "student", "judge"]

END_OF_DIALOGUE = "[[end of dialogue]]"
_REPLY_END = re.compile(r"\n</reply-([0-9a-fA-F]{16})>")


class Dialogue(Struct, frozen=True, kw_only=True):
    """A request as its model sees it. `reply` is the tutor's text that a judge is shown."""

    model_id: str
    system: str
    messages: tuple[tuple[str, str], ...]
    role: Role
    reply: str | None

    @property
    def base_id(self) -> str:
        return base_model_id(self.model_id)

    @property
    def user_texts(self) -> list[str]:
        return [text for role, text in self.messages if role == "user"]

    @property
    def own_texts(self) -> list[str]:
        return [text for role, text in self.messages if role == "assistant"]

    @property
    def turn(self) -> int:
        """Counts this model's replies from 0; a judge, too, is at turn 0 with its first one."""
        return sum(role == "user" for role, _ in self.messages) - 1

    def seed(self, salt: str = "") -> int:
        """A number for all that was said and who is asked, and for nothing else of the request.

        Cache points, metadata and sampling fields leave a reply as it is, so that runs compare.
        """
        parts = [salt, self.base_id, self.system]
        parts += [text for message in self.messages for text in message]
        return hashed("\x1f".join(parts))


def hashed(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "replace"), digest_size=8).digest())


def read_dialogue(model_id: str, body: JsonObject) -> Dialogue:
    messages = tuple((m["role"], _text_of(m["content"])) for m in body.get("messages") or ())
    system = "\n".join(block["text"] for block in body.get("system") or () if "text" in block)
    users = [text for role, text in messages if role == "user"]
    reply = shown_reply(users)
    return Dialogue(
        model_id=model_id,
        system=system,
        messages=messages,
        role=_role(system, users, reply),
        reply=reply,
    )


def base_model_id(model_id: str) -> str:
    """The foundation model's id behind an ARN, a profile id, or itself."""
    name = model_id.rpartition("/")[2]
    prefix, _, rest = name.partition(".")
    return rest if prefix in PROFILE_PREFIXES else name


def shown_reply(user_texts: list[str]) -> str | None:
    """The text between the delimiters that a judge is given; `None` if this is no judge's request.

    The last message counts, else the first (a judge asked again after an unreadable verdict).
    A tutor's text may hold delimiters too, but it cannot guess the number, and what encloses it
    ends last.
    """
    for text in (*user_texts[-1:], *user_texts[:1]):
        for match in reversed(list(_REPLY_END.finditer(text)) if "</reply-" in text else ()):
            opening = f"<reply-{match[1]}>\n"
            # One line end may serve both delimiters where the reply is empty.
            start = text.rfind(opening, 0, match.start() + 1)
            if start >= 0:
                return text[start + len(opening) : max(match.start(), start + len(opening))]
    return None


def _text_of(content: list[JsonObject]) -> str:
    if len(content) == 1 and "text" in content[0]:
        return str(content[0]["text"])
    return "\n".join(_block_text(block) for block in content if "cachePoint" not in block)


def _block_text(block: JsonObject) -> str:
    if "text" in block:
        return str(block["text"])
    if "toolResult" in block:
        return "\n".join(str(part.get("text", "")) for part in block["toolResult"]["content"])
    return ""


def _role(system: str, user_texts: list[str], reply: str | None) -> Role:
    if reply is not None:
        return "judge"
    folded = user_texts[0] if user_texts and not system else ""
    return "student" if END_OF_DIALOGUE in system or END_OF_DIALOGUE in folded else "tutor"
