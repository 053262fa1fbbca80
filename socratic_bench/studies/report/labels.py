"""Names in charts: how wide they are, and shorter ones that still differ."""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, product
from math import dist

from msgspec import Struct

from socratic_bench.studies.report.evidence import shown_text

ELLIPSIS = "…"
NEAR = 14.0  # px from a point, up to which its name is seen to be its own
# Widths of characters in Arial at 12 px, in px, a little generously.
_WIDTHS = {**dict.fromkeys("ijl.,:;|!'()[]ftrI ", 4.0), **dict.fromkeys("mwMW@%…", 11.0)}
_USUAL, _UPPER, _WIDE = 6.8, 8.8, 12.5


class Box(Struct, frozen=True):
    """A rectangle in px, from the upper left."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "Box") -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )

    def nearest(self, x: float, y: float) -> tuple[float, float]:
        """The place in it that is nearest to another one."""
        return min(max(x, self.left), self.right), min(max(y, self.top), self.bottom)

    def distance(self, x: float, y: float) -> float:
        return dist(self.nearest(x, y), (x, y))

    def lies_in(self, other: "Box") -> bool:
        return (
            self.left >= other.left
            and self.right <= other.right
            and self.top >= other.top
            and self.bottom <= other.bottom
        )


def width_of(text: str) -> float:
    """About how wide a text is at 12 px, in px: not less than it is."""
    return sum(map(_width, text))


def widest(texts: Iterable[str]) -> float:
    return max(map(width_of, texts), default=0.0)


def _width(sign: str) -> float:
    if sign in _WIDTHS:
        return _WIDTHS[sign]
    if unicodedata.east_asian_width(sign) in "WF" or ord(sign) > 0xFFFF:  # noqa: PLR2004 -- emoji
        return _WIDE
    return _UPPER if sign.isupper() else _USUAL


def shortened(names: Sequence[str], most: float) -> Mapping[str, str]:
    """Each name on one line of at most so many px, its middle left out if it has to be; names that
    would then be alike are numbered. vl-convert's own cut would part a character in two.
    """
    found: dict[str, str] = {}
    for name in dict.fromkeys(names):
        short = _cut(" ".join(shown_text(name).split()), most)
        alike, n = short, 1
        while alike in found.values():
            n += 1
            alike = f"{short} ({n})"
        found[name] = alike
    return found


def _cut(text: str, most: float) -> str:
    if width_of(text) <= most:
        return text
    room = most - width_of(ELLIPSIS)
    # The end tells models of a family apart: their version.
    return f"{_begin(text, room / 2)}{ELLIPSIS}{_begin(text[::-1], room / 2)[::-1]}"


def _begin(text: str, room: float) -> str:
    return text[: sum(end <= room for end in accumulate(map(_width, text)))]


def placed(
    points: Sequence[tuple[float, float]], texts: Sequence[str], lines: Sequence[Box], frame: Box
) -> list[Box]:
    """Where the name of each point stands, in px: near its point and over nothing else, as far as
    there is room; else over few lines, or farther above or below.
    """
    marks = [Box(x - 6, y - 6, x + 6, y + 6) for x, y in points]
    taken: list[Box] = []
    for n, ((x, y), text) in enumerate(zip(points, texts, strict=True)):
        others = [*marks[:n], *marks[n + 1 :], *taken]
        tried = [*_around(x, y, width_of(text), frame)]
        free = [one for one in tried if not any(one.meets(other) for other in others)]
        near = [one for one in free if one.distance(x, y) <= NEAR] or free[:1] or tried[:1]
        taken.append(min(near, key=lambda one: sum(map(one.meets, lines))))
    return taken


def _around(x: float, y: float, width: float, frame: Box) -> Iterable[Box]:
    """Boxes of a text in a frame, those nearest to the point first."""
    gap, line, finely = 9.0, 15.0, 5.0
    found: list[Box] = []
    for step, way in product(range(int((frame.bottom - frame.top) / finely)), (-1, 1)):
        top = y - line / 2 + way * step * finely
        lefts = [x + gap, x - gap - width]
        if step * finely > line:  # above and below the point, and one name farther
            lefts += [x - width / 2, x - 2 * (gap + width), x + 2 * gap + width]
        found += [Box(left, top, left + width, top + line) for left in lefts]
    inside = [one for one in found if one.lies_in(frame)] or found[:1]
    return sorted(inside, key=lambda one: one.distance(x, y))
