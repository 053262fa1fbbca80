"""Reads a rubric from its data file."""

import tomllib
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from socratic_bench.turns import Dimension, Event, Rubric, ScoredReply


def load_rubric(file: Path, *, speakers: tuple[str, str], is_dialogue: bool = False) -> Rubric:
    """The rubric in a TOML file: id, title, instructions, a table per dimension and per event, and
    examples, in which what is answered stands by the name of the first of the `speakers`.
    """
    body = file.read_bytes()
    data = tomllib.loads(body.decode())
    dimensions = tuple(Dimension(**entry) for entry in data["dimensions"])
    events = tuple(Event(**entry) for entry in data.get("events", ()))
    return Rubric(
        id=data["id"],
        title=data["title"],
        instructions=data["instructions"].strip(),
        dimensions=dimensions,
        events=events,
        sha256=sha256(body).hexdigest(),
        speakers=speakers,
        is_dialogue=is_dialogue,
        has_quotes=data.get("quotes", False),
        temperature=data.get("temperature"),
        examples=tuple(
            _example(entry, dimensions, speakers[0], has_events=bool(events))
            for entry in data.get("examples", ())
        ),
    )


def _example(
    entry: Mapping[str, Any],
    dimensions: tuple[Dimension, ...],
    asking: str,
    *,
    has_events: bool,
) -> ScoredReply:
    return ScoredReply(
        prompt=entry[asking],
        reply=entry["reply"],
        scores={dimension.name: entry[dimension.name] for dimension in dimensions},
        why=entry["why"],
        before=entry.get("before", ""),
        events=entry.get("events", {}) if has_events else None,
    )
