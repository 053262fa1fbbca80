"""Several judges of one reply, or several verdicts of one: asked at once, counted together."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from statistics import fmean, median
from typing import Any, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from socratic_bench.errors import ModelError
from socratic_bench.judging.judge import Judge, unanswered
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
# How a juror's calls may end for the juror alone, on all turns; what else is raised ends the run.
ONES_OWN = ("access", "unknown_model", "refused_request", "credentials")
# How one call of a juror's may end for the juror alone.
JURORS_OWN = (*ONES_OWN, "unavailable", "context_window")
Found = TypeVar("Found")
AtOnce = Callable[[Sequence[Callable[[], Any]]], list[Any]]
Failure = Callable[[CallKey], ModelError | None]


class Jury(Struct, frozen=True, kw_only=True):
    """Scores replies by the verdicts of `judges`, `n_samples` of each.

    Samples become a mean, then jurors that gave a verdict become one by `rule`; fewer than `quorum`
    are none. `at_once` does the jurors' work concurrently. `failure` tells how a call failed in an
    earlier process of the run: the run goes on without it as long as there is a quorum, so that it
    stays what it was. `lost` holds the jurors that would fail for every turn, of which `notice`
    tells. Safe to use from several threads.
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
        """Who judges, in one word."""
        return "+".join(judge.model.model_id for judge in self.judges)

    @property
    def rubric(self) -> Rubric:
        return self.judges[0].rubric

    def by(self, rubric: Rubric) -> "Jury":
        """The same jury with the rubric of an item."""
        if rubric is self.rubric:
            return self
        return replace(self, judges=tuple(replace(one, rubric=rubric) for one in self.judges))

    def judge(self, judge_input: JudgeInput, index: int) -> Judged:
        """The verdict on turn `index`, or why there is none.

        A juror that fails costs its own vote. Raises `ModelError` once so many would fail for every
        turn that there can be no quorum, and `Stopped` for what ends the run.
        """
        if len(self.judges) == 1 and self.n_samples == 1:
            return self.judges[0].judge(judge_input, index)
        found = self._voted(
            lambda judge: self._vote(judge, judge_input, index), lambda one: one[0].outcome
        )
        votes = tuple(vote for vote, _ in found)
        calls = tuple(call for _, made in found for call in made)
        return Judged(
            outcome=self._decided(votes),
            calls=calls,
            finished_at=self._end(calls),
            votes=votes,
            rule=self.rule if len(votes) > 1 else None,
        )

    def conclude(self, question: ClosingQuestion) -> ClosingResult:
        """What the jury makes of the episode as a whole, each finding by the majority of votes."""
        from socratic_bench.judging.closing import conclude

        if len(self.judges) == 1:
            return conclude(self.judges[0], question)
        found = self._voted(lambda judge: conclude(judge, question), lambda one: one.outcome)
        votes = tuple(
            ClosingVote(judge_model=judge.model.model_id, outcome=one.outcome)
            for judge, one in zip(self.judges, found, strict=True)
        )
        calls = tuple(call for one in found for call in one.calls)
        outcome = self._closed(question, votes)
        return ClosingResult(
            outcome=outcome, calls=calls, finished_at=self._end(calls), votes=votes
        )

    def _closed(
        self, question: ClosingQuestion, votes: Sequence[ClosingVote]
    ) -> ClosingVerdict | Unscored:
        if unpaid := _unpaid([vote.outcome for vote in votes]):
            return unpaid
        given = [one.outcome for one in votes if isinstance(one.outcome, ClosingVerdict)]
        if len(given) < self.quorum:
            return self._no_quorum([(one.judge_model, one.outcome) for one in votes])
        findings = question.merge([one.findings for one in given])
        return ClosingVerdict(findings=findings, judge_model=self.model_id)

    def _voted(
        self, ask: Callable[[Judge], Found], outcome: Callable[[Found], object]
    ) -> list[Found]:
        """What all jurors say. What failed in an earlier process, or was answered in vain, is asked
        again only if there is no quorum without it.
        """
        recalled = [_FailureReplayModel(judge, self.failure) for judge in self.judges]
        judges = [
            replace(judge, model=model, n_answered=model.n_answered)
            for judge, model in zip(self.judges, recalled, strict=True)
        ]
        found: list[Found] = self.at_once([partial(ask, judge) for judge in judges])
        is_missing = [isinstance(outcome(one), Unscored) for one in found]
        failed = [at for at, one in enumerate(recalled) if one.has_failed and is_missing[at]]
        if failed and is_missing.count(False) < self.quorum:
            anew: list[Found] = self.at_once([partial(ask, self.judges[at]) for at in failed])
            for at, one in zip(failed, anew, strict=True):
                found[at] = one
        return found

    def _vote(
        self, judge: Judge, judge_input: JudgeInput, index: int
    ) -> tuple[Vote, tuple[Completion, ...]]:
        samples: list[Verdict | Unscored] = []
        calls: list[Completion] = []
        for sample in range(self.n_samples):
            try:
                judged = replace(judge, sample=sample).judge(judge_input, index)
            except ModelError as error:
                if error.end_reason not in ONES_OWN:
                    raise
                self._lose(judge, error)
                samples.append(unanswered(error, ()))
                break
            samples.append(judged.outcome)
            calls += judged.calls
        model_id = judge.model.model_id
        given = [one for one in samples if isinstance(one, Verdict)]
        outcome = _aggregated(given, model_id, "mean") if given else samples[0]
        return Vote(judge_model=model_id, samples=tuple(samples), outcome=outcome), tuple(calls)

    def _lose(self, judge: Judge, error: ModelError) -> None:
        """It fails for every turn: raised as the run's end where too few are left."""
        if isinstance(judge.model, _FailureReplayModel) and judge.model.has_failed:
            return  # in an earlier process: it may do better now
        self.lost[judge.model.model_id] = error
        if len(self.judges) - len(self.lost) < self.quorum:
            raise error
        self.notice(f"The juror {judge.model.model_id} has no votes: {error.message}")

    def _decided(self, votes: Sequence[Vote]) -> Verdict | Unscored:
        if unpaid := _unpaid([sample for vote in votes for sample in vote.samples]):
            return unpaid
        given = [vote.outcome for vote in votes if isinstance(vote.outcome, Verdict)]
        if len(given) >= self.quorum:
            return _aggregated(given, self.model_id, self.rule)
        if len(votes) == 1 and isinstance(votes[0].outcome, Unscored):
            return votes[0].outcome
        return self._no_quorum([(vote.judge_model, vote.outcome) for vote in votes])

    def _no_quorum(self, outcomes: Sequence[tuple[str, object]]) -> Unscored:
        missing = [(name, one) for name, one in outcomes if isinstance(one, Unscored)]
        said = " ".join(f"{name}: {one.message}" for name, one in missing)
        n_votes = len(outcomes) - len(missing)
        return Unscored(
            reason=NO_QUORUM,
            message=f"{n_votes} of {len(outcomes)} jurors gave a verdict, and {self.quorum} are "
            f"needed. {said}",
            hints=next((one.hints for _, one in missing if one.hints), ()),
            causes=tuple(one.reason for _, one in missing),
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
    """The jury that is asked for; `judge` makes one of its jurors, and `model` its model."""
    is_many = len(config.jurors) > 1
    return Jury(
        judges=tuple(
            judge(
                model=model(model_id),
                juror=model_id if is_many else "",
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


def _unpaid(outcomes: Sequence[object]) -> Unscored | None:
    """What a budget had no room for is no juror's fault: the turn is judged once there is."""
    missing = [one for one in outcomes if isinstance(one, Unscored)]
    return next((one for one in missing if one.reason == BUDGET), None)


def _aggregated(verdicts: Sequence[Verdict], judge_model: str, rule: JuryRule) -> Verdict:
    # Not needed before there are several.

    return aggregated(verdicts, judge_model=judge_model, rule=rule)


class _FailureReplayModel:
    """A juror's model that fails again where an earlier process of the run was refused an answer,
    and is not asked afresh where one got none that can be used.
    """

    def __init__(self, judge: Judge, failure: Failure) -> None:
        self._inner = judge.model
        self._n_answered = judge.n_answered
        self._failure = failure
        self.has_failed = False

    @property
    def model_id(self) -> str:
        return self._inner.model_id

    def n_answered(self, key: CallKey) -> int:
        self.has_failed = self.has_failed or self._n_answered(key) > 0
        return 0

    def complete(self, request: Request, key: CallKey) -> Completion:
        error = self._failure(key)
        if error and error.end_reason in JURORS_OWN:
            self.has_failed = True
            raise error
        return self._inner.complete(request, key)


# One verdict out of several: samples of a juror, then jurors.


def aggregated(verdicts: Sequence[Verdict], *, judge_model: str, rule: JuryRule) -> Verdict:
    """The mean or the median of each dimension; the score is their sum.

    An event counts if more than half of those that tell of events saw it, so that a tie is none.
    Reason and quotation of a dimension are those of the verdict whose score is nearest, and an
    event's words are of the first that saw it. One verdict stays as it is.
    """
    if len(verdicts) == 1:
        return verdicts[0]
    middle = fmean if rule == "mean" else median
    scores = {name: middle([one.scores[name] for one in verdicts]) for name in verdicts[0].scores}
    events = _events(verdicts)
    nearest = {name: _nearest(verdicts, name, score) for name, score in scores.items()}
    # What each part of the verdict is taken from, for its quotations.
    sources = {**nearest, **{name: _first_seen(verdicts, name) for name in events or ()}}
    has_quotes = all(one.unquoted is not None for one in verdicts)
    return Verdict(
        scores=scores,
        rationale={name: one.rationale.get(name) for name, one in nearest.items()},
        judge_model=judge_model,
        events=events,
        quotes={name: (one.quotes or {}).get(name) for name, one in nearest.items()}
        if has_quotes
        else None,
        unquoted=tuple(name for name, one in sources.items() if name in (one.unquoted or ()))
        if has_quotes
        else None,
    )


def majority(votes: Sequence[str]) -> str | None:
    """What more than half of the votes say; `None` if nothing is."""
    (said, n_votes), *_ = Counter(votes).most_common(1) or [("", 0)]
    return said if 2 * n_votes > len(votes) else None


def _events(verdicts: Sequence[Verdict]) -> Mapping[str, str] | None:
    told = [one.events for one in verdicts if one.events is not None]
    names = dict.fromkeys(name for events in told for name in events)
    seen = {name: [events[name] for events in told if name in events] for name in names}
    counted = {name: words[0] for name, words in seen.items() if 2 * len(words) > len(told)}
    return counted if told else None


def _first_seen(verdicts: Sequence[Verdict], event: str) -> Verdict:
    return next(one for one in verdicts if event in (one.events or {}))


def _nearest(verdicts: Sequence[Verdict], dimension: str, score: float) -> Verdict:
    return min(verdicts, key=lambda one: abs(one.scores[dimension] - score))
