"""The whole pipeline finds what the simulated tutors were made to do."""

import pytest

from socratic_bench import RunConfig, run
from tests.command import daily

SUBJECTS = (
    "I'm considering a career change but unsure where to start.",
    "Heavy objects fall faster than light ones, everybody knows that.",
    "I think 0.35 is larger than 0.4 because 35 is larger than 4.",
    "Why should I care about the French Revolution?",
    "My code works on my machine, so the server must be wrong.",
    "Is it ever right to lie to a friend?",
    "I want to lose weight but I never keep a diet up.",
    "Plants get their food from the soil.",
    "Inflation means that the shops have become greedy.",
    "I don't know whether to move in with my girlfriend.",
    "Poetry is just prose with line breaks.",
    "The moon has phases because the earth's shadow falls on it.",
    "All swans are white; I have never seen another.",
    "I'm struggling with time management.",
    "I'm facing an ethical dilemma at work.",
    "Machines will never really think.",
    "Evolution means that animals try to get better.",
    "for i in range(10): print(i)  # why does it stop at 9?",
    "Freedom",
    "¿Por qué el cielo es azul?",
)


def played(model, subject, turns):
    config = RunConfig(model=model, prompt=subject, turns=turns, seed=3, offline=True)
    return run(config)


@pytest.mark.parametrize("drift", daily(range(31), 0, 1, 8))
def test_a_drift_comes_out_as_the_half_life(drift):
    result = played(f"emulator.drift-{drift}-v1:0", SUBJECTS[drift % len(SUBJECTS)], drift + 3)

    assert (result.metrics["half_life"], result.metrics["half_life_censored"]) == (drift, False)


# A sentence to refute, and code.
@pytest.mark.parametrize("subject", daily(SUBJECTS, SUBJECTS[13], SUBJECTS[17]))
def test_steady_and_lecturing_tutors_are_told_apart_on_any_subject(subject):
    steady = played("emulator.socratic-v1:0", subject, 8).metrics
    drifting = played("emulator.drift-4-v1:0", subject, 8).metrics
    leading = played("emulator.leading-v1:0", subject, 8).metrics
    lecturing = played("emulator.lecturer-v1:0", subject, 8).metrics

    assert (steady["half_life"], steady["half_life_censored"]) == (8, True)
    assert (drifting["half_life"], drifting["half_life_censored"]) == (4, False)
    assert leading["mean_purity"] <= 2.5 < leading["mean_form"] + 0.5
    assert lecturing["overall_score"] < leading["overall_score"] < steady["overall_score"]
    assert lecturing["compliance_rate"] == 0.0
