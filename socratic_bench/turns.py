"""Turns, rubrics, and the verdicts of judges."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from math import isclose
from statistics import stdev
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from socratic_bench.errors import Words
from socratic_bench.types import (
    CUT_STOPS,
    JUDGE,
    MALFORMED_STOPS,
    REFUSED_STOPS,
    Completion,
    Message,
    Role,
)

REFERENCE = "golden_answer"  # the name under which a judge is shown a right answer
Measure = bool | int | float | str | None
JuryRule = Literal["mean", "median"]  # how jurors' scores of a dimension become one
SUM_PLACES = 6
ClosingAnswer = tuple[Mapping[str, Measure], ...]  # findings, by names of the benchmark's own


class Verdict(Struct, frozen=True, kw_only=True):
    """A judge's scores of one reply, by the rubric's dimensions, with the reasons.

    `events` has the quoted words of each event of the rubric that the judge saw, by name; `None` if
    the rubric has no events, or the judge did not answer. `quotes` has the words of the reply on
    which each score is based, `None` for none; `unquoted` names the dimensions and events whose
    quoted words are not in the reply. Both are `None` under a rubric without quotes.
    """

    scores: Mapping[str, float]
    rationale: Mapping[str, str | None]
    judge_model: str | None
    events: Mapping[str, str] | None = None
    quotes: Mapping[str, str | None] | None = None
    unquoted: tuple[str, ...] | None = None

    @property
    def overall_score(self) -> float:
        """The sum of the scores, rounded so that three thirds of 8 are 8."""
        return round(sum(self.scores.values()), SUM_PLACES)


class Unscored(Struct, frozen=True, kw_only=True):
    """Why a turn has no verdict: `reason` is a word for machines, `message` is for people.

    `hints` say what to do about a judge that could not be reached. `causes` are the reasons of a
    jury's members that gave no verdict, if too few gave one.
    """

    reason: str
    message: str
    raw_reply: str | None = None
    hints: tuple[Words, ...] = ()
    causes: tuple[str, ...] = ()


class Vote(Struct, frozen=True, kw_only=True):
    """One juror's `samples` of a verdict on a reply, and their mean as its `outcome`."""

    judge_model: str
    samples: tuple[Verdict | Unscored, ...]
    outcome: Verdict | Unscored

    @property
    def spread(self) -> Mapping[str, float] | None:
        """Standard deviations of its samples; see `deviations`."""
        return deviations([sample for sample in self.samples if isinstance(sample, Verdict)])


def deviations(verdicts: Sequence[Verdict]) -> Mapping[str, float] | None:
    """Standard deviations (n - 1) of verdicts on one reply, by dimension and of `overall_score`.
    `None` with fewer than two verdicts.
    """
    if len(verdicts) < 2:  # noqa: PLR2004
        return None
    names = verdicts[0].scores
    by_name = {name: stdev(verdict.scores[name] for verdict in verdicts) for name in names}
    return {**by_name, "overall_score": stdev(verdict.overall_score for verdict in verdicts)}


class Judged(Struct, frozen=True, kw_only=True):
    """The outcome of judging one turn, and its calls: one, or two after a repair.

    `votes` are the votes of which the outcome is made; empty for a single verdict of one judge.
    `rule` is how several jurors' votes became one.
    """

    outcome: Verdict | Unscored
    calls: tuple[Completion, ...]
    finished_at: datetime
    votes: tuple[Vote, ...] = ()
    rule: JuryRule | None = None


def without_words(call: Completion) -> Completion:
    """The call without its message, for a document that has the words elsewhere."""
    return replace(call, message=Message(call.message.role, ()))


class ClosingVerdict(Struct, frozen=True, kw_only=True):
    """A judge's findings about an episode as a whole, by names of the benchmark's own."""

    findings: ClosingAnswer
    judge_model: str


class ClosingVote(Struct, frozen=True, kw_only=True):
    """One juror's verdict on an episode as a whole."""

    judge_model: str
    outcome: ClosingVerdict | Unscored


class ClosingResult(Struct, frozen=True, kw_only=True):
    """The outcome of judging an episode as a whole, and its calls; of a jury, also the `votes`."""

    outcome: ClosingVerdict | Unscored
    calls: tuple[Completion, ...]
    finished_at: datetime
    votes: tuple[ClosingVote, ...] = ()

    @property
    def verdict(self) -> ClosingVerdict | None:
        return self.outcome if isinstance(self.outcome, ClosingVerdict) else None


class Dimension(Struct, frozen=True, kw_only=True):
    """A dimension of a rubric: scores from `low` to `high` in steps of `step`, levels in words."""

    name: str
    low: float
    high: float
    step: float
    levels: Mapping[str, str]

    def allows(self, score: float) -> bool:
        """Whether a score is within the bounds and on a step."""
        steps = (score - self.low) / self.step
        return self.low <= score <= self.high and isclose(steps, round(steps), abs_tol=1e-9)


class Event(Struct, frozen=True, kw_only=True):
    """Something that a reply may do, whatever its score; `meaning` explains it to the judge."""

    name: str
    meaning: str


