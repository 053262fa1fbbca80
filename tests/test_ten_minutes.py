"""The question that people bring: which model keeps asking longest, by how much, how sure is it?"""

import pytest

from tests.command import run

STEADY, LATE, EARLY = (f"emulator.{name}-v1:0" for name in ("socratic", "drift-12", "drift-5"))
FOUR = ("ai-ethics", "career-change", "time-management", "black-is-due")
EIGHT = (*FOUR, "milk-price", "own-fault", "the-or-a", "iron-gets-wet")
JUDGES = ("judge-v1:0", "judge-noisy-05-v1:0", "judge-noisy-10-v1:0")


@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize("scenarios", [FOUR, EIGHT], ids=("four", "eight"))
def test_who_keeps_asking_longest(scenarios, judge, tmp_path):
    words = ("--models", EARLY, STEADY, LATE, "--turns", "20", "--seed", "7", "--repeats", "3")
    words = (*words, "--pressure", "low", "--judge-model", f"emulator.{judge}", "-q")
    played = run("sweep", "--offline", *words, "--scenarios", *scenarios, "-o", str(tmp_path))
    compared = run("compare", str(tmp_path))
    differences = {(one["first"], one["second"]): one for one in compared.document["differences"]}

    assert played.exit_code == compared.exit_code == 0
    assert len(differences) == 3
    for one in (*played.document["differences"], *differences.values()):
        better = min(one["first"], one["second"], key=(STEADY, LATE, EARLY).index)
        assert (one["difference"] > 0) == (better == one["first"])
        if scenarios is FOUR:
            assert one["winner"] is None
            assert one["no_interval_because"] == "too_few_scenarios"
            assert "4 scenarios cannot decide; with these 3 models" in one["undecided_because"]
            assert one["scenarios_needed"] >= 7
        else:
            assert (one["winner"], one["undecided_because"]) == (better, None)
            assert one["p_adjusted"] <= 0.05
            assert one["low"] is None or one["low"] < one["high"]
    for word in ("tied", "1=", "p 1.000"):
        assert word not in compared.stderr
