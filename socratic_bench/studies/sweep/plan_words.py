"""What is said of keys and values of a plan."""

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from socratic_bench.documents.sweep_plan import key_name
from socratic_bench.errors import MOST_SHOWN

Json = Any  # as tomllib has it: dates and times, too

MOST_VALUES = 1000  # of one key
LONGEST_COMPARED = 100  # comparing takes quadratic time
_SECRET = re.compile(r"secret|token|password|credential|access_key|api_key", re.IGNORECASE)
WANTED: Mapping[type, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text in quotation marks",
}


def is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def named(found: Mapping[str, Json], place: str = "") -> tuple[dict[str, Json], list[str]]:
    """The values by the names of their keys, which may be written with hyphens, and a mistake for
    each key that is written in both ways.
    """
    words: dict[str, str] = {}
    mistakes = [
        f"{place}{word}: the same as {words[key_name(word)]}: keep one."
        for word in found
        if words.setdefault(key_name(word), word) != word
    ]
    return {name: found[word] for name, word in words.items()}, mistakes


def meant(word: str, known: Sequence[str]) -> Sequence[str]:
    """The keys that one which is not known may stand for."""
    near = get_close_matches(word[:LONGEST_COMPARED], known, n=1)
    return near or [name for name in known if word in name.split("_")]


def unknown(
    word: str, known: Sequence[str], place: str = "", above: Iterable[str] = (), *, n_told: int
) -> str:
    """The mistake of a key that is not known, or that belongs `above` the tables.

    What may have been meant is looked for only as long as not more mistakes are told than are
    shown.
    """
    if near := meant(word, known if n_told < MOST_SHOWN else ()):
        return f"{place}{word}: unknown key; did you mean {' or '.join(near)}?"
    if _SECRET.search(word):
        return (
            f"{place}the key {word} is unknown. Secrets are no part of a plan: credentials come "
            "from the environment."
        )
    if word in above:
        return f"{place}{word}: belongs above the first table."
    listed = f"there is {', '.join(known)}." if place else "see the schema sweep_plan."
    return f"{place}{word}: unknown key; {listed}"
