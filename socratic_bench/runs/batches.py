"""The calls of a run that are made as batch jobs: gathered before the episode is played, submitted,
collected by their keys, and then answered from what was collected.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from socratic_bench.documents.cost import Billing
from socratic_bench.documents.dry_run import ViaPrices
from socratic_bench.documents.journal import BatchEntry
from socratic_bench.errors import ModelError, Stopped
from socratic_bench.journal.log import request_sha256
from socratic_bench.models.batch import (
    ENDED,
    MINIMUM_RECORDS,
    RECORDS_FILE,
    BatchCall,
    BatchService,
    Job,
    JobState,
    by_model,
    plan_job,
    polls,
)
from socratic_bench.ports.benchmark import EpisodeContext, PlayItem
from socratic_bench.ports.provider import Answer, Model
from socratic_bench.runs.dry_run import simulate
from socratic_bench.runs.items import TurnsSoFar
from socratic_bench.runs.models import RunModels
from socratic_bench.runs.prepare import Plan
from socratic_bench.runs.resume import StartedRun
from socratic_bench.settings.core import Via
from socratic_bench.turns import Turn
from socratic_bench.types import JUDGE, Attempt, CallKey, Completion, Request, Role, plural

IN_BATCH = "in_batch"  # the error of a call that was only gathered


def collect_batches(started: StartedRun, models: RunModels) -> None:
    """Make the calls of the run that go by batch jobs; `models` answers them from now on. Raises
    `Stopped` where the run does not wait for its jobs.
    """
    plan, config = started.context.plan, started.context.config
    tested = plan.benchmark.cast.tested
    batches = _RunBatches(started, models)
    try:
        if started.is_complete:
            return
        if not plan.is_rejudged and batches.is_chosen(tested, config.via):
            batches.collect(tested, _gather_tested(plan, models, batches))
        else:
            batches.skip(tested)
        if plan.rubric and batches.is_chosen(JUDGE, config.judge_via):
            batches.collect(JUDGE, _gather_verdicts(plan, models, batches))
    finally:
        batches.leave()


def ways(plan: Plan) -> tuple[Via, Via]:
    """How the model under test and the judges are called: `auto` takes what is cheaper."""
    config = plan.config
    return (
        _choose(plan, plan.benchmark.cast.tested, config.via)[0],
        _choose(plan, JUDGE, config.judge_via)[0],
    )


def _choose(plan: Plan, role: Role, via: Via) -> tuple[Via, str]:
    """How a role's calls are made, and what people should know of the choice of `auto`."""
    config = plan.config
    if role != JUDGE and plan.episode.opening.is_given:
        return "now", ""  # nobody is called
    if via != "auto":
        return via, ""
    # No later call may depend on the answers.
    can_batch = bool(config.jurors) if role == JUDGE else plan.benchmark.has_single_calls
    if not can_batch:
        return "now", ""
    prices = via_prices(plan)[role]
    reason = ""
    if prices.cheaper == "batch" and (
        config.offline or not (config.batch_role_arn and config.batch_root)
    ):
        reason = " There is no role or S3 place for batches."
    chosen: Via = "now" if reason else prices.cheaper
    made = "in a batch" if chosen == "batch" else "on demand"
    return chosen, f"The calls of the {role} are made {made}: {prices.words}.{reason}"


def via_prices(plan: Plan) -> Mapping[Role, ViaPrices]:
    """What the calls of each role are expected to cost on demand and in batches."""
    expectation, _ = simulate(
        plan, length="likely", emulation=None, scales={}, prefixes=lambda _: set()
    )
    billing = Billing.of(plan.config, plan.benchmark.parts, plan.models, plan.prices)
    return ViaPrices.by_role(billing, expectation, plan.benchmark)


