"""What `socratic-runner calibrate` prints: a judge's verdicts beside labels of the same replies."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from socratic_bench.documents.error import ErrorEntry
from socratic_bench.documents.scalars import (
    SCHEMA_VERSION,
    Amount,
    Count,
    Model,
    RunId,
    Sha256,
    Share,
    Timestamp,
    Version,
)
from socratic_bench.documents.usage import ActorUsage
from socratic_bench.types import EndReason

Value = bool | float | None


class Figure(Struct, frozen=True, kw_only=True):
    """A figure with its 95 % interval, clustered by dialogue."""

    value: Annotated[float | None, Meta(description="null where labels do not give it")]
    low: Annotated[
        float | None,
        Meta(description="of the interval; null with one dialogue"),
    ] = None
    high: Annotated[float | None, Meta(description="of the interval; null where low is")] = None


Kappa = Annotated[Figure, Meta(description="Cohen's kappa; of scores with quadratic weights")]
Alpha = Annotated[Figure, Meta(description="Krippendorff's alpha, ordinal")]
AbsoluteError = Annotated[Figure, Meta(description="points: the mean of absolute differences")]
Spearman = Annotated[Figure, Meta(description="correlation of ranks")]
MoreLabels = Annotated[
    dict[str, Count] | None,
    Meta(
        description="by figure, how many more labels make its interval as narrow as --plan says; "
        "null without it"
    ),
]


class Cell(Struct, frozen=True, kw_only=True):
    """How often a judge gave one score where people gave another."""

    label: Annotated[float, Meta(description="points that people gave; the mean over labellers")]
    judge: Annotated[float, Meta(description="points that the judge gave")]
    n: Annotated[int, Meta(ge=1, description="replies")]


class Reference(Struct, frozen=True, kw_only=True):
    """What others have reached."""

    name: Annotated[str, Meta(description="who, and where")]
    macro_f1: Annotated[Share, Meta(description="their figure")]


class HumanScores(Struct, frozen=True, kw_only=True):
    """One person against another, on replies that both scored: the ceiling."""

    n: Annotated[Count, Meta(description="pairs of labels on one reply")]
    weighted_kappa: Kappa
    alpha: Alpha
    mean_absolute_error: AbsoluteError
    spearman: Spearman


class ScoreFigures(Struct, frozen=True, kw_only=True):
    """A dimension of the rubric, or overall_score, their sum: the judge against people."""

    n: Annotated[Count, Meta(description="replies with a score of both")]
    n_clusters: Annotated[Count, Meta(description="dialogues among them")]
    weighted_kappa: Kappa
    alpha: Alpha
    mean_absolute_error: AbsoluteError
    bias: Annotated[Figure, Meta(description="points: the mean of judge less people")]
    deviation: Annotated[
        Figure, Meta(description="points: standard deviation of judge less people")
    ]
    deviation_lasting: Annotated[
        Amount | None,
        Meta(
            description="the part of deviation that stays, however often the judge is asked; null "
            "with one verdict a reply"
        ),
    ] = None
    deviation_passing: Annotated[
        Amount | None,
        Meta(
            description="points: standard deviation of one verdict on the same reply; null with "
            "one verdict a reply"
        ),
    ] = None
    spearman: Spearman
    macro_f1: Annotated[
        Figure,
        Meta(
            description="mean F1 over all scores that occur, as classes; a mean counts as the "
            "nearest score, the lower of two"
        ),
    ]
    reference: Annotated[
        Reference | None, Meta(description="what others reached in macro_f1; null: none is known")
    ] = None
    human: Annotated[
        HumanScores | None, Meta(description="people among themselves; null: one labeller a reply")
    ]
    confusion: Annotated[
        list[Cell], Meta(description="how often each score of the judge met each of people's")
    ]
    more_labels: MoreLabels = None


class HumanAnswers(Struct, frozen=True, kw_only=True):
    """One person against another, on replies of which both said yes or no."""

    n: Annotated[Count, Meta(description="pairs of labels on one reply")]
    agreement: Annotated[Figure, Meta(description="share of pairs that agree")]
    kappa: Kappa


class AnswerCounts(Struct, frozen=True, kw_only=True):
    """How often the judge and people said yes."""

    both: Annotated[Count, Meta(description="both said yes")]
    judge_only: Annotated[Count, Meta(description="the judge alone did")]
    label_only: Annotated[Count, Meta(description="people alone did")]
    neither: Annotated[Count, Meta(description="both said no")]


class AnswerFigures(Struct, frozen=True, kw_only=True):
    """A label of yes or no, and what of the judge's verdict stands beside it."""

    judged_by: Annotated[
        str, Meta(description="the rubric's event, or a dimension against a bound")
    ]
    n: Annotated[Count, Meta(description="replies with an answer of both")]
    n_clusters: Annotated[Count, Meta(description="dialogues among them")]
    n_divided: Annotated[
        Count, Meta(description="replies of which as many labellers say yes as no; left out")
    ]
    n_yes: Annotated[Count, Meta(description="labels that say yes")]
    precision: Annotated[
        Figure, Meta(description="share of the judge's yes that people say yes to")
    ]
    recall: Annotated[Figure, Meta(description="share of people's yes that the judge finds")]
    specificity: Annotated[
        Figure, Meta(description="share of people's no to which the judge says no")
    ]
    kappa: Kappa
    auc: Annotated[
        Figure,
        Meta(
            description="area under the ROC curve: the share of pairs of a yes and a no that the "
            "judge's quantity puts in order"
        ),
    ]
    auc_within_authors: Annotated[
        Figure, Meta(description="the same, over pairs of replies of one author")
    ]
    auc_by_author: Annotated[
        dict[str, Share | None],
        Meta(description="the same for each author; null without both a yes and a no"),
    ]
    human: Annotated[
        HumanAnswers | None, Meta(description="people among themselves; null: one labeller a reply")
    ]
    confusion: Annotated[AnswerCounts, Meta(description="how often each said yes")]
    more_labels: MoreLabels = None


