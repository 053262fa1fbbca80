"""What each juror of a run would take."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from msgspec import Struct

from socratic_bench.documents.cost import Billing, role_usd
from socratic_bench.documents.scalars import Amount, Model
from socratic_bench.documents.usage import CallUsage, RoleUsage
from socratic_bench.ports.benchmark import Length
from socratic_bench.types import JUDGE, Completion, doc

Usd = Annotated[Amount | None, doc("USD; null if a price is not known")]


class ExpectedJuror(Struct, frozen=True, kw_only=True):
    """Calls, tokens and money of one juror."""

    model: Model
    usage: Annotated[CallUsage, doc("its tokens and calls, as expected")]
    cost_usd: Annotated[Usd, doc("USD as expected; null if a price is not known")]
    low_usd: Annotated[Usd, doc("USD if replies are short; null as above")]
    high_usd: Annotated[Usd, doc("USD if replies are long; null as above")]

    @classmethod
    def of(
        cls, model_id: str, billing: Billing, calls: Mapping[Length, Sequence[Completion]]
    ) -> "ExpectedJuror":
        """By the judge's calls, if replies have a length, of which its own count."""
        own = {
            length: [call for call in made if call.model_id == model_id]
            for length, made in calls.items()
        }
        return cls(
            model=model_id,
            usage=CallUsage.of_all([RoleUsage(completions=tuple(own["likely"]))]),
            cost_usd=role_usd(billing, JUDGE, own["likely"]),
            low_usd=role_usd(billing, JUDGE, own["short"]),
            high_usd=role_usd(billing, JUDGE, own["long"]),
        )
