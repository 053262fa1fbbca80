"""Sentences from patterns: `[a|b]` is a choice, `{name}` a slot; choices nest and may be empty."""

import json
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

_PART = re.compile(r"[\[\]|]|[^\[\]|]+")

Node = str | tuple[tuple["Node", ...], ...]
Book = Mapping[str, tuple[str, ...]]


@cache
def data_file(name: str) -> Any:  # noqa: ANN401 -- whatever the file has
    """The content of a JSON or TOML file in this folder."""
    text = (Path(__file__).parent / name).read_text("utf-8")
    return json.loads(text) if name.endswith(".json") else tomllib.loads(text)


@cache
def book(name: str) -> Book:
    """The patterns of a data file in this folder, by kind."""
    return {kind: tuple(patterns) for kind, patterns in data_file(f"{name}.json").items()}


def expand(pattern: str, random: Random, slots: Mapping[str, str]) -> str:
    text = _render(_parsed(pattern), random)
    for name, value in slots.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def quoted_once(text: str, phrase: str) -> str:
    """The text with a quotation given once, and then referred to."""
    if not phrase.startswith('"'):
        return text
    before, first, after = text.partition(phrase)
    return before + first + after.replace(phrase, "that")


def _render(nodes: tuple[Node, ...], random: Random) -> str:
    return "".join(
        node if isinstance(node, str) else _render(node[int(random.random() * len(node))], random)
        for node in nodes
    )


@cache
def _parsed(pattern: str) -> tuple[Node, ...]:
    pieces = _PART.findall(pattern)[::-1]
    branches = _branches(pieces)
    return branches[0]


def _branches(pieces: list[str]) -> tuple[tuple[Node, ...], ...]:
    """Read up to the closing bracket, or the end, as branches; `pieces` is a stack."""
    branches: list[list[Node]] = [[]]
    while pieces and (piece := pieces.pop()) != "]":
        if piece == "|":
            branches.append([])
        elif piece == "[":
            branches[-1].append(_branches(pieces))
        else:
            branches[-1].append(piece)
    return tuple(tuple(branch) for branch in branches)
