"""Colours of charts by name: the name of a CSS class in a page, a fixed colour elsewhere.

In a specification each has a colour of its own that nothing else has, so that a drawing shows
which was meant. Those of series are after Okabe and Ito (2008), which the colour-blind tell apart,
darkened for contrast; series have shapes and names, too.
"""

from collections.abc import Mapping

INK, MUTED, GRID, PAPER = "ink", "muted", "grid", "paper"
SERIES = tuple(f"c{n}" for n in range(8))
SHAPES = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "cross",
    "triangle-down",
    "triangle-right",
    "triangle-left",
)
STEPS = tuple(f"h{n}" for n in range(7))
# Of the shades of a whole's parts, those that need light words: see `cell_charts.shares`.
DARK_STEPS = frozenset((0,))

# On paper, as in a page in light colours.
LIGHT: Mapping[str, str] = {
    INK: "#1b1f24",
    MUTED: "#57606a",
    GRID: "#d8dee4",
    PAPER: "#ffffff",
    **dict(
        zip(
            SERIES,
            (
                *("#0072b2", "#b34700", "#007a5a", "#9b4f7e", "#8a6d00", "#2f7fb0"),
                *("#57606a", "#000000"),
            ),
            strict=True,
        )
    ),
    **dict(
        zip(
            STEPS,
            (*("#eef4f9", "#d6e4f0", "#b8d1e6", "#94bad9", "#6ea3cb", "#2f75ab"), "#174f7d"),
            strict=True,
        )
    ),
}
# The colour that stands for each in a specification.
NAMED: Mapping[str, str] = {name: f"#0000{n + 16:02x}" for n, name in enumerate(LIGHT)}


def colour(name: str) -> str:
    """What stands for a colour in a specification."""
    return NAMED[name]


def series(n: int) -> str:
    return colour(SERIES[n % len(SERIES)])


def shape(n: int) -> str:
    return SHAPES[n % len(SHAPES)]
