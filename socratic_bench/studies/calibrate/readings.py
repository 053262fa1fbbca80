"""Verdicts of a judge beside labels of people: from a calibration's run, and from stored runs."""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import combinations
from math import fsum
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from socratic_bench.benchmarks import load_benchmark
from socratic_bench.concurrency import convert
from socratic_bench.documents.calibration import CalibratedJudge, Label, PrecedingMessage
from socratic_bench.documents.encoding import reason
from socratic_bench.errors import Mistakes, Problem, UsageError, Words
from socratic_bench.studies.calibrate.labels import LabelledTurn
from socratic_bench.studies.places import find_runs
from socratic_bench.studies.reading import with_judging
from socratic_bench.studies.rows import benchmark_of, read_document, validate_run
from socratic_bench.turns import Judged, Rubric, Unscored, Verdict

Value = TypeVar("Value")
TOTAL = "overall_score"
_BOUNDED = re.compile(r"([\w-]+)\s*(<|>=)\s*(-?\d+(?:\.\d+)?)")


class Quantity(Struct, frozen=True, kw_only=True):
    """What makes a verdict a yes: an event, or a score on one side of a bound. `sign` is -1 if a
    low score means yes.
    """

    name: str
    score: str | None = None
    sign: int = 1
    bound: float = 0.0

    def strength(self, scores: Mapping[str, float], events: Collection[str] | None) -> float | None:
        """How strongly the verdict says yes: higher is stronger; `None` if the verdict does not
        tell. `events` are those that the judge saw.
        """
        if self.score is None:
            return None if events is None else float(self.name in events)
        score = scores.get(self.score)
        return None if score is None else self.sign * score

    def is_yes(self, strength: float) -> bool:
        """Whether a verdict of this strength is a yes."""
        if self.score is None:
            return bool(strength)
        least = self.sign * self.bound
        return strength > least if self.sign < 0 else strength >= least


class JudgedLabel(Struct, frozen=True, kw_only=True):
    """A labelled reply with the judge's verdict on it."""

    turn: LabelledTurn
    judged: Judged | None

    @property
    def outcome(self) -> Verdict | Unscored | None:
        return self.judged.outcome if self.judged else None

    @property
    def verdict(self) -> Verdict | None:
        return self.outcome if isinstance(self.outcome, Verdict) else None

    @property
    def scores(self) -> Mapping[str, float]:
        """Scores by dimension, and their sum; empty without a verdict."""
        verdict = self.verdict
        return {**verdict.scores, TOTAL: verdict.overall_score} if verdict else {}

    def repeated(self, name: str) -> tuple[float, int] | None:
        """Variance of a single verdict on this reply, and the number of samples that the outcome
        averages; for a jury the variance of the jurors' mean. `None` unless each juror gave several
        verdicts.
        """
        votes = self.judged.votes if self.judged else ()
        spreads = [vote.spread for vote in votes if isinstance(vote.outcome, Verdict)]
        if not spreads or self.verdict is None:
            return None
        variances = [spread[name] ** 2 for spread in spreads if spread is not None]
        if len(variances) < len(spreads):
            return None
        n_samples = min(
            sum(isinstance(sample, Verdict) for sample in vote.samples)
            for vote in votes
            if isinstance(vote.outcome, Verdict)
        )
        return fsum(variances) / len(variances) ** 2, n_samples

    def strength(self, quantity: Quantity) -> float | None:
        """How strongly the verdict says yes."""
        return quantity.strength(self.scores, self.verdict.events if self.verdict else None)


class _Votes(Struct, frozen=True, kw_only=True):
    between_jurors: dict[str, float] | None = None
    within_jurors: dict[str, dict[str, float] | None] = {}


