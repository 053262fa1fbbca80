"""Points of Student's distribution: the only place that imports scipy."""

from functools import lru_cache

LEVEL = 0.95


def is_available() -> bool:
    """Whether scipy can be imported, which takes a third of a second."""
    try:
        t_point(1)
    except ImportError:
        return False
    return True


@lru_cache(maxsize=4096)
def t_point(freedom: int) -> float:
    """How many standard errors reach to each side of a mean at 95 %, by degrees of freedom.

    Raises `ImportError` without scipy.
    """
    from scipy.special import stdtrit  # type: ignore[import-untyped]

    return float(stdtrit(freedom, (1 + LEVEL) / 2))


@lru_cache(maxsize=4096)
def t_centre(share: float, freedom: int) -> float:
    """The centre of the noncentral distribution of which this share lies below `t_point`.

    Raises `ImportError` without scipy.
    """
    from scipy.special import nctdtrinc

    return float(nctdtrinc(freedom, share, t_point(freedom)))


def t_share(t: float, freedom: int) -> float:
    """The share of Student's distribution below `t`. Raises `ImportError` without scipy."""
    from scipy.special import stdtr

    return float(stdtr(freedom, t))
