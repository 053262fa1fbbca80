"""A recorded dialogue to start from: a run's document, its folder of raw turns, or a plain file.

The plain form is `{"scenario": "...", "turns": [{"student": "...", "tutor": "..."}, ...]}`, where
the scenario may be left out. The last turn may lack the tutor's words: those of the student are
then what the tutor under test answers first.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from msgspec import Struct
from msgspec.structs import astuple

from socratic_bench.benchmarks.socratic.student.pressure import KINDS
from socratic_bench.errors import Problem, UsageError
from socratic_bench.settings import read_bounded
from socratic_bench.types import Json, is_text

MAX_BYTES = 50_000_000
LONGEST = 1_000_000  # characters of one side of a turn, as of a prompt
MOST_TURNS = 100_000

_TURN_FILE = r"turn_(\d{3,})\.json"  # compiled when wanted
_TURN_KEYS = ("student", "tutor", "pressure")
# Their names in our own documents.
_RUN_KEYS = {"student": "student", "tutor": "question", "pressure": "pressure"}
_RAW_KEYS = {"student": "student_prompt", "tutor": "ai_response", "pressure": "pressure"}
_PLAIN_KEYS = ("scenario", "turns")


class RecordedTurn(Struct, frozen=True, kw_only=True):
    """One exchange. `tutor` is empty only in a handover, which the tutor under test answers."""

    student: str
    tutor: str
    pressure: str | None


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


class _Entry(Struct, frozen=True):
    """One turn as it stands in a file: where, its fields by our names, and theirs in the file."""

    place: str
    fields: Mapping[str, object]
    keys: Mapping[str, str]

    def at(self, key: str) -> str:
        """Where a field stands."""
        return f"{self.place}{self.keys.get(key, key)}"


def read_transcript(path: str, n_turns: int | None) -> Transcript:
    """The first `n_turns` turns of a record, or all that have a reply of the tutor.

    Raises `UsageError` with every mistake, naming file, field and reason.
    """
    source = Path(path)
    try:
        entries, scenario, problems = (_from_folder if source.is_dir() else _from_file)(source)
    except OSError as error:
        raise UsageError(
            [f"The transcript {path} cannot be read: {error.strerror or type(error).__name__}."]
        ) from error
    problems += (
        problem for n, entry in enumerate(entries) for problem in _wrong(entry, n, len(entries))
    )
    if problems:
        raise UsageError(problems)
    turns = [_turn(entry.fields) for entry in entries]
    return _cut(path, turns, n_turns, scenario)


def _cut(path: str, turns: list[RecordedTurn], n_turns: int | None, scenario: str) -> Transcript:
    whole = len(turns) - (not turns[-1].tutor.strip())
    if not whole:
        raise UsageError([f"{path}: turns: the tutor says nothing in the only one."])
    n_replayed = whole if n_turns is None else n_turns
    if n_replayed > whole:
        raise UsageError(
            [
                Problem.of(
                    "{path}: turns: it has {whole}, but {transcript_turns} asks for {asked}.",
                    path=path,
                    whole=whole,
                    asked=n_turns,
                )
            ]
        )
    handover = turns[n_replayed] if n_replayed < len(turns) else None
    return Transcript(
        turns=tuple(turns[: max(0, n_replayed)]), handover=handover, scenario=scenario
    )


def _from_folder(folder: Path) -> tuple[list[_Entry], str, list[str]]:
    """The raw turns of one run, in their order, each of which names the run's scenario."""
    turns = {file: _parsed(file) for file in _turn_files(folder)}
    entries = [_renamed(f"{file}: ", turn, _RAW_KEYS) for file, turn in turns.items()]
    return entries, _scenario(next(iter(turns.values()))), []


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


