"""One person's labels of drawn turns: question by question, each answer kept once it is given."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.documents.calibration import Label
from socratic_bench.errors import ArtifactError, Problem, UsageError
from socratic_bench.studies.labels.reading import read_labels
from socratic_bench.turns import Dimension, Event, Rubric

# By this key a label has the reason for all that it says.
WHOLE_REPLY = "why"
Kind = Literal["score", "event", "reason"]


class Question(Struct, frozen=True, kw_only=True):
    """What is asked of a reply; the last one, `reason`, may be left without an answer."""

    name: str
    kind: Kind
    text: str
    levels: Mapping[str, str]
    dimension: Dimension | None = None


def questions_of(rubric: Rubric) -> tuple[Question, ...]:
    """A question for each dimension and each event, and one for why."""
    scores = (_of_dimension(one) for one in rubric.dimensions)
    events = (_of_event(one) for one in rubric.events)
    why = Question(
        name=WHOLE_REPLY, kind="reason", text="why, in a few words (Enter: none)", levels={}
    )
    return (*scores, *events, why)


def _of_dimension(one: Dimension) -> Question:
    text = f"{one.name}, {one.low:g} to {one.high:g} in steps of {one.step:g}"
    return Question(name=one.name, kind="score", text=text, levels=one.levels, dimension=one)


def _of_event(one: Event) -> Question:
    levels = {"yes": one.meaning}
    return Question(name=one.name, kind="event", text=f"{one.name}, y or n", levels=levels)


class LabelFile:
    """The labels of one person in a file, written whole after each answer. Those of others that
    stand in it stay, also where others write theirs meanwhile.
    """

    def __init__(self, path: Path, labeller: str) -> None:
        self._path = path
        self._labeller = labeller
        is_special = path.exists() and not path.is_file()
        if is_special or not os.access(path.parent, os.W_OK):
            raise UsageError([f"Labels cannot be kept in {path}: no file can be written there."])
        found = self._found()
        self._own = {(one.run_id, one.turn): one for one in found if one.labeller == labeller}

    def begun(self, asked: Sequence[Label]) -> None:
        """Raises `UsageError` if what the person has labelled is not of what is asked now."""
        known = {(one.run_id, one.turn): one.probability for one in asked}
        if any(known.get(place) != one.probability for place, one in self._own.items()):
            raise UsageError(
                [f"{self._labeller} has begun {self._path} with other turns than are drawn now."],
                hint=Problem.of("Give the same runs, {turns} and {seed} as then, or another file."),
            )

    def of(self, asked: Label) -> Label:
        """The turn's label so far."""
        return self._own.get((asked.run_id, asked.turn), asked)

    def keep(self, label: Label) -> None:
        """The label as it is now; one without an answer is left out. Safe once this returns. Raises
        `ArtifactError` if the file cannot be written.
        """
        place = (label.run_id, label.turn)
        if label.scores or label.events:
            self._own[place] = label
        else:
            self._own.pop(place, None)
        others = [one for one in self._found() if one.labeller != self._labeller]
        body = b"".join(msgspec.json.encode(one) + b"\n" for one in (*others, *self._own.values()))
        try:
            self._write(body)
        except OSError as error:
            raise ArtifactError(f"{self._path} cannot be written: {error.strerror}.") from error

    def _found(self) -> Sequence[Label]:
        """All that stands in the file now."""
        is_begun = self._path.exists() and self._path.stat().st_size
        return read_labels([str(self._path)]) if is_begun else []

    def _write(self, body: bytes) -> None:
        # Of this process alone: somebody else may write the same file just now.
        beside = self._path.with_name(f".{self._path.name}.{os.getpid()}.new")
        try:
            with beside.open("wb") as file:
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self._path)
        finally:
            beside.unlink(missing_ok=True)


class Session:
    """Goes through turns and questions. `place` is the question that is asked next; `None` at the
    end.
    """

    def __init__(self, asked: Sequence[Label], rubric: Rubric, file: LabelFile) -> None:
        self._asked = asked
        self._file = file
        self.questions = questions_of(rubric)
        self._needed = [one for one in self.questions if one.kind != "reason"]
        self._skipped: set[int] = set()
        self.place: tuple[int, int] | None = self._next(0)

    @property
    def n_done(self) -> int:
        """Turns of which all is answered."""
        return sum(self._first_open(self._file.of(one)) is None for one in self._asked)

    def answer(self, word: str) -> str:
        """Take the answer to the question asked; what is wrong with it, or nothing."""
        assert self.place  # noqa: S101 -- nothing is asked at the end
        turn, number = self.place
        question, label = self.questions[number], self._file.of(self._asked[turn])
        if question.kind == "reason":
            if word:
                self._file.keep(replace(label, reasons={**label.reasons, question.name: word}))
        elif question.dimension is not None:
            score = _score(word, question.dimension)
            if score is None:
                return f"{question.text}, please."
            self._file.keep(replace(label, scores={**label.scores, question.name: score}))
        else:
            said = _YES_OR_NO.get(word.casefold())
            if said is None:
                return "y or n, please."
            self._file.keep(replace(label, events={**label.events, question.name: said}))
        self.place = (
            (turn, number + 1) if number + 1 < len(self.questions) else self._next(turn + 1)
        )
        return ""

    def back(self) -> None:
        """The question before, of the turn before if it is the first."""
        assert self.place  # noqa: S101 -- as above
        turn, number = self.place
        if number:
            self.place = turn, number - 1
        elif turn:
            self.place = turn - 1, len(self._needed) - 1

    def skip(self) -> None:
        """Leave this turn for another time; what was answered of it stays."""
        assert self.place  # noqa: S101 -- as above
        self._skipped.add(self.place[0])
        self.place = self._next(self.place[0] + 1)

    def _next(self, start: int) -> tuple[int, int] | None:
        """The first question without an answer from this turn on, then of turns before it."""
        for turn in (*range(start, len(self._asked)), *range(min(start, len(self._asked)))):
            number = self._first_open(self._file.of(self._asked[turn]))
            if number is not None and turn not in self._skipped:
                return turn, number
        return None

    def _first_open(self, label: Label) -> int | None:
        given = {**label.scores, **label.events}
        return next((n for n, one in enumerate(self._needed) if one.name not in given), None)


_YES_OR_NO = {"y": True, "yes": True, "n": False, "no": False}


def _score(word: str, dimension: Dimension) -> float | None:
    try:
        score = float(word.replace(",", "."))
    except ValueError:
        return None
    is_within = dimension.low <= score <= dimension.high
    return score if is_within and (score / dimension.step).is_integer() else None
