"""The document of a run: what it is made of, and how it is filled from a run's result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Struct, field

from socratic_bench.documents.cost import CostEntry
from socratic_bench.documents.error import ErrorEntry
from socratic_bench.documents.inputs import Inputs
from socratic_bench.documents.items import ItemsEntry
from socratic_bench.documents.judge import JudgeEntry
from socratic_bench.documents.place import Place
from socratic_bench.documents.scalars import (
    TIME_PLACES,
    Amount,
    BenchmarkName,
    RunId,
    SeedEntry,
    Share,
    Timestamp,
    Turns,
    keys,
    part,
    utc,
)
from socratic_bench.documents.schemas import Document, whole
from socratic_bench.documents.turn import TurnEntry
from socratic_bench.documents.usage import ActorLatency, ActorUsage, RoleUsage
from socratic_bench.errors import BenchError, Status
from socratic_bench.ports.parts import Part, Parts
from socratic_bench.settings import CoreConfig, Gate
from socratic_bench.types import EndReason, Json, doc

if TYPE_CHECKING:
    from collections.abc import Iterable

    from socratic_bench.documents.ended_run import EndedRun


class Timestamps(Struct, frozen=True, kw_only=True):
    """When the run began and ended; null if no run came to be."""

    started_at: Annotated[Timestamp | None, doc("when the run began, UTC")] = None
    completed_at: Annotated[Timestamp | None, doc("when it ended, UTC")] = None
    duration_seconds: Annotated[
        Amount | None, doc("seconds, to the millisecond, of all processes of the run together")
    ] = None


class Thresholds(Struct, frozen=True, kw_only=True):
    """The bounds that the run was held to."""

    own: Annotated[Part, part("thresholds")] = field(name="*own", default_factory=Part)
    min_judge_coverage: Annotated[Share, doc("share of turns that must be judged")]
    fail_under: Annotated[
        dict[str, Annotated[float, doc("the least value that passes")]],
        doc("by metric, what it must not fall under: the highest bound, if several are given"),
    ]


RunIdEntry = Annotated[RunId | None, doc("run- and a ULID; null if no run came to be")]
ModelEntry = Annotated[str | None, doc("the model under test, as asked for")]
SampleEntry = Annotated[Part, part("sample")]
TurnsEntry = Annotated[
    Turns, doc("turns that the model under test played; replayed ones are not among them")
]
Bucket = Annotated[Place | None, doc("where the bucket holds the artifacts; null without one")]


class Brief(Struct, frozen=True, kw_only=True):
    """The short form of a run's document (--brief)."""

    run_id: RunIdEntry
    model: ModelEntry
    sample: SampleEntry = field(name="*sample", default_factory=Part)
    n_turns: TurnsEntry
    headline: Annotated[Part, part("headline")] = field(name="*headline", default_factory=Part)
    s3_artifacts: Bucket

    @classmethod
    def of(cls, document: RunDocument) -> Brief:
        return cls(**{name: getattr(document, name) for name in cls.__struct_fields__})


