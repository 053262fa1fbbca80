"""What `socratic-runner calibrate` prints: a judge's verdicts beside labels of the same replies."""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from socratic_bench.documents.document import (
    Amount,
    Count,
    Document,
    ErrorEntry,
    Model,
    RunId,
    Sha256,
    Share,
    Timestamp,
    Turns,
)
from socratic_bench.documents.sweep import Survival
from socratic_bench.documents.usage import ActorUsage
from socratic_bench.types import EndReason, doc

Value = bool | float | None


class Figure(Struct, frozen=True, kw_only=True):
    """A figure with its 95 % interval, clustered by dialogue."""

    value: Annotated[float | None, doc("null where labels do not give it")]
    low: Annotated[float | None, doc("of the interval; null with one dialogue")] = None
    high: Annotated[float | None, doc("of the interval; null where low is")] = None


Kappa = Annotated[Figure, doc("Cohen's kappa; of scores with quadratic weights")]
Alpha = Annotated[Figure, doc("Krippendorff's alpha, ordinal")]
AbsoluteError = Annotated[Figure, doc("points: the mean of absolute differences")]
Spearman = Annotated[Figure, doc("correlation of ranks")]
MoreLabels = Annotated[
    dict[str, Count] | None,
    doc(
        "by figure, how many more labels make its interval as narrow as --plan says; "
        "null without it"
    ),
]


class Cell(Struct, frozen=True, kw_only=True):
    """How often a judge gave one score where people gave another."""

    label: Annotated[float, doc("points that people gave; the mean over labellers")]
    judge: Annotated[float, doc("points that the judge gave")]
    n: Annotated[int, Meta(ge=1, description="replies")]


class Reference(Struct, frozen=True, kw_only=True):
    """What others have reached."""

    name: Annotated[str, doc("who, and where")]
    macro_f1: Annotated[Share, doc("their figure")]


class HumanScores(Struct, frozen=True, kw_only=True):
    """One person against another, on replies that both scored: the ceiling."""

    n: Annotated[Count, doc("pairs of labels on one reply")]
    weighted_kappa: Kappa
    alpha: Alpha
    mean_absolute_error: AbsoluteError
    spearman: Spearman


class ScoreFigures(Struct, frozen=True, kw_only=True):
    """A dimension of the rubric, or overall_score, their sum: the judge against people."""

    n: Annotated[Count, doc("replies with a score of both")]
    n_clusters: Annotated[Count, doc("dialogues among them")]
    weighted_kappa: Kappa
    alpha: Alpha
    mean_absolute_error: AbsoluteError
    bias: Annotated[Figure, doc("points: the mean of judge less people")]
    deviation: Annotated[Figure, doc("points: standard deviation of judge less people")]
    deviation_lasting: Annotated[
        Amount | None,
        doc(
            "the part of deviation that stays, however often the judge is asked; null "
            "with one verdict a reply"
        ),
    ] = None
    deviation_passing: Annotated[
        Amount | None,
        doc(
            "points: standard deviation of one verdict on the same reply; null with "
            "one verdict a reply"
        ),
    ] = None
    spearman: Spearman
    macro_f1: Annotated[
        Figure,
        doc(
            "mean F1 over all scores that occur, as classes; a mean counts as the "
            "nearest score, the lower of two"
        ),
    ]
    reference: Annotated[
        Reference | None, doc("what others reached in macro_f1; null: none is known")
    ] = None
    human: Annotated[HumanScores | None, doc("people among themselves; null: one labeller a reply")]
    confusion: Annotated[list[Cell], doc("how often each score of the judge met each of people's")]
    more_labels: MoreLabels = None


class HumanAnswers(Struct, frozen=True, kw_only=True):
    """One person against another, on replies of which both said yes or no."""

    n: Annotated[Count, doc("pairs of labels on one reply")]
    agreement: Annotated[Figure, doc("share of pairs that agree")]
    kappa: Kappa


