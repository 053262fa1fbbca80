"""The document of a sweep's dry run: what all its cells would take, together and by axis."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from socratic_bench.catalogue.prices import PriceSource
from socratic_bench.documents.dry_run import ExpectedUsage, Sent
from socratic_bench.documents.error import ErrorEntry
from socratic_bench.documents.scalars import Amount, BenchmarkName, Count, Model, Seed, keys
from socratic_bench.documents.schemas import Document
from socratic_bench.documents.sweep import AxisValues, CostUsd, Value
from socratic_bench.documents.usage import CallUsage
from socratic_bench.types import EndReason, doc

PerMinute = Annotated[int, Meta(ge=1)]


class Extent(Struct, frozen=True, kw_only=True):
    """What cells would take if replies are of one length."""

    usage: Annotated[CallUsage, doc("tokens and calls of all roles")]
    cost_usd: CostUsd
    duration_seconds: Annotated[Amount, doc("seconds that they would take")]


class ExpectedGroup(Struct, frozen=True, kw_only=True):
    """The cells that have one value of an axis."""

    value: Annotated[Value, doc("of the axis; null: the setting's default")]
    n_cells: Annotated[Count, doc("cells that there are")]
    usage: Annotated[CallUsage, doc("tokens and calls of all roles, as expected")]
    cost_usd: CostUsd
    low_usd: Annotated[CostUsd, doc("USD if replies are short; null as above")]
    high_usd: Annotated[CostUsd, doc("USD if replies are long; null as above")]


class ExpectedThroughput(Struct, frozen=True, kw_only=True):
    """What a model would be sent in a region, by all actors."""

    model: Model
    region: Annotated[str | None, doc("where it is asked; null if none is set")]
    requests: Annotated[Count, doc("requests, as expected")]
    tokens: Annotated[Count, doc("input and output tokens, as expected")]
    target_rpm: Annotated[PerMinute | None, doc("the most requests in any minute; null: no target")]
    target_tpm: Annotated[PerMinute | None, doc("the most tokens in any minute; null: no target")]
    seconds_at_targets: Annotated[
        Amount | None, doc("seconds until the last is sent at the targets; null: none")
    ]


class CachingSaves(Struct, frozen=True, kw_only=True):
    """USD with prompt caching and without, as expected."""

    with_usd: Annotated[CostUsd, doc("USD with prompt caching; null as above")]
    without_usd: Annotated[CostUsd, doc("USD with --no-prompt-cache; null as above")]


class FlexSaves(Struct, frozen=True, kw_only=True):
    """What the tier flex would make of the calls of the models under test; it may be slower."""

    cost_usd: Annotated[
        CostUsd, doc("USD in all, if flex served those that have a price for it; null: none has")
    ]
    unpriced: Annotated[list[str], doc("models under test without a known price at flex")]


class SweepBudget(Struct, frozen=True, kw_only=True):
    """Whether a budget is enough."""

    max_cost_usd: Annotated[float, Meta(gt=0, description="USD, the budget")]
    spent_usd: Annotated[Amount, doc("USD that cells cost which ended before")]
    covers_expected: Annotated[bool, doc("whether the rest covers the expected cost")]
    covers_high: Annotated[bool, doc("whether the rest covers the high cost")]


class SweepDeadline(Struct, frozen=True, kw_only=True):
    """Whether a deadline is late enough."""

    deadline_s: Annotated[float, Meta(gt=0, description="seconds, the deadline")]
    covers_expected: Annotated[bool, doc("whether it covers the expected time")]
    covers_high: Annotated[bool, doc("whether it covers the longest time")]


class RefusedCells(Struct, frozen=True, kw_only=True):
    """Cells that are known to be refused by a model."""

    axes: AxisValues
    n_cells: Annotated[Count, doc("cells of these values")]
    error: Annotated[ErrorEntry, doc("what is refused, and what to do")]


BoundBy = Literal["max_connections", "longest_cell", "process", "targets"]


class SweepDryRun(Document, frozen=True, kw_only=True):
    """What a sweep would take."""

    kind: Literal["sweep_dry_run"] = "sweep_dry_run"
    benchmark: BenchmarkName
    axes: Annotated[dict[str, list[Value]], doc("the settings that differ, with all their values")]
    repeats: Annotated[int, Meta(ge=1, description="times that each cell is played")]
    seed: Annotated[Seed, doc("given, or drawn: from which the seeds of cells follow")]
    n_cells: Annotated[Count, doc("cells that would be played; with --resume those left")]
    n_forecast: Annotated[Count, doc("cells that were forecast; repeats count as these")]
    end_reason: Annotated[
        EndReason | None, doc("what is expected to end the sweep early; null: nothing")
    ]
    error: Annotated[
        ErrorEntry | None, doc("the first refusal that is known of, exit code 3; null without any")
    ]
    usage: ExpectedUsage
    cost_usd: Annotated[
        dict[str, Annotated[CostUsd, doc("USD; null if a price is not known")]],
        keys("roles and total"),
        doc("USD that are expected, by role and in total"),
    ]
    cost_by_model: Annotated[
        dict[str, Annotated[dict[str, CostUsd], doc("USD by the model's id")]],
        keys("roles"),
        doc("USD that are expected, by role and by the model that is asked"),
    ]
    duration_seconds: Annotated[Amount, doc("seconds that are expected")]
    bound_by: Annotated[BoundBy, doc("what the expected time depends on most")]
    low: Annotated[Extent, doc("if replies are short and models quick")]
    high: Annotated[Extent, doc("if replies are long and models slow")]
    groups: Annotated[
        dict[str, list[ExpectedGroup]],
        doc("by axis: the cells of each of its values, in their order"),
    ]
    models: Annotated[
        list[ExpectedThroughput], doc("what each model would be sent, in each region")
    ]
    caching: Annotated[CachingSaves, doc("what prompt caching makes of it")]
    flex: Annotated[FlexSaves, doc("what the service tier flex would make of it")]
    budget: Annotated[SweepBudget | None, doc("if it is enough; null without --max-cost-usd")]
    deadline: Annotated[SweepDeadline | None, doc("if it is late enough; null without --deadline")]
    refused: Annotated[list[RefusedCells], doc("cells that a model would refuse")]
    stand_in: Annotated[bool, doc("whether amounts are no bill: the emulator, or made-up prices")]
    prices: Annotated[
        list[PriceSource], doc("where the prices come from; the first that knows a model counts")
    ]
    sent: Annotated[Sent, doc("requests of the dry run itself")]
    assumptions: Annotated[list[str], doc("what the estimate goes by")]


ASSUMPTIONS = (
    "Each kind of cell is forecast once, by its first repeat, as the dry run of a run is.",
    "Cells are played from their first turn on; those that ended, by the sweep's index, are not.",
    "What several cells have in common of a model's instructions is written to its cache once.",
    (
        "The time is the longest of these: the cells in their order, and their requests, as many "
        "at once as are allowed; every model's requests and tokens at its targets; and some 200 "
        "calls a second."
    ),
    "At flex, calls may take longer, by how much is not known.",
)
