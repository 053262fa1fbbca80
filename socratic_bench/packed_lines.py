"""Lines that are kept in memory in case they are wanted once more, in little room."""

import zlib
from collections.abc import Iterable

BLOCK_BYTES = 4096
# Of zlib: the quickest, and a window as large as a block, which takes 32 KB while it packs.
LEVEL, WINDOW_BITS, MEMORY_LEVEL = 1, -12, 5


class PackedLines:
    """Lines, each with its end, in their order; packed in blocks, since they are rarely read."""

    def __init__(self, lines: Iterable[bytes] = ()) -> None:
        self._packed: list[bytes] = []
        self._newest = b""
        for line in lines:
            self.append(line)

    def append(self, line: bytes) -> None:
        self._newest += line
        if len(self._newest) >= BLOCK_BYTES:
            packing = zlib.compressobj(LEVEL, zlib.DEFLATED, WINDOW_BITS, MEMORY_LEVEL)
            self._packed.append(packing.compress(self._newest) + packing.flush())
            self._newest = b""

    def joined(self) -> bytes:
        """All of them."""
        unpacked = (zlib.decompress(block, WINDOW_BITS) for block in self._packed)
        return b"".join([*unpacked, self._newest])