class Disagreement(Struct, frozen=True, kw_only=True):
    """A reply on which the judge and people differ most."""

    of: Annotated[str, Meta(description="the dimension, or the label of yes or no")]
    dialogue: Annotated[str, Meta(description="id of the dialogue")]
    run_id: Annotated[str | None, Meta(description="its run")] = None
    turn: Annotated[Count | None, Meta(description="index of the turn there")] = None
    author: Annotated[str | None, Meta(description="who gave the reply")] = None
    reply: Annotated[str, Meta(description="the reply, at most 500 characters of it")]
    label: Annotated[float, Meta(description="what people say: points, or 1 for yes and 0 for no")]
    judge: Annotated[float, Meta(description="what the judge says, likewise")]
    label_reasons: Annotated[list[str], Meta(description="why, as far as labellers say")]
    judge_reason: Annotated[str | None, Meta(description="why, if the judge says so")]


class CalibratedTurn(Struct, frozen=True, kw_only=True):
    """A labelled reply: all that a correction of figures needs of it."""

    dialogue: Annotated[str, Meta(description="id of the dialogue")]
    run_id: Annotated[str | None, Meta(description="its run")] = None
    turn: Annotated[Count | None, Meta(description="index of the turn there")] = None
    author: Annotated[str | None, Meta(description="who gave the reply")] = None
    probability: Annotated[
        Share | None, Meta(description="with which it was drawn; null: not known")
    ] = None
    label: Annotated[dict[str, Value], Meta(description="what people say, by name")]
    judge: Annotated[
        dict[str, Value] | None, Meta(description="what the judge says; null: no verdict")
    ]
    unjudged_reason: Annotated[str | None, Meta(description="why there is no verdict")] = None


class CalibratedJudge(Struct, frozen=True, kw_only=True):
    """Who judged, and how: a run whose judge differs in any of it has another one."""

    model: Annotated[str, Meta(description="the judge model; a jury's joined by +")]
    rubric: Annotated[str, Meta(description="the rubric's edition")]
    rubric_sha256: Annotated[Sha256, Meta(description="fingerprint of the rubric's file")]
    temperature: Annotated[
        Amount | None, Meta(description="that its model was asked at; null: the model's own")
    ]
    samples: Annotated[
        int, Meta(ge=1, description="verdicts of each juror on a reply, of which the mean counts")
    ] = 1
    rule: Annotated[
        str | None, Meta(description="how jurors' scores become one; null with one judge")
    ] = None
    context: Annotated[
        Count, Meta(description="exchanges before the reply that it sees, beside the opening")
    ] = 3
    silent: Annotated[
        tuple[Model, ...], Meta(description="jurors that gave no verdict on any reply")
    ] = ()


class LabelsEntry(Struct, frozen=True, kw_only=True):
    """The labels."""

    sha256: Annotated[Sha256, Meta(description="fingerprint of all labels")]
    n: Annotated[Count, Meta(description="labels")]
    n_turns: Annotated[Count, Meta(description="labelled replies")]
    n_dialogues: Annotated[Count, Meta(description="dialogues that they are of")]
    n_drawn: Annotated[Count, Meta(description="replies that were drawn with a known probability")]
    labellers: Annotated[list[str], Meta(description="who labelled")]


class CalibrationDocument(Struct, frozen=True, kw_only=True):
    """A judge against people."""

    kind: Literal["calibration"] = "calibration"
    schema_version: Version = SCHEMA_VERSION
    run_id: RunId
    status: Annotated[
        Literal["completed", "partial", "failed"],
        Meta(description="partial: some replies are not judged, since the command was cut short"),
    ]
    end_reason: Annotated[EndReason, Meta(description="how it ended; max_turns: all were judged")]
    judge: Annotated[CalibratedJudge, Meta(description="who judged, and how")]
    labels: Annotated[LabelsEntry, Meta(description="by what")]
    n_judged: Annotated[Count, Meta(description="labelled replies with a verdict")]
    dimensions: Annotated[
        dict[str, ScoreFigures], Meta(description="by dimension; overall_score is their sum")
    ]
    events: Annotated[dict[str, AnswerFigures], Meta(description="by label of yes or no")]
    disagreements: Annotated[list[Disagreement], Meta(description="the worst first")]
    turns: Annotated[list[CalibratedTurn], Meta(description="every labelled reply")]
    cost_usd: Annotated[
        Amount | None, Meta(description="USD of all verdicts; null if no price is known")
    ]
    usage: Annotated[ActorUsage, Meta(description="tokens, calls and requests of the judge")]
    completed_at: Timestamp
    notices: Annotated[list[str], Meta(description="what a reader should know")]
    error: Annotated[ErrorEntry | None, Meta(description="what cut it short; null: nothing did")]
