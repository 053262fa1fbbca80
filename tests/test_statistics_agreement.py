"""Agreement of raters: against the published example, and by hand."""

import random

import pytest

from socratic_bench.statistics.agreement import absolute_error, ordinal_alpha

# The example of Krippendorff's "Computing Krippendorff's Alpha-Reliability" (2011): four observers,
# twelve units. Its ordinal alpha is .815.
PUBLISHED = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]


def test_alpha_is_that_of_the_published_example():
    assert ordinal_alpha(PUBLISHED) == pytest.approx(0.815, abs=5e-4)


def test_half_steps_are_ranks_like_whole_ones():
    halved = [[None if value is None else value / 2 for value in one] for one in PUBLISHED]
    assert ordinal_alpha(halved) == pytest.approx(ordinal_alpha(PUBLISHED))


def test_shuffled_ratings_agree_by_chance():
    drawn = random.Random(7)
    one, other = ([drawn.randrange(5) for _ in range(4000)] for _ in range(2))
    assert ordinal_alpha([one, other]) == pytest.approx(0, abs=0.05)


@pytest.mark.parametrize("ratings", [[], [[1, 2]], [[1, None], [None, 2]], [[3, 3], [3, 3]]])
def test_where_there_is_nothing_to_tell_apart_it_is_not_known(ratings):
    assert ordinal_alpha(ratings) is None


def test_the_error_is_of_all_pairs_on_a_unit():
    # |1-2|, |1-4|, |2-4| on the first, |0-3| on the second, none on the third.
    assert absolute_error([[1, 0, None], [2, 3, None], [4, None, 5]]) == (1 + 3 + 2 + 3) / 4
    assert absolute_error([[1, None], [None, 2]]) is None
