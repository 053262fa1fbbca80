"""How far several raters agree on the same units: chance-corrected, and in points of the scale."""

from collections.abc import Sequence
from itertools import combinations
from statistics import fmean

Ratings = Sequence[Sequence[float | None]]  # by rater, then by unit; `None` where one gave none
NO_ALPHA = (
    'There is no alpha without krippendorff: install the extra stats (pip install ".[stats]").'
)


def is_available() -> bool:
    """Whether Krippendorff's alpha can be reckoned: the extra `stats` is there."""
    try:
        import krippendorff  # noqa: F401
    except ImportError:
        return False
    return True


def ordinal_alpha(ratings: Ratings) -> float | None:
    """Krippendorff's alpha with the ordinal distance (Content Analysis, 2nd edition, chapter 11):
    1 for full agreement, 0 for that of chance, negative under it.

    `None` where it is not defined: no two raters have rated a unit, or all ratings of such units
    are the same. Raises `ImportError` without krippendorff, the extra `stats`.
    """
    import krippendorff

    units = [unit for unit in zip(*ratings, strict=True) if sum(x is not None for x in unit) > 1]
    values = sorted({value for unit in units for value in unit if value is not None})
    if len(values) < 2:  # noqa: PLR2004 -- there is nothing to tell apart
        return None
    counts = [[unit.count(value) for value in values] for unit in units]
    return float(
        krippendorff.alpha(value_counts=counts, value_domain=values, level_of_measurement="ordinal")
    )


def absolute_error(ratings: Ratings) -> float | None:
    """The mean distance of two raters on a unit, each pair of raters that rated it counting alike;
    `None` where no two have rated one.
    """
    pairs = [
        abs(one - other)
        for unit in zip(*ratings, strict=True)
        for one, other in combinations([value for value in unit if value is not None], 2)
    ]
    return fmean(pairs) if pairs else None
