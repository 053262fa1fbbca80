"""How well a quantity tells yes from no: precision, recall, the area under the ROC curve."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence

from msgspec import Struct

from socratic_bench.statistics.rater_pairs import ranks

Found = Sequence[tuple[float, bool]]


class Counts(Struct, frozen=True, kw_only=True):
    """Of yes-or-no labels and what a judge says to them."""

    both: int
    judge_only: int
    label_only: int
    neither: int

    @classmethod
    def of(cls, pairs: Iterable[tuple[bool, bool]]) -> "Counts":
        """Of pairs of what the judge says and the label."""
        found = [*pairs]
        return cls(
            both=sum(said and true for said, true in found),
            judge_only=sum(said and not true for said, true in found),
            label_only=sum(true and not said for said, true in found),
            neither=sum(not said and not true for said, true in found),
        )

    @property
    def precision(self) -> float | None:
        return _share(self.both, self.both + self.judge_only)

    @property
    def recall(self) -> float | None:
        """Also called sensitivity."""
        return _share(self.both, self.both + self.label_only)

    @property
    def specificity(self) -> float | None:
        return _share(self.neither, self.neither + self.judge_only)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def auc(found: Found) -> float | None:
    """The share of pairs of a yes and a no in which the yes has the larger quantity, equal ones
    counting half (Mann and Whitney 1947). `None` without both.
    """
    n_above, n_pairs = _pairs(found)
    return n_above / n_pairs if n_pairs else None


def auc_within(found: Iterable[tuple[Hashable, float, bool]]) -> float | None:
    """The same over pairs of replies of one author alone, so that knowing authors tells nothing."""
    groups: dict[Hashable, list[tuple[float, bool]]] = defaultdict(list)
    for author, quantity, is_yes in found:
        groups[author].append((quantity, is_yes))
    counted = [_pairs(group) for group in groups.values()]
    n_pairs = sum(n for _, n in counted)
    return sum(n for n, _ in counted) / n_pairs if n_pairs else None


def _pairs(found: Found) -> tuple[float, int]:
    """How many pairs have the yes above, and how many there are."""
    n_yes = sum(is_yes for _, is_yes in found)
    ranked = ranks([quantity for quantity, _ in found])
    of_yes = sum(rank for rank, (_, is_yes) in zip(ranked, found, strict=True) if is_yes)
    return of_yes - n_yes * (n_yes + 1) / 2, n_yes * (len(found) - n_yes)
