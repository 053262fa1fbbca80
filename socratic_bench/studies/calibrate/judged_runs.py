"""Stored runs as a correction needs them: verdicts by turn, and who gave them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import orjson
from msgspec import Struct
from msgspec.structs import asdict

from socratic_bench.benchmarks import load_benchmark
from socratic_bench.concurrency import convert
from socratic_bench.documents.calibration import CalibratedJudge, PrecedingMessage
from socratic_bench.documents.encoding import reason
from socratic_bench.errors import Mistakes, UsageError
from socratic_bench.studies.calibrate.quantity import TOTAL
from socratic_bench.studies.reading import runs_at
from socratic_bench.studies.rows import known_benchmark, validate_run


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
            for one in runs_at(argument, region, judging):
                run = _read(one.body, one.name)
                found.setdefault(run.run_id, run)
    if mistakes.sentences:
        raise mistakes.error()
    return [*found.values()]


def _read(body: bytes, name: str) -> JudgedRun:
    try:
        document = orjson.loads(body)
        run = convert(document, _Run)
    except orjson.JSONDecodeError as error:
        raise UsageError([f"{name} is no JSON document: {error}."]) from error
    except msgspec.ValidationError as error:
        raise UsageError([f"{name} is no complete run: {reason(error)}"]) from error
    if run.kind not in ("run", "curated") or run.status != "completed":
        raise UsageError([f"{name} is no complete run: {run.kind}, {run.status}."])
    validate_run(document, known_benchmark(run.benchmark, name), name)
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
