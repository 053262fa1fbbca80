"""A labelling session: sample turns of stored runs and ask a person about them, without showing
judge or model.
"""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.benchmarks import RunConfig, load_benchmark
from socratic_bench.documents.calibration import Label, LabellingDocument
from socratic_bench.errors import ArtifactError, Mistakes, Problem, UsageError
from socratic_bench.ports.benchmark import Benchmark
from socratic_bench.storage.stores import Region
from socratic_bench.studies.calibrate.labels import read_labels
from socratic_bench.studies.calibrate.readings import judge_of, scenario_names, words_of
from socratic_bench.studies.reading import read_runs
from socratic_bench.studies.rows import RunRow, TurnRow
from socratic_bench.turns import Dimension, Rubric

# How much likelier a turn is drawn within a point of a threshold, and where jurors disagree.
NEAR, NEAR_POINTS = 3.0, 1.0
DISPUTED, DISPUTED_POINTS = 2.0, 1.0
HALVINGS = 60
# By this key a label has the reason for all that it says.
WHOLE_REPLY = "why"
_YES_OR_NO = {"y": True, "yes": True, "n": False, "no": False}


class LabellingRequest(Struct, frozen=True, kw_only=True):
    """What to label: so many turns of these runs, by a rubric (default: that which judged them)."""

    runs: tuple[str, ...]
    file: str
    labeller: str
    n_turns: int
    seed: int = 0
    rubric: str = ""
    whole_dialogues: bool = False
    judging: str | None = None


class LabelFile:
    """The labels of one person in a file, which is rewritten after each answer. Labels of others in
    it stay, even if they are written meanwhile.
    """

    def __init__(self, path: Path, labeller: str, turns: Sequence[Label]) -> None:
        """Raises `UsageError` if the person's earlier labels are of other turns than these."""
        self._path = path
        self._labeller = labeller
        is_special = path.exists() and not path.is_file()
        if is_special or not os.access(path.parent, os.W_OK):
            raise UsageError([f"Labels cannot be saved in {path}: the file cannot be written."])
        labels = self._read_labels()
        self._own = {
            (label.run_id, label.turn): label for label in labels if label.labeller == labeller
        }
        probabilities = {(label.run_id, label.turn): label.probability for label in turns}
        if any(probabilities.get(place) != label.probability for place, label in self._own.items()):
            raise UsageError(
                [f"{labeller} has begun {path} with other turns than are drawn now."],
                hint=Problem.of("Give the same runs, {turns} and {seed} as then, or another file."),
            )

    def of(self, label: Label) -> Label:
        """The label of a turn so far."""
        return self._own.get((label.run_id, label.turn), label)

    def keep(self, label: Label) -> None:
        """Store a label, or remove one without answers; it is on disk once this returns. Raises
        `ArtifactError` if the file cannot be written.
        """
        place = (label.run_id, label.turn)
        if label.scores or label.events:
            self._own[place] = label
        else:
            self._own.pop(place, None)
        other_labels = [label for label in self._read_labels() if label.labeller != self._labeller]
        body = b"".join(
            msgspec.json.encode(label) + b"\n" for label in (*other_labels, *self._own.values())
        )
        # Of this process alone: somebody else may write the same file just now.
        beside = self._path.with_name(f".{self._path.name}.{os.getpid()}.new")
        try:
            with beside.open("wb") as file:
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self._path)
        except OSError as error:
            raise ArtifactError(f"{self._path} cannot be written: {error.strerror}.") from error
        finally:
            beside.unlink(missing_ok=True)

    def _read_labels(self) -> Sequence[Label]:
        """All labels that are in the file now."""
        is_begun = self._path.exists() and self._path.stat().st_size
        return read_labels([str(self._path)]) if is_begun else []


def labels_with(labeller: str, own: bytes, stored: bytes | None) -> bytes:
    """A file of labels as it is stored, with one person's labels of another copy of it."""
    both = ((own or b"", True), (stored or b"", False))
    lines = [
        line
        for body, is_own in both
        for line in body.splitlines()
        if (msgspec.json.decode(line, type=Label).labeller == labeller) == is_own
    ]
    return b"".join(line + b"\n" for line in lines)