def _from_file(file: Path) -> tuple[list[_Entry], str, list[str]]:
    """The turns of one file, its scenario, and what is wrong with it beside its turns."""
    document = _parsed(file)
    ours = document.get("kind") in ("run", "curated")
    turns = document.get("turns")
    problems = [] if ours else list(_wrong_plain(file, document))
    if not isinstance(turns, list) or not turns:
        problems.append(f"{file}: turns: must be a list of one turn or more.")
        turns = []
    elif len(turns) > MOST_TURNS:
        problems.append(f"{file}: turns: it has {len(turns)}; at most {MOST_TURNS} are read.")
        turns = []
    entries = [_entry(f"{file}: turns[{n}]", turn, ours=ours) for n, turn in enumerate(turns)]
    return entries, _scenario(document), problems


def _scenario(document: Mapping[str, Json]) -> str:
    scenario = document.get("scenario")
    return scenario if isinstance(scenario, str) else ""


def _wrong_plain(file: Path, document: Mapping[str, Json]) -> Iterator[str]:
    for key in document:
        if key not in _PLAIN_KEYS:
            yield f"{file}: {key}: unknown field; a transcript has {', '.join(_PLAIN_KEYS)}."
    if "scenario" in document and not _scenario(document).strip():
        yield f"{file}: scenario: must be the name of a scenario."


def _entry(place: str, turn: Json, *, ours: bool) -> _Entry:
    if not isinstance(turn, dict):
        return _Entry(place, {"": turn}, _RUN_KEYS if ours else {})
    return _renamed(f"{place}.", turn, _RUN_KEYS) if ours else _Entry(f"{place}.", turn, {})


def _renamed(place: str, turn: Mapping[str, object], keys: Mapping[str, str]) -> _Entry:
    """A turn of our own documents, reduced to words and pressure."""
    fields = {name: turn[key] for name, key in keys.items() if key in turn}
    return _Entry(place, fields, keys)


def _parsed(file: Path) -> dict[str, Json]:
    try:
        document = json.loads(read_bounded(file, bound=MAX_BYTES).decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise UsageError([f"{file}: it is no UTF-8 text."]) from error
    except (ValueError, RecursionError) as error:
        raise UsageError([f"{file}: it is no JSON ({error})."]) from error
    if not isinstance(document, dict):
        raise UsageError([f"{file}: it must be a JSON object."])
    return document


def _wrong(entry: _Entry, index: int, count: int) -> Iterator[str]:
    if "" in entry.fields:
        student, tutor = (entry.keys.get(key, key) for key in ("student", "tutor"))
        yield f"{entry.place}: must be an object with {student} and {tutor}."
        return
    for key in entry.fields:
        if key not in _TURN_KEYS:
            yield f"{entry.at(key)}: unknown field; a turn has {', '.join(_TURN_KEYS)}."
    yield from _wrong_text(entry, "student", may_be_empty=False)
    yield from _wrong_text(entry, "tutor", may_be_empty=index == count - 1)
    pressure = entry.fields.get("pressure")
    if pressure is not None and pressure not in KINDS:
        yield f"{entry.at('pressure')}: must be null or one of {', '.join(KINDS)}."


def _wrong_text(entry: _Entry, key: str, *, may_be_empty: bool) -> Iterator[str]:
    value = entry.fields.get(key)
    if value is None:
        if not may_be_empty:
            yield f"{entry.at(key)}: missing."
    elif not isinstance(value, str):
        yield f"{entry.at(key)}: must be text."
    elif not value.strip() and not may_be_empty:
        yield f"{entry.at(key)}: empty."
    elif len(value) > LONGEST:
        yield f"{entry.at(key)}: {len(value)} characters; at most {LONGEST} allowed."
    elif not is_text(value):
        yield f"{entry.at(key)}: holds half of a character (a lone surrogate)."


def _turn(fields: Mapping[str, object]) -> RecordedTurn:
    pressure = fields.get("pressure")
    return RecordedTurn(
        student=str(fields["student"]),
        tutor=str(fields.get("tutor") or ""),
        pressure=str(pressure) if pressure else None,
    )