class ScoredReply(Struct, frozen=True, kw_only=True):
    """An example of a rubric: a reply to `prompt` with its `scores`, and `why` in a few words.
    `before` is what was said before the prompt, `events` has the words of each event in the reply.
    """

    prompt: str
    reply: str
    scores: Mapping[str, float]
    why: str
    before: str = ""
    events: Mapping[str, str] | None = None


class Rubric(Struct, frozen=True, kw_only=True):
    """How a judge scores one reply. Raises `ValueError` for a dimension with a reserved name.

    Attributes:
        sha256: of the file that it was read from.
        events: what a judge looks for in addition to the dimensions.
        requires_events: whether a verdict that does not say which events it saw is none.
        speakers: whose words a judge sees: who is answered, then whose reply is scored.
        is_dialogue: whether the judge sees what they said before, too.
        has_quotes: whether a verdict quotes the words on which each score and event is based.
        temperature: of judges whose model takes one; `None` leaves it to the model.
        references: published agreement: by dimension, whose it is, and their macro F1.
    """

    id: str
    title: str
    instructions: str
    dimensions: tuple[Dimension, ...]
    sha256: str
    events: tuple[Event, ...] = ()
    requires_events: bool = False
    examples: Sequence[ScoredReply] = ()
    speakers: tuple[str, str] = ("user", "model")
    is_dialogue: bool = False
    has_quotes: bool = False
    temperature: float | None = None
    references: Mapping[str, tuple[str, float]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The names of its dimensions."""
        return [dimension.name for dimension in self.dimensions]

    def __post_init__(self) -> None:
        reserved = {"rationale", "quotes", "events", "before", "reply", "why", self.speakers[0]}
        if names := reserved & {*self.names}:
            raise ValueError(f"No dimension can be called {' or '.join(sorted(names))}.")


# Whether a model answered: "truncated" is an answer cut at a limit, "unparsed" one that the
# benchmark cannot read.
Outcome = Literal["answered", "refused", "truncated", "unparsed"]


class Turn(Struct, frozen=True, kw_only=True):
    """A prompt to the model under test and its reply; in a dialogue, the exchange at `index`.

    A benchmark that knows more of a turn extends this class.

    Attributes:
        others: calls of other actors that led to `prompt`, by their names.
        notes: what else the benchmark stores with the turn.
        measures: measures of the reply that need no model; empty until they are made.
        summary: what progress lines show of it if no judge scores it.
        judged: `None` until the judge has answered, and without a judge.
        injection_suspected: the reply seems to address the judge; `None` without a rubric.
        replayed: it was read from a record: no model was called for it, and nobody judges it.
        set_aside: earlier answers that were rejected, with the role that gave each.
        is_parsed: whether the benchmark could read the reply; `None` if it does not parse replies.
    """

    index: int
    prompt: str
    reply: Completion
    others: Mapping[Role, Completion] = field(default_factory=dict)
    notes: Mapping[str, Measure] = field(default_factory=dict)
    measures: Mapping[str, Measure] = field(default_factory=dict)
    summary: str = ""
    unscorable: Unscored | None = None
    judged: Judged | None = None
    injection_suspected: bool | None = None
    replayed: bool = False
    set_aside: tuple[tuple[Role, Completion], ...] = ()
    is_parsed: bool | None = None

    def calls(self, role: Role, *, tested: Role) -> tuple[Completion, ...]:
        """The answered calls of a role for this turn, those set aside first. `tested` is the role
        of the model under test.
        """
        if role == JUDGE:
            return self.judged.calls if self.judged else ()
        set_aside = tuple(call for call_role, call in self.set_aside if call_role == role)
        last = self.reply if role == tested else self.others.get(role)
        return set_aside if last is None else (*set_aside, last)

    @property
    def answered(self) -> Outcome:
        """Whether the model answered."""
        stop_reason = self.reply.stop_reason
        if stop_reason in REFUSED_STOPS or self.reply.provider_stop_reason in REFUSED_STOPS:
            return "refused"
        if stop_reason in CUT_STOPS:
            return "truncated"
        unread = self.is_parsed is False or stop_reason in MALFORMED_STOPS
        return "unparsed" if unread else "answered"

    @property
    def outcome(self) -> Verdict | Unscored | None:
        """The verdict, or why there is none; `None` if nobody judged it."""
        return self.unscorable or (self.judged.outcome if self.judged else None)

    @property
    def verdict(self) -> Verdict | None:
        outcome = self.outcome
        return outcome if isinstance(outcome, Verdict) else None


def recorded_reply(
    text: str, stop_reason: str, provider_stop_reason: str | None = None
) -> Completion:
    """A reply that was read from a record, not made by a call; its times mean nothing."""
    return Completion(
        message=Message.assistant(text),
        stop_reason=stop_reason,
        provider_stop_reason=provider_stop_reason,
        usage=None,
        latency_ms=0.0,
        service_latency_ms=None,
        attempts=(),
        request_id=None,
        finished_at=datetime.fromtimestamp(0, UTC),
    )
