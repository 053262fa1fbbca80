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


def walk(position: int, sizes: Sequence[int]) -> tuple[int, ...]:
    """One index per list. All combinations come once before any comes again.

    Plainly counting would keep the later lists still for long. So each index also moves on with
    the position within the round of the lists before it, which only renumbers that round.
    """
    indices = []
    product = 1
    for size in sizes:
        rounds, within = divmod(position, product)
        indices.append((rounds + within) % size)
        product *= size
    return tuple(indices)
