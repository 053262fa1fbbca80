"""Judges stored runs, one after the other, from one budget."""

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
from socratic_bench.studies.rejudge.prepare import Rejudging, settings_of
from socratic_bench.turns import Turn
from socratic_bench.types import JUDGE, Completion

# How a judging ends that would befall the next one, too.
_OF_ALL = ("interrupted", "deadline", "budget", "credentials", "access", "unknown_model")
Told = Callable[[Plan], Listener]
# How new verdicts differ from the first ones: turn by turn, and in figures.

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
    """By run, what came of it; a run that is missing was not begun, since what ended one before it
    would have ended it, too. One that an earlier process began is gone on with.
    """
    results: dict[str, RunResult] = {}
    spending = None if max_cost_usd is None else SpendingLimit(max_cost_usd)
    with ExitStack() as stack:
        services = stack.enter_context(
            Services(monotonic_s=cancel_token.monotonic_s, spending=spending)
        )
        for one in runs:
            token = cancel_token.sibling()
            with cancel_token.parent_of(token):
                result = perform(
                    one.plan,
                    listener=listener(one.plan),
                    cancel_token=token,
                    is_journal_shown=False,
                    services=services,
                )
            results[one.run_id] = result
            if result.end_reason in _OF_ALL and result.status != "completed":
                break
    return results


def forecast(runs: Sequence[Rejudging], max_cost_usd: float | None = None) -> JudgingsDryRun:
    """What it would take, without a call of a model; what was judged before is not left out."""
    forecaster = Forecaster()
    found = [forecaster.forecast(one.plan) for one in runs]
    plan, billing = runs[0].plan, _billing(runs[0].plan)
    calls: dict[Length, Sequence[Completion]] = {
        length: [call for one in found for call in one.expected[length].calls[JUDGE]]
        for length in ("short", "likely", "long")
    }
    usd = {length: role_usd(billing, JUDGE, made) for length, made in calls.items()}
    return JudgingsDryRun(
        benchmark=plan.benchmark.name,
        name=runs[0].name,
        settings=settings_of(plan),
        n_runs=len(runs),
        n_turns=sum(n_due(one.expected["likely"].turns) for one in found),
        jurors=[ExpectedJuror.of(one, billing, calls) for one in plan.config.jurors],
        cost_usd=usd["likely"],
        low_usd=usd["short"],
        high_usd=usd["long"],
        duration_seconds=round(
            sum(one.expected["likely"].duration_s for one in found), TIME_PLACES
        ),
        covers_high=_covers(max_cost_usd, usd["long"]),
    )


def spent(plan: Plan, results: Sequence[RunResult]) -> list[JurorSpent]:
    """By juror, what its calls took, those of earlier processes, too."""
    billing = _billing(plan)
    calls = [call for result in results for call in result.tallies[JUDGE].completions]
    own = {name: [one for one in calls if one.model_id == name] for name in plan.config.jurors}
    return [
        JurorSpent(
            model=name,
            usage=CallUsage.of_all([RoleUsage(completions=tuple(made))]),
            cost_usd=role_usd(billing, JUDGE, made),
        )
        for name, made in own.items()
    ]


def _billing(plan: Plan) -> Billing:
    return Billing.of(plan.config, plan.benchmark.parts, plan.models, plan.prices)


def n_due(turns: Iterable[Turn]) -> int:
    """How many of them a judge is asked about."""
    return sum(not turn.replayed and turn.unscorable is None for turn in turns)


def _covers(max_cost_usd: float | None, high_usd: float | None) -> bool | None:
    return None if max_cost_usd is None or high_usd is None else high_usd <= max_cost_usd


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