class _RunBatches:
    """The jobs of one run."""

    def __init__(self, started: StartedRun, models: RunModels) -> None:
        self._started = started
        self._models = models
        self._context = started.context
        self._jobs = started.context.services.batch_jobs

    def is_chosen(self, role: Role, via: Via) -> bool:
        """Whether a role's calls go by a job; `auto` takes what is cheaper, and says so."""
        if any(entry.role == role for entry in self._started.replay_log.batches):
            return True  # an earlier process has decided
        if via == "auto" and self._context.services.spending:
            # Runs that wait for each other's calls cannot wait for what others leave of a budget.
            self._context.notices.add(f"The {role} is called on demand: runs share a budget.")
            return False
        chosen, notice = _choose(self._context.plan, role, via)
        if notice:
            self._context.notices.add(notice)
        return chosen == "batch"

    def skip(self, role: Role) -> None:
        """The run has no calls for the jobs of a role: others do not wait for it."""
        for stage in (f"{role} earlier", role, f"{role} noted"):
            self._jobs.meet(stage, self._context.run_id, (), lambda _: None)

    def leave(self) -> None:
        """The run takes part in no more jobs."""
        self._jobs.leave(self._context.run_id)

    def is_open(self, request: Request, key: CallKey) -> bool:
        """Whether the call was not answered by an earlier process."""
        with suppress(ModelError):
            log = self._started.replay_log
            return log.recall(request_sha256(request), key) is None
        return False

    def collect(self, role: Role, calls: Sequence[BatchCall]) -> None:
        """Have the calls answered by jobs that the runs of a sweep share, one for each model."""
        context, token = self._context, self._context.cancel_token
        noted = [entry for entry in self._started.replay_log.batches if entry.role == role]
        meet = partial(self._jobs.meet, run_id=context.run_id, wait=token.result)
        # A killed process may have noted the job in the journals of some of its runs alone.
        earlier = {
            entry.model_id: entry
            for entry in [*meet(f"{role} earlier", brought=noted), *noted]
            if context.run_id in entry.run_ids
        }
        own = by_model(calls)
        new = [call for call in calls if call.model_id not in earlier]
        everyones = by_model(meet(role, brought=new))
        jobs: dict[str, tuple[Job, bytes | None]] = {}
        for model in own:
            if entry := earlier.get(model):
                fields = {name: getattr(entry, name) for name in Job.__struct_fields__}
                jobs[model] = Job(**fields), None
            elif planned := self._plan(role, everyones[model]):
                jobs[model] = planned
        self._note(role, own, jobs)
        # All runs have noted the job before one of them submits it.
        meet(f"{role} noted", brought=())
        submissions = {
            model: self._jobs.once(job.token, partial(self._service(model).submit, job))
            for model, (job, _) in jobs.items()
        }
        arns = {model: token.result(submission) for model, submission in submissions.items()}
        for model, arn in arns.items():
            self._collect_job(own[model], jobs[model][0], arn)

    def _note(
        self,
        role: Role,
        own: Mapping[str, Sequence[BatchCall]],
        jobs: Mapping[str, tuple[Job, bytes | None]],
    ) -> None:
        """Reserve what the jobs may cost; upload the records of new ones, and write these to the
        journal, so that whoever resumes the run has all that a submission takes.
        """
        for model, (job, body) in jobs.items():
            if self._models.budget:
                self._models.budget.reserve_batch(own[model])
            if body is not None:
                upload = partial(self._service(model).upload, job.place + RECORDS_FILE, body)
                self._context.cancel_token.result(self._jobs.once(job.place, upload))
                self._started.log.add(BatchEntry(role=role, **asdict(job)))
        for write in self._started.log.writes():
            self._context.cancel_token.result(write)

    def _plan(self, role: Role, calls: Sequence[BatchCall]) -> tuple[Job, bytes] | None:
        """The job of these calls; `None` if they are too few for one."""
        config, model_id = self._context.config, calls[0].model_id
        service = self._service(model_id)
        token = self._context.cancel_token
        quota = self._jobs.once(("minimum", model_id), partial(service.minimum_records, model_id))
        minimum = token.result(quota) or MINIMUM_RECORDS
        if len(calls) < minimum:
            self._context.notices.add(
                f"{model_id} is called on demand: a batch job needs {minimum} records, and there "
                f"are {len(calls)}."
            )
            return None
        place = {"root": config.batch_root or "", "role_arn": config.batch_role_arn or ""}
        plan = partial(plan_job, calls, service, **place)
        return token.result(self._jobs.once((role, model_id), plan))

    def _service(self, model_id: str) -> BatchService:
        return self._models.batch_service(model_id)

    def _collect_job(self, calls: Sequence[BatchCall], job: Job, arn: str) -> None:
        context = self._context
        service, began_at = self._service(job.model_id), context.clock()
        state = self._await(service, job, arn)
        by_id = {call.record_id: call for call in calls}
        errors: dict[str, str] = {}
        n_answered = 0
        for record_id, outcome in service.answers(job, arn):
            call = by_id.get(record_id)
            if call is None:
                continue  # another run's
            if isinstance(outcome, Answer):
                completion = _completion(outcome, call, began_at, context.clock())
                self._models.batch_answers[call.model_id, call.key] = completion
                n_answered += 1
                del by_id[record_id]
            else:
                errors[record_id] = outcome
        for call in by_id.values():
            if budget := self._models.budget:
                budget.release(call.key)
        if by_id:
            why = next(iter(errors.values()), state.message) or "no reason is given"
            context.notices.add(
                f"The batch job {arn.rpartition('/')[2]} of {job.model_id} ended as "
                f"{state.status}: {n_answered} of {plural(len(calls), 'record')} of this run have "
                f"an answer, {len(errors)} failed and {len(by_id) - len(errors)} are missing "
                f"({why}). These are asked for on demand."
            )

    def _await(self, service: BatchService, job: Job, arn: str) -> JobState:
        """Wait until the job has ended. Raises `Stopped` if the run is not to wait."""
        context, waits = self._context, polls()
        while (state := service.state(arn)).status not in ENDED:
            done = f", {state.n_processed} of {job.n_records}" if state.n_processed else ""
            text = f"the batch job {arn.rpartition('/')[2]} of {job.model_id}: {state.status}{done}"
            if not context.config.wait:
                raise Stopped(
                    f"Submitted, and not waited for: {text}.",
                    end_reason="batch_pending",
                )
            context.listener.on_wait(text)
            context.cancel_token.sleep(next(waits))
        context.listener.on_wait("")
        return state


