"""How two raters agree on the same units: figures of pairs of values, the first less the second."""

from collections.abc import Sequence
from math import fsum, sqrt

Pairs = Sequence[tuple[float, float]]


def mean_absolute_error(pairs: Pairs) -> float | None:
    return fsum(abs(one - other) for one, other in pairs) / len(pairs) if pairs else None


def bias(pairs: Pairs) -> float | None:
    """The mean of the first less the second."""
    return fsum(one - other for one, other in pairs) / len(pairs) if pairs else None


def deviation(pairs: Pairs) -> float | None:
    """The standard deviation of the first less the second; `None` for fewer than two."""
    if len(pairs) < 2:  # noqa: PLR2004 -- a deviation is of two or more
        return None
    errors = [one - other for one, other in pairs]
    middle = fsum(errors) / len(errors)
    return sqrt(fsum((error - middle) ** 2 for error in errors) / (len(errors) - 1))


def weighted_kappa(pairs: Pairs) -> float | None:
    """Cohen's kappa with quadratic weights (Cohen 1968, Psychological Bulletin 70: 213): one less
    the mean squared difference over that of values paired at random. Of yes and no, as 1 and 0, it
    is Cohen's kappa. `None` where both always say the same one thing.
    """
    if not pairs:
        return None
    n = len(pairs)
    first, second = [one for one, _ in pairs], [other for _, other in pairs]
    means = fsum(first) / n, fsum(second) / n
    by_chance = (
        fsum((one - means[0]) ** 2 for one in first) / n
        + fsum((one - means[1]) ** 2 for one in second) / n
        + (means[0] - means[1]) ** 2
    )
    if not by_chance:
        return None
    return 1 - fsum((one - other) ** 2 for one, other in pairs) / n / by_chance


def ranks(values: Sequence[float]) -> list[float]:
    """From 1; equal values share the mean of their ranks."""
    order = sorted(range(len(values)), key=values.__getitem__)
    found = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and values[order[end + 1]] == values[order[start]]:
            end += 1
        for at in order[start : end + 1]:
            found[at] = (start + end) / 2 + 1
        start = end + 1
    return found


def spearman(pairs: Pairs) -> float | None:
    """The correlation of ranks; `None` where one of both never varies."""
    if not pairs:
        return None
    first = ranks([one for one, _ in pairs])
    second = ranks([other for _, other in pairs])
    middle = (len(pairs) + 1) / 2
    over = fsum((a - middle) * (b - middle) for a, b in zip(first, second, strict=True))
    under = fsum((a - middle) ** 2 for a in first) * fsum((b - middle) ** 2 for b in second)
    return over / sqrt(under) if under else None


def macro_f1(pairs: Pairs) -> float | None:
    """The mean, over all values that occur, of F1 with which the first finds the second's."""
    classes = {value for pair in pairs for value in pair}
    if not classes:
        return None
    scores = []
    for value in classes:
        both = sum(one == other == value for one, other in pairs)
        said = sum(one == value for one, _ in pairs) + sum(other == value for _, other in pairs)
        scores.append(2 * both / said)
    return fsum(scores) / len(scores)
