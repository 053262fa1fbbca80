"""Verdicts beside labels: what each labelled reply got from the judge and from people."""

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
# What of a verdict stands beside a label: a score, an event, or a score against a bound.

TOTAL = "overall_score"
_BOUNDED = re.compile(r"([\w-]+)\s*(<|>=)\s*(-?\d+(?:\.\d+)?)")


class Quantity(Struct, frozen=True, kw_only=True):
    """What a verdict says yes or no by: an event, or a score with a bound. `sign` is -1 if yes
    means that the score is low.
    """

    name: str
    score: str | None = None
    sign: int = 1
    bound: float = 0.0

    def strength(self, scores: Mapping[str, float], events: Collection[str] | None) -> float | None:
        """The larger, the more it speaks for yes; `None` if the verdict does not say. `events` are
        those that were seen.
        """
        if self.score is None:
            return None if events is None else float(self.name in events)
        score = scores.get(self.score)
        return None if score is None else self.sign * score

    def is_yes(self, strength: float) -> bool:
        """Whether a verdict of that strength says yes."""
        if self.score is None:
            return bool(strength)
        least = self.sign * self.bound
        return strength > least if self.sign < 0 else strength >= least


class JudgedLabel(Struct, frozen=True, kw_only=True):
    """A labelled reply and what the judge made of it."""

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
        """By dimension, and their sum; empty without a verdict."""
        verdict = self.verdict
        return {**verdict.scores, TOTAL: verdict.overall_score} if verdict else {}

    def repeated(self, name: str) -> tuple[float, int] | None:
        """The variance of one verdict on this reply, and of how many the outcome is the mean; of a
        jury, that of its jurors' mean. `None` unless each juror has several.
        """
        votes = self.judged.votes if self.judged else ()
        spreads = [vote.spread for vote in votes if isinstance(vote.outcome, Verdict)]
        if not spreads or self.verdict is None:
            return None
        variances = [spread[name] ** 2 for spread in spreads if spread is not None]
        if len(variances) < len(spreads):
            return None
        n_samples = min(
            sum(isinstance(one, Verdict) for one in vote.samples)
            for vote in votes
            if isinstance(vote.outcome, Verdict)
        )
        return fsum(variances) / len(variances) ** 2, n_samples

    def strength(self, quantity: Quantity) -> float | None:
        """How much the verdict speaks for yes."""
        return quantity.strength(self.scores, self.verdict.events if self.verdict else None)


# Stored runs as a correction needs them: verdicts by turn, and who gave them.


class _Votes(Struct, frozen=True, kw_only=True):
    between_jurors: dict[str, float] | None = None
    within_jurors: dict[str, dict[str, float] | None] = {}


class JudgedTurn(Struct, frozen=True, kw_only=True):
    """A turn's entry in a run's document; `events` names those that were seen, `None` if the
    verdict does not tell; `votes` say how far those of several jurors differ.
    """

    turn: int
    question: str
    score: float | None = None
    scores: dict[str, float | None] = {}
    events: dict[str, str] | None = None
    votes: _Votes | None = None

    @property
    def spread(self) -> float:
        """How far verdicts differ in the sum of their scores, of jurors or of one juror's."""
        if self.votes is None:
            return 0.0
        told = (self.votes.between_jurors, *self.votes.within_jurors.values())
        return max((one.get(TOTAL, 0.0) for one in told if one), default=0.0)

    @property
    def points(self) -> Mapping[str, float]:
        """By dimension, and their sum; empty without a verdict."""
        if self.score is None:
            return {}
        known = {name: score for name, score in self.scores.items() if score is not None}
        return {**known, TOTAL: self.score}


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
        """What was said before, what is answered, and the reply."""
        key = load_benchmark(self.benchmark).parts.prompt_key
        place = next(n for n, one in enumerate(self.turns) if one.turn == turn)
        entries = self.document["turns"][: place + 1]
        said = [(str(entry.get(key, "")), str(entry["question"])) for entry in entries]
        *before, (prompt, reply) = said
        history = tuple(line for exchange in before for line in _messages(*exchange))
        return history, prompt, reply


def score_of(turn: LabelledTurn, name: str, rubric: Rubric) -> float | None:
    """What people say, the mean over them; of the sum where it is asked for."""
    return (
        turn.total([one.name for one in rubric.dimensions]) if name == TOTAL else turn.score(name)
    )


def clustered_values(found: Iterable[tuple[str, Value]]) -> list[list[Value]]:
    """By dialogue."""
    clusters: dict[str, list[Value]] = defaultdict(list)
    for cluster, value in found:
        clusters[cluster].append(value)
    return [*clusters.values()]


def score_pairs(
    readings: Sequence[JudgedLabel], name: str, rubric: Rubric
) -> list[list[tuple[float, float]]]:
    """The judge's score and people's, by dialogue, of replies that have both."""
    return clustered_values(
        (one.turn.cluster, (one.scores[name], label))
        for one in readings
        if (label := score_of(one.turn, name, rubric)) is not None and name in one.scores
    )


