"""Generated answers of a judge: each is read for what it says, or not at all."""

from collections import Counter

from socratic_bench.turns import Verdict
from tests.verdicts import answers, assert_true, read


def test_no_answer_of_three_thousand_becomes_a_score_that_it_does_not_hold():
    """Good ones, spoiled ones that can still be read, and every reason to read none."""
    reasons = Counter()
    for answer in answers(seed=1, count=3_000):
        assert_true(answer)
        result = read(answer)
        is_read = isinstance(result, Verdict)
        reasons[answer.truth is not None if is_read else result.reason] += 1

    assert len(reasons) == 10
    assert reasons[True] > 500
    assert reasons[False] > 200
