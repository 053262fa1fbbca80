"""How new verdicts differ from the first ones: turn by turn, and in figures."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from socratic_bench.documents.comparison import Changed, Figure, JudgingsDocument, RejudgedRun
from socratic_bench.documents.document import SCORE_PLACES, ErrorEntry, to_places
from socratic_bench.documents.jury import Agreement
from socratic_bench.documents.run import RunResult
from socratic_bench.documents.turn import votes_of
from socratic_bench.runs.gates import metric_at
from socratic_bench.statistics import agreement
from socratic_bench.studies.rejudge.judging import n_due, spent
from socratic_bench.studies.rejudge.preparing import Rejudging, settings_of

SCORE = "overall_score"
# By turn, the score of each dimension, and their sum, by the first verdict and by the new one.
Pairs = Sequence[tuple[Mapping[str, float], Mapping[str, float]]]


def document_of(runs: Sequence[Rejudging], results: Mapping[str, RunResult]) -> JudgingsDocument:
    """What was judged, and how it differs."""
    plan, made = runs[0].plan, [*results.values()]
    pairs = [pair for one in runs if one.run_id in results for pair in _pairs(one, results)]
    told = [_run(one, results.get(one.run_id)) for one in runs]
    jurors = spent(plan, made)
    error = next((one.error for one in made if one.error), None)
    return JudgingsDocument(
        benchmark=plan.benchmark.name,
        name=runs[0].name,
        settings=settings_of(plan),
        n_runs=len(runs),
        n_judged_runs=sum(one.status == "completed" for one in told),
        dimensions=_changes(pairs),
        agreement=Agreement.of(
            votes.scores for one in made for turn in one.turns if (votes := votes_of(turn))
        ),
        figures=_figures(told),
        runs=told,
        jurors=jurors,
        cost_usd=_sum([one.cost_usd for one in jurors]),
        notices=[*_notices(made)],
        error=ErrorEntry.of(error) if error else None,
    )


def _pairs(run: Rejudging, results: Mapping[str, RunResult]) -> Iterator[Any]:
    """Of the turns that both have judged."""
    first = {entry["turn"]: entry.get("scores") or {} for entry in run.document["turns"]}
    for turn in results[run.run_id].turns:
        old = first.get(turn.index, {})
        if turn.verdict and old and None not in old.values():
            yield _with_sum(old), _with_sum(turn.verdict.scores)


def _with_sum(scores: Mapping[str, float]) -> dict[str, float]:
    return {**scores, SCORE: sum(scores.values())}


def _changes(pairs: Pairs) -> dict[str, Changed]:
    """Of the dimensions that both rubrics have."""
    found: dict[str, list[tuple[float, float]]] = {}
    for old, new in pairs:
        for name in (one for one in new if one in old):
            found.setdefault(name, []).append((old[name], new[name]))
    return {name: _changed(both) for name, both in found.items()}


def _changed(pairs: Sequence[tuple[float, float]]) -> Changed:
    first, second = [old for old, _ in pairs], [new for _, new in pairs]
    alpha = agreement.ordinal_alpha([first, second]) if agreement.is_available() else None
    return Changed(
        n_turns=len(pairs),
        first=to_places(fmean(first), SCORE_PLACES),
        second=to_places(fmean(second), SCORE_PLACES),
        mean_difference=to_places(fmean(new - old for old, new in pairs), SCORE_PLACES),
        absolute_error=to_places(agreement.absolute_error([first, second]), SCORE_PLACES),
        alpha=to_places(alpha, SCORE_PLACES),
    )


def _run(run: Rejudging, result: RunResult | None) -> RejudgedRun:
    if result is None:
        return RejudgedRun(
            run_id=run.run_id, source=run.source, judging=None, status="left", end_reason=None
        )
    names = [one.name for one in run.plan.benchmark.metrics]
    old = run.document.get("metrics") or {}
    return RejudgedRun(
        run_id=run.run_id,
        source=run.source,
        judging=run.folder,
        status=result.status,
        end_reason=result.end_reason,
        n_turns=n_due(result.turns),
        n_judged=result.n_judged,
        first={name: metric_at(name, old) for name in names},
        second={name: metric_at(name, result.metrics) for name in names},
    )


def _figures(runs: Sequence[RejudgedRun]) -> dict[str, Figure]:
    names = dict.fromkeys(name for run in runs for name in run.second)
    return {name: _figure(name, runs) for name in names}


def _figure(name: str, runs: Sequence[RejudgedRun]) -> Figure:
    both = [(run.first.get(name), run.second.get(name)) for run in runs]
    known = [(old, new) for old, new in both if old is not None and new is not None]
    return Figure(
        n_runs=len(known),
        first=to_places(fmean(old for old, _ in known), SCORE_PLACES) if known else None,
        second=to_places(fmean(new for _, new in known), SCORE_PLACES) if known else None,
    )


def _notices(results: Sequence[RunResult]) -> Iterator[str]:
    if not agreement.is_available():
        yield agreement.NO_ALPHA
    yield from dict.fromkeys(text for one in results for text in one.notices)


def _sum(amounts: Sequence[float | None]) -> float | None:
    known = [one for one in amounts if one is not None]
    return round(sum(known), 8) if len(known) == len(amounts) else None
