"""Who judged a run, as its document tells it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, TypeVar

from msgspec import Meta, Struct, field

from socratic_bench.documents.judge_status import JudgeIdentity, JudgeStatus
from socratic_bench.documents.scalars import SCORE_PLACES, Amount, Count, Model, Share
from socratic_bench.documents.turn import unjudged_reason
from socratic_bench.turns import JuryRule, Rubric, Unscored, Verdict, Vote
from socratic_bench.types import JUDGE, doc

if TYPE_CHECKING:
    from socratic_bench.documents.ended_run import EndedRun


Value = TypeVar("Value")
# Ways in which a juror's calls fail for every turn.
LASTING = ("access", "unknown_model", "refused_request", "credentials")


class Retest(Struct, frozen=True, kw_only=True):
    """How well a juror's verdicts on the same replies agree, in points of the score.

    Neither figure depends on how much the replies differ, as a correlation would.
    """

    n_turns: Annotated[Count, doc("turns with two verdicts of it or more")]
    deviation: Annotated[
        dict[str, Amount],
        doc(
            "deviation of one verdict by dimension and of overall_score: the root of "
            "the mean variance within turns"
        ),
    ]
    absolute_difference: Annotated[
        Amount, doc("mean distance of its first two verdicts' overall_score")
    ]
    same_share: Annotated[
        Share, doc("share of turns whose first two verdicts have the same scores")
    ]

    @classmethod
    def of(cls, votes: Sequence[Vote]) -> Retest | None:
        """`None` where no turn has two verdicts."""
        given = [[one for one in vote.samples if isinstance(one, Verdict)] for vote in votes]
        pairs = [(one[0], one[1]) for one in given if len(one) > 1]
        spreads = [vote.spread for vote in votes if vote.spread is not None]
        if not pairs:
            return None
        variances = {name: [one[name] ** 2 for one in spreads] for name in spreads[0]}
        distances = [abs(one.overall_score - other.overall_score) for one, other in pairs]
        n_same = sum(one.scores == other.scores for one, other in pairs)
        return cls(
            n_turns=len(pairs),
            deviation={
                name: round((sum(of_turns) / len(of_turns)) ** 0.5, SCORE_PLACES)
                for name, of_turns in variances.items()
            },
            absolute_difference=round(sum(distances) / len(pairs), SCORE_PLACES),
            same_share=round(n_same / len(pairs), SCORE_PLACES),
        )


class Juror(Struct, frozen=True, kw_only=True):
    """One judge model and its share of the work."""

    model: Model
    judged_turns: Annotated[Count, doc("turns judged")]
    unjudged_reasons: Annotated[
        dict[str, Annotated[int, Meta(ge=1)]],
        doc("how many turns it gave no verdict on for which reason"),
    ] = field(default_factory=dict)
    error: Annotated[
        str | None, doc("why it can give none on any turn, such as no access; null: it can")
    ] = None
    retest: Annotated[Retest | None, doc("how well its samples agree; null without several")] = None

    @classmethod
    def voted(cls, model_id: str, votes: Sequence[Vote]) -> Juror:
        """One of a jury, by its votes on all turns."""
        missing = [vote.outcome for vote in votes if isinstance(vote.outcome, Unscored)]
        lasting = [one.message for one in missing if one.reason in LASTING]
        return cls(
            model=model_id,
            judged_turns=len(votes) - len(missing),
            unjudged_reasons=dict(sorted(Counter(one.reason for one in missing).items())),
            error=lasting[0] if lasting else None,
            retest=Retest.of(votes),
        )


class JudgeEntry(Struct, frozen=True, kw_only=True):
    """Who judged, and how much of the run."""

    model: Annotated[str, doc("the judge model; a jury's joined by +")]
    coverage: Annotated[Share | None, doc("share of turns that were judged; null without a turn")]
    rubric_sha256: Annotated[str, doc("fingerprint of the rubric file, or of all rubrics together")]
    rubric: Annotated[str | None, doc("the rubric's edition; null where items have several")] = None
    temperature: Annotated[
        Amount | None, doc("temperature that its model was asked at; null: the model's own")
    ] = None
    unquoted: Annotated[
        Count | None,
        doc(
            "scores and events whose quoted words do not stand in the reply; null "
            "under a rubric without quotes"
        ),
    ] = None
    samples: Annotated[
        int, Meta(ge=1, description="verdicts of each juror on a turn, of which the mean counts")
    ] = 1
    quorum: Annotated[
        int, Meta(ge=1, description="jurors that must give a verdict for a turn to have one")
    ] = 1
    rule: Annotated[JuryRule | None, doc("how jurors' scores become one; null with one judge")] = (
        None
    )
    jurors: Annotated[list[Juror], doc("each judge model; one entry with one judge")]
    judged_turns: Annotated[Count, doc("turns with a verdict")]
    unjudged_turns: Annotated[Count, doc("turns without one")]
    unjudged_reasons: Annotated[
        dict[str, Annotated[int, Meta(ge=1)]], doc("how many turns lack a verdict for which reason")
    ]
    calibration: Annotated[
        JudgeStatus | None, doc("whether it was held to people's labels; null in older documents")
    ] = None

    @classmethod
    def of(cls, result: EndedRun) -> JudgeEntry | None:
        if not result.is_judged:
            return None
        config, jurors = result.config, _jurors(result)
        judge = _held(result, jurors)
        played = [one for one in result.turns if not one.replayed and result.rubric_of(one)]
        reasons = Counter(filter(None, (unjudged_reason(result, turn) for turn in played)))
        return cls(
            model=judge.model,
            coverage=round(result.n_judged / len(played), 4) if played else None,
            rubric_sha256=judge.rubric_sha256,
            rubric=_only({rubric.id for rubric in _rubrics(result)}),
            temperature=judge.temperature,
            unquoted=_unquoted(result),
            samples=config.judge_samples,
            quorum=config.needed_votes,
            rule=config.jury_rule if len(config.jurors) > 1 else None,
            jurors=jurors,
            judged_turns=result.n_judged,
            unjudged_turns=len(played) - result.n_judged,
            unjudged_reasons=dict(sorted(reasons.items())),
            calibration=JudgeStatus.of(judge, result.held_judges),
        )


def silent_of(jurors: Sequence[Juror]) -> tuple[str, ...]:
    """Those of a jury that gave no verdict at all, where others did."""
    silent = tuple(one.model for one in jurors if not one.judged_turns)
    return silent if len(silent) < len(jurors) else ()


def _held(result: EndedRun, jurors: Sequence[Juror]) -> JudgeIdentity:
    config = result.config
    return JudgeIdentity(
        model="+".join(config.jurors),
        rubric_sha256=_fingerprint(result),
        temperature=_temperature(result),
        samples=config.judge_samples,
        rule=config.jury_rule if len(config.jurors) > 1 else None,
        context=config.judge_context,
        silent=silent_of(jurors),
    )


def _jurors(result: EndedRun) -> list[Juror]:
    config = result.config
    if len(config.jurors) == 1 and config.judge_samples == 1:
        return [Juror(model=config.jurors[0], judged_turns=result.n_judged)]
    votes = [vote for turn in result.turns if turn.judged for vote in turn.judged.votes]
    return [
        Juror.voted(one, [vote for vote in votes if vote.judge_model == one])
        for one in config.jurors
    ]


def _rubrics(result: EndedRun) -> list[Rubric]:
    return [one for one in (result.rubric, *result.opening.rubrics.values()) if one]


def _fingerprint(result: EndedRun) -> str:
    known = {rubric.sha256 for rubric in _rubrics(result)}
    return _only(known) or sha256("".join(sorted(known)).encode()).hexdigest()


def _temperature(result: EndedRun) -> float | None:
    """That of all calls; none if it was left out on the way."""
    return _only({call.temperature for call in result.tallies[JUDGE].completions})


def _unquoted(result: EndedRun) -> int | None:
    found = [turn.verdict.unquoted for turn in result.turns if turn.verdict]
    known = [names for names in found if names is not None]
    has_quotes = any(rubric.has_quotes for rubric in _rubrics(result))
    return sum(map(len, known)) if has_quotes else None


def _only(values: Iterable[Value]) -> Value | None:
    """The one value that there is; `None` if there are several, or none."""
    found = [*values]
    return found[0] if len(found) == 1 else None
