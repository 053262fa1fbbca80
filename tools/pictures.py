# ruff: noqa: INP001 - a script, not a package
"""Draws the two pictures of the benchmark golden, with nothing but the standard library.

PYTHONPATH=. python tools/pictures.py
"""

import struct
import zlib
from collections.abc import Callable
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "socratic_bench" / "benchmarks" / "golden" / "data"
WIDTH, HEIGHT = 320, 240
Colour = tuple[int, int, int]
WHITE, RED, BLUE, GREEN, YELLOW, GREY = (
    (255, 255, 255),
    (200, 40, 40),
    (40, 70, 200),
    (40, 150, 70),
    (235, 190, 30),
    (120, 120, 120),
)
BARS = ((RED, 60), (BLUE, 150), (GREEN, 100), (YELLOW, 200))  # colour and height, from the left


def bars(x: int, y: int) -> Colour:
    """Four bars on a line; the yellow one is the tallest, the red one the shortest."""
    if y >= 220:  # noqa: PLR2004 -- the line
        return GREY if y == 220 else WHITE  # noqa: PLR2004
    place, within = divmod(x - 20, 75)
    if 0 <= place < len(BARS) and within < 50:  # noqa: PLR2004
        colour, height = BARS[place]
        return colour if y >= 220 - height else WHITE
    return WHITE


def shapes(x: int, y: int) -> Colour:
    """A red disc, a blue square to its right, and a green triangle below both."""
    if (x - 80) ** 2 + (y - 70) ** 2 <= 50**2:
        return RED
    if 190 <= x < 280 and 25 <= y < 115:  # noqa: PLR2004
        return BLUE
    return GREEN if 140 <= y < 220 and abs(x - 160) <= (y - 140) * 0.7 else WHITE  # noqa: PLR2004


def png(colour_at: Callable[[int, int], Colour]) -> bytes:
    rows = (
        bytes([0, *(part for x in range(WIDTH) for part in colour_at(x, y))]) for y in range(HEIGHT)
    )
    head = struct.pack("!IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(b"".join(rows), 9)), (b"IEND", b""))
    body = b"".join(
        struct.pack("!I", len(data)) + kind + data + struct.pack("!I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + body


def main() -> None:
    for name, colour_at in (("bars", bars), ("shapes", shapes)):
        (FOLDER / f"{name}.png").write_bytes(png(colour_at))


if __name__ == "__main__":
    main()
