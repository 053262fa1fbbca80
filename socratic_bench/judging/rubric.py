"""Reads a rubric from its data file."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, overload

from socratic_bench.turns import Dimension, Event, Rubric, ScoredReply

_EXAMPLES = "\n[[examples]]"


def load_rubric(file: Path, *, speakers: tuple[str, str], is_dialogue: bool = False) -> Rubric:
    """The rubric in a TOML file: id, title, instructions, a table per dimension and per event, and
    at its end examples, which have what is answered by the name of the first of the `speakers`.

    The examples are most of the file. They are parsed once a judge is asked, which is not before
    the first reply.
    """
    body = file.read_bytes()
    head, mark, tail = body.decode().partition(_EXAMPLES)
    data = tomllib.loads(head)
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
        references={
            name: (one["name"], one["macro_f1"]) for name, one in data.get("references", {}).items()
        },
        examples=_Examples(
            lambda: tuple(
                _example(entry, dimensions, speakers[0], has_events=bool(events))
                for entry in tomllib.loads(mark + tail).get("examples", ())
            )
        ),
    )


class _Examples(Sequence[ScoredReply]):
    """Read when they are first looked at."""

    def __init__(self, read: Callable[[], Sequence[ScoredReply]]) -> None:
        self._read = cache(read)

    def __len__(self) -> int:
        return len(self._read())

    @overload
    def __getitem__(self, index: int) -> ScoredReply: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[ScoredReply]: ...
    def __getitem__(self, index: int | slice) -> ScoredReply | Sequence[ScoredReply]:
        return self._read()[index]


def _example(
    entry: Mapping[str, Any], dimensions: tuple[Dimension, ...], asking: str, *, has_events: bool
) -> ScoredReply:
    return ScoredReply(
        prompt=entry[asking],
        reply=entry["reply"],
        scores={dimension.name: entry[dimension.name] for dimension in dimensions},
        why=entry["why"],
        before=entry.get("before", ""),
        events=entry.get("events", {}) if has_events else None,
    )
