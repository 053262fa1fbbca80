"""A recorded dialogue to start from: a run's document, its folder of raw turns, or a plain file.

The plain form is `{"scenario": "...", "turns": [{"student": "...", "tutor": "..."}, ...]}`, where
the scenario may be left out. The last turn may lack the tutor's words: those of the student are
then what the tutor under test answers first.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct, ValidationError
from msgspec.structs import astuple

from socratic_bench.benchmarks.socratic.student.pressure import Kind
from socratic_bench.concurrency import convert
from socratic_bench.errors import Problem, UsageError
from socratic_bench.settings import read_bounded
from socratic_bench.types import Json, is_text

MAX_BYTES = 50_000_000
MAX_TURNS = 100_000

_Words = Annotated[str, Meta(max_length=1_000_000)]
_TURN_FILE = r"turn_(\d{3,})\.json"  # compiled when wanted


class RecordedTurn(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One exchange. `tutor` is empty only in a handover, which the tutor under test answers."""

    student: _Words
    tutor: _Words = ""
    pressure: Kind | None = None


class Transcript(Struct, frozen=True, kw_only=True):
    """The turns to replay, and what the student said next, if the record has it.

    `scenario` is the one that the record names. `sha256` is of the words alone, so that a dialogue
    has one fingerprint, whatever file it comes from.
    """

    turns: tuple[RecordedTurn, ...] = ()
    handover: RecordedTurn | None = None
    scenario: str = ""

    @property
    def sha256(self) -> str:
        words = [astuple(turn) for turn in (*self.turns, self.handover) if turn]
        return hashlib.sha256(json.dumps(words).encode()).hexdigest()


NO_TRANSCRIPT = Transcript()


class _Entry(NamedTuple):
    """One turn as it stands in a file: where, and its fields by their names there."""

    place: str
    turn: Json


def read_transcript(path: str, n_turns: int | None) -> Transcript:
    """The first `n_turns` turns, or all with a reply. Raises `UsageError` with all mistakes."""
    source = Path(path)
    try:
        read = _from_folder if source.is_dir() else _from_file
        entries, keys, scenario, problems = read(source)
    except OSError as error:
        raise UsageError(
            [f"The transcript {path} cannot be read: {error.strerror or type(error).__name__}."]
        ) from error
    turns = []
    for n, entry in enumerate(entries):
        try:
            turns.append(_turn(entry.turn, keys, may_lack_tutor=n == len(entries) - 1))
        except ValueError as error:
            problems.append(f"{entry.place}{error}.")
    if problems:
        raise UsageError(problems)
    return _cut(path, turns, n_turns, scenario)


def _turn(turn: Json, keys: Mapping[str, str] | None, *, may_lack_tutor: bool) -> RecordedTurn:
    """Raises `ValueError` with the field and what is wrong with it."""
    if keys and isinstance(turn, dict):  # of our own documents, which have more fields
        turn = {name: turn[key] for name, key in keys.items() if turn.get(key) is not None}
    names = keys or {}
    try:
        recorded = convert(turn, RecordedTurn)
    except ValidationError as error:
        reason, _, path = str(error).partition(" - at `$.")
        field = path.rstrip("`")
        raise ValueError(f"{names.get(field, field)}: {reason}" if field else reason) from error
    for name, words in (("student", recorded.student), ("tutor", recorded.tutor)):
        if not (words.strip() or (name == "tutor" and may_lack_tutor)):
            raise ValueError(f"{names.get(name, name)}: missing or empty")
        if not is_text(words):
            raise ValueError(f"{names.get(name, name)}: half of a character (a lone surrogate)")
    return recorded


def _cut(path: str, turns: list[RecordedTurn], n_turns: int | None, scenario: str) -> Transcript:
    whole = len(turns) - (not turns[-1].tutor.strip())
    if not whole:
        raise UsageError([f"{path}: turns: the tutor says nothing in the only one."])
    n_replayed = whole if n_turns is None else n_turns
    if n_replayed > whole:
        text = "{path}: turns: it has {whole}, but {transcript_turns} asks for {asked}."
        raise UsageError([Problem.of(text, path=path, whole=whole, asked=n_turns)])
    handover = turns[n_replayed] if n_replayed < len(turns) else None
    return Transcript(
        turns=tuple(turns[: max(0, n_replayed)]), handover=handover, scenario=scenario
    )


class _Source(NamedTuple):
    """A record's turns, names of their fields if it is our own, scenario, and other mistakes."""

    entries: list[_Entry]
    keys: Mapping[str, str] | None
    scenario: str
    problems: list[str]


def _from_folder(folder: Path) -> _Source:
    """The raw turns of one run, in their order, each of which names the run's scenario."""
    turns = {file: _parsed(file) for file in _turn_files(folder)}
    entries = [_Entry(f"{file}: ", turn) for file, turn in turns.items()]
    keys = {"student": "student_prompt", "tutor": "ai_response", "pressure": "pressure"}
    return _Source(entries, keys, _scenario(next(iter(turns.values()))), [])


def _turn_files(folder: Path) -> list[Path]:
    files = {
        int(m[1]): file for file in folder.iterdir() if (m := re.fullmatch(_TURN_FILE, file.name))
    }
    if not files:
        raise UsageError([f"{folder}: it holds no turn_NNN.json, so it is no run's folder."])
    missing = (f"turn_{n:03d}.json" for n in range(max(files)) if n not in files)
    if first := [*islice(missing, 5)]:
        raise UsageError([f"{folder}: {', '.join(first)}: missing."])
    return [files[number] for number in sorted(files)]


def _from_file(file: Path) -> _Source:
    document = _parsed(file)
    keys, turns, problems = None, document.get("turns"), []
    if document.get("kind") in ("run", "curated"):
        keys = {"student": "student", "tutor": "question", "pressure": "pressure"}
    else:
        names = ("scenario", "turns")
        problems = [
            f"{file}: {key}: unknown field; a transcript has {', '.join(names)}."
            for key in document
            if key not in names
        ]
        if "scenario" in document and not _scenario(document).strip():
            problems.append(f"{file}: scenario: must be the name of a scenario.")
    if not isinstance(turns, list) or not 1 <= len(turns) <= MAX_TURNS:
        problems.append(f"{file}: turns: must be a list of 1 to {MAX_TURNS} turns.")
        turns = []
    entries = [_Entry(f"{file}: turns[{n}]: ", turn) for n, turn in enumerate(turns)]
    return _Source(entries, keys, _scenario(document), problems)


def _scenario(document: Mapping[str, Json]) -> str:
    scenario = document.get("scenario")
    return scenario if isinstance(scenario, str) else ""


def _parsed(file: Path) -> dict[str, Json]:
    try:
        document = json.loads(read_bounded(file, bound=MAX_BYTES).decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise UsageError([f"{file}: it is not UTF-8 text."]) from error
    except (ValueError, RecursionError) as error:
        raise UsageError([f"{file}: it is not valid JSON ({error})."]) from error
    if not isinstance(document, dict):
        raise UsageError([f"{file}: it must be a JSON object."])
    return document
