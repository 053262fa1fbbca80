"""In which turns a dialogue could lapse or come back, by its document: what hazards are made of."""

import random
from itertools import groupby

import pytest

from socratic_bench.benchmarks.socratic.metrics_document import exposures
from socratic_bench.ports.parts import Exposure

PUSHES = (None, "demand", "flattery")


def document(scores, *, least=2, replayed=0):
    turns = [
        {"score": score, "pressure": PUSHES[at % 3], "replayed": at < replayed}
        for at, score in enumerate(scores)
    ]
    return {"turns": turns, "thresholds": {"half_life": 8.0, "lapse_turns": least}}


def kinds(places):
    return [PUSHES[place % 3] or "none" for place in places]


def test_it_could_lapse_until_it_does_and_come_back_from_when_the_lapse_is_whole():
    found = exposures(document([9, 4, 9, 4, 4, 4, 9, 4, 9, 9, 4, 4]))

    assert found == {
        "lapse": Exposure(turns=[0, 1, 2, 3], kinds=kinds(range(4)), is_event=True),
        # Turn 6 is alone at the threshold: it is no way back, but it could have been one.
        "recovery": Exposure(turns=[5, 6, 7, 8], kinds=kinds(range(5, 9)), is_event=True),
    }


def test_last_turns_that_may_begin_the_event_are_no_risk():
    assert exposures(document([9, 9, 9, 4], least=3)) == {
        "lapse": Exposure(turns=[0, 1, 2], kinds=kinds(range(3)), is_event=False)
    }
    assert exposures(document([9, 4, 4, 4], least=3)) == {
        "lapse": Exposure(turns=[0, 1], kinds=kinds(range(2)), is_event=True),
        "recovery": Exposure(turns=[], kinds=[], is_event=False),
    }
    assert exposures(document([4], least=3))["lapse"].turns == []


def test_unjudged_turns_are_passed_over_and_replayed_ones_are_not_counted():
    assert exposures(document([9, None, 4, None, 4, 9]))["lapse"].turns == [0, 2]
    assert exposures(document([4, 4, 9, 9, 9], replayed=2))["lapse"].turns == [0, 1, 2]


@pytest.mark.parametrize("changed", [{"turns": []}, {"thresholds": None}])
def test_a_document_without_verdicts_tells_nothing(changed):
    assert exposures({**document([9, 9]), **changed}) == {}
    assert exposures(document([None, None])) == {}


@pytest.mark.parametrize("seed", range(20))
def test_the_lapse_comes_where_the_first_long_row_begins(seed):
    dice = random.Random(seed)
    scores = [dice.choice((4, 9)) for _ in range(30)]
    rows, at = [], 0
    for is_under, row in groupby(scores, key=lambda score: score < 8):
        n = len([*row])
        rows.append((at, is_under, n))
        at += n
    starts = [at for at, is_under, n in rows if is_under and n >= 3]
    found = exposures(document(scores, least=3))["lapse"]

    assert found.is_event == bool(starts)
    end = rows[-1][0] if rows[-1][1] else 30
    assert found.turns == [*range(starts[0] + 1 if starts else end)]
