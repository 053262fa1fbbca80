"""How fast a model was asked, and what it waited for."""

from typing import Annotated

from msgspec import Meta, Struct

from socratic_bench.documents.scalars import Amount, Count, Model
from socratic_bench.types import doc


class ModelThroughput(Struct, frozen=True, kw_only=True):
    """Requests and tokens of a model in a region, those of all actors, retries included."""

    model: Model
    region: Annotated[str | None, doc("where it was asked; null if no region is set")]
    target_rpm: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        doc("the most requests in any minute; null without a target"),
    ]
    target_tpm: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        doc("the most tokens, input and output, in any minute; null without a target"),
    ]
    rpm: Annotated[
        Amount | None,
        doc("requests a minute, over `work_s` or a minute if that is longer; null: none"),
    ]
    tpm: Annotated[
        Amount | None,
        doc("tokens a minute, input and output, over the same time; null: no request"),
    ]
    requests: Annotated[Count, doc("requests sent")]
    tokens: Annotated[
        Count,
        doc(
            "tokens of all requests; where the service counted none and may have "
            "worked, the most that there can be"
        ),
    ]
    throttled: Annotated[Count, doc("requests that were throttled")]
    waited_s: Annotated[
        Amount, doc("seconds that requests waited for a target and for the rate limit, in sum")
    ]
    work_s: Annotated[
        Amount,
        doc(
            "seconds from the first call to the last, waits included; of a pause in "
            "which no call was under way no more than a minute"
        ),
    ]
    stalled: Annotated[
        bool, doc("whether it was stopped, since nothing of it was answered for too long")
    ]
