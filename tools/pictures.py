# ruff: noqa: INP001, PLR2004 - a script, not a package; places in pictures are plain numbers
"""Draws the two pictures of the benchmark golden, with nothing but the standard library.

python tools/pictures.py
"""

import struct
import zlib
from collections.abc import Callable
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "socratic_bench" / "benchmarks" / "golden" / "data"
WIDTH, HEIGHT = 320, 240
WHITE, RED, BLUE, GREEN, YELLOW = "ffffff", "c82828", "2846c8", "289646", "ebbe1e"
BARS = ((RED, 60), (BLUE, 150), (GREEN, 100), (YELLOW, 200))  # colour and height, from the left


def bars(x: int, y: int) -> str:
    place, within = divmod(x - 20, 75)
    colour, height = BARS[place] if 0 <= place < len(BARS) and within < 50 else (WHITE, 0)
    return colour if 220 - height <= y < 220 else WHITE


def shapes(x: int, y: int) -> str:
    """A red disc, a blue square to its right, and a green triangle below both."""
    if (x - 80) ** 2 + (y - 70) ** 2 <= 50**2:
        return RED
    if 190 <= x < 280 and 25 <= y < 115:
        return BLUE
    return GREEN if 140 <= y < 220 and abs(x - 160) <= (y - 140) * 0.7 else WHITE


def png(colour_at: Callable[[int, int], str]) -> bytes:
    rows = ("00" + "".join(colour_at(x, y) for x in range(WIDTH)) for y in range(HEIGHT))
    head = struct.pack("!IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)
    picture = zlib.compress(bytes.fromhex("".join(rows)), 9)
    chunks = ((b"IHDR", head), (b"IDAT", picture), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack("!I", len(data)) + kind + data + struct.pack("!I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


for name, colour_at in (("bars", bars), ("shapes", shapes)):
    (FOLDER / f"{name}.png").write_bytes(png(colour_at))