class AnswerCounts(Struct, frozen=True, kw_only=True):
    """How often the judge and people said yes."""

    both: Annotated[Count, doc("both said yes")]
    judge_only: Annotated[Count, doc("the judge alone did")]
    label_only: Annotated[Count, doc("people alone did")]
    neither: Annotated[Count, doc("both said no")]


class AnswerFigures(Struct, frozen=True, kw_only=True):
    """A label of yes or no, and what of the judge's verdict stands beside it."""

    judged_by: Annotated[str, doc("the rubric's event, or a dimension against a bound")]
    n: Annotated[Count, doc("replies with an answer of both")]
    n_clusters: Annotated[Count, doc("dialogues among them")]
    n_divided: Annotated[Count, doc("replies of which as many labellers say yes as no; left out")]
    n_yes: Annotated[Count, doc("labels that say yes")]
    precision: Annotated[Figure, doc("share of the judge's yes that people say yes to")]
    recall: Annotated[Figure, doc("share of people's yes that the judge finds")]
    specificity: Annotated[Figure, doc("share of people's no to which the judge says no")]
    kappa: Kappa
    auc: Annotated[
        Figure,
        doc(
            "area under the ROC curve: the share of pairs of a yes and a no that the "
            "judge's quantity puts in order"
        ),
    ]
    auc_within_authors: Annotated[Figure, doc("the same, over pairs of replies of one author")]
    auc_by_author: Annotated[
        dict[str, Share | None], doc("the same for each author; null without both a yes and a no")
    ]
    human: Annotated[
        HumanAnswers | None, doc("people among themselves; null: one labeller a reply")
    ]
    confusion: Annotated[AnswerCounts, doc("how often each said yes")]
    more_labels: MoreLabels = None


class Disagreement(Struct, frozen=True, kw_only=True):
    """A reply on which the judge and people differ most."""

    of: Annotated[str, doc("the dimension, or the label of yes or no")]
    dialogue: Annotated[str, doc("id of the dialogue")]
    run_id: Annotated[str | None, doc("its run")] = None
    turn: Annotated[Count | None, doc("index of the turn there")] = None
    author: Annotated[str | None, doc("who gave the reply")] = None
    reply: Annotated[str, doc("the reply, at most 500 characters of it")]
    label: Annotated[float, doc("what people say: points, or 1 for yes and 0 for no")]
    judge: Annotated[float, doc("what the judge says, likewise")]
    label_reasons: Annotated[list[str], doc("why, as far as labellers say")]
    judge_reason: Annotated[str | None, doc("why, if the judge says so")]


class CalibratedTurn(Struct, frozen=True, kw_only=True):
    """A labelled reply: all that a correction of figures needs of it."""

    dialogue: Annotated[str, doc("id of the dialogue")]
    run_id: Annotated[str | None, doc("its run")] = None
    turn: Annotated[Count | None, doc("index of the turn there")] = None
    author: Annotated[str | None, doc("who gave the reply")] = None
    probability: Annotated[Share | None, doc("with which it was drawn; null: not known")] = None
    label: Annotated[dict[str, Value], doc("what people say, by name")]
    judge: Annotated[dict[str, Value] | None, doc("what the judge says; null: no verdict")]
    unjudged_reason: Annotated[str | None, doc("why there is no verdict")] = None


class CalibratedJudge(Struct, frozen=True, kw_only=True):
    """Who judged, and how: a run whose judge differs in any of it has another one."""

    model: Annotated[str, doc("the judge model; a jury's joined by +")]
    rubric: Annotated[str, doc("the rubric's edition")]
    rubric_sha256: Annotated[Sha256, doc("fingerprint of the rubric's file")]
    temperature: Annotated[Amount | None, doc("that its model was asked at; null: the model's own")]
    samples: Annotated[
        int, Meta(ge=1, description="verdicts of each juror on a reply, of which the mean counts")
    ] = 1
    rule: Annotated[str | None, doc("how jurors' scores become one; null with one judge")] = None
    context: Annotated[
        Count, doc("exchanges before the reply that it sees, beside the opening")
    ] = 3
    silent: Annotated[tuple[Model, ...], doc("jurors that gave no verdict on any reply")] = ()