class JudgedTurn(Struct, frozen=True, kw_only=True):
    """A turn in a run's document. `events` are those that the judge saw, `None` if the rubric has
    none; `votes` tell how far verdicts of jurors and samples differ.
    """

    turn: int
    question: str
    score: float | None = None
    scores: dict[str, float | None] = {}
    events: dict[str, str] | None = None
    votes: _Votes | None = None

    @property
    def spread(self) -> float:
        """The largest standard deviation of the overall score, between or within jurors."""
        if self.votes is None:
            return 0.0
        spreads = (self.votes.between_jurors, *self.votes.within_jurors.values())
        return max((spread.get(TOTAL, 0.0) for spread in spreads if spread), default=0.0)

    @property
    def points(self) -> Mapping[str, float]:
        """Scores by dimension, and their sum; empty without a verdict."""
        if self.score is None:
            return {}
        scores = {name: score for name, score in self.scores.items() if score is not None}
        return {**scores, TOTAL: self.score}


class _Judge(Struct, frozen=True, kw_only=True):
    model: str
    rubric_sha256: str
    rubric: str | None = None
    temperature: float | None = None
    samples: int = 1
    rule: str | None = None


class _Inputs(Struct, frozen=True, kw_only=True):
    judge_context: int = 3


class _Run(Struct, frozen=True, kw_only=True):
    kind: str
    run_id: str
    status: str
    benchmark: str
    model: str
    turns: list[JudgedTurn]
    judge: _Judge | None = None
    inputs: _Inputs = _Inputs()


class JudgedRun(Struct, frozen=True, kw_only=True):
    """A complete run; `judge` is `None` if nobody judged it."""

    run_id: str
    benchmark: str
    model: str
    judge: CalibratedJudge | None
    turns: Sequence[JudgedTurn]
    document: Mapping[str, Any]

    def words_of(self, turn: int) -> tuple[tuple[PrecedingMessage, ...], str, str]:
        """The preceding messages, the prompt, and the reply of a turn."""
        key = load_benchmark(self.benchmark).parts.prompt_key
        place = next(n for n, entry in enumerate(self.turns) if entry.turn == turn)
        entries = self.document["turns"][: place + 1]
        exchanges = [(str(entry.get(key, "")), str(entry["question"])) for entry in entries]
        *before, (prompt, reply) = exchanges
        history = tuple(line for exchange in before for line in _messages(*exchange))
        return history, prompt, reply


def score_of(turn: LabelledTurn, name: str, rubric: Rubric) -> float | None:
    """Mean score by people of a dimension, or of the sum of dimensions."""
    return (
        turn.total([dimension.name for dimension in rubric.dimensions])
        if name == TOTAL
        else turn.score(name)
    )


def clustered_values(values: Iterable[tuple[str, Value]]) -> list[list[Value]]:
    """Group values by dialogue."""
    clusters: dict[str, list[Value]] = defaultdict(list)
    for cluster, value in values:
        clusters[cluster].append(value)
    return [*clusters.values()]


def score_pairs(
    readings: Sequence[JudgedLabel], name: str, rubric: Rubric
) -> list[list[tuple[float, float]]]:
    """Pairs of the judge's and people's score of each reply that has both, by dialogue."""
    return clustered_values(
        (reading.turn.cluster, (reading.scores[name], label))
        for reading in readings
        if (label := score_of(reading.turn, name, rubric)) is not None and name in reading.scores
    )


def human_scores(
    turns: Sequence[LabelledTurn], name: str, rubric: Rubric
) -> list[list[tuple[float, float]]]:
    """Pairs of scores by two labellers of one reply, by dialogue."""
    names = [dimension.name for dimension in rubric.dimensions] if name == TOTAL else [name]

    def score(label: Label) -> float | None:
        is_complete = all(dimension in label.scores for dimension in names)
        return fsum(label.scores[dimension] for dimension in names) if is_complete else None

    return _pairs(turns, score)


def _pairs(
    turns: Sequence[LabelledTurn], answer: Callable[[Label], float | None]
) -> list[list[tuple[float, float]]]:
    """Pairs in which the same two labellers always stand in the same order."""
    given = (
        (turn.cluster, [*map(answer, sorted(turn.labels, key=lambda label: label.labeller))])
        for turn in turns
    )
    return clustered_values(
        (cluster, pair)
        for cluster, values in given
        for pair in combinations([float(value) for value in values if value is not None], 2)
    )


def human_answers(turns: Sequence[LabelledTurn], name: str) -> list[list[tuple[float, float]]]:
    """Pairs of answers by two labellers of one reply, yes as 1 and no as 0, by dialogue."""
    return _pairs(turns, lambda label: label.events.get(name))


