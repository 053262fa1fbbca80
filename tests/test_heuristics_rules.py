"""Every rule is run on its own example and counterexample."""

from collections import Counter
from pathlib import Path

import pytest

from socratic_bench.benchmarks.socratic.heuristics import advice, analyse, leading, openness
from socratic_bench.benchmarks.socratic.heuristics import questions as asking
from socratic_bench.benchmarks.socratic.heuristics.grammar import Sentence, sentences
from socratic_bench.benchmarks.socratic.heuristics.prose import blocks
from socratic_bench.benchmarks.socratic.heuristics.rule import Rule

DOCUMENT = (Path(__file__).parent.parent / "docs" / "heuristics.md").read_text(encoding="utf-8")
FOR = {
    "has_question": asking.ASKING,
    "open_ended": openness.OPENING,
    "has_advice": advice.ADVISING,
    "is_leading": leading.LEADING,
}
AGAINST = {"has_question": asking.NOT_ASKING, "has_advice": advice.NOT_ADVISING}
YES = [(field, rule) for field, rules in FOR.items() for rule in rules]
NO = [(field, rule) for field, rules in AGAINST.items() for rule in rules]


def cases(pairs: list[tuple[str, Rule]]) -> list[object]:
    return [pytest.param(field, rule, id=f"{field}: {rule.name}") for field, rule in pairs]


def parse(text: str) -> list[Sentence]:
    return [sentence for block in blocks(text) for sentence in sentences(block)]


@pytest.mark.parametrize(("field", "rule"), cases(YES + NO))
def test_a_rule_holds_in_its_example_and_not_in_its_counterexample(field: str, rule: Rule) -> None:
    assert any(rule.holds(sentence) for sentence in parse(rule.example))
    assert not any(rule.holds(sentence) for sentence in parse(rule.counterexample))


@pytest.mark.parametrize(("field", "rule"), cases(YES))
def test_the_example_of_a_rule_sets_its_field(field: str, rule: Rule) -> None:
    assert getattr(analyse(rule.example), field) is True


@pytest.mark.parametrize(("field", "rule"), cases(NO))
def test_the_example_of_a_rule_against_clears_its_field(field: str, rule: Rule) -> None:
    assert getattr(analyse(rule.example), field) is False
    assert getattr(analyse(rule.counterexample), field) is True


def test_rules_are_few_named_and_reasoned() -> None:
    names = Counter((field, rule.name) for field, rule in YES + NO)

    assert len(names) <= 48
    assert set(names.values()) == {1}
    assert all(rule.because and rule.example != rule.counterexample for _, rule in YES + NO)


@pytest.mark.parametrize(("field", "rule"), cases(YES + NO))
def test_the_document_shows_every_rule(field: str, rule: Rule) -> None:
    assert f"| {rule.name} | {rule.example} | {rule.counterexample} |" in DOCUMENT


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("So, what would you do?", [("what", False)]),
        ("Do you see why he left?", [("", True)]),
        ("how many people do you know?", [("how", False)]),
        ("I see what you mean.", []),
        ("When you're done, could you tell me?", [("", True)]),
    ],
)
def test_the_grammar_finds_what_is_asked(text: str, shape: list[tuple[str, bool]]) -> None:
    asks = [sentence.ask for sentence in parse(text) if sentence.ask]

    assert [(ask.wh, ask.polar) for ask in asks] == shape


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("Wait, check the sign.", ["wait", "check"]),
        ("If you can, draw it.", ["draw"]),
        ("They draw it, colour it.", []),
        ("Please don't stop.", ["stop"]),
        ("Be brave.", ["be"]),
        ("Do the first one.", ["do"]),
        ("Gently push them.", ["push"]),
        ("Help is near.", []),
    ],
)
def test_the_grammar_finds_commands(text: str, commands: list[str]) -> None:
    found = [c.command for sentence in parse(text) for c in sentence.clauses if c.command]

    assert found == commands


def test_speech_is_cleaned_of_stammers_and_sounds() -> None:
    spoken, *_ = parse("Um, we- we we think th- it's the same, uh, isn't it?")

    assert spoken.words == ("we", "think", "it", "'s", "the", "same", "isn't", "it")
