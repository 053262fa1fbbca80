"""Choices that depend on their reasons alone: the same on every machine and Python."""

import hashlib
from collections.abc import Sequence


def draw(*reasons: object) -> int:
    """A large number made of the reasons; evenly spread, and different for other reasons."""
    text = "\x1f".join(map(str, reasons))
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "backslashreplace")).digest()[:8])


def shuffled(items: Sequence[str], *reasons: object) -> tuple[str, ...]:
    order = sorted(range(len(items)), key=lambda i: (draw(*reasons, i), i))
    return tuple(items[i] for i in order)
