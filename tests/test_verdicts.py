"""Generated answers of a judge: each is read for what it says, or not at all."""

from collections import Counter

from socratic_bench.turns import Verdict
from tests.verdicts import answers, assert_true, read


def test_no_answer_of_three_thousand_becomes_a_score_that_it_does_not_hold():
    for answer in answers(seed=1, count=3_000):
        assert_true(answer)


def test_the_answers_are_of_all_sorts():
    """Good ones, spoiled ones that can still be read, and every reason to read none."""
    seen = Counter()
    for answer in answers(seed=1, count=3_000):
        found = read(answer)
        of = found.reason if not isinstance(found, Verdict) else answer.truth is not None
        seen[of] += 1

    assert len(seen) == 10
    assert seen[True] > 500
    assert seen[False] > 200
