"""A rule: one named reason to say yes, which carries its own example."""

from collections.abc import Callable, Iterable

from msgspec import Struct

from .grammar import Sentence


class Rule(Struct, frozen=True, kw_only=True):
    """Rules of one tuple are alternatives: none needs another, and their order is the reader's.

    `example` has a sentence in which the rule holds; `counterexample` looks like it and has none.
    """

    name: str
    because: str
    example: str
    counterexample: str
    holds: Callable[[Sentence], bool]


def any_holds(rules: Iterable[Rule], sentence: Sentence) -> bool:
    return any(rule.holds(sentence) for rule in rules)


def says_any(sentence: Sentence, phrases: Iterable[str]) -> bool:
    """Whether one of the phrases, each between spaces, stands in the sentence."""
    line = sentence.line
    return any(phrase in line for phrase in phrases)
