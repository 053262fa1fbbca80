"""Finds replies that look as if they spoke to the judge. It changes no score: people may look.

The patterns stand in injection.toml.
"""

import re
import tomllib
import unicodedata
from functools import lru_cache
from html import unescape
from pathlib import Path
from threading import Lock
from urllib.parse import unquote

from socratic_bench.turns import Rubric

# Looked for once, for all patterns that begin with it.
_EDGE = r"\b"
_COMPILING = Lock()
# As JSON writes any character.
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")


def suspects_injection(reply: str, rubric: Rubric) -> bool:
    """Whether a reply holds delimiters, a verdict, or orders to score, as far as patterns know it.

    English words only. Such a reply is scored like any other.
    """
    dimensions = tuple(dimension.name for dimension in rubric.dimensions)
    with _COMPILING:  # threads that need it at once would each compile it
        pattern = _pattern(dimensions, rubric.speakers)
    return pattern.search(_folded(reply)) is not None


@lru_cache(maxsize=8)
def _pattern(dimensions: tuple[str, ...], speakers: tuple[str, str]) -> re.Pattern[str]:
    table = tomllib.loads(Path(__file__).with_name("injection.toml").read_text("utf-8"))
    asking, tested, *names = (
        re.escape(name.casefold()) for name in (*speakers, *dimensions, "overall_score")
    )
    words = {name: "".join(parts) for name, parts in table["words"].items()}
    words |= {"asking": asking, "tested": tested, "names": "|".join(names)}
    patterns = ["".join(parts) for parts in table["patterns"]]
    at_words = "|".join(pattern[len(_EDGE) :] for pattern in patterns if pattern.startswith(_EDGE))
    anywhere = "|".join(pattern for pattern in patterns if not pattern.startswith(_EDGE))
    pattern = rf"{_EDGE}(?:{at_words})|{anywhere}"
    for _ in range(2):  # some words hold others
        pattern = re.sub(r"@(\w+)", lambda match: words[match[1]], pattern)
    return re.compile(pattern, re.MULTILINE)


def _folded(text: str) -> str:
    text = _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text).replace("\\/", "/")
    if "&" in text:
        text = unescape(text)
    if "%" in text:
        text = unquote(text)
    if text.isascii():
        return text.lower()  # has no other forms, and nothing that does not show
    visible = (c for c in unicodedata.normalize("NFKC", text) if unicodedata.category(c) != "Cf")
    return "".join(visible).casefold()
