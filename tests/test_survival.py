"""A run among failures: a third of all calls fails, and not one turn is lost."""

from collections import Counter

import pytest

from tests.command import assert_valid
from tests.storm import TURNS, weather


@pytest.mark.parametrize("seed", [1])
def test_a_run_gets_through_a_storm(seed):
    """30 % of all calls fail, in five ways; bounds and pace are the command's own."""
    outcome, served = weather(seed)
    document = outcome.document
    struck = Counter(request.fault for request in served if request.fault)

    assert outcome.exit_code == 0
    assert_valid("run", document)
    assert (document["n_turns"], document["judge"]["judged_turns"]) == (TURNS, TURNS)
    assert 0.2 < struck.total() / len(served) < 0.4
    assert len(struck) == 5
    assert document["usage"]["total"]["attempts"] == len(served)
