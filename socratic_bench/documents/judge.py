"""Who judged a run, and how much of it, as the run's document says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Annotated, TypeVar

from msgspec import Meta, Struct, field

from socratic_bench.documents.document import SCORE_PLACES, Amount, Count, Model, Share
from socratic_bench.documents.ended_run import EndedRun
from socratic_bench.documents.judge_status import JudgeIdentity, JudgeStatus
from socratic_bench.documents.turn import unjudged_reason
from socratic_bench.turns import JuryRule, Rubric, Unscored, Verdict, Vote
from socratic_bench.types import JUDGE, doc

Value = TypeVar("Value")
# Errors by which a juror's calls fail for every turn.
LASTING_ERRORS = ("access", "unknown_model", "refused_request", "credentials")


class Retest(Struct, frozen=True, kw_only=True):
    """How well a juror's verdicts on the same reply agree, in points of the score.

    Unlike a correlation, no figure depends on how much the replies differ.
    """

    n_turns: Annotated[Count, doc("turns on which it gave two verdicts or more")]
    deviation: Annotated[
        dict[str, Amount],
        doc(
            "standard deviation of one verdict by dimension and of overall_score: the root of "
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
        """`None` if no turn has two verdicts."""
        verdicts = [[v for v in vote.samples if isinstance(v, Verdict)] for vote in votes]
        pairs = [(samples[0], samples[1]) for samples in verdicts if len(samples) > 1]
        spreads = [vote.spread for vote in votes if vote.spread is not None]
        if not pairs:
            return None
        variances = {name: [spread[name] ** 2 for spread in spreads] for name in spreads[0]}
        distances = [abs(first.overall_score - second.overall_score) for first, second in pairs]
        n_same = sum(first.scores == second.scores for first, second in pairs)
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
        doc("by reason, the number of turns on which it gave no verdict"),
    ] = field(default_factory=dict)
    error: Annotated[
        str | None, doc("why it can judge no turn at all, such as no access; null: it can")
    ] = None
    retest: Annotated[
        Retest | None, doc("how well its verdicts on one reply agree; null without several")
    ] = None

    @classmethod
    def of_votes(cls, model_id: str, votes: Sequence[Vote]) -> Juror:
        """One member of a jury, by its votes on all turns."""
        unscored = [vote.outcome for vote in votes if isinstance(vote.outcome, Unscored)]
        errors = [outcome.message for outcome in unscored if outcome.reason in LASTING_ERRORS]
        return cls(
            model=model_id,
            judged_turns=len(votes) - len(unscored),
            unjudged_reasons=dict(sorted(Counter(o.reason for o in unscored).items())),
            error=errors[0] if errors else None,
            retest=Retest.of(votes),
        )


class JudgeEntry(Struct, frozen=True, kw_only=True):
    """Who judged, and how much of the run."""

    model: Annotated[str, doc("the judge model; several are joined by +")]
    coverage: Annotated[Share | None, doc("share of turns that were judged; null without a turn")]
    rubric_sha256: Annotated[
        str, doc("sha256 of the rubric file, or of all rubrics' sha256 where there are several")
    ]
    rubric: Annotated[str | None, doc("name of the rubric; null where items have several")] = None
    temperature: Annotated[
        Amount | None, doc("temperature of its calls; null: the model's default")
    ] = None
    unquoted: Annotated[
        Count | None,
        doc(
            "scores and events whose quotation is not in the reply; null if the rubric asks for no "
            "quotations"
        ),
    ] = None
    samples: Annotated[
        int, Meta(ge=1, description="verdicts of each juror on a turn, of which the mean counts")
    ] = 1
    quorum: Annotated[
        int, Meta(ge=1, description="jurors that must give a verdict for a turn to have one")
    ] = 1
    rule: Annotated[
        JuryRule | None, doc("how the jurors' scores are combined; null with one judge")
    ] = None
    jurors: Annotated[list[Juror], doc("each judge model; one entry with one judge")]
    judged_turns: Annotated[Count, doc("turns with a verdict")]
    unjudged_turns: Annotated[Count, doc("turns without a verdict")]
    unjudged_reasons: Annotated[
        dict[str, Annotated[int, Meta(ge=1)]], doc("by reason, the number of turns without one")
    ]
    calibration: Annotated[
        JudgeStatus | None, doc("whether it was calibrated against human labels")
    ] = None

    @classmethod
    def of(cls, result: EndedRun) -> JudgeEntry | None:
        if not result.is_judged:
            return None
        config, jurors = result.config, _jurors(result)
        judge = _identity(result, jurors)
        turns = [turn for turn in result.turns if not turn.replayed and result.rubric_of(turn)]
        reasons = Counter(filter(None, (unjudged_reason(result, turn) for turn in turns)))
        return cls(
            model=judge.model,
            coverage=round(result.n_judged / len(turns), 4) if turns else None,
            rubric_sha256=judge.rubric_sha256,
            rubric=_single({rubric.id for rubric in _rubrics(result)}),
            temperature=judge.temperature,
            unquoted=_count_unquoted(result),
            samples=config.judge_samples,
            quorum=config.needed_votes,
            rule=config.jury_rule if len(config.jurors) > 1 else None,
            jurors=jurors,
            judged_turns=result.n_judged,
            unjudged_turns=len(turns) - result.n_judged,
            unjudged_reasons=dict(sorted(reasons.items())),
            calibration=JudgeStatus.of(judge, result.held_judges),
        )


def silent_jurors(jurors: Sequence[Juror]) -> tuple[str, ...]:
    """Jurors that gave no verdict at all, if others did."""
    silent = tuple(juror.model for juror in jurors if not juror.judged_turns)
    return silent if len(silent) < len(jurors) else ()


def _identity(result: EndedRun, jurors: Sequence[Juror]) -> JudgeIdentity:
    config = result.config
    fingerprints = {rubric.sha256 for rubric in _rubrics(result)}
    joined = "".join(sorted(fingerprints))
    return JudgeIdentity(
        model="+".join(config.jurors),
        rubric_sha256=_single(fingerprints) or sha256(joined.encode()).hexdigest(),
        # None, too, if a model took no temperature after some calls.
        temperature=_single({call.temperature for call in result.tallies[JUDGE].completions}),
        samples=config.judge_samples,
        rule=config.jury_rule if len(config.jurors) > 1 else None,
        context=config.judge_context,
        silent=silent_jurors(jurors),
    )


def _jurors(result: EndedRun) -> list[Juror]:
    config = result.config
    if len(config.jurors) == 1 and config.judge_samples == 1:
        return [Juror(model=config.jurors[0], judged_turns=result.n_judged)]
    votes = [vote for turn in result.turns if turn.judged for vote in turn.judged.votes]
    return [
        Juror.of_votes(model, [vote for vote in votes if vote.judge_model == model])
        for model in config.jurors
    ]


def _rubrics(result: EndedRun) -> list[Rubric]:
    return [rubric for rubric in (result.rubric, *result.opening.rubrics.values()) if rubric]


def _count_unquoted(result: EndedRun) -> int | None:
    if not any(rubric.has_quotes for rubric in _rubrics(result)):
        return None
    return sum(len(turn.verdict.unquoted or ()) for turn in result.turns if turn.verdict)


def _single(values: Iterable[Value]) -> Value | None:
    """The only value; `None` if there are several, or none."""
    every = [*values]
    return every[0] if len(every) == 1 else None
