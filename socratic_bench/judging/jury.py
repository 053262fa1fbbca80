"""Several judges, or several verdicts of one judge: asked at once, counted together."""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from statistics import fmean, median
from typing import Any, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from socratic_bench.errors import ModelError
from socratic_bench.judging.judge import Judge, conclude, unanswered
from socratic_bench.ports.benchmark import ClosingQuestion, JudgeInput
from socratic_bench.ports.provider import Model
from socratic_bench.settings import CoreConfig
from socratic_bench.turns import (
    ClosingResult,
    ClosingVerdict,
    ClosingVote,
    Judged,
    JuryRule,
    Rubric,
    Unscored,
    Verdict,
    Vote,
)
from socratic_bench.types import CallKey, Completion, Request

NO_QUORUM = "quorum"
BUDGET = "budget"
# Failures that cost a juror its votes on all turns, and leave the run as it is.
JUROR_REASONS = ("access", "unknown_model", "refused_request", "credentials")
# Failures of one call that cost a juror that vote.
VOTE_REASONS = (*JUROR_REASONS, "unavailable", "context_window", "content_filtered")
Answer = TypeVar("Answer")
AtOnce = Callable[[Sequence[Callable[[], Any]]], list[Any]]
Failure = Callable[[CallKey], ModelError | None]


