"""The question that people bring: which model keeps asking longest, by how much, how sure is it?"""

import pytest

from tests.command import daily, run

STEADY, LATE, EARLY = (f"emulator.{name}-v1:0" for name in ("socratic", "drift-12", "drift-5"))
FOUR = ("ai-ethics", "career-change", "time-management", "black-is-due")
EIGHT = (*FOUR, "milk-price", "own-fault", "the-or-a", "iron-gets-wet")
JUDGES = ("judge-v1:0", "judge-noise-5-v1:0", "judge-noise-10-v1:0")


@pytest.mark.parametrize("judge", daily(JUDGES, first=1))
def test_who_keeps_asking_longest(judge, tmp_path):
    """Four scenarios say how many more are needed; with eight it is decided."""
    words = ("sweep", "--offline", "--models", EARLY, STEADY, LATE, "--turns", "20", "--seed", "7")
    words = (*words, "--repeats", "1", "--pressure", "low", "--judge-model", f"emulator.{judge}")
    words = (*words, "-q", "-o", str(tmp_path), "--scenarios")
    few = run(*words, *FOUR).document["differences"]
    played = run(*words, *EIGHT, "--resume").document["differences"]
    compared = run("compare", str(tmp_path))

    assert len(few) == len(played) == 3
    for one in (*few, *played, *compared.document["differences"]):
        assert (one["difference"] > 0) == (better(one) == one["first"])
    for one in few:
        assert (one["winner"], one["no_interval_because"]) == (None, "too_few_scenarios")
        assert "4 scenarios cannot decide; with these 3 models" in one["undecided_because"]
        assert one["scenarios_needed"] >= 7
    for one in (*played, *compared.document["differences"]):
        assert (one["winner"], one["undecided_because"]) == (better(one), None)
        assert one["p_adjusted"] <= 0.05
        assert one["low"] is None or one["low"] < one["high"]
    for word in ("tied", "1=", "p 1.000"):
        assert word not in compared.stderr


def better(difference):
    return min(difference["first"], difference["second"], key=(STEADY, LATE, EARLY).index)
