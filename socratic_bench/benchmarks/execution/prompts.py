"""The words that a model is asked with, made of prompts.toml."""

import json
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from socratic_bench.benchmarks.execution.answers import ASSERTION, CHOSEN
from socratic_bench.benchmarks.execution.items import Item, other
from socratic_bench.benchmarks.execution.settings import Level

_FILE = Path(__file__).with_name("prompts.toml")


def system_prompt(level: Level) -> str:
    """With the sentence of a level of reasoning."""
    return _filled(_texts()["system"], {"reasoning": sentence(level)})


def sentence(level: Level) -> str:
    """How a model is asked to reason."""
    said: str = _texts()["reasoning"][level]
    return said


def prompt_of(item: Item) -> str:
    """What is said for one item."""
    if not item.is_choice:
        program = item.code(item.program)
        return _filled(
            _texts()["prediction"]["text"], {"program": program.strip("\n"), "call": item.call}
        )
    second = item.program if item.kind == "control" else other(item.program)
    programs = {"program_a": item.code(item.program), "program_b": item.code(second)}
    words = {name: code.strip("\n") for name, code in programs.items()}
    form = {CHOSEN: "A or B", ASSERTION: f"assert {item.call} == VALUE"}
    words |= {"call": item.call, "form": json.dumps(form, ensure_ascii=False)}
    return _filled(_texts()["choice"]["text"], words)


def prompts_sha256() -> str:
    return sha256(_FILE.read_bytes()).hexdigest()


def _filled(text: str, words: Mapping[str, str]) -> str:
    """What is put in is not looked through for braces of its own."""
    names = "|".join(map(re.escape, words))
    return re.sub(rf"\{{({names})\}}", lambda found: words[found[1]], text).strip()


@cache
def _texts() -> Mapping[str, Any]:
    return tomllib.loads(_FILE.read_text("utf-8"))
