"""Turns, what a rubric asks of a judge about them, and what the judge says."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
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

Measure = bool | int | float | str | None
# How the verdicts of jurors become one, dimension by dimension.
JuryRule = Literal["mean", "median"]
SUM_PLACES = 6
Findings = tuple[Mapping[str, Measure], ...]


class Verdict(Struct, frozen=True, kw_only=True):
    """A judge's scores of one reply, by the rubric's dimensions, with its reasons.

    `events` holds the quoted words of each of the rubric's events that the judge saw, by name;
    `None` where the rubric has none, or the judge did not say. `quotes` holds the words of the
    reply that each score rests on, `None` where there are none; `unquoted` names the dimensions and
    events whose words do not stand in the reply. Both are `None` under a rubric without quotes.
    """

    scores: Mapping[str, float]
    rationale: Mapping[str, str | None]
    judge_model: str | None
    events: Mapping[str, str] | None = None
    quotes: Mapping[str, str | None] | None = None
    unquoted: tuple[str, ...] | None = None

    @property
    def overall_score(self) -> float:
        """The sum, without what thirds lose on the way: three thirds of 8 reach 8."""
        return round(sum(self.scores.values()), SUM_PLACES)


class Unscored(Struct, frozen=True, kw_only=True):
    """Why a turn has no verdict: `reason` is a word for machines, `message` is for people.

    `hints` say what to do about a judge that could not be reached. `causes` are the reasons of the
    jurors that gave no verdict, where too few were left.
    """

    reason: str
    message: str
    raw_reply: str | None = None
    hints: tuple[Words, ...] = ()
    causes: tuple[str, ...] = ()


class Vote(Struct, frozen=True, kw_only=True):
    """What one juror makes of a reply: each of its `samples`, and their mean as its `outcome`."""

    judge_model: str
    samples: tuple[Verdict | Unscored, ...]
    outcome: Verdict | Unscored

    @property
    def spread(self) -> Mapping[str, float] | None:
        """How far its samples differ; see `deviations`."""
        return deviations([one for one in self.samples if isinstance(one, Verdict)])


def deviations(verdicts: Sequence[Verdict]) -> Mapping[str, float] | None:
    """The deviation of verdicts on one reply (with n - 1) by dimension, and of `overall_score`;
    `None` with fewer than two.
    """
    if len(verdicts) < 2:  # noqa: PLR2004 -- one does not scatter
        return None
    # Not needed before a jury has voted.
    from statistics import stdev

    found = {name: stdev(one.scores[name] for one in verdicts) for name in verdicts[0].scores}
    return {**found, "overall_score": stdev(one.overall_score for one in verdicts)}


class Judged(Struct, frozen=True, kw_only=True):
    """The outcome of judging one turn and what it took: one call, or two after a repair.

    `votes` are those of which the outcome is made, each with its samples; empty of a single verdict
    of a single judge. `rule` is how several jurors' votes became one.
    """

    outcome: Verdict | Unscored
    calls: tuple[Completion, ...]
    finished_at: datetime
    votes: tuple[Vote, ...] = ()
    rule: JuryRule | None = None


def without_words(call: Completion) -> Completion:
    """What a call took, without what was said: of an answer whose words stand elsewhere."""
    return replace(call, message=Message(call.message.role, ()))


class ClosingVerdict(Struct, frozen=True, kw_only=True):
    """What a judge makes of an episode as a whole: `findings`, by names of the benchmark's own."""

    findings: Findings
    judge_model: str


class ClosingVote(Struct, frozen=True, kw_only=True):
    """What one juror makes of an episode as a whole."""

    judge_model: str
    outcome: ClosingVerdict | Unscored


class ClosingResult(Struct, frozen=True, kw_only=True):
    """The outcome of asking a judge about an episode as a whole, and the calls that it took; with a
    jury, the `votes` of which it is made.
    """

    outcome: ClosingVerdict | Unscored
    calls: tuple[Completion, ...]
    finished_at: datetime
    votes: tuple[ClosingVote, ...] = ()

    @property
    def verdict(self) -> ClosingVerdict | None:
        return self.outcome if isinstance(self.outcome, ClosingVerdict) else None


class Dimension(Struct, frozen=True, kw_only=True):
    """One sub-score of a rubric: `low`..`high` in steps of `step`, with its levels in words."""

    name: str
    low: float
    high: float
    step: float
    levels: Mapping[str, str]


