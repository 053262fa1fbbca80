"""What became of the items of a run, as its document tells it."""

from collections import Counter
from typing import TYPE_CHECKING, Annotated

from msgspec import Struct

from socratic_bench.documents.scalars import Count
from socratic_bench.types import doc

if TYPE_CHECKING:
    from socratic_bench.documents.ended_run import EndedRun


class ItemsEntry(Struct, frozen=True, kw_only=True):
    """What became of the items: of all but the missing ones metrics are made."""

    total: Annotated[Count, doc("how many there are")]
    answered: Annotated[Count, doc("with a whole reply that is readable")]
    refused: Annotated[Count, doc("by the model, by a filter, or for the length of what was asked")]
    truncated: Annotated[Count, doc("cut off by a bound on tokens")]
    unparsed: Annotated[Count, doc("answered in a form that is not readable")]
    missing: Annotated[
        list[Count], doc("indices of those without an outcome, which a resumed run asks for")
    ]

    @classmethod
    def of(cls, result: "EndedRun") -> "ItemsEntry | None":
        total = result.opening.n_items
        if total is None:
            return None
        found = Counter(turn.answered for turn in result.turns)
        played = {turn.index for turn in result.turns}
        return cls(
            total=total,
            answered=found["answered"],
            refused=found["refused"],
            truncated=found["truncated"],
            unparsed=found["unparsed"],
            missing=[index for index in range(total) if index not in played],
        )
