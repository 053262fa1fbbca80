"""A run that has ended, of which its documents are made, and who judged it, and how much of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Annotated, TypeVar

from msgspec import Meta, Struct

from socratic_bench.catalogue.prices import PriceTable
from socratic_bench.documents.cost import Billing, CostEntry
from socratic_bench.documents.document import SCORE_PLACES, Amount, Count, Model, Place, Share
from socratic_bench.documents.judge_status import CalibratedJudge, JudgeStatus, StoredCalibration
from socratic_bench.documents.usage import RoleUsage
from socratic_bench.errors import ENDINGS, EXIT_GATE, BenchError, RunStatus
from socratic_bench.ports.benchmark import Metrics, Sample
from socratic_bench.ports.parts import Parts
from socratic_bench.ports.store import StoredObject
from socratic_bench.settings import CoreConfig
from socratic_bench.turns import ClosingResult, JuryRule, Rubric, Turn, Unscored, Verdict, Vote
from socratic_bench.types import JUDGE, EndReason, Json, Role, doc


class EndedRun(Struct, frozen=True, kw_only=True):
    """What happened in a run.

    Attributes:
        closing: the other speaker's last message, which got no reply.
        error: what ended the run early; `None` if nothing did.
        shortfalls: sentences on the gates and the judge coverage that a completed run missed.
        tallies: the calls of each role.
        journal: entries from which a run that no store keeps can be resumed.
        prices: the user's own; `None` means the built-in ones.
        held_judges: the calibrations that were given for the judge (--calibration).
        parts: the benchmark's keys of the document.
        concluded: the judge's answer on the episode as a whole; `None` if it was not asked, or if
            the run had ended before.
        sdk_version: version of the client that sent the requests.
        stored: what the stores have of a complete run, by key.
    """

    run_id: str
    benchmark: str
    config: CoreConfig
    opening: Sample
    rubric: Rubric | None
    turns: tuple[Turn, ...]
    end_reason: EndReason
    closing: str | None
    error: BenchError | None
    metrics: Metrics
    shortfalls: tuple[str, ...]
    tallies: Mapping[Role, RoleUsage]
    s3: Place | None
    folder: Place | None
    notices: tuple[str, ...]
    journal: tuple[Mapping[str, Json], ...] | None = None
    started_at: datetime
    completed_at: datetime
    duration_s: float
    prices: PriceTable | None = None
    held_judges: Sequence[StoredCalibration] = ()
    parts: Parts = Parts()
    concluded: ClosingResult | None = None
    sdk_version: str
    stored: Mapping[str, StoredObject] = {}

    @property
    def status(self) -> RunStatus:
        status = ENDINGS[self.end_reason].status
        return "partial" if status == "failed" and self.n_turns else status

    @property
    def exit_code(self) -> int:
        """The exit code of the command: docs/output.md lists them."""
        if self.error and self.error.signal_number:
            return self.error.exit_code
        if self.status == "completed" and self.shortfalls:
            return EXIT_GATE
        return ENDINGS[self.end_reason].exit_code

    @property
    def is_judged(self) -> bool:
        """Whether the run has a judge."""
        has_rubric = self.rubric is not None or bool(self.opening.rubrics)
        return has_rubric and bool(self.config.jurors)

    def rubric_of(self, turn: Turn) -> Rubric | None:
        """The rubric of a turn: its own, or that of the run."""
        return self.opening.rubrics.get(turn.index, self.rubric)

    def unjudged_reason(self, turn: Turn) -> str | None:
        """Why a turn has no scores; `None` if it has, or if no judge was asked."""
        if turn.replayed:
            return "replayed" if self.is_judged else None
        if isinstance(turn.outcome, Unscored):
            return turn.outcome.reason
        if self.rubric_of(turn) is None:
            return None
        return "run_ended" if turn.outcome is None and self.is_judged else None

    @property
    def models(self) -> dict[Role, str | None]:
        """The model id of each role; `None` for a role that no model plays."""
        models = self.parts.models(self.config, is_judged=self.is_judged)
        return {**models, self.parts.tested: None} if self.opening.is_given else models

    @property
    def n_turns(self) -> int:
        """Turns of the model under test, without replayed ones."""
        return sum(not turn.replayed for turn in self.turns)

    @property
    def n_judged(self) -> int:
        return sum(turn.verdict is not None for turn in self.turns)

    @property
    def cost(self) -> CostEntry | None:
        """The cost by role and in total; `None` if no price is known."""
        billing = Billing.of(self.config, self.parts, self.models, self.prices)
        return CostEntry.of(billing, self.tallies)


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
    ] = {}
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
        int,
        Meta(ge=1, description="minimum number of jurors with a verdict for a turn to be scored"),
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
        reasons = Counter(filter(None, map(result.unjudged_reason, turns)))
        return cls(
            model=judge.model,
            coverage=round(result.n_judged / len(turns), 4) if turns else None,
            rubric_sha256=judge.rubric_sha256,
            rubric=judge.rubric or None,
            temperature=judge.temperature,
            unquoted=sum(len(turn.verdict.unquoted or ()) for turn in result.turns if turn.verdict)
            if any(rubric.has_quotes for rubric in _rubrics(result))
            else None,
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


def _identity(result: EndedRun, jurors: Sequence[Juror]) -> CalibratedJudge:
    config = result.config
    fingerprints = {rubric.sha256 for rubric in _rubrics(result)}
    joined = "".join(sorted(fingerprints))
    return CalibratedJudge(
        model="+".join(config.jurors),
        rubric=_single({rubric.id for rubric in _rubrics(result)}) or "",
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


def _single(values: Iterable[Value]) -> Value | None:
    """The only value; `None` if there are several, or none."""
    every = [*values]
    return every[0] if len(every) == 1 else None
