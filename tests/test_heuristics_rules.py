"""Every rule decides the example that the document gives of it, and no other rule does."""

import pytest

from socratic_bench.benchmarks.socratic.heuristics import (
    advice,
    analyse,
)
from socratic_bench.benchmarks.socratic.heuristics import questions as asking
from socratic_bench.benchmarks.socratic.heuristics import (
    questions as leading,
)
from socratic_bench.benchmarks.socratic.heuristics import (
    questions as openness,
)
from socratic_bench.benchmarks.socratic.heuristics.grammar import Sentence, sentences
from socratic_bench.benchmarks.socratic.heuristics.prose import blocks
from tests.command import ROOT

TABLES = {
    "question": ("has_question", asking.ASKING),
    "no question": ("has_question", asking.NOT_ASKING),
    "open": ("open_ended", openness.OPENING),
    "advice": ("has_advice", advice.ADVISING),
    "no advice": ("has_advice", advice.NOT_ADVISING),
    "leading": ("is_leading", leading.LEADING),
}


def documented() -> list[list[str]]:
    """The rows of the table of rules: what they give, name, reason, example, counterexample."""
    page = (ROOT / "docs" / "dev" / "heuristics.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("|")]
    return [row[:5] for row in rows if row[0] in TABLES]


RULES = [pytest.param(*row, id=f"{row[0]}: {row[1]}") for row in documented()]


def parse(text: str) -> list[Sentence]:
    return [sentence for block in blocks(text) for sentence in sentences(block)]


def test_the_document_shows_every_rule_once() -> None:
    shown = [(gives, name) for gives, name, *_ in documented()]

    assert shown == [(gives, name) for gives, (_, rules) in TABLES.items() for name in rules]


@pytest.mark.parametrize(("gives", "name", "because", "example", "counterexample"), RULES)
def test_a_rule_holds_in_its_example_and_not_in_its_counterexample(
    gives: str, name: str, because: str, example: str, counterexample: str
) -> None:
    holds = TABLES[gives][1][name]

    assert because
    assert any(map(holds, parse(example)))
    assert not any(map(holds, parse(counterexample)))


@pytest.mark.parametrize(("gives", "name", "because", "example", "counterexample"), RULES)
def test_without_a_rule_its_example_is_read_otherwise(
    monkeypatch: pytest.MonkeyPatch,
    gives: str,
    name: str,
    because: str,
    example: str,
    counterexample: str,
) -> None:
    field, rules = TABLES[gives]
    wanted = not gives.startswith("no ")
    with_it = getattr(analyse(example), field), getattr(analyse(counterexample), field)

    # Not taken out: it would come back at another place than the document has it.
    monkeypatch.setitem(rules, name, lambda _: False)

    assert with_it[0] is wanted
    assert wanted or with_it[1] is True
    assert getattr(analyse(example), field) is not wanted
