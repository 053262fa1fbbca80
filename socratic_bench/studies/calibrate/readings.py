"""Verdicts of a judge beside labels of people: from a calibration's run, and from stored runs."""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import combinations
from math import fsum
from typing import Any, TypeVar

from msgspec import Struct

from socratic_bench.benchmarks import load_benchmark
from socratic_bench.documents.calibration import Label, PrecedingMessage
from socratic_bench.documents.judge_status import CalibratedJudge
from socratic_bench.errors import Problem, UsageError, Words
from socratic_bench.studies.calibrate.labels import LabelledTurn
from socratic_bench.studies.groups import design_of
from socratic_bench.studies.rows import RunRow, TurnRow
from socratic_bench.turns import Judged, Rubric, Unscored, Verdict

Value = TypeVar("Value")
TOTAL = "overall_score"
_BOUNDED = re.compile(r"([\w-]+)\s*(<|>=)\s*(-?\d+(?:\.\d+)?)")


class Quantity(Struct, frozen=True, kw_only=True):
    """What makes a verdict a yes: an event, or a score above (`sign` 1) or below (-1) a bound."""

    name: str
    score: str | None = None
    sign: int = 1
    bound: float = 0.0

    def strength(self, scores: Mapping[str, float], events: Collection[str] | None) -> float | None:
        """How strongly a verdict with these events says yes; `None` if it does not tell."""
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

    def answer(self, quantity: Quantity) -> bool | None:
        """Whether the verdict says yes."""
        strength = self.strength(quantity)
        return None if strength is None else quantity.is_yes(strength)


def judge_of(run: RunRow) -> CalibratedJudge | None:
    """The judge of a run and its settings; `None` if nobody judged it."""
    judge = run.at("judge")
    if judge is None:
        return None
    names = ("model", "rubric_sha256", "temperature", "samples", "rule")
    context = run.at("inputs.judge_context")
    return CalibratedJudge(
        rubric=judge.get("rubric") or "",
        **{name: judge[name] for name in names if name in judge},
        **({} if context is None else {"context": context}),
    )


def points_of(turn: TurnRow) -> Mapping[str, float]:
    """Scores by dimension, and their sum; empty without a verdict."""
    if turn.score is None:
        return {}
    scores = {name: score for name, score in turn.scores.items() if score is not None}
    return {**scores, TOTAL: turn.score}


def words_of(run: RunRow, turn: int | None) -> Mapping[str, Any]:
    """A label's fields with the words of a turn: history, prompt, reply, and the right answer.

    An item has no history, and is a scenario and a dialogue of its own.
    """
    place = next(n for n, row in enumerate(run.turns) if row.turn == turn)
    row, views = run.turns[place], load_benchmark(run.at("benchmark")).views
    words = {
        "prompt": row.said or "",
        "reply": row.reply,
        "reference": row.own.get(views.expected or ""),
    }
    if views.tasks:
        dialogue = f"{run.run_id}, turn {turn}"
        return {**words, "scenario": str(row.own[views.tasks.item]), "dialogue": dialogue}
    history = [
        message
        for row in run.turns[:place]
        for message in (
            PrecedingMessage(role="user", text=row.said or ""),
            PrecedingMessage(role="assistant", text=row.reply),
        )
    ]
    return {**words, "history": tuple(history)}


def scenario_names(runs: Sequence[RunRow]) -> Mapping[str, str]:
    """By run, the scenario by which its labels are clustered; where all play one, the opening."""
    cluster = design_of(runs, has_limits=False).cluster
    return {
        run.run_id: run.sample_name if cluster(run) == run.sample else run.prompt or ""
        for run in runs
    }


def score_of(turn: LabelledTurn, name: str, rubric: Rubric) -> float | None:
    """Mean score by people of a dimension, or of the sum of dimensions."""
    return turn.total(rubric.names) if name == TOTAL else turn.score(name)


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
    names = rubric.names if name == TOTAL else [name]

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
    dimensions. Raises `UsageError` for what the rubric does not have.
    """
    if word in (event.name for event in rubric.events):
        return Quantity(name=word)
    match = _BOUNDED.fullmatch(word.strip())
    if match and match[1] in (*rubric.names, TOTAL):
        sign = -1 if match[2] == "<" else 1
        return Quantity(name=word.strip(), score=match[1], sign=sign, bound=float(match[3]))
    raise UsageError(
        [f"{word!r} is nothing that the rubric {rubric.id} says yes or no by."],
        hint=f"Available: {_choices(rubric)}, and >=.",
    )


def _choices(rubric: Rubric) -> str:
    events = (event.name for event in rubric.events)
    return ", ".join([*events, *(f"{name}<BOUND" for name in (*rubric.names, TOTAL))])


def match_quantities(
    words: Mapping[str, str], labels: set[str], rubric: Rubric
) -> dict[str, Quantity]:
    """The judge's quantity for each yes/no label: the requested one, otherwise the event of the
    same name. Raises `UsageError` with every mistake.
    """
    problems: list[Words] = []
    quantities: dict[str, Quantity] = {}
    for name in sorted(labels):
        try:
            quantities[name] = parse_quantity(words.get(name, name), rubric)
        except UsageError as error:
            missing = Problem.of(
                "The rubric {rubric_id} has no event {name!r}, which is labelled: say with {match} "
                "{name}=QUANTITY what the judge says yes by.",
                rubric_id=rubric.id,
                name=name,
            )
            problems += error.sentences if name in words else [missing]
    problems += [
        Problem.of("{match} names {name!r}, which is not labelled.", name=name)
        for name in words
        if name not in labels
    ]
    if problems:
        raise UsageError(problems, hint=f"A QUANTITY is {_choices(rubric)}, or >=.")
    return quantities