class Jury(Struct, frozen=True, kw_only=True):
    """Scores replies by the verdicts of `judges`, `n_samples` of each.

    Samples become a mean, then jurors that gave a verdict become one by `rule`; fewer than `quorum`
    are none. `at_once` does the jurors' work concurrently. `failure` returns how a call failed in
    an earlier process of the run: a resumed run leaves it failed as long as there is a quorum
    without it. `lost` holds the jurors that would fail for every turn, of which `notice` informs
    people. Safe to use from several threads.
    """

    judges: tuple[Judge, ...]
    n_samples: int
    quorum: int
    rule: JuryRule
    at_once: AtOnce
    failure: Failure
    notice: Callable[[str], None]
    lost: dict[str, ModelError] = field(default_factory=dict)

    @property
    def model_id(self) -> str:
        return "+".join(judge.model.model_id for judge in self.judges)

    @property
    def rubric(self) -> Rubric:
        return self.judges[0].rubric

    def by(self, rubric: Rubric) -> "Jury":
        """The same jury with the rubric of an item."""
        if rubric is self.rubric:
            return self
        return replace(self, judges=tuple(replace(judge, rubric=rubric) for judge in self.judges))

    def judge(self, judge_input: JudgeInput, index: int) -> Judged:
        """The verdict on turn `index`, or why there is none.

        A juror that fails costs its own vote. Raises `ModelError` once so many would fail for every
        turn that there can be no quorum, and `Stopped` for what ends the run.
        """
        if len(self.judges) == 1 and self.n_samples == 1:
            return self.judges[0].judge(judge_input, index)
        answers = self._ask_all(
            lambda judge: self._vote(judge, judge_input, index), lambda answer: answer[0].outcome
        )
        votes = tuple(vote for vote, _ in answers)
        calls = tuple(call for _, vote_calls in answers for call in vote_calls)
        return Judged(
            outcome=self._decide(votes),
            calls=calls,
            finished_at=self._end(calls),
            votes=votes,
            rule=self.rule if len(votes) > 1 else None,
        )

    def conclude(self, question: ClosingQuestion) -> ClosingResult:
        """The jury's answer about the episode as a whole, each finding by the majority of votes."""
        if len(self.judges) == 1:
            return conclude(self.judges[0], question)
        results = self._ask_all(
            lambda judge: conclude(judge, question), lambda result: result.outcome
        )
        votes = tuple(
            ClosingVote(judge_model=judge.model.model_id, outcome=result.outcome)
            for judge, result in zip(self.judges, results, strict=True)
        )
        calls = tuple(call for result in results for call in result.calls)
        outcome = self._merge_closing(question, votes)
        return ClosingResult(
            outcome=outcome, calls=calls, finished_at=self._end(calls), votes=votes
        )

    def _merge_closing(
        self, question: ClosingQuestion, votes: Sequence[ClosingVote]
    ) -> ClosingVerdict | Unscored:
        if unpaid := _unpaid([vote.outcome for vote in votes]):
            return unpaid
        verdicts = [vote.outcome for vote in votes if isinstance(vote.outcome, ClosingVerdict)]
        if len(verdicts) < self.quorum:
            return self._no_quorum([(vote.judge_model, vote.outcome) for vote in votes])
        findings = question.merge([verdict.findings for verdict in verdicts])
        return ClosingVerdict(findings=findings, judge_model=self.model_id)

    def _ask_all(
        self, ask: Callable[[Judge], Answer], outcome_of: Callable[[Answer], object]
    ) -> list[Answer]:
        """The answers of all jurors. What failed in an earlier process, or was answered in vain, is
        asked again only if there is no quorum without it.
        """
        models = [_FailureReplayModel(judge, self.failure) for judge in self.judges]
        judges = [
            replace(judge, model=model, n_answered=model.count_answers)
            for judge, model in zip(self.judges, models, strict=True)
        ]
        answers: list[Answer] = self.at_once([partial(ask, judge) for judge in judges])
        is_missing = [isinstance(outcome_of(answer), Unscored) for answer in answers]
        failed = [at for at, model in enumerate(models) if model.has_failed and is_missing[at]]
        if failed and is_missing.count(False) < self.quorum:
            anew: list[Answer] = self.at_once([partial(ask, self.judges[at]) for at in failed])
            for at, answer in zip(failed, anew, strict=True):
                answers[at] = answer
        return answers

    def _vote(
        self, judge: Judge, judge_input: JudgeInput, index: int
    ) -> tuple[Vote, tuple[Completion, ...]]:
        samples: list[Verdict | Unscored] = []
        calls: list[Completion] = []
        for sample in range(self.n_samples):
            try:
                judged = replace(judge, sample=sample).judge(judge_input, index)
            except ModelError as error:
                if error.end_reason not in JUROR_REASONS:
                    raise
                self._lose(judge, error)
                samples.append(unanswered(error, ()))
                break
            samples.append(judged.outcome)
            calls += judged.calls
        model_id = judge.model.model_id
        verdicts = [sample for sample in samples if isinstance(sample, Verdict)]
        outcome = aggregate(verdicts, judge_model=model_id, rule="mean") if verdicts else samples[0]
        return Vote(judge_model=model_id, samples=tuple(samples), outcome=outcome), tuple(calls)

    def _lose(self, judge: Judge, error: ModelError) -> None:
        """Note that a juror fails for every turn. Raises the error if too few jurors are left."""
        if isinstance(judge.model, _FailureReplayModel) and judge.model.has_failed:
            return  # in an earlier process: it may do better now
        self.lost[judge.model.model_id] = error
        if len(self.judges) - len(self.lost) < self.quorum:
            raise error
        self.notice(f"The juror {judge.model.model_id} has no votes: {error.message}")

    def _decide(self, votes: Sequence[Vote]) -> Verdict | Unscored:
        if unpaid := _unpaid([sample for vote in votes for sample in vote.samples]):
            return unpaid
        verdicts = [vote.outcome for vote in votes if isinstance(vote.outcome, Verdict)]
        if len(verdicts) >= self.quorum:
            return aggregate(verdicts, judge_model=self.model_id, rule=self.rule)
        if len(votes) == 1 and isinstance(votes[0].outcome, Unscored):
            return votes[0].outcome
        return self._no_quorum([(vote.judge_model, vote.outcome) for vote in votes])

    def _no_quorum(self, outcomes: Sequence[tuple[str, object]]) -> Unscored:
        missing = [(name, outcome) for name, outcome in outcomes if isinstance(outcome, Unscored)]
        messages = " ".join(f"{name}: {outcome.message}" for name, outcome in missing)
        n_votes = len(outcomes) - len(missing)
        return Unscored(
            reason=NO_QUORUM,
            message=f"{n_votes} of {len(outcomes)} jurors gave a verdict, and {self.quorum} are "
            f"needed. {messages}",
            hints=next((outcome.hints for _, outcome in missing if outcome.hints), ()),
            causes=tuple(outcome.reason for _, outcome in missing),
        )

    def _end(self, calls: Sequence[Completion]) -> datetime:
        return max((call.finished_at for call in calls), default=self.judges[0].now())


