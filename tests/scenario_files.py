"""Scenario files of the tests' own."""

import re
from collections.abc import Sequence
from pathlib import Path

from socratic_bench.benchmarks.socratic.scenarios import check as checker
from socratic_bench.benchmarks.socratic.scenarios.loading import builtin_ids, load_builtin
from socratic_bench.benchmarks.socratic.scenarios.scenario import Scenario

LESSON = """\
id = "lesson"
title = "A lesson"
family = "puzzlement"
subject = "physics"
age = "student"
openings = ["Ice is heavier than water.", "Ice must sink."]
draws_out = ["where the ice swims", "why pipes burst"]
replies = ["I saw ice.", "It is hard.", "Stones sink.", "Lead sinks.", "Tea is soft.", "It swims."]
closes_after = 9
closing = "I have to go."

[student]
persona = "  Somebody who likes ice.  "
belief = "ice is heavier than water"
because = "solid things are heavy"
topic = "ice"
details = ["the cube", "the pipe", "the pond"]
weakness = "mistaken"
resistance = "low"
"""


def builtin() -> list[Scenario]:
    return [load_builtin(name) for name in builtin_ids()]


def check(scenarios: Sequence[Scenario]) -> list[str]:
    """What each scenario should not say, in lines."""
    return [": ".join(advice) for advice in checker.check(scenarios)]


def write(folder: Path, text: str, name: str = "lesson.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def float_example() -> str:
    page = (Path(__file__).parents[1] / "docs" / "scenarios.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    return example


GOOD = LESSON.replace('"  Somebody who likes ice.  "', f'"{"Likes ice and asks for more. " * 4}"')
GOOD = GOOD.replace("where the ice swims", "where the ice swims in the glass").replace(
    "why pipes burst", "why pipes burst in winter"
)