def parse_quantity(word: str, rubric: Rubric) -> Quantity:
    """Parse `EVENT`, `DIMENSION<BOUND` or `DIMENSION>=BOUND`, where overall_score is the sum of
    dimensions.

    Raises `UsageError` for what the rubric does not have.
    """
    if word in (event.name for event in rubric.events):
        return Quantity(name=word)
    match = _BOUNDED.fullmatch(word.strip())
    if match and match[1] in _scores(rubric):
        sign = -1 if match[2] == "<" else 1
        return Quantity(name=word.strip(), score=match[1], sign=sign, bound=float(match[3]))
    raise UsageError(
        [f"{word!r} is nothing that the rubric {rubric.id} says yes or no by."],
        hint=f"There is {_choices(rubric)}, and >=.",
    )


def _scores(rubric: Rubric) -> list[str]:
    return [*(dimension.name for dimension in rubric.dimensions), TOTAL]


def _choices(rubric: Rubric) -> str:
    events = (event.name for event in rubric.events)
    return ", ".join([*events, *(f"{name}<BOUND" for name in _scores(rubric))])


def match_quantities(
    words: Mapping[str, str], labels: set[str], rubric: Rubric
) -> dict[str, Quantity]:
    """The judge's quantity for each yes/no label: the requested one, otherwise the event of the
    same name.

    Raises `UsageError` with every mistake.
    """
    problems: list[Words] = []
    quantities: dict[str, Quantity] = {}
    for name in sorted(labels):
        try:
            quantities[name] = parse_quantity(words.get(name, name), rubric)
        except UsageError as error:
            problems += error.sentences if name in words else [_no_event(name, rubric)]
    problems += [
        Problem.of("{match} names {name!r}, which is not labelled.", name=name)
        for name in words
        if name not in labels
    ]
    if problems:
        raise UsageError(problems, hint=f"A QUANTITY is {_choices(rubric)}, or >=.")
    return quantities


def _no_event(name: str, rubric: Rubric) -> Problem:
    return Problem.of(
        "The rubric {rubric_id} has no event {name!r}, which is labelled: say with {match} "
        "{name}=QUANTITY what the judge says yes by.",
        rubric_id=rubric.id,
        name=name,
    )


def read_runs(
    arguments: Sequence[str], region: Callable[[], str], judging: str | None = None
) -> list[JudgedRun]:
    """Read the complete runs that the arguments name, each once, with the verdicts of a `judging`
    if one is named.

    Raises `UsageError` with every mistake, `ArtifactError` if a store cannot be read.
    """
    mistakes = Mistakes()
    runs_by_id: dict[str, JudgedRun] = {}
    for argument in dict.fromkeys(arguments):
        with mistakes:
            for source in find_runs(argument, region).runs:
                document = read_document(source.body, source.name)
                validate_run(document, benchmark_of(document, source.name), source.name)
                if judging:
                    document = with_judging(judging, source, document, region)
                run = _parse_run(document, source.name)
                runs_by_id.setdefault(run.run_id, run)
    if mistakes.sentences:
        raise mistakes.error()
    return [*runs_by_id.values()]


def _parse_run(document: Mapping[str, Any], name: str) -> JudgedRun:
    try:
        run = convert(document, _Run)
    except msgspec.ValidationError as error:
        raise UsageError([f"{name} is no complete run: {reason(error)}"]) from error
    return JudgedRun(
        run_id=run.run_id,
        benchmark=run.benchmark,
        model=run.model,
        judge=_judge_of(run),
        turns=run.turns,
        document=document,
    )


def _judge_of(run: _Run) -> CalibratedJudge | None:
    judge = run.judge
    if judge is None:
        return None
    values = {**asdict(judge), "rubric": judge.rubric or ""}
    return CalibratedJudge(**values, context=run.inputs.judge_context)


def _messages(prompt: str, answered: str) -> tuple[PrecedingMessage, PrecedingMessage]:
    return (
        PrecedingMessage(role="user", text=prompt),
        PrecedingMessage(role="assistant", text=answered),
    )
