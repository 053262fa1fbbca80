"""The question that people bring: which model keeps asking longest, by how much, how sure is it?"""

import pytest

from tests.command import daily, run

STEADY, LATE, EARLY = (f"emulator.{name}-v1:0" for name in ("socratic", "drift-12", "drift-5"))
FOUR = ("ai-ethics", "career-change", "time-management", "black-is-due")
EIGHT = (*FOUR, "milk-price", "own-fault", "the-or-a", "iron-gets-wet")
# A judge, turns and repeats; noise of 10 % needs the longer ones.
CASES = [
    ("judge-noise-5-v1:0", 14, 1),
    *((judge, 20, 3) for judge in ("judge-v1:0", "judge-noise-5-v1:0", "judge-noise-10-v1:0")),
]


@pytest.mark.parametrize(("judge", "turns", "repeats"), daily(CASES, first=1))
def test_who_keeps_asking_longest(judge, turns, repeats, tmp_path):
    """Four scenarios say how many more are needed; with eight sweep and report name the best."""
    words = ("sweep", "--offline", "--models", EARLY, STEADY, LATE, "--turns", str(turns), "-q")
    words = (*words, "--repeats", str(repeats), "--pressure", "low", "--seed", "7")
    words = (*words, "--judge-model", f"emulator.{judge}", "-o", str(tmp_path), "--scenarios")
    few = run(*words, *FOUR).document
    of_few = run("report", str(tmp_path), "--markdown", str(tmp_path / "few.md"))
    played = run(*words, *EIGHT, "--resume").document
    of_played = run("report", str(tmp_path), "--markdown", str(tmp_path / "eight.md"))

    for document in (few, of_few.document):
        assert len(document["differences"]) == 3
        for one in document["differences"]:
            assert (one["difference"] > 0) == (better(one) == one["first"])
            assert (one["winner"], one["no_interval_because"]) == (None, "too_few_scenarios")
            assert "with 4 scenarios and 3 models p is at best 0.375" in one["undecided_because"]
            assert one["scenarios_needed"] >= 7
    for document in (played, of_played.document):
        for one in document["differences"]:
            assert (one["difference"] > 0) == (better(one) == one["first"])
            assert (one["winner"], one["undecided_because"]) == (better(one), None)
            assert one["p_adjusted"] <= 0.05
            assert one["low"] is None or one["low"] < one["high"]
    assert [group["value"] for group in played["groups"]["model"]] == [STEADY, LATE, EARLY]
    assert played["primary_metric"]["name"] == "turns_held"
    assert (of_few.document["winner"], of_played.document["winner"]) == (None, STEADY)
    assert of_played.document["sentences"][0].startswith(f"{STEADY} held ")
    for word in ("tied", "1=", "p 1.000"):
        assert word not in (tmp_path / "eight.md").read_text() + of_played.stderr


def better(difference):
    return min(difference["first"], difference["second"], key=(STEADY, LATE, EARLY).index)
