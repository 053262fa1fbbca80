"""Judge stored runs again, one after the other, within one budget, and tell how the verdicts
differ.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from statistics import fmean
from typing import Any

from socratic_bench.documents.comparison import (
    Changed,
    Figure,
    JudgingsDocument,
    JudgingsDryRun,
    JurorSpent,
    RejudgedRun,
)
from socratic_bench.documents.cost import Billing, role_usd
from socratic_bench.documents.document import SCORE_PLACES, TIME_PLACES, ErrorEntry, to_places
from socratic_bench.documents.dry_run import ExpectedJuror
from socratic_bench.documents.jury import Agreement
from socratic_bench.documents.run import RunResult
from socratic_bench.documents.turn import votes_of
from socratic_bench.documents.usage import CallUsage, RoleUsage
from socratic_bench.models.budget import SpendingLimit
from socratic_bench.models.cancel import CancelToken
from socratic_bench.ports.benchmark import Length
from socratic_bench.runs import Plan, perform
from socratic_bench.runs.context import Listener
from socratic_bench.runs.dry_run import Forecaster
from socratic_bench.runs.gates import metric_at
from socratic_bench.runs.services import Services
from socratic_bench.statistics import agreement
from socratic_bench.studies.figures import cost_total
from socratic_bench.studies.rejudge.prepare import Rejudging, settings_of
from socratic_bench.turns import Turn
from socratic_bench.types import JUDGE, Completion

# How a judging ends that would befall the next one, too.
_OF_ALL = ("interrupted", "deadline", "budget", "credentials", "access", "unknown_model")
Told = Callable[[Plan], Listener]
SCORE = "overall_score"
# By turn, the score of each dimension, and their sum, by the first verdict and by the new one.
Pairs = Sequence[tuple[Mapping[str, float], Mapping[str, float]]]


def judge_again(
    runs: Sequence[Rejudging],
    cancel_token: CancelToken,
    *,
    listener: Told = lambda _: Listener(),
    max_cost_usd: float | None = None,
) -> Mapping[str, RunResult]:
    """The results by run id. After an error that would end every run the remaining ones are not
    started and are missing. A judging that an earlier process began is resumed.
    """
    results: dict[str, RunResult] = {}
    spending = None if max_cost_usd is None else SpendingLimit(max_cost_usd)
    with ExitStack() as stack:
        services = stack.enter_context(
            Services(monotonic_s=cancel_token.monotonic_s, spending=spending)
        )
        for run in runs:
            token = cancel_token.sibling()
            with cancel_token.parent_of(token):
                result = perform(
                    run.plan,
                    listener=listener(run.plan),
                    cancel_token=token,
                    is_journal_shown=False,
                    services=services,
                )
            results[run.run_id] = result
            if result.end_reason in _OF_ALL and result.status != "completed":
                break
    return results


def forecast(runs: Sequence[Rejudging], max_cost_usd: float | None = None) -> JudgingsDryRun:
    """The expected calls, tokens, cost and duration. Turns that were judged before are included."""
    forecaster = Forecaster()
    forecasts = [forecaster.forecast(run.plan) for run in runs]
    plan, billing = runs[0].plan, _billing(runs[0].plan)
    calls: dict[Length, Sequence[Completion]] = {
        length: [call for forecast in forecasts for call in forecast.expected[length].calls[JUDGE]]
        for length in ("short", "likely", "long")
    }
    usd = {length: role_usd(billing, JUDGE, made) for length, made in calls.items()}
    return JudgingsDryRun(
        benchmark=plan.benchmark.name,
        name=runs[0].name,
        settings=settings_of(plan),
        n_runs=len(runs),
        n_turns=sum(n_due(forecast.expected["likely"].turns) for forecast in forecasts),
        jurors=[ExpectedJuror.of(juror, billing, calls) for juror in plan.config.jurors],
        cost_usd=usd["likely"],
        low_usd=usd["short"],
        high_usd=usd["long"],
        duration_seconds=round(
            sum(forecast.expected["likely"].duration_s for forecast in forecasts), TIME_PLACES
        ),
        covers_high=_covers(max_cost_usd, usd["long"]),
    )


def _billing(plan: Plan) -> Billing:
    return Billing.of(plan.config, plan.benchmark.parts, plan.models, plan.prices)


def _covers(max_cost_usd: float | None, high_usd: float | None) -> bool | None:
    return None if max_cost_usd is None or high_usd is None else high_usd <= max_cost_usd


def spent(plan: Plan, results: Sequence[RunResult]) -> list[JurorSpent]:
    """Calls, tokens and cost of each juror, those of earlier processes included."""
    billing = _billing(plan)
    calls = [call for result in results for call in result.tallies[JUDGE].completions]
    juror_calls = {
        name: [call for call in calls if call.model_id == name] for name in plan.config.jurors
    }
    return [
        JurorSpent(
            model=name,
            usage=CallUsage.of_all([RoleUsage(completions=tuple(made))]),
            cost_usd=role_usd(billing, JUDGE, made),
        )
        for name, made in juror_calls.items()
    ]


def n_due(turns: Iterable[Turn]) -> int:
    """Number of turns that the judge must score."""
    return sum(not turn.replayed and turn.unscorable is None for turn in turns)


def document_of(runs: Sequence[Rejudging], results: Mapping[str, RunResult]) -> JudgingsDocument:
    """The document: what was judged, and how it differs from the first verdicts."""
    plan, made = runs[0].plan, [*results.values()]
    pairs = [pair for run in runs if run.run_id in results for pair in _pairs(run, results)]
    judged_runs = [_run(run, results.get(run.run_id)) for run in runs]
    jurors = spent(plan, made)
    error = next((result.error for result in made if result.error), None)
    return JudgingsDocument(
        benchmark=plan.benchmark.name,
        name=runs[0].name,
        settings=settings_of(plan),
        n_runs=len(runs),
        n_judged_runs=sum(run.status == "completed" for run in judged_runs),
        dimensions=_changes(pairs),
        agreement=Agreement.of(
            votes.scores for result in made for turn in result.turns if (votes := votes_of(turn))
        ),
        figures=_figures(judged_runs),
        runs=judged_runs,
        jurors=jurors,
        cost_usd=cost_total(juror.cost_usd for juror in jurors),
        notices=[*_notices(made)],
        error=ErrorEntry.of(error) if error else None,
    )


def _pairs(run: Rejudging, results: Mapping[str, RunResult]) -> Iterator[Any]:
    """First and new scores of the turns that have both."""
    first = {entry["turn"]: entry.get("scores") or {} for entry in run.document["turns"]}
    for turn in results[run.run_id].turns:
        old = first.get(turn.index, {})
        if turn.verdict and old and None not in old.values():
            yield _with_sum(old), _with_sum(turn.verdict.scores)


def _with_sum(scores: Mapping[str, float]) -> dict[str, float]:
    return {**scores, SCORE: sum(scores.values())}


def _run(run: Rejudging, result: RunResult | None) -> RejudgedRun:
    if result is None:
        return RejudgedRun(
            run_id=run.run_id, source=run.source, judging=None, status="left", end_reason=None
        )
    names = [metric.name for metric in run.plan.benchmark.metrics]
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


def _changes(pairs: Pairs) -> dict[str, Changed]:
    """Changes of each dimension that both rubrics have."""
    pairs_by_name: dict[str, list[tuple[float, float]]] = {}
    for old, new in pairs:
        for name in (name for name in new if name in old):
            pairs_by_name.setdefault(name, []).append((old[name], new[name]))
    return {name: _changed(score_pairs) for name, score_pairs in pairs_by_name.items()}


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


def _figures(runs: Sequence[RejudgedRun]) -> dict[str, Figure]:
    names = dict.fromkeys(name for run in runs for name in run.second)
    return {name: _figure(name, runs) for name in names}


def _figure(name: str, runs: Sequence[RejudgedRun]) -> Figure:
    pairs = [(run.first.get(name), run.second.get(name)) for run in runs]
    known_pairs = [(old, new) for old, new in pairs if old is not None and new is not None]
    return Figure(
        n_runs=len(known_pairs),
        first=to_places(fmean(old for old, _ in known_pairs), SCORE_PLACES)
        if known_pairs
        else None,
        second=to_places(fmean(new for _, new in known_pairs), SCORE_PLACES)
        if known_pairs
        else None,
    )


def _notices(results: Sequence[RunResult]) -> Iterator[str]:
    if not agreement.is_available():
        yield agreement.NO_ALPHA
    yield from dict.fromkeys(text for result in results for text in result.notices)