class RunDocument(Document, frozen=True, kw_only=True):
    """The document of a run."""

    kind: Literal["run"] = "run"
    run_id: RunIdEntry = None
    status: Annotated[Status, doc("whether the run was played to its end")]
    benchmark: BenchmarkName
    model: ModelEntry
    sample: SampleEntry = field(name="*sample", default_factory=Part)
    prompt: Annotated[str | None, doc("what is said first to the model under test")] = None
    n_turns: TurnsEntry = 0
    headline: Annotated[Part, part("headline")] = field(name="*headline", default_factory=Part)
    metrics: Annotated[
        Part,
        part(
            "metrics",
            additionalProperties={"type": ["number", "boolean", "object", "array", "null"]},
        ),
        doc("the benchmark's metrics by name, over judged turns only; null if no turn was judged"),
    ]
    turns: Annotated[list[TurnEntry], doc("the turns in their order")] = field(default_factory=list)
    items: Annotated[ItemsEntry | None, doc("what became of many items; null of a dialogue")] = None
    s3_artifacts: Bucket = None
    output_artifacts: Annotated[
        Place | None, doc("where the output folder holds them; null without one")
    ] = None
    timestamps: Annotated[Timestamps, doc("begin and end")] = Timestamps()
    usage: Annotated[
        dict[str, Annotated[ActorUsage, doc("of the role, or of all roles")]],
        keys("roles and total"),
        doc("tokens, calls and requests by role, and in total"),
    ]
    cost: Annotated[
        CostEntry | None,
        doc("USD by role and in total; null if no price is known for any model in use"),
    ] = None
    latency: Annotated[
        Annotated[
            dict[
                str, Annotated[ActorLatency | None, doc("of its calls; null: no request was sent")]
            ],
            keys("roles"),
        ]
        | None,
        doc("latency by role; null if nothing was sent"),
    ] = None
    judge: Annotated[JudgeEntry | None, doc("who judged, and how much; null without a judge")] = (
        None
    )
    own: Annotated[Part, part("run")] = field(name="*own", default_factory=Part)
    end_reason: Annotated[EndReason, doc("how the run ended")]
    seed: SeedEntry = None
    thresholds: Annotated[
        Thresholds | None, doc("the bounds that the run was held to; null without one")
    ] = None
    inputs: Annotated[Inputs | None, doc("what the outcome depends on beside models and seed")] = (
        None
    )
    journal: Annotated[
        list[dict[str, Any]] | None,
        doc(
            "what --resume-from goes on with; only in a run that was cut short, or "
            "lacks its closing verdict, and that no store keeps"
        ),
    ] = None
    notices: Annotated[
        list[str], doc("what the run had to do without, such as a refused field")
    ] = field(default_factory=list)
    error: Annotated[ErrorEntry | None, doc("what ended it early, or which gate it missed")] = None

    @classmethod
    def of(cls, result: EndedRun) -> RunDocument:
        config, parts, tallies = result.config, result.parts, result.tallies
        metrics = result.metrics
        latency: dict[str, ActorLatency | None] = {
            role: ActorLatency.of(tallies[role]) for role in parts.roles
        }
        return cls(
            run_id=result.run_id,
            status=result.status,
            benchmark=result.benchmark,
            model=config.model,
            sample=parts.sample.of(result.opening),
            prompt=result.opening.prompt,
            n_turns=result.n_turns,
            headline=parts.headline.of(metrics) if metrics else parts.headline(),
            metrics=parts.metrics.of(metrics) if metrics else parts.metrics(),
            turns=[TurnEntry.of(result, turn) for turn in result.turns],
            items=ItemsEntry.of(result),
            s3_artifacts=result.s3,
            output_artifacts=result.folder,
            timestamps=Timestamps(
                started_at=utc(result.started_at),
                completed_at=utc(result.completed_at),
                duration_seconds=round(result.duration_s, TIME_PLACES),
            ),
            usage=ActorUsage.by_role(tallies),
            cost=result.cost,
            latency=latency if any(latency.values()) else None,
            judge=JudgeEntry.of(result),
            own=parts.run.of(result),
            end_reason=result.end_reason,
            seed=config.seed,
            thresholds=Thresholds(
                own=parts.thresholds.of(config),
                min_judge_coverage=config.min_judge_coverage,
                fail_under=_highest(config.gates),
            ),
            inputs=Inputs.of(result),
            journal=[dict(entry) for entry in result.journal] if result.journal else None,
            notices=list(result.notices),
            error=_error_entry(result),
        )

    @classmethod
    def unstarted(
        cls, error: BenchError, benchmark: str, parts: Parts, config: CoreConfig | None
    ) -> RunDocument:
        """The document of a command that failed before a run began, with what is known of its
        configuration.
        """
        return cls(
            status="failed",
            benchmark=benchmark,
            model=(config and config.model) or None,
            sample=parts.sample.asked(config) if config else parts.sample(),
            prompt=(config and config.prompt) or None,
            headline=parts.headline(),
            metrics=parts.metrics(),
            usage=ActorUsage.by_role({role: RoleUsage() for role in parts.roles}),
            own=parts.run(),
            end_reason=error.end_reason,
            error=ErrorEntry.of(error),
        )


class CuratedDocument(RunDocument, frozen=True, kw_only=True):
    """The curated document of a complete run (curated/runs/{run_id}.json)."""

    kind: Literal["curated"] = "curated"  # type: ignore[assignment]
    run_id: RunId
    status: Annotated[Literal["completed"], doc("it was played to its end")]
    journal: Annotated[None, doc("a complete run needs none")] = None

    @classmethod
    def of(cls, result: EndedRun) -> CuratedDocument:
        run = RunDocument.of(result)
        known = {name: getattr(run, name) for name in run.__struct_fields__ if name != "kind"}
        return cls(**known)

    @property
    def printed(self) -> dict[str, Json]:
        """With the short form's keys first."""
        document = whole(self, "curated")
        first = [*brief_keys(self), "timestamps"]
        first.remove("s3_artifacts")
        return {**{key: document[key] for key in first}, **document}


def brief_keys(document: RunDocument) -> dict[str, Json]:
    """The short form of a run's document."""
    return whole(Brief.of(document), "brief")


def _highest(gates: Iterable[Gate]) -> dict[str, float]:
    """The bound of each metric: of several, the one that a value has to reach to pass them all."""
    found: dict[str, float] = {}
    for gate in gates:
        found[gate.metric] = max(gate.minimum, found.get(gate.metric, gate.minimum))
    return found


def _error_entry(result: EndedRun) -> ErrorEntry | None:
    """What ended the run early, or which bounds a completed run missed."""
    if result.error is not None:
        return ErrorEntry.of(result.error)
    if result.status == "completed" and result.shortfalls:
        return ErrorEntry(
            code="gate",
            message=" ".join(result.shortfalls),
            hint="The run itself is complete; its scores fall short of what was asked for.",
            retryable=False,
        )
    return None