class LabelsEntry(Struct, frozen=True, kw_only=True):
    """The labels."""

    sha256: Annotated[Sha256, doc("fingerprint of all labels")]
    n: Annotated[Count, doc("labels")]
    n_turns: Annotated[Count, doc("labelled replies")]
    n_dialogues: Annotated[Count, doc("dialogues that they are of")]
    n_drawn: Annotated[Count, doc("replies that were drawn with a known probability")]
    labellers: Annotated[list[str], doc("who labelled")]


class CalibrationDocument(Document, frozen=True, kw_only=True):
    """A judge against people."""

    kind: Literal["calibration"] = "calibration"
    run_id: RunId
    status: Annotated[
        Literal["completed", "partial", "failed"],
        doc("partial: some replies are not judged, since the command was cut short"),
    ]
    end_reason: Annotated[EndReason, doc("how it ended; max_turns: all were judged")]
    judge: Annotated[CalibratedJudge, doc("who judged, and how")]
    labels: Annotated[LabelsEntry, doc("by what")]
    n_judged: Annotated[Count, doc("labelled replies with a verdict")]
    dimensions: Annotated[dict[str, ScoreFigures], doc("by dimension; overall_score is their sum")]
    events: Annotated[dict[str, AnswerFigures], doc("by label of yes or no")]
    disagreements: Annotated[list[Disagreement], doc("the worst first")]
    turns: Annotated[list[CalibratedTurn], doc("every labelled reply")]
    cost_usd: Annotated[Amount | None, doc("USD of all verdicts; null if no price is known")]
    usage: Annotated[ActorUsage, doc("tokens, calls and requests of the judge")]
    completed_at: Timestamp
    notices: Annotated[list[str], doc("what a reader should know")]
    error: Annotated[ErrorEntry | None, doc("what cut it short; null: nothing did")]


# What `socratic-runner correct` prints: figures as judged, corrected by labels, and of labels.

Limit = Annotated[
    float | None,
    doc("of the 95 % interval, clustered by dialogue; null with one dialogue, or where value is"),
]
Reason = Annotated[str | None, doc("why there is no value; null where there is one")]


class Estimated(Struct, frozen=True, kw_only=True):
    """A figure with its interval."""

    value: Annotated[float | None, doc("null where it is not known; reason says why")]
    low: Limit = None
    high: Limit = None
    n: Annotated[Count, doc("turns that it is made of")]
    n_dialogues: Annotated[Count, doc("dialogues that they are of")]
    reason: Reason = None


class Corrected(Struct, frozen=True, kw_only=True):
    """The judge's figure, corrected by labels."""

    value: Annotated[float | None, doc("null where it is not known; reason says why")]
    low: Limit = None
    high: Limit = None
    method: Annotated[
        Literal["prediction-powered", "rogan-gladen"], doc("of a mean, or of a rate of yes")
    ]
    tuning: Annotated[
        Share | None, doc("lambda: how much of the judge's figure it took; null of rogan-gladen")
    ] = None
    n_labels: Annotated[Count, doc("labelled turns that it is made of")]
    n_labelled_dialogues: Annotated[Count, doc("dialogues that they are of")]
    reason: Reason = None
    flags: Annotated[
        list[Literal["labels_of_others", "outside_labelled_range"]],
        doc(
            "labels_of_others: too few labels are of this model, so that those of all "
            "models correct it; outside_labelled_range: its mean verdict is beyond every verdict "
            "that was labelled"
        ),
    ]


class ThreeWays(Struct, frozen=True, kw_only=True):
    """One figure of a model, three ways."""

    as_judged: Annotated[Estimated, doc("over all judged turns")]
    corrected: Annotated[Corrected, doc("the same, corrected by labels")]
    of_labels: Annotated[Estimated, doc("by labels of this model's turns alone")]