class Session:
    """Goes through turns and questions. `place` is the current question; `None` at the end. A turn
    is not asked for the scores that it `lacks`.
    """

    def __init__(
        self,
        turns: Sequence[Label],
        rubric: Rubric,
        file: LabelFile,
        lacks: Sequence[Collection[str]] = (),
    ) -> None:
        self._asked = turns
        self._lacks = lacks or [()] * len(turns)
        self._file = file
        self.questions = questions_of(rubric)
        self._skipped: set[int] = set()
        self.place: tuple[int, int] | None = self._next(0)

    @property
    def n_done(self) -> int:
        """Number of turns with all questions answered."""
        return sum(self._first_open(turn) is None for turn in range(len(self._asked)))

    def answer(self, word: str) -> str:
        """Record the answer to the current question. Returns what is wrong with it, if anything."""
        assert self.place  # noqa: S101 -- nothing is asked at the end
        turn, number = self.place
        question, label = self.questions[number], self._file.of(self._asked[turn])
        value = question.read(word)
        if value is None:
            return f"{question.text}, please."
        if value != "":
            given = {**getattr(label, question.field), question.name: value}
            self._file.keep(replace(label, **{question.field: given}))
        later = [n for n in self._numbers(turn) if n > number]
        self.place = (turn, later[0]) if later else self._next(turn + 1)
        return ""

    def back(self) -> None:
        """Go to the previous question, of the previous turn if this is the first."""
        assert self.place  # noqa: S101 -- as above
        turn, number = self.place
        if earlier := [n for n in self._numbers(turn) if n < number]:
            self.place = turn, earlier[-1]
        elif turn:
            self.place = turn - 1, self._numbers(turn - 1)[-2]  # the last is for a reason

    def skip(self) -> None:
        """Leave this turn for later; answers already given stay."""
        assert self.place  # noqa: S101 -- as above
        self._skipped.add(self.place[0])
        self.place = self._next(self.place[0] + 1)

    def _next(self, start: int) -> tuple[int, int] | None:
        """The first open question from this turn on, then of earlier turns."""
        for turn in (*range(start, len(self._asked)), *range(min(start, len(self._asked)))):
            number = self._first_open(turn)
            if number is not None and turn not in self._skipped:
                return turn, number
        return None

    def _numbers(self, turn: int) -> Sequence[int]:
        """The questions about a turn."""
        return [n for n, q in enumerate(self.questions) if q.name not in self._lacks[turn]]

    def _first_open(self, turn: int) -> int | None:
        label = self._file.of(self._asked[turn])
        given = {**label.scores, **label.events}
        open_numbers = (n for n in self._numbers(turn) if self.questions[n].name not in given)
        return next((n for n in open_numbers if self.questions[n].field != "reasons"), None)


class Labelling(Struct, frozen=True, kw_only=True):
    """A labelling session that is ready to start."""

    request: LabellingRequest
    session: Session
    turns: Sequence[Label]
    rubric: Rubric
    n_runs: int
    n_turns: int

    @property
    def document(self) -> LabellingDocument:
        return LabellingDocument(
            file=self.request.file,
            labeller=self.request.labeller,
            rubric=self.rubric.id,
            n_runs=self.n_runs,
            n_turns=self.n_turns,
            n_drawn=len(self.turns),
            n_labelled=self.session.n_done,
        )


class SampledTurn(Struct, frozen=True, kw_only=True):
    """A sampled turn with its sampling probability."""

    run: RunRow
    turn: TurnRow
    probability: float


class Question(Struct, frozen=True, kw_only=True):
    """A question about a reply. `read` makes the value of a label's `field` of what was typed;
    `None`: it is no answer. The last question, for a reason, is optional.
    """

    name: str
    field: Literal["scores", "events", "reasons"]
    text: str
    levels: Mapping[str, str]
    read: Callable[[str], float | str | None]


def prepare_labelling(request: LabellingRequest, region: Region) -> Labelling:
    """Sample turns and open the file. Raises `UsageError` with what is wrong, `ArtifactError` if a
    store cannot be read.
    """
    mistakes = Mistakes()
    stored = read_runs(request.runs, region, mistakes, judging=request.judging)
    if mistakes.sentences or not stored.benchmark:
        raise mistakes.error()
    runs = sorted(stored.runs, key=lambda run: run.run_id)
    base = _rubric(runs, request.rubric, stored.benchmark)
    every_turn = (turn.own for run in runs for turn in run.turns)
    rubric = stored.benchmark.extend_rubric(base, every_turn)
    scenarios = scenario_names(runs)
    sampled_turns = sample_turns(
        runs, request.n_turns, seed=request.seed, whole_dialogues=request.whole_dialogues
    )
    if not sampled_turns:
        message = "No turn was drawn: ask for more {turns}, or take another {seed}."
        raise UsageError([Problem.of(message)])
    turns = [
        _empty_label(sampled, request.labeller, scenarios[sampled.run.run_id])
        for sampled in sampled_turns
    ]
    file = LabelFile(Path(request.file), request.labeller, turns)
    extend = partial(stored.benchmark.extend_rubric, base)
    lacks = [{*rubric.names} - {*extend([sampled.turn.own]).names} for sampled in sampled_turns]
    return Labelling(
        request=request,
        session=Session(turns, rubric, file, lacks),
        turns=turns,
        rubric=rubric,
        n_runs=len(runs),
        n_turns=sum(len(run.turns) for run in runs),
    )


