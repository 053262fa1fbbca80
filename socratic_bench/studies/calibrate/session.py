"""From stored runs to a person's session: turns are drawn, and shown without judge and model."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.benchmarks import RunConfig, load_benchmark
from socratic_bench.documents.calibration import Label, LabellingDocument
from socratic_bench.errors import ArtifactError, Problem, UsageError
from socratic_bench.studies.calibrate.labels import read_labels
from socratic_bench.studies.calibrate.readings import JudgedRun, JudgedTurn, read_runs
from socratic_bench.turns import Dimension, Event, Rubric

# Which turns people are asked to label: drawn by chance, each with a known probability.

# How much likelier a turn is drawn within a point of a threshold, and where jurors disagree.
NEAR, NEAR_POINTS = 3.0, 1.0
DISPUTED, DISPUTED_POINTS = 2.0, 1.0
HALVINGS = 60
# One person's labels of drawn turns: question by question, each answer kept once it is given.

# By this key a label has the reason for all that it says.
WHOLE_REPLY = "why"
Kind = Literal["score", "event", "reason"]
_YES_OR_NO = {"y": True, "yes": True, "n": False, "no": False}


class LabellingRequest(Struct, frozen=True, kw_only=True):
    """What is asked for: turns of these runs, about so many, by a rubric (none: that by which they
    were judged), into a file.
    """

    runs: tuple[str, ...]
    file: str
    labeller: str
    n_turns: int
    seed: int = 0
    rubric: str = ""
    whole_dialogues: bool = False
    judging: str | None = None


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


class Labelling(Struct, frozen=True, kw_only=True):
    """A session that may start."""

    asked: LabellingRequest
    session: Session
    turns: Sequence[Label]
    rubric: Rubric
    n_runs: int
    n_turns: int

    @property
    def document(self) -> LabellingDocument:
        return LabellingDocument(
            file=self.asked.file,
            labeller=self.asked.labeller,
            rubric=self.rubric.id,
            n_runs=self.n_runs,
            n_turns=self.n_turns,
            n_drawn=len(self.turns),
            n_labelled=self.session.n_done,
        )


class SampledTurn(Struct, frozen=True, kw_only=True):
    """A turn that was drawn, with its probability."""

    run: JudgedRun
    turn: JudgedTurn
    probability: float


class Question(Struct, frozen=True, kw_only=True):
    """What is asked of a reply; the last one, `reason`, may be left without an answer."""

    name: str
    kind: Kind
    text: str
    levels: Mapping[str, str]
    dimension: Dimension | None = None


def prepare_labelling(asked: LabellingRequest, region: Callable[[], str]) -> Labelling:
    """Raises `UsageError` with what is wrong, `ArtifactError` for a store."""
    runs = sorted(read_runs(asked.runs, region, asked.judging), key=lambda run: run.run_id)
    rubric = _rubric(runs, asked.rubric)
    turns = [_label(one, asked.labeller) for one in _drawn(runs, asked)]
    file = LabelFile(Path(asked.file), asked.labeller)
    file.begun(turns)
    return Labelling(
        asked=asked,
        session=Session(turns, rubric, file),
        turns=turns,
        rubric=rubric,
        n_runs=len(runs),
        n_turns=sum(len(run.turns) for run in runs),
    )


def _rubric(runs: Sequence[JudgedRun], name: str) -> Rubric:
    names = {run.benchmark for run in runs}
    if len(names) > 1:
        raise UsageError([f"Runs of several benchmarks: {', '.join(sorted(names))}."])
    editions = {run.judge.rubric for run in runs if run.judge}
    if not name and len(editions) > 1:
        raise UsageError(
            [f"The runs were judged by several rubrics ({', '.join(sorted(editions))})."],
            hint=Problem.of("Say with {rubric} by which one to label."),
        )
    usual = next(iter(editions), str(getattr(RunConfig(model=""), "rubric", "")))
    return load_benchmark(names.pop()).find_rubric(name or usual)


def _drawn(runs: Sequence[JudgedRun], asked: LabellingRequest) -> Sequence[SampledTurn]:
    drawn = drawn_turns(runs, asked.n_turns, seed=asked.seed, whole_dialogues=asked.whole_dialogues)
    if not drawn:
        said = "No turn was drawn: ask for more {turns}, or take another {seed}."
        raise UsageError([Problem.of(said)])
    return drawn


def _label(one: SampledTurn, labeller: str) -> Label:
    """Nothing is answered yet; the words stand in it, so that it says by itself what it is of."""
    history, prompt, reply = one.run.words_of(one.turn.turn)
    return Label(
        labeller=labeller,
        run_id=one.run.run_id,
        turn=one.turn.turn,
        author=one.run.model,
        history=history,
        prompt=prompt,
        reply=reply,
        probability=one.probability,
    )


def drawn_turns(
    runs: Sequence[JudgedRun], n_turns: int, *, seed: int, whole_dialogues: bool = False
) -> list[SampledTurn]:
    """About `n_turns` of them, each drawn by itself, in an order by chance; the same for the same
    seed. Probabilities are never 0, and as turns weigh, up to 1. `whole_dialogues`: dialogues are
    drawn instead, all as likely, with every turn in their order.
    """
    turns = [(run, turn) for run in runs for turn in run.turns]
    if whole_dialogues:
        share = min(1.0, n_turns / len(turns)) if turns else 0.0
        chosen = [run for run in runs if _chance(seed, run.run_id) < share]
        chosen.sort(key=lambda run: _chance(seed, "order", run.run_id))
        return [
            SampledTurn(run=run, turn=turn, probability=share)
            for run in chosen
            for turn in run.turns
        ]
    weights = [_weight(run, turn) for run, turn in turns]
    factor = _factor(weights, n_turns)
    found = [
        SampledTurn(run=run, turn=turn, probability=min(1.0, factor * weight))
        for (run, turn), weight in zip(turns, weights, strict=True)
        if _chance(seed, run.run_id, turn.turn) < factor * weight
    ]
    return sorted(found, key=lambda one: _chance(seed, "order", one.run.run_id, one.turn.turn))


def _weight(run: JudgedRun, turn: JudgedTurn) -> float:
    score = turn.score
    near = score is not None and any(abs(score - one) <= NEAR_POINTS for one in _thresholds(run))
    disputed = turn.spread >= DISPUTED_POINTS
    return (NEAR if near else 1.0) * (DISPUTED if disputed else 1.0)


def _thresholds(run: JudgedRun) -> Iterator[float]:
    """Those of the benchmark that are scores, which are decimal; numbers of turns are whole."""
    told = run.document.get("thresholds") or {}
    for name in load_benchmark(run.benchmark).parts.thresholds.__struct_encode_fields__:
        if isinstance(value := told.get(name), float):
            yield value


def _factor(weights: Sequence[float], n_turns: int) -> float:
    """By what weights are multiplied so that so many are drawn on average; none counts above 1."""
    low, high = 0.0, 1.0 / min(weights, default=1.0)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        is_enough = sum(min(1.0, middle * weight) for weight in weights) >= n_turns
        low, high = (low, middle) if is_enough else (middle, high)
    return high


def _chance(*parts: object) -> float:
    """In 0 to 1, the same for the same parts on any machine."""
    digest = sha256("/".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


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


def _score(word: str, dimension: Dimension) -> float | None:
    try:
        score = float(word.replace(",", "."))
    except ValueError:
        return None
    is_within = dimension.low <= score <= dimension.high
    return score if is_within and (score / dimension.step).is_integer() else None
