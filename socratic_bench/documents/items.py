"""What became of the items of a run, as its document tells it."""

from collections import Counter
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from socratic_bench.documents.scalars import Count

if TYPE_CHECKING:
    from socratic_bench.documents.result import RunResult


class ItemsEntry(Struct, frozen=True, kw_only=True):
    """What became of the items: of all but the missing ones metrics are made."""

    total: Annotated[Count, Meta(description="how many there are")]
    answered: Annotated[Count, Meta(description="with a whole reply that is readable")]
    refused: Annotated[
        Count, Meta(description="by the model, by a filter, or for the length of what was asked")
    ]
    truncated: Annotated[Count, Meta(description="cut off by a bound on tokens")]
    unparsed: Annotated[Count, Meta(description="answered in a form that is not readable")]
    missing: Annotated[
        list[Count],
        Meta(description="indices of those without an outcome, which a resumed run asks for"),
    ]

    @classmethod
    def of(cls, result: "RunResult") -> "ItemsEntry | None":
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