def _rubric(runs: Sequence[RunRow], name: str, benchmark: Benchmark) -> Rubric:
    editions = {judge.rubric for run in runs if (judge := judge_of(run))}
    if not name and len(editions) > 1:
        raise UsageError(
            [f"The runs were judged by several rubrics ({', '.join(sorted(editions))})."],
            hint=Problem.of("Choose one with {rubric}."),
        )
    usual = next(iter(editions), str(getattr(RunConfig(model=""), "rubric", "")))
    return benchmark.find_rubric(name or usual)


def _empty_label(sampled: SampledTurn, labeller: str, scenario: str) -> Label:
    """An empty label of a turn. It holds the texts, so that it can be read without the run."""
    return Label(
        labeller=labeller,
        **{"scenario": scenario or None, **words_of(sampled.run, sampled.turn.turn)},
        run_id=sampled.run.run_id,
        turn=sampled.turn.turn,
        author=sampled.run.model,
        probability=sampled.probability,
    )


def sample_turns(
    runs: Sequence[RunRow], n_turns: int, *, seed: int, whole_dialogues: bool = False
) -> list[SampledTurn]:
    """Sample about `n_turns` turns independently, in random order; the same for the same seed.
    Probabilities are in proportion to weights, above 0 and at most 1. With `whole_dialogues`,
    sample dialogues with equal probability instead, with all turns in order.
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
    sampled = [
        SampledTurn(run=run, turn=turn, probability=min(1.0, factor * weight))
        for (run, turn), weight in zip(turns, weights, strict=True)
        if _chance(seed, run.run_id, turn.turn) < factor * weight
    ]
    return sorted(sampled, key=lambda turn: _chance(seed, "order", turn.run.run_id, turn.turn.turn))


def _chance(*parts: object) -> float:
    """A number between 0 and 1 that is the same for the same parts on any machine."""
    digest = sha256("/".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def _weight(run: RunRow, turn: TurnRow) -> float:
    thresholds = run.document.get("thresholds") or {}
    names = load_benchmark(run.at("benchmark")).parts.thresholds.__struct_encode_fields__
    # The benchmark's thresholds of scores are decimal; whole ones count turns.
    of_scores = [thresholds[n] for n in names if isinstance(thresholds.get(n), float)]
    score = turn.score
    near = score is not None and any(abs(score - bound) <= NEAR_POINTS for bound in of_scores)
    disputed = turn.spread >= DISPUTED_POINTS
    return (NEAR if near else 1.0) * (DISPUTED if disputed else 1.0)


def _factor(weights: Sequence[float], n_turns: int) -> float:
    """The factor of weights by which so many are sampled on average; a probability is at most 1."""
    low, high = 0.0, 1.0 / min(weights, default=1.0)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        is_enough = sum(min(1.0, middle * weight) for weight in weights) >= n_turns
        low, high = (low, middle) if is_enough else (middle, high)
    return high


def questions_of(rubric: Rubric) -> tuple[Question, ...]:
    """One question for each dimension and each event, and one for the reason."""
    scores = (
        Question(
            name=item.name,
            field="scores",
            text=f"{item.name}, {item.low:g} to {item.high:g} in steps of {item.step:g}",
            levels=item.levels,
            read=partial(_read_score, item),
        )
        for item in rubric.dimensions
    )
    events = (
        Question(
            name=event.name,
            field="events",
            text=f"{event.name}, y or n",
            levels={"yes": event.meaning},
            read=lambda word: _YES_OR_NO.get(word.casefold()),
        )
        for event in rubric.events
    )
    text = "why, in a few words (Enter: none)"
    why = Question(name=WHOLE_REPLY, field="reasons", text=text, levels={}, read=str)
    return (*scores, *events, why)


def _read_score(dimension: Dimension, word: str) -> float | None:
    try:
        score = float(word.replace(",", "."))
    except ValueError:
        return None
    return score if dimension.allows(score) else None