def human_scores(
    turns: Sequence[LabelledTurn], name: str, rubric: Rubric
) -> list[list[tuple[float, float]]]:
    """The scores of each two labellers of one reply, by dialogue."""
    names = [one.name for one in rubric.dimensions] if name == TOTAL else [name]

    def score(label: Label) -> float | None:
        known = all(one in label.scores for one in names)
        return fsum(label.scores[one] for one in names) if known else None

    return _pairs(turns, score)


def human_answers(turns: Sequence[LabelledTurn], name: str) -> list[list[tuple[float, float]]]:
    """Yes as 1 and no as 0, of each two labellers of one reply, by dialogue."""
    return _pairs(turns, lambda label: label.events.get(name))


def _pairs(
    turns: Sequence[LabelledTurn], said: Callable[[Label], float | None]
) -> list[list[tuple[float, float]]]:
    """By labeller, so that both of a pair are always the same two in the same order."""
    given = (
        (turn.cluster, [*map(said, sorted(turn.labels, key=lambda label: label.labeller))])
        for turn in turns
    )
    return clustered_values(
        (cluster, pair)
        for cluster, values in given
        for pair in combinations([float(one) for one in values if one is not None], 2)
    )


def parsed(word: str, rubric: Rubric) -> Quantity:
    """`EVENT`, `DIMENSION<BOUND` or `DIMENSION>=BOUND`; overall_score is the sum of dimensions.

    Raises `UsageError` for what the rubric does not have.
    """
    if word in (event.name for event in rubric.events):
        return Quantity(name=word)
    found = _BOUNDED.fullmatch(word.strip())
    if found and found[1] in _scores(rubric):
        sign = -1 if found[2] == "<" else 1
        return Quantity(name=word.strip(), score=found[1], sign=sign, bound=float(found[3]))
    raise UsageError(
        [f"{word!r} is nothing that the rubric {rubric.id} says yes or no by."],
        hint=f"There is {_choices(rubric)}, and >=.",
    )


def _scores(rubric: Rubric) -> list[str]:
    return [*(dimension.name for dimension in rubric.dimensions), TOTAL]


def _choices(rubric: Rubric) -> str:
    events = (event.name for event in rubric.events)
    return ", ".join([*events, *(f"{one}<BOUND" for one in _scores(rubric))])


def _no_event(name: str, rubric: Rubric) -> Problem:
    return Problem.of(
        "The rubric {rubric_id} has no event {name!r}, which is labelled: say with {match} "
        "{name}=QUANTITY what the judge says yes by.",
        rubric_id=rubric.id,
        name=name,
    )


def matches(words: Mapping[str, str], labels: set[str], rubric: Rubric) -> dict[str, Quantity]:
    """By label of yes or no, what of the verdict stands beside it: what is asked for, else the
    event of the same name.

    Raises `UsageError` with every mistake.
    """
    problems: list[Words] = []
    found: dict[str, Quantity] = {}
    for name in sorted(labels):
        try:
            found[name] = parsed(words.get(name, name), rubric)
        except UsageError as error:
            problems += error.sentences if name in words else [_no_event(name, rubric)]
    problems += [
        Problem.of("{match} names {name!r}, which is not labelled.", name=name)
        for name in words
        if name not in labels
    ]
    if problems:
        raise UsageError(problems, hint=f"A QUANTITY is {_choices(rubric)}, or >=.")
    return found


def _messages(asked: str, answered: str) -> tuple[PrecedingMessage, PrecedingMessage]:
    return (
        PrecedingMessage(role="user", text=asked),
        PrecedingMessage(role="assistant", text=answered),
    )


def read_runs(
    arguments: Sequence[str], region: Callable[[], str], judging: str | None = None
) -> list[JudgedRun]:
    """The complete runs that the arguments name, each once; with the verdicts of a `judging`.

    Raises `UsageError` with every mistake, `ArtifactError` for a store.
    """
    mistakes = Mistakes()
    found: dict[str, JudgedRun] = {}
    for argument in dict.fromkeys(arguments):
        with mistakes:
            for stored in find_runs(argument, region).runs:
                document = read_document(stored.body, stored.name)
                validate_run(document, benchmark_of(document, stored.name), stored.name)
                if judging:
                    document = with_judging(judging, stored, document, region)
                run = _judged_run(document, stored.name)
                found.setdefault(run.run_id, run)
    if mistakes.sentences:
        raise mistakes.error()
    return [*found.values()]


def _judged_run(document: Mapping[str, Any], name: str) -> JudgedRun:
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
    known = {**asdict(judge), "rubric": judge.rubric or ""}
    return CalibratedJudge(**known, context=run.inputs.judge_context)
