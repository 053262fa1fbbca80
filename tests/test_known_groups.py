"""Tutors of known habits land where they belong on both axes.

What is expected stands in docs/dev/validity.md ("Known groups"), written before anything was
measured, and is read from there.
"""

import re
from functools import cache
from statistics import fmean

import pytest

from socratic_bench import RunConfig
from tests.command import ROOT, daily
from tests.simulated import simulated
from tests.test_truth import SUBJECTS

TURNS = 14
EVERY_DAY = SUBJECTS[::2]
# By group: the tutor, and the student if it is not the scripted one.
GROUPS = {
    "steady": ("emulator.socratic-v1:0", None),
    "recovers": ("emulator.recovers-4-v1:0", None),
    "leading": ("emulator.leading-v1:0", None),
    "gives the answer": ("emulator.tells-5-v1:0", None),
    "lecturer": ("emulator.lecturer-v1:0", None),
    "why only": ("emulator.why-v1:0", None),
    "nonsense": ("emulator.nonsense-v1:0", None),
    "steady, needed": ("emulator.socratic-v1:0", "emulator.student-needs-v1:0"),
    "withholds": ("emulator.withholds-v1:0", "emulator.student-needs-v1:0"),
}
ORDERS = {
    "discipline": ("steady", "recovers", "leading", "gives the answer", "lecturer"),
    "usefulness": ("steady", "recovers", "gives the answer", "why only", "nonsense"),
}
ASKING = ("steady", "why only", "nonsense", "withholds", "steady, needed")


def expected():
    """The bands of the table, by group and axis."""
    page = (ROOT / "docs" / "dev" / "validity.md").read_text()
    section = page.partition("## Known groups")[2].partition("\n#")[0]
    rows = re.findall(
        r"^\| ([a-z, ]+?) \|.*\| ([\d.]+) to ([\d.]+) \| ([\d.]+) to ([\d.]+) \|$",
        section,
        re.MULTILINE,
    )
    return {
        name: {"discipline": (float(a), float(b)), "usefulness": (float(c), float(d))}
        for name, a, b, c, d in rows
    }


@cache
def played(group, subject):
    tutor, student = GROUPS[group]
    config = RunConfig(model=tutor, student_model=student, prompt=subject, turns=TURNS, seed=3)
    return simulated(config)


def axis(name, group, subject):
    return played(group, subject)[1][name]


def test_every_group_is_expected_somewhere():
    assert expected().keys() == GROUPS.keys()


@pytest.mark.parametrize("step", daily([2, 1], 2))
@pytest.mark.parametrize("group", GROUPS)
def test_each_group_lands_where_it_belongs(group, step):
    for name, (low, high) in expected()[group].items():
        assert low <= fmean(axis(name, group, subject) for subject in SUBJECTS[::step]) <= high


@pytest.mark.parametrize("subject", daily(SUBJECTS, *EVERY_DAY))
def test_the_groups_are_in_order_on_every_subject(subject):
    for name, groups in ORDERS.items():
        found = [axis(name, group, subject) for group in groups]
        assert found == sorted(found, reverse=True), (name, found)
        assert len({*found}) == len(found), (name, found)
    asking = min(axis("discipline", group, subject) for group in ASKING)
    assert asking > axis("discipline", "recovers", subject)
    assert axis("usefulness", "steady", subject) > axis("usefulness", "leading", subject)
    assert axis("usefulness", "leading", subject) > axis("usefulness", "why only", subject)
    assert axis("usefulness", "steady, needed", subject) > axis("usefulness", "withholds", subject)
    assert axis("usefulness", "withholds", subject) > axis("usefulness", "nonsense", subject)
    assert axis("usefulness", "gives the answer", subject) > axis("usefulness", "lecturer", subject)


@pytest.mark.parametrize("subject", daily(SUBJECTS, *EVERY_DAY))
def test_the_answer_is_disclosed_at_the_turn_that_was_planned(subject):
    for group in ("gives the answer", "recovers"):
        turns, _ = played(group, subject)
        told = [turn.index for turn in turns if "answer_disclosed" in turn.verdict.events]
        assert told == [*(range(4, 9) if group == "recovers" else range(5, TURNS))]
