"""Human labels and what is made of them: calibrations of a judge, and corrected figures."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from socratic_bench.documents.document import (
    Amount,
    Count,
    Document,
    ErrorEntry,
    RunId,
    Sha256,
    Share,
    Timestamp,
    Turns,
)
from socratic_bench.documents.judge_status import CalibratedJudge, Figure
from socratic_bench.documents.usage import ActorUsage
from socratic_bench.types import EndReason, doc

Value = bool | float | None
Words = Annotated[str, Meta(min_length=1)]


class PrecedingMessage(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A message before the labelled reply."""

    role: Annotated[
        Literal["user", "assistant"],
        doc("assistant: the speaker of the labelled reply; user: the other"),
    ]
    text: Annotated[str, doc("text of the message")]


class Label(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One person's label of one reply, as a line of JSONL or a row of CSV.

    The reply is named by run_id and turn, or included with the message that it answers, or both.
    """

    labeller: Annotated[Words, doc("who labelled it: one name, or several in one text")]
    scenario: Annotated[
        Words | None,
        doc(
            "what the dialogue is about, by which labels are clustered; null: by --runs, or the "
            "first message of a run, or its dialogue"
        ),
    ] = None
    dialogue: Annotated[Words | None, doc("id of the dialogue; null: its run_id")] = None
    run_id: Annotated[Words | None, doc("id of the reply's run")] = None
    turn: Annotated[Turns | None, doc("index of the turn in the run, from 0")] = None
    author: Annotated[Words | None, doc("model id or person that gave the reply")] = None
    history: Annotated[
        tuple[PrecedingMessage, ...], doc("messages before prompt, oldest first")
    ] = ()
    prompt: Annotated[str | None, doc("message that the reply answers")] = None
    reply: Annotated[str | None, doc("the labelled reply")] = None
    reference: Annotated[
        str | None, doc("the right answer, which a judge compares the reply with; null: none")
    ] = None
    scores: Annotated[dict[str, float], doc("points by dimension of the rubric")] = {}
    events: Annotated[dict[str, bool], doc("yes or no, by question on the reply")] = {}
    reasons: Annotated[dict[str, str], doc("reasons, by dimension or event")] = {}
    probability: Annotated[
        Annotated[float, Meta(gt=0, le=1)] | None,
        doc(
            "probability with which the turn was drawn for labelling; null: unknown, so that the "
            "label calibrates a judge but corrects no figure"
        ),
    ] = None

    @property
    def dialogue_id(self) -> str:
        return self.dialogue or self.run_id or ""

    @property
    def cluster(self) -> str:
        """The scenario, as far as it is known."""
        return self.scenario or self.dialogue_id


class LabellingDocument(Document, frozen=True, kw_only=True):
    """The progress of labelling."""

    kind: Literal["labelling"] = "labelling"
    file: Annotated[str, doc("file of the labels")]
    labeller: Annotated[str, doc("who labelled")]
    rubric: Annotated[str, doc("name of the rubric")]
    n_runs: Annotated[Count, doc("runs that turns were drawn from")]
    n_turns: Annotated[Count, doc("turns that could be drawn")]
    n_drawn: Annotated[Count, doc("turns that were drawn")]
    n_labelled: Annotated[Count, doc("turns of which every question is answered")]


Kappa = Annotated[Figure, doc("Cohen's kappa; for scores, with quadratic weights")]
Alpha = Annotated[Figure, doc("Krippendorff's alpha, ordinal")]
AbsoluteError = Annotated[Figure, doc("mean absolute difference in points")]
Spearman = Annotated[Figure, doc("Spearman's rank correlation")]
MoreLabels = Annotated[
    dict[str, Count] | None,
    doc(
        "by figure, how many more labels make its interval as narrow as --plan asks; null "
        "without --plan"
    ),
]


class Cell(Struct, frozen=True, kw_only=True):
    """How often the judge gave one score when people gave another."""

    label: Annotated[float, doc("mean points of the labellers")]
    judge: Annotated[float, doc("points of the judge")]
    n: Annotated[int, Meta(ge=1, description="replies")]


class Reference(Struct, frozen=True, kw_only=True):
    """A published result."""

    name: Annotated[str, doc("who, and where published")]
    macro_f1: Annotated[Share, doc("macro F1")]


class HumanScores(Struct, frozen=True, kw_only=True):
    """Agreement of people with each other: the most that a judge can reach."""

    n: Annotated[Count, doc("pairs of labels on one reply")]
    weighted_kappa: Kappa
    alpha: Alpha
    mean_absolute_error: AbsoluteError
    spearman: Spearman


class ScoreFigures(Struct, frozen=True, kw_only=True):
    """Agreement of the judge with people in a dimension, or in overall_score, their sum."""

    n: Annotated[Count, doc("replies with both scores")]
    n_clusters: Annotated[Count, doc("number of their scenarios")]
    weighted_kappa: Kappa
    alpha: Alpha
    mean_absolute_error: AbsoluteError
    bias: Annotated[Figure, doc("mean of judge minus people, in points")]
    deviation: Annotated[Figure, doc("standard deviation of judge minus people, in points")]
    deviation_lasting: Annotated[
        Amount | None,
        doc(
            "the part of deviation that more verdicts would not reduce; null with one verdict a "
            "reply"
        ),
    ] = None
    deviation_passing: Annotated[
        Amount | None,
        doc(
            "standard deviation of verdicts on the same reply, in points; null with one verdict "
            "a reply"
        ),
    ] = None
    spearman: Spearman
    macro_f1: Annotated[
        Figure,
        doc(
            "mean F1 over all scores as classes; a mean counts as the nearest score, or the "
            "lower of two"
        ),
    ]
    reference: Annotated[Reference | None, doc("a published macro_f1; null: none is known")] = None
    human: Annotated[HumanScores | None, doc("agreement of people; null with one labeller a reply")]
    confusion: Annotated[list[Cell], doc("counts of each pair of scores")]
    more_labels: MoreLabels = None


class HumanAnswers(Struct, frozen=True, kw_only=True):
    """Agreement of people with each other on a question of yes or no."""

    n: Annotated[Count, doc("pairs of labels on one reply")]
    agreement: Annotated[Figure, doc("share of pairs that agree")]
    kappa: Kappa


class AnswerCounts(Struct, frozen=True, kw_only=True):
    """How often the judge and people said yes."""

    both: Annotated[Count, doc("both said yes")]
    judge_only: Annotated[Count, doc("only the judge said yes")]
    label_only: Annotated[Count, doc("only people said yes")]
    neither: Annotated[Count, doc("both said no")]


class AnswerFigures(Struct, frozen=True, kw_only=True):
    """Agreement of the judge with people on a label of yes or no."""

    judged_by: Annotated[
        str, doc("what counts as the judge's yes: an event, or a bound on a dimension")
    ]
    n: Annotated[Count, doc("replies with both answers")]
    n_clusters: Annotated[Count, doc("number of their scenarios")]
    n_divided: Annotated[Count, doc("replies with as many labels of yes as of no; left out")]
    n_yes: Annotated[Count, doc("labels of yes")]
    precision: Annotated[Figure, doc("share of the judge's yes that people confirm")]
    recall: Annotated[Figure, doc("share of people's yes that the judge finds")]
    specificity: Annotated[Figure, doc("share of people's no that the judge finds")]
    kappa: Kappa
    auc: Annotated[
        Figure,
        doc(
            "area under the ROC curve: share of pairs of a yes and a no that the judge ranks "
            "correctly"
        ),
    ]
    auc_within_authors: Annotated[Figure, doc("auc over pairs of replies by the same author")]
    auc_by_author: Annotated[
        dict[str, Share | None], doc("auc of each author; null without both a yes and a no")
    ]
    human: Annotated[
        HumanAnswers | None, doc("agreement of people; null with one labeller a reply")
    ]
    confusion: Annotated[AnswerCounts, doc("counts of each pair of answers")]
    more_labels: MoreLabels = None


class Disagreement(Struct, frozen=True, kw_only=True):
    """A reply on which the judge and people disagree."""

    of: Annotated[str, doc("dimension, or label of yes or no")]
    dialogue: Annotated[str, doc("id of the dialogue")]
    run_id: Annotated[str | None, doc("id of the run")] = None
    turn: Annotated[Count | None, doc("index of the turn in the run")] = None
    author: Annotated[str | None, doc("model or person that gave the reply")] = None
    reply: Annotated[str, doc("first 500 characters of the reply")]
    label: Annotated[float, doc("label: points, or 1 for yes and 0 for no")]
    judge: Annotated[float, doc("verdict, likewise")]
    label_reasons: Annotated[list[str], doc("the labellers' reasons, if given")]
    judge_reason: Annotated[str | None, doc("the judge's reason, if given")]


class CalibratedTurn(Struct, frozen=True, kw_only=True):
    """A labelled reply, with what a correction of figures needs."""

    scenario: Annotated[str, doc("the scenario, by which labels are clustered")]
    dialogue: Annotated[str, doc("id of the dialogue")]
    run_id: Annotated[str | None, doc("id of the run")] = None
    turn: Annotated[Count | None, doc("index of the turn in the run")] = None
    author: Annotated[str | None, doc("model or person that gave the reply")] = None
    probability: Annotated[
        Share | None, doc("probability with which it was drawn; null: unknown")
    ] = None
    label: Annotated[dict[str, Value], doc("labels by name")]
    judge: Annotated[dict[str, Value] | None, doc("verdict by name; null: none")]
    unjudged_reason: Annotated[str | None, doc("why there is no verdict")] = None


class LabelsEntry(Struct, frozen=True, kw_only=True):
    """The labels that were used."""

    sha256: Annotated[Sha256, doc("sha256 of all labels")]
    n: Annotated[Count, doc("number of labels")]
    n_turns: Annotated[Count, doc("labelled replies")]
    n_dialogues: Annotated[Count, doc("number of their dialogues")]
    n_scenarios: Annotated[Count, doc("number of their scenarios, as far as they are known")]
    n_drawn: Annotated[Count, doc("replies drawn with a known probability")]
    labellers: Annotated[list[str], doc("who labelled")]


class CalibrationDocument(Document, frozen=True, kw_only=True):
    """How far a judge agrees with people."""

    kind: Literal["calibration"] = "calibration"
    run_id: RunId
    status: Annotated[
        Literal["completed", "partial", "failed"],
        doc("partial: some replies are not judged, since the command was interrupted"),
    ]
    end_reason: Annotated[EndReason, doc("how it ended; max_turns: all were judged")]
    judge: Annotated[CalibratedJudge, doc("the judge and its settings")]
    labels: Annotated[LabelsEntry, doc("the labels that were used")]
    n_judged: Annotated[Count, doc("labelled replies with a verdict")]
    dimensions: Annotated[dict[str, ScoreFigures], doc("by dimension; overall_score is their sum")]
    events: Annotated[dict[str, AnswerFigures], doc("by label of yes or no")]
    disagreements: Annotated[list[Disagreement], doc("the worst first")]
    turns: Annotated[list[CalibratedTurn], doc("every labelled reply")]
    cost_usd: Annotated[Amount | None, doc("USD of all verdicts; null if a price is unknown")]
    usage: Annotated[ActorUsage, doc("tokens, calls and requests of the judge")]
    completed_at: Timestamp
    notices: Annotated[list[str], doc("warnings")]
    error: Annotated[ErrorEntry | None, doc("what ended it early; null: nothing did")]


class Estimated(Struct, frozen=True, kw_only=True):
    """A figure of a model, or a difference of two models (first minus second), with its 95 %
    interval by scenario.
    """

    value: Annotated[float | None, doc("null: unknown")]
    low: Annotated[float | None, doc("lower limit; null: no interval")] = None
    high: Annotated[float | None, doc("upper limit; null if low is")] = None
    n: Annotated[Count, doc("judged turns, or labelled ones; of a time, dialogues")]
    n_dialogues: Annotated[Count, doc("number of their dialogues")]
    n_scenarios: Annotated[Count, doc("number of their scenarios; of two models, the fewer")]
    tuning: Annotated[
        Share | None, doc("weight of the judge in a corrected figure (lambda); null for others")
    ] = None
    reason: Annotated[
        str | None, doc("why there is no value, or no interval; null if there are both")
    ] = None


class ThreeWays(Struct, frozen=True, kw_only=True):
    """One figure: by the judge, corrected, and by labels."""

    as_judged: Annotated[Estimated, doc("over all judged turns")]
    corrected: Annotated[Estimated, doc("the judge's figure corrected by labels (PPI++)")]
    of_labels: Annotated[Estimated, doc("by labels only")]


class CorrectedModel(Struct, frozen=True, kw_only=True):
    """Figures of one contender, by labels of its own turns."""

    name: Annotated[str, doc("the contender")]
    figures: Annotated[
        dict[str, ThreeWays], doc("means of scores, of a time, and rates of yes, by name")
    ]


class CorrectedPair(Struct, frozen=True, kw_only=True):
    """Differences of two contenders, the first minus the second."""

    first: Annotated[str, doc("the contender")]
    second: Annotated[str, doc("the contender that is subtracted")]
    differences: Annotated[dict[str, ThreeWays], doc("by name of the figure")]


class CorrectedFigures(Struct, frozen=True, kw_only=True):
    """Figures of stored runs, corrected by labels (--labels)."""

    judge: Annotated[CalibratedJudge, doc("the judge of all these runs and its settings")]
    n_labels: Annotated[Count, doc("labelled turns of these runs")]
    n_without_probability: Annotated[
        Count, doc("labelled turns that are not used, since their probability is unknown")
    ]
    main_figure: Annotated[
        str, doc("the first figure that is known of every contender; otherwise the first of all")
    ]
    models: Annotated[list[CorrectedModel], doc("contenders, in their order")]
    pairs: Annotated[list[CorrectedPair], doc("each with each other, or with the baseline")]