def jury_of(
    config: CoreConfig,
    judge: Callable[..., Judge],
    model: Callable[[str], Model],
    *,
    at_once: AtOnce,
    failure: Failure = lambda _: None,
    notice: Callable[[str], None] = lambda _: None,
) -> Jury:
    """The jury of a configuration; `judge` makes one of its jurors, and `model` its model."""
    is_jury = len(config.jurors) > 1
    return Jury(
        judges=tuple(
            judge(
                model=model(model_id),
                juror=model_id if is_jury else "",
                is_sampled=config.judge_samples > 1,
            )
            for model_id in config.jurors
        ),
        n_samples=config.judge_samples,
        quorum=config.needed_votes,
        rule=config.jury_rule,
        at_once=at_once,
        failure=failure,
        notice=notice,
    )


def aggregate(verdicts: Sequence[Verdict], *, judge_model: str, rule: JuryRule) -> Verdict:
    """One verdict out of several: the mean or median of each dimension; the score is their sum.

    An event counts if more than half of the verdicts that have events saw it, so that a tie is
    none. Reason and quotation of a dimension are those of the verdict whose score is nearest, and
    an event's words are of the first that saw it. One verdict stays as it is.
    """
    if len(verdicts) == 1:
        return verdicts[0]
    middle = fmean if rule == "mean" else median
    scores = {
        name: middle([verdict.scores[name] for verdict in verdicts]) for name in verdicts[0].scores
    }
    # An event's words are those of the first that saw it.
    votes = [verdict.events for verdict in verdicts if verdict.events is not None]
    quotes_by_event: dict[str, list[str]] = {}
    for event, quote in (pair for vote in votes for pair in vote.items()):
        quotes_by_event.setdefault(event, []).append(quote)
    seen = {
        name: words[0] for name, words in quotes_by_event.items() if 2 * len(words) > len(votes)
    }
    events = seen if votes else None
    nearest = {name: _nearest(verdicts, name, score) for name, score in scores.items()}
    # What each part of the verdict is taken from, for its quotations.
    sources = {**nearest}
    for name in events or ():
        sources[name] = next(verdict for verdict in verdicts if name in (verdict.events or {}))
    quotes = {name: (verdict.quotes or {}).get(name) for name, verdict in nearest.items()}
    unquoted = tuple(name for name, verdict in sources.items() if name in (verdict.unquoted or ()))
    has_quotes = all(verdict.unquoted is not None for verdict in verdicts)
    return Verdict(
        scores=scores,
        rationale={name: verdict.rationale.get(name) for name, verdict in nearest.items()},
        judge_model=judge_model,
        events=events,
        quotes=quotes if has_quotes else None,
        unquoted=unquoted if has_quotes else None,
    )


def majority(votes: Sequence[str]) -> str | None:
    """What more than half of the votes are for; `None` if nothing is."""
    (winner, n_votes), *_ = Counter(votes).most_common(1) or [("", 0)]
    return winner if 2 * n_votes > len(votes) else None


def _nearest(verdicts: Sequence[Verdict], dimension: str, score: float) -> Verdict:
    return min(verdicts, key=lambda verdict: abs(verdict.scores[dimension] - score))


def _unpaid(outcomes: Sequence[object]) -> Unscored | None:
    """A vote that the budget had no room for, if any: the turn is judged once there is room."""
    missing = [outcome for outcome in outcomes if isinstance(outcome, Unscored)]
    return next((outcome for outcome in missing if outcome.reason == BUDGET), None)


class _FailureReplayModel:
    """A juror's model that fails again where an earlier process of the run was refused an answer,
    and is not asked afresh where one got no answer that can be used.
    """

    def __init__(self, judge: Judge, failure: Failure) -> None:
        self._inner = judge.model
        self._n_answered = judge.n_answered
        self._failure = failure
        self.has_failed = False

    @property
    def model_id(self) -> str:
        return self._inner.model_id

    def count_answers(self, key: CallKey) -> int:
        self.has_failed = self.has_failed or self._n_answered(key) > 0
        return 0

    def complete(self, request: Request, key: CallKey) -> Completion:
        error = self._failure(key)
        if error and error.end_reason in VOTE_REASONS:
            self.has_failed = True
            raise error
        return self._inner.complete(request, key)
