"""What `socratic-runner correct` prints: figures as judged, corrected by labels, and of labels."""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from socratic_bench.documents.calibration import CalibratedJudge
from socratic_bench.documents.estimates import Survival
from socratic_bench.documents.scalars import Count, Model, Share
from socratic_bench.documents.schemas import Document
from socratic_bench.types import doc

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