class _GatheringModel(Struct, frozen=True):
    """Notes the calls that are to be made, and answers none but those made before."""

    model_id: str
    run_id: str
    is_open: Callable[[Request, CallKey], bool]
    gathered: dict[str, BatchCall]

    def complete(self, request: Request, key: CallKey) -> Completion:
        if self.is_open(request, key):
            names = {"run_id": self.run_id, "model_id": self.model_id}
            call = BatchCall(**names, key=key, request=request)
            self.gathered[f"{self.model_id} {call.record_id}"] = call
        raise ModelError("The call is made in a batch.", code=IN_BATCH, end_reason="unavailable")


class _GatheringContext(Struct, frozen=True):
    """Plays items as far as their first call. See `EpisodeContext`."""

    outer: RunModels
    tested: Model
    n_items: int

    @property
    def run_id(self) -> str | None:
        return self.outer.run_id

    def model(self, actor: Role, model_id: str | None = None) -> Model | None:
        del actor, model_id
        return None

    def watched(self, listener: Callable[[Any], None]) -> Model:
        del listener
        return self.tested

    def check(self) -> None:
        self.outer.check()

    def store(self, name: str, body: bytes) -> None: ...

    def wait_since(self, moment: datetime, seconds: float) -> None: ...

    def publish(self, turn: Turn) -> None: ...

    def play_items(self, play: PlayItem) -> None:
        for index in range(self.n_items):
            with suppress(ModelError):
                play(self, index)


def _gather_tested(plan: Plan, models: RunModels, batches: _RunBatches) -> list[BatchCall]:
    """The calls of the model under test."""
    gathered: dict[str, BatchCall] = {}
    tested = _GatheringModel(
        plan.speakers[plan.benchmark.cast.tested], models.run_id or "", batches.is_open, gathered
    )
    context: EpisodeContext = _GatheringContext(models, tested, plan.episode.opening.n_items or 0)
    plan.episode.play(context)
    return [*gathered.values()]


def _gather_verdicts(plan: Plan, models: RunModels, batches: _RunBatches) -> list[BatchCall]:
    """The judges' calls about the turns. What they are about is played before, and remembered."""
    gathered: dict[str, BatchCall] = {}
    turns: dict[int, Turn] = {}
    before = models.remembering(lambda turn: turns.__setitem__(turn.index, turn))
    with suppress(ModelError):  # raised again when the episode is played
        plan.episode.play(before)
    jury = models.jury(
        lambda model_id: _GatheringModel(model_id, models.run_id or "", batches.is_open, gathered)
    )
    for index, turn in sorted(turns.items()):
        rubric = plan.rubric_of(index)
        if jury is None or rubric is None or turn.replayed or turn.unscorable:
            continue
        judge_input = plan.episode.judge_input(TurnsSoFar(turns, index), index)
        jury.by(rubric).judge(judge_input, index)
    return [*gathered.values()]


def _completion(
    answer: Answer, call: BatchCall, began_at: datetime, finished_at: datetime
) -> Completion:
    attempt = Attempt(
        started_at=began_at,
        duration_ms=answer.latency_ms,
        wait_ms=0.0,
        error=None,
        may_have_been_billed=True,
        output_tokens_at_most=call.request.config.max_tokens,
        model_id=call.model_id,
    )
    return Completion(
        **asdict(answer), attempts=(attempt,), finished_at=finished_at, model_id=call.model_id
    )
