"""Points of Student's distribution: the only place that imports scipy, but not for `t_point`."""

from functools import lru_cache
from math import cos, isnan, pi, sin, sqrt, tan

LEVEL = 0.95
HALVINGS = 40
# The normal distribution's own point, and from how many degrees of freedom on Student's is near it.
Z = 1.959963984540054
NEARLY_NORMAL = 200


def is_available() -> bool:
    """Whether scipy can be imported, which takes a third of a second."""
    try:
        t_share(0.0, 1)
    except ImportError:
        return False
    return True


@lru_cache(maxsize=4096)
def t_point(freedom: int) -> float:
    """How many standard errors reach to each side of a mean at 95 %, by degrees of freedom. It
    needs no scipy: a run tells intervals without the extra, too.

    The finite sums of Abramowitz and Stegun (1972), 26.7.3 and 26.7.4, are solved by bisection; for
    many degrees of freedom the expansion 26.7.5 about the normal point is as exact.
    """
    if freedom > NEARLY_NORMAL:
        return _expanded(freedom)
    low, high = 0.0, pi / 2
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if _within(middle, freedom) < LEVEL else (low, middle)
    return sqrt(freedom) * tan(low)


def _within(angle: float, freedom: int) -> float:
    """The share of Student's distribution within tan(angle) sqrt(freedom) of its middle."""
    odd, square = freedom % 2, cos(angle) ** 2
    if freedom == 1:
        return 2 * angle / pi
    term = total = cos(angle) if odd else 1.0
    for n in range(2 + odd, freedom - 1, 2):
        term *= square * (n - 1) / n
        total += term
    total *= sin(angle)
    return 2 / pi * (angle + total) if odd else total


def _expanded(freedom: int) -> float:
    terms = (
        (Z**3 + Z) / 4,
        (5 * Z**5 + 16 * Z**3 + 3 * Z) / 96,
        (3 * Z**7 + 19 * Z**5 + 17 * Z**3 - 15 * Z) / 384,
        (79 * Z**9 + 776 * Z**7 + 1482 * Z**5 - 1920 * Z**3 - 945 * Z) / 92160,
    )
    return Z + sum(term / float(freedom) ** power for power, term in enumerate(terms, 1))


@lru_cache(maxsize=4096)
def t_centre(share: float, freedom: int) -> float:
    """The centre of the noncentral distribution of which this share lies within `t_point` of 0, to
    both sides.

    Raises `ImportError` without scipy.
    """
    from scipy.special import nctdtr, nctdtrinc  # type: ignore[import-untyped]

    point = t_point(freedom)
    # Its inverse looks at one side only, and is right to a few parts in a million.
    guess = float(nctdtrinc(freedom, share, point))
    low, high = 0.99 * guess, 1.01 * guess
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        below = float(nctdtr(freedom, middle, -point))  # not a number where it is next to nothing
        within = float(nctdtr(freedom, middle, point)) - (0.0 if isnan(below) else below)
        low, high = (middle, high) if within > share else (low, middle)
    return (low + high) / 2


def t_share(t: float, freedom: int) -> float:
    """The share of Student's distribution below `t`. Raises `ImportError` without scipy."""
    from scipy.special import stdtr

    return float(stdtr(freedom, t))
