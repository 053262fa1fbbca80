"""A label, what a person says of one reply, is a line of JSONL or a row of CSV; and their count."""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from socratic_bench.documents.scalars import Count, Turns
from socratic_bench.documents.schemas import Document
from socratic_bench.types import doc

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
