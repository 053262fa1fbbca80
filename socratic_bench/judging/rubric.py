"""Reads rubrics: those of a folder by their names, and a user's own from a file."""

from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from tomllib import TOMLDecodeError, loads
from typing import Any

from socratic_bench.errors import UsageError
from socratic_bench.turns import Dimension, Event, Rubric, ScoredReply

FILE_SUFFIX = ".toml"


def rubric_names(folder: Path) -> tuple[str, ...]:
    return tuple(sorted(file.stem for file in folder.glob(f"*{FILE_SUFFIX}")))


def find_rubric(
    name: str, folder: Path, *, speakers: tuple[str, str], is_dialogue: bool = False
) -> Rubric:
    """The rubric of that name in a folder, or the one in a file whose path ends with `.toml`.

    Raises `UsageError` for an unknown name, and for a file that cannot be read as a rubric.
    """
    is_file = name.endswith(FILE_SUFFIX)
    if not is_file and name not in rubric_names(folder):
        raise UsageError(
            [f"There is no rubric {name!r}."],
            hint=f"Available: {', '.join(rubric_names(folder))}, or a TOML file.",
        )
    file = Path(name) if is_file else folder / f"{name}{FILE_SUFFIX}"
    load = load_rubric if is_file else _load_built_in
    try:
        return load(file, speakers=speakers, is_dialogue=is_dialogue)
    except OSError as error:
        raise UsageError([f"The rubric {name} cannot be read: {error.strerror}."]) from error
    except (TOMLDecodeError, UnicodeDecodeError, ValueError) as error:
        raise UsageError([f"The rubric {name} cannot be used: {error}."]) from error
    except (KeyError, TypeError) as error:
        raise UsageError(
            [f"The rubric {name} lacks a field, or has one too many: {error}."]
        ) from error


def load_rubric(file: Path, *, speakers: tuple[str, str], is_dialogue: bool = False) -> Rubric:
    """The rubric in a TOML file: id, title, instructions, a table for each dimension and event.

    Its examples have what is answered under the name of the first of the `speakers`. Raises
    `OSError`, and `ValueError`, `KeyError` or `TypeError` for what is no rubric.
    """
    body = file.read_bytes()
    data = loads(body.decode())
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
            name: (reference["name"], reference["macro_f1"])
            for name, reference in data.get("references", {}).items()
        },
        examples=tuple(
            _example(entry, dimensions, speakers[0], has_events=bool(events))
            for entry in data.get("examples", ())
        ),
    )


# The program's own do not change: they are read once for all runs.
_load_built_in = cache(load_rubric)


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
