"""What a simulated student needs and no question gives, with what meets each need."""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path


def need(number: int) -> str:
    """What a student says who needs something, one of a few by number."""
    said = [said for said, _ in _needs()]
    return said[number % len(said)]


def help_for(student: str) -> str | None:
    """What meets the need that a student's words name; `None` if they name none."""
    return next((given for said, given in _needs() if said in student), None)


@cache
def _needs() -> Sequence[tuple[str, str]]:
    rows = json.loads((Path(__file__).parent / "needs.json").read_text("utf-8"))
    return [(row["said"], row["given"]) for row in rows]
