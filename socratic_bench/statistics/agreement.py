"""How far several raters agree on the same units: chance-corrected, and in points of the scale."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from itertools import combinations
from math import fsum, sqrt
from statistics import correlation, fmean

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
    """The mean distance over all pairs of raters of each unit; `None` where no two rated one."""
    pairs = [
        abs(first - second)
        for unit in zip(*ratings, strict=True)
        for first, second in combinations([value for value in unit if value is not None], 2)
    ]
    return fmean(pairs) if pairs else None


Pairs = Sequence[tuple[float, float]]
Strengths = Sequence[tuple[float, bool]]  # of the judge's yes, and whether people say yes


def mean_absolute_error(pairs: Pairs) -> float | None:
    return fmean(abs(first - second) for first, second in pairs) if pairs else None


def bias(pairs: Pairs) -> float | None:
    """The mean of the first less the second."""
    return fmean(first - second for first, second in pairs) if pairs else None


def deviation(pairs: Pairs) -> float | None:
    """The standard deviation of the first less the second; `None` for fewer than two."""
    errors = [first - second for first, second in pairs]
    if len(errors) < 2:  # noqa: PLR2004 -- a deviation is of two or more
        return None
    middle = fmean(errors)
    return sqrt(fsum((error - middle) ** 2 for error in errors) / (len(errors) - 1))


def weighted_kappa(pairs: Pairs) -> float | None:
    """Cohen's kappa with quadratic weights (Cohen 1968, Psychological Bulletin 70: 213): one less
    the mean squared difference over that of values paired at random. Of yes and no, as 1 and 0, it
    is Cohen's kappa. `None` where both always say the same one thing.
    """
    if not pairs:
        return None
    middles = [fmean(pair[side] for pair in pairs) for side in (0, 1)]
    spreads = [fmean((pair[side] - middles[side]) ** 2 for pair in pairs) for side in (0, 1)]
    by_chance = sum(spreads) + (middles[0] - middles[1]) ** 2
    if not by_chance:
        return None
    return 1 - fmean((value - other) ** 2 for value, other in pairs) / by_chance


def ranks(values: Sequence[float]) -> list[float]:
    """From 1; equal values share the mean of their ranks."""
    order = sorted(range(len(values)), key=values.__getitem__)
    values_ranks = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and values[order[end + 1]] == values[order[start]]:
            end += 1
        for at in order[start : end + 1]:
            values_ranks[at] = (start + end) / 2 + 1
        start = end + 1
    return values_ranks


def spearman(pairs: Pairs) -> float | None:
    """The correlation of ranks; `None` where one of both never varies."""
    first, second = (ranks([pair[side] for pair in pairs]) for side in (0, 1))
    is_varied = len({*first}) > 1 and len({*second}) > 1
    return correlation(first, second) if is_varied else None


def macro_f1(pairs: Pairs) -> float | None:
    """The mean, over all values that occur, of F1 with which the first finds the second's."""
    classes = {value for pair in pairs for value in pair}
    n_given = Counter(value for pair in pairs for value in pair)
    n_shared = Counter(first for first, second in pairs if first == second)
    return fmean(2 * n_shared[value] / n_given[value] for value in classes) if classes else None


def auc(quantities: Strengths) -> float | None:
    """The share of pairs of a yes and a no in which the yes has the larger quantity, equal ones
    counting half (Mann and Whitney 1947). `None` without both.
    """
    n_above, n_pairs = _pairs(quantities)
    return n_above / n_pairs if n_pairs else None


def auc_within(quantities: Iterable[tuple[Hashable, float, bool]]) -> float | None:
    """The same over pairs of replies of one author alone, so that knowing authors tells nothing."""
    groups: dict[Hashable, list[tuple[float, bool]]] = defaultdict(list)
    for author, quantity, is_yes in quantities:
        groups[author].append((quantity, is_yes))
    counted = [_pairs(group) for group in groups.values()]
    n_pairs = sum(n for _, n in counted)
    return sum(n for n, _ in counted) / n_pairs if n_pairs else None


def _pairs(quantities: Strengths) -> tuple[float, int]:
    """How many pairs have the yes above, and how many there are."""
    n_yes = sum(is_yes for _, is_yes in quantities)
    ranked = ranks([quantity for quantity, _ in quantities])
    of_yes = sum(rank for rank, (_, is_yes) in zip(ranked, quantities, strict=True) if is_yes)
    return of_yes - n_yes * (n_yes + 1) / 2, n_yes * (len(quantities) - n_yes)
