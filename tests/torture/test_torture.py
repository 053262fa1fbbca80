"""What takes too long for every day: make torture."""

from collections import Counter

import pytest

from tests.command import assert_valid
from tests.interruptions import SCENES, interrupt
from tests.kills import kill_and_go_on, play_whole
from tests.resuming import Service
from tests.storm import TURNS, weather
from tests.test_signals import CODES
from tests.verdicts import answers, assert_true

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


@pytest.mark.parametrize("batch", range(10))
def test_no_kill_at_a_hundred_moments_loses_or_changes_anything(batch, tmp_path):
    """Each kill is followed by a resume, whose document and requests are compared."""
    service = Service()
    try:
        whole = play_whole(service, tmp_path / "whole")
        repeated = [
            kill_and_go_on(service, tmp_path / str(seed), whole, seed)
            for seed in range(1000 + 10 * batch, 1010 + 10 * batch)
        ]
    finally:
        service.close()
    print("repeated", sorted(repeated))  # noqa: T201 -- shown with -rP


@pytest.mark.parametrize("number", CODES, ids=lambda number: number.name)
@pytest.mark.parametrize("name", SCENES)
def test_a_signal_ends_the_run_within_two_seconds(name, number, tmp_path):
    with SCENES[name](tmp_path) as scene:
        ended = interrupt(scene, number, "--output-dir", str(tmp_path / "out"))

    assert ended.exit_code == CODES[number]
    # On a machine that has other things to do, as much slower as the run has started.
    assert ended.ended_s < 2 * max(1, ended.started_s)
