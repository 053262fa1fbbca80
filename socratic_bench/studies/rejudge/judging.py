"""Judges stored runs, one after the other, from one budget."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack

from socratic_bench.documents.comparison import JudgingsDryRun, JurorSpent
from socratic_bench.documents.cost import Billing, role_usd
from socratic_bench.documents.document import TIME_PLACES
from socratic_bench.documents.dry_run import ExpectedJuror
from socratic_bench.documents.run import RunResult
from socratic_bench.documents.usage import CallUsage, RoleUsage
from socratic_bench.models.budget import SpendingLimit
from socratic_bench.models.cancel import CancelToken
from socratic_bench.ports.benchmark import Length
from socratic_bench.runs import Plan, perform
from socratic_bench.runs.context import Listener
from socratic_bench.runs.dry_run import Forecaster
from socratic_bench.runs.services import Services
from socratic_bench.studies.rejudge.preparing import Rejudging, settings_of
from socratic_bench.turns import Turn
from socratic_bench.types import JUDGE, Completion

# How a judging ends that would befall the next one, too.
_OF_ALL = ("interrupted", "deadline", "budget", "credentials", "access", "unknown_model")
Told = Callable[[Plan], Listener]


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