class Event(Struct, frozen=True, kw_only=True):
    """Something that a reply does or does not do, whatever it scores. `meaning` tells the judge."""

    name: str
    meaning: str


class ScoredReply(Struct, frozen=True, kw_only=True):
    """A reply as a rubric would have it scored: what it answers, `scores` by dimension, and `why`
    in a few words. `before` is what was said before that, `events` the words of each event in it.
    """

    prompt: str
    reply: str
    scores: Mapping[str, float]
    why: str
    before: str = ""
    events: Mapping[str, str] | None = None


class Rubric(Struct, frozen=True, kw_only=True):
    """How a judge scores one reply. `sha256` is of the file that it was read from.

    `speakers` are those whose words a judge sees: who is answered first, whose reply is scored
    last. `is_dialogue`: what they said before it is shown, too; else the reply stands alone.
    `events` are what a judge looks for beside the dimensions. `has_quotes`: a verdict quotes the
    words of the reply that each score and event rests on. `temperature` is what judges are asked
    at, where their model takes one; `None` leaves it to the model. `references` are what others
    reached by it: by dimension, who, and their macro F1. Raises `ValueError` for a
    dimension by whose name verdict or example have something else.
    """

    id: str
    title: str
    instructions: str
    dimensions: tuple[Dimension, ...]
    sha256: str
    events: tuple[Event, ...] = ()
    examples: Sequence[ScoredReply] = ()
    speakers: tuple[str, str] = ("user", "model")
    is_dialogue: bool = False
    has_quotes: bool = False
    temperature: float | None = None
    references: Mapping[str, tuple[str, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        taken = {"rationale", "quotes", "events", "before", "reply", "why", self.speakers[0]}
        if found := taken & {dimension.name for dimension in self.dimensions}:
            raise ValueError(f"No dimension can be called {' or '.join(sorted(found))}.")


# What a model made of what it was asked: words, none for what they would say, only a part of them,
# or none that the benchmark can read.
Outcome = Literal["answered", "refused", "truncated", "unparsed"]


class Turn(Struct, frozen=True, kw_only=True):
    """One item: what was said to the model under test (`prompt`) and its `reply`. In a dialogue it
    is one exchange, and its `index` says which came first.

    `others` are the calls of the benchmark's other actors that led to `prompt`, by their names.
    `measures` holds the benchmark's deterministic readings of the reply, empty until they are made,
    `notes` what else it stores with the turn, `summary` what people see of it if no judge scores
    it. A benchmark that knows more of a turn extends this class. `judged` is `None` until the judge
    has spoken, and without a judge. `injection_suspected`: the reply looks as if it spoke to the
    judge; `None` without a rubric. A `replayed` turn was read from a record: no model was called
    for it, nobody judges it, and its reply's figures mean nothing. `set_aside` are the answers for
    which others were asked, by the role that gave them. `is_parsed`: whether the
    benchmark could read the reply; `None` where that is no question.
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
        """Every call of a role that was answered for this turn, those set aside first; `tested` is
        the one that the reply is of.
        """
        aside = tuple(call for whose, call in self.set_aside if whose == role)
        if role == JUDGE:
            return self.judged.calls if self.judged else ()
        last = self.reply if role == tested else self.others.get(role)
        return aside if last is None else (*aside, last)

    @property
    def answered(self) -> Outcome:
        """What became of what the model was asked."""
        stop_reason = self.reply.stop_reason
        if stop_reason in REFUSED_STOPS or self.reply.provider_stop_reason in REFUSED_STOPS:
            return "refused"
        if stop_reason in CUT_STOPS:
            return "truncated"
        unread = self.is_parsed is False or stop_reason in MALFORMED_STOPS
        return "unparsed" if unread else "answered"

    @property
    def outcome(self) -> Verdict | Unscored | None:
        """The verdict, or why there is none; `None` where nobody was asked."""
        return self.unscorable or (self.judged.outcome if self.judged else None)

    @property
    def verdict(self) -> Verdict | None:
        outcome = self.outcome
        return outcome if isinstance(outcome, Verdict) else None


def recorded_reply(
    text: str, stop_reason: str, provider_stop_reason: str | None = None
) -> Completion:
    """A reply that no call of this run made: no document shows its times."""
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
