# ruff: noqa: INP001, T201 - a script, not a package; it prints a table
"""Measures the threshold of the scripted student, for the table in docs/dev/validity.md.

    PYTHONPATH=. python tools/student_threshold.py

Each example question of a built-in scenario is taken out of its scenario and asked there, as a
question that nobody has foreseen; and a question of another scenario is asked.
"""

import random
from collections.abc import Iterator

from msgspec.structs import replace

from socratic_bench.benchmarks.socratic.scenarios.loading import builtin_ids, load_builtin
from socratic_bench.benchmarks.socratic.scenarios.scenario import CUSTOM, Scenario, groups
from socratic_bench.benchmarks.socratic.student.scripted import questions_in, similarities

THRESHOLDS = (0.15, 0.2, 0.25, 0.3, 0.35)
PER_SCENARIO = 25


def main() -> None:
    rng = random.Random(1)
    scenarios = [load_builtin(name) for name in builtin_ids() if name != CUSTOM]
    held_out: list[tuple[float, bool]] = []
    foreign: list[float] = []
    for scenario in scenarios:
        for sentence, question in rng.sample([*examples(scenario)], PER_SCENARIO):
            similarity, best = closest(without(scenario, question), question)
            held_out.append((similarity, best == sentence))
        foreign_questions = [
            question
            for other in scenarios
            if other is not scenario and other.language[:2] == scenario.language[:2]
            for _, question in examples(other)
        ]
        foreign += [
            closest(scenario, question)[0]
            for question in rng.sample(foreign_questions, PER_SCENARIO)
        ]
    print(
        "| threshold | own sentence | another sentence | no sentence | other scenario's answered |"
    )
    print("|---|---|---|---|---|")
    for threshold in THRESHOLDS:
        answered = [is_own for similarity, is_own in held_out if similarity >= threshold]
        own_share = sum(answered) / len(held_out)
        other = len(answered) / len(held_out) - own_share
        wrong = sum(similarity >= threshold for similarity in foreign) / len(foreign)
        shares = (own_share, other, 1 - own_share - other, wrong)
        print(f"| {threshold} | {' | '.join(f'{share:.0%}' for share in shares)} |")


def examples(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Each example question of a scenario, behind its sentence."""
    for group in groups(scenario).values():
        for sentence, questions in zip(group.says, group.asked, strict=True):
            yield from ((sentence, question) for question in questions_in(questions))


def without(scenario: Scenario, question: str) -> Scenario:
    """The scenario without one of its example questions."""

    def cut(texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(text.replace(question, "") for text in texts)

    return replace(
        scenario,
        draws_out=tuple(replace(group, asked=cut(group.asked)) for group in scenario.draws_out),
        moves=tuple(replace(group, asked=cut(group.asked)) for group in scenario.moves),
    )


def closest(scenario: Scenario, question: str) -> tuple[float, str]:
    similar = similarities(scenario, question)
    best = max(similar, key=similar.__getitem__)
    return similar[best], best


if __name__ == "__main__":
    main()
