"""Runs as logs of inspect_ai: a log per model, a sample per dialogue, a scorer per juror."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from socratic_bench.errors import ArtifactError
from socratic_bench.settings import BEDROCK, provider_of
from socratic_bench.studies.report.study import Rows
from socratic_bench.studies.rows import RunRow, VerdictRow
from socratic_bench.version import VERSION

OVERALL = "overall_score"
TASK = "socratic_bench/{benchmark}"


def write_logs(rows: Rows, folder: str) -> list[str]:
    """Write `MODEL.eval` for each model, by inspect_ai's own writer; returns their paths. Raises
    `ImportError` without inspect_ai, and `ArtifactError` for a file that cannot be written.
    """
    from inspect_ai.log import write_eval_log

    by_model: dict[str, list[RunRow]] = defaultdict(list)
    for run in rows.runs:
        by_model[run.model].append(run)
    paths = []
    for model, runs in by_model.items():
        name = "".join(sign if sign.isalnum() or sign in "-_." else "-" for sign in model)
        path = Path(folder, f"{name}.eval")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_eval_log(log_of(model, runs, rows.benchmark.name), str(path))
        except OSError as error:
            raise ArtifactError(f"{path} cannot be written: {error.strerror}.") from error
        paths.append(str(path))
    return paths


def inspect_name(model: str) -> str:
    """The model as inspect_ai names it: its provider, then its id."""
    is_bare = provider_of(model) == BEDROCK and not model.startswith(f"{BEDROCK}/")
    return f"{BEDROCK}/{model}" if is_bare else model


def log_of(model: str, runs: Sequence[RunRow], benchmark: str) -> Any:  # noqa: ANN401 -- an EvalLog
    from inspect_ai import log as eval_log

    epochs: Counter[str] = Counter()
    samples = []
    for run in runs:
        epochs[run.sample_name] += 1
        samples.append(_sample(run, epochs[run.sample_name]))
    times = [run.at("timestamps.started_at") for run in runs]
    started_at = min(filter(None, times), default="1970-01-01T00:00:00+00:00")
    ended = [time for run in runs if (time := run.at("timestamps.completed_at"))]
    return eval_log.EvalLog(
        status="success",
        eval=eval_log.EvalSpec(
            created=started_at,
            task=TASK.format(benchmark=benchmark),
            task_version=VERSION,
            dataset=eval_log.EvalDataset(name=benchmark, samples=len(epochs), sample_ids=[*epochs]),
            model=inspect_name(model),
            config=eval_log.EvalConfig(epochs=max(epochs.values())),
            packages={"socratic-runner": VERSION},
            metadata={"socratic_model": model},
        ),
        results=eval_log.EvalResults(
            total_samples=len(samples),
            completed_samples=len(samples),
            scores=[*_scores(runs)],
        ),
        stats=eval_log.EvalStats(started_at=started_at, completed_at=max(ended, default="")),
        samples=samples,
    )


def _sample(run: RunRow, epoch: int) -> Any:  # noqa: ANN401 -- an EvalSample
    from inspect_ai import log as eval_log
    from inspect_ai.model import ChatMessageAssistant, ModelOutput

    messages = [*_messages(run)]
    replies = [message for message in messages if isinstance(message, ChatMessageAssistant)]
    last = replies[-1].text if replies else ""
    return eval_log.EvalSample(
        id=run.sample_name,
        epoch=epoch,
        input=run.prompt or "",
        target="",
        messages=messages,
        output=ModelOutput.from_content(inspect_name(run.model), last),
        scores={juror: _score(verdicts) for juror, verdicts in _by_juror(run).items()},
        metadata={
            "run_id": run.run_id,
            "scenario": run.sample_name,
            "seed": run.seed,
            "end_reason": run.at("end_reason"),
            "cost_usd": run.at("cost.total.total_usd"),
            "metrics": {name: value for name, value in run.metrics.items() if value is not None},
        },
        started_at=run.at("timestamps.started_at"),
        completed_at=run.at("timestamps.completed_at"),
        total_time=run.at("timestamps.duration_seconds"),
    )


def _messages(run: RunRow) -> Iterator[Any]:
    from inspect_ai.model import ChatMessageAssistant, ChatMessageUser

    for turn in run.turns:
        if turn.said:
            yield ChatMessageUser(content=turn.said)
        yield ChatMessageAssistant(content=turn.reply, model=inspect_name(run.model))
    if closing := run.at("student.closing"):
        yield ChatMessageUser(content=closing)


def _by_juror(run: RunRow) -> dict[str, list[tuple[int, VerdictRow]]]:
    verdicts: dict[str, list[tuple[int, VerdictRow]]] = defaultdict(list)
    for turn in run.turns:
        for verdict in turn.verdicts:
            verdicts[verdict.juror].append((turn.turn, verdict))
    return verdicts


def _score(verdicts: Sequence[tuple[int, VerdictRow]]) -> Any:  # noqa: ANN401 -- a Score
    """The means over the turns that the juror scored; each turn's verdict is in the metadata."""
    from inspect_ai.scorer import Score

    turns = {
        str(turn): {
            "score": verdict.score,
            "scores": dict(verdict.scores),
            "rationale": dict(verdict.rationale),
            "events": [*(verdict.events or ())],
            "unjudged_reason": verdict.unjudged_reason,
        }
        for turn, verdict in verdicts
    }
    means = _means(verdict for _, verdict in verdicts)
    if not means:
        return Score.unscored(explanation="no turn has a verdict", metadata={"turns": turns})
    n_scored = sum(verdict.score is not None for _, verdict in verdicts)
    text = f"means over {n_scored} of {len(verdicts)} turns"
    return Score(value=means, explanation=text, metadata={"turns": turns})


def _means(verdicts: Iterable[VerdictRow]) -> dict[str, float]:
    points: dict[str, list[float]] = defaultdict(list)
    for verdict in verdicts:
        for name, score in {OVERALL: verdict.score, **verdict.scores}.items():
            if score is not None:
                points[name].append(score)
    return {name: fmean(scores) for name, scores in points.items()}


def _scores(runs: Sequence[RunRow]) -> Iterator[Any]:
    """The mean over dialogues of each score, by juror."""
    from inspect_ai.log import EvalMetric, EvalScore

    by_juror: dict[str, list[Mapping[str, float]]] = defaultdict(list)
    for run in runs:
        for juror, verdicts in _by_juror(run).items():
            by_juror[juror].append(_means(verdict for _, verdict in verdicts))
    for juror, means in by_juror.items():
        for name in dict.fromkeys(name for mean in means for name in mean):
            values = [mean[name] for mean in means if name in mean]
            yield EvalScore(
                name=name,
                scorer=juror,
                scored_samples=len(values),
                unscored_samples=len(means) - len(values),
                metrics={"mean": EvalMetric(name="mean", value=fmean(values))},
            )