class Times(Struct, frozen=True, kw_only=True):
    """A time to an event, over the dialogues of a model."""

    as_judged: Annotated[Survival, doc("by the judge's scores, over all dialogues")]
    of_labels: Annotated[
        Survival | None,
        doc("by labels, over dialogues that are labelled whole; null: reason says why"),
    ]
    n_whole: Annotated[Count, doc("dialogues of which every turn is labelled")]
    reason: Reason = None


class CorrectedModel(Struct, frozen=True, kw_only=True):
    """The runs of one model."""

    model: Model
    n_runs: Annotated[int, Meta(ge=1, description="complete runs, each a dialogue")]
    n_labelled: Annotated[Count, doc("labelled turns with a known probability")]
    n_labelled_dialogues: Annotated[Count, doc("dialogues that they are of")]
    figures: Annotated[dict[str, ThreeWays], doc("means of scores and rates of yes, by name")]
    times: Annotated[
        dict[str, Times],
        doc("times to an event, by metric; nothing corrects them but whole dialogues"),
    ] = field(default_factory=dict)


class CorrectionDocument(Document, frozen=True, kw_only=True):
    """Figures of stored runs, three ways."""

    kind: Literal["correction"] = "correction"
    judge: Annotated[CalibratedJudge, doc("who judged all of these runs, and how")]
    n_runs: Annotated[Count, doc("complete runs")]
    n_labels: Annotated[Count, doc("labelled turns, of these runs or of others")]
    n_without_probability: Annotated[
        Count, doc("labelled turns that correct nothing: drawn nobody knows how")
    ]
    models: Annotated[list[CorrectedModel], doc("by name")]


# A label, what a person says of one reply, is a line of JSONL or a row of CSV; and their count.

Words = Annotated[str, Meta(min_length=1)]


class PrecedingMessage(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that was said before the labelled reply."""

    role: Annotated[
        Literal["user", "assistant"],
        doc("assistant: who gave the labelled reply; user: the other speaker"),
    ]
    text: Annotated[str, doc("the words")]


class Label(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one person says of one reply. The reply is named by run_id and turn, or stands here with
    what it answers, or both.
    """

    labeller: Annotated[Words, doc("who labelled it: a name, or several in one")]
    dialogue: Annotated[
        Words | None, doc("id of the dialogue, by which labels are clustered; null: its run_id")
    ] = None
    run_id: Annotated[Words | None, doc("the run that the reply is of")] = None
    turn: Annotated[Turns | None, doc("index of the turn there, from 0")] = None
    author: Annotated[Words | None, doc("who gave the reply: the id of a model, or a person")] = (
        None
    )
    history: Annotated[
        tuple[PrecedingMessage, ...], doc("what was said before prompt, oldest first")
    ] = ()
    prompt: Annotated[str | None, doc("what the reply answers")] = None
    reply: Annotated[str | None, doc("the labelled reply")] = None
    scores: Annotated[dict[str, float], doc("points by dimension of the rubric")] = field(
        default_factory=dict
    )
    events: Annotated[dict[str, bool], doc("yes or no, by what was asked of the reply")] = field(
        default_factory=dict
    )
    reasons: Annotated[dict[str, str], doc("why, by dimension or event")] = field(
        default_factory=dict
    )
    probability: Annotated[
        Annotated[float, Meta(gt=0, le=1)] | None,
        doc(
            "the probability with which the turn was drawn for labelling; null: not "
            "known, so that the label calibrates a judge and corrects no figure"
        ),
    ] = None

    @property
    def cluster(self) -> str:
        """Whose replies are alike: those of one dialogue."""
        return self.dialogue or self.run_id or ""


class LabellingDocument(Document, frozen=True, kw_only=True):
    """How far labelling has come."""

    kind: Literal["labelling"] = "labelling"
    file: Annotated[str, doc("where the labels are")]
    labeller: Annotated[str, doc("who labelled")]
    rubric: Annotated[str, doc("by which edition")]
    n_runs: Annotated[Count, doc("runs that turns were drawn from")]
    n_turns: Annotated[Count, doc("turns that could be drawn")]
    n_drawn: Annotated[Count, doc("turns that were drawn")]
    n_labelled: Annotated[Count, doc("turns of which every question is answered")]
