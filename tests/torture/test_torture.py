"""What takes too long for every day: make torture."""

from collections import Counter

import pytest

from tests.command import assert_valid
from tests.storm import TURNS, weather
from tests.verdicts import answers, assert_true

pytestmark = pytest.mark.torture
BATCH = 10_000


@pytest.mark.parametrize("seed", range(10))
def test_no_answer_of_a_hundred_thousand_becomes_a_score_that_it_does_not_hold(seed):
    for answer in answers(seed=1000 + seed, count=BATCH):
        assert_true(answer)


@pytest.mark.parametrize("seed", range(10, 20))
def test_a_run_with_a_student_gets_through_a_storm(seed):
    outcome, served = weather(seed, student=True)
    struck = Counter(request.fault for request in served if request.fault)

    assert outcome.exit_code == 0
    assert_valid("run", outcome.document)
    assert outcome.document["judge"]["judged_turns"] == TURNS
    assert 0.2 < struck.total() / len(served) < 0.4
    assert outcome.document["usage"]["total"]["attempts"] == len(served)
