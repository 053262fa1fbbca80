"""The document of a run, its short form, and its curated form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, defstruct, field

from socratic_bench.documents.cost import CostEntry
from socratic_bench.documents.document import (
    TIME_PLACES,
    Amount,
    BenchmarkName,
    Count,
    Document,
    ErrorEntry,
    Place,
    RunId,
    SeedEntry,
    Sha256,
    Share,
    Timestamp,
    Turns,
    keys,
    part,
    utc,
    with_promised_keys,
)
from socratic_bench.documents.judge import EndedRun, JudgeEntry
from socratic_bench.documents.turn import TurnEntry
from socratic_bench.documents.usage import ActorLatency, ActorUsage, RoleUsage
from socratic_bench.errors import BenchError, RunStatus
from socratic_bench.ports.parts import Part, Parts
from socratic_bench.settings import CoreConfig, Gate, Kind, SettingField, provider_of, table
from socratic_bench.types import Completion, EndReason, Json, doc
from socratic_bench.version import VERSION

RunIdEntry = Annotated[RunId | None, doc("run- and a ULID; null if the run never started")]
ModelEntry = Annotated[str | None, doc("the model under test, as given")]
SampleEntry = Annotated[Part, part("sample")]
TurnsEntry = Annotated[Turns, doc("turns of the model under test, without replayed ones")]
Bucket = Annotated[Place | None, doc("where the bucket holds the files; null without one")]


class ModelUse(Struct, frozen=True, kw_only=True):
    """The model id that was requested, and what the service says served it."""

    asked: Annotated[str, doc("the id as given")]
    served: Annotated[
        list[str] | None, doc("ids that served, if the service names them (a prompt router does)")
    ]
    served_tiers: Annotated[
        list[str] | None, doc("service tiers that served, if the service names them")
    ]

    @classmethod
    def of(cls, model_id: str | None, calls: Sequence[Completion]) -> ModelUse | None:
        if model_id is None:
            return None
        return cls(
            asked=model_id,
            served=_distinct(call.served_model for call in calls),
            served_tiers=_distinct(call.served_tier for call in calls),
        )


def _input_settings(kind: Kind, benchmark: str | None) -> tuple[SettingField, ...]:
    """The settings that are inputs: those of a benchmark, or of the core without one."""
    return tuple(
        setting
        for setting in table(kind).values()
        if setting.setting.is_input
        and (benchmark in setting.owners if benchmark else not setting.owners)
    )


def _field_of(declared: SettingField) -> tuple[str, Any, Any]:
    """Name, type and default of a setting's field."""
    kind, setting = declared.kinds[0], declared.setting
    if declared.is_repeatable:
        kind = dict[str, str] if declared.is_of_pairs else list[str]
    elif isinstance(kind, type) and issubclass(kind, Struct):
        kind = str
    elif kind in (int, float):
        kind = Annotated[kind, Meta(ge=setting.low, le=setting.high)]
    is_on = declared.default is True
    text = f"false with --{declared.flag}" if is_on else declared.fill(setting.text)
    description = Meta(description=text.partition(" (default")[0])
    kind = Annotated[kind | None if declared.default is None else kind, description]
    return declared.name, kind, _plain_value(declared, declared.default)


def _plain_value(declared: SettingField, value: Any) -> Any:  # noqa: ANN401 -- any setting's
    if declared.is_repeatable:
        return dict(value) if declared.is_of_pairs else list(value)
    return str(value) if isinstance(value, Struct) else value


def _values(config: CoreConfig, settings: Sequence[SettingField]) -> dict[str, Any]:
    return {s.name: _plain_value(s, getattr(config, s.name)) for s in settings}


@cache
def own_inputs(kind: Kind, benchmark: str) -> type[Part]:
    """The part of `inputs` that holds a benchmark's settings."""
    fields = [*map(_field_of, _input_settings(kind, benchmark))]
    if not fields:
        return Part
    return defstruct("OwnInputs", fields, bases=(Part,), frozen=True, kw_only=True)  # type: ignore[return-value]


_CORE = _input_settings(CoreConfig, None)
_CoreInputs: Any = defstruct("CoreInputs", map(_field_of, _CORE), frozen=True, kw_only=True)


class Inputs(Struct, frozen=True, kw_only=True):
    """Settings, versions, and the sha256 of every text that the outcome depends on."""

    core: _CoreInputs = field(name="*core")
    hashes: dict[Annotated[str, Meta(pattern="_sha256$")], Sha256] = field(
        name="*hashes", default_factory=dict
    )
    benchmark_keys: Annotated[Part, part("inputs")] = field(
        name="*benchmark_keys", default_factory=Part
    )
    models: Annotated[
        dict[str, Annotated[ModelUse | None, doc("its model; null: none")]],
        keys("roles"),
        doc("by role, the model that was requested and the one that served"),
    ] = {}
    provider: Annotated[str, doc("who answers for the model under test: bedrock or openai")]
    runner_version: Annotated[str, doc("version of this program")]
    sdk_version: Annotated[str, doc("version of the SDK, or other client, that sent the requests")]

    @classmethod
    def of(cls, result: EndedRun) -> Inputs:
        config, kind = result.config, type(result.config)
        benchmark_inputs = own_inputs(kind, result.benchmark)
        return cls(
            core=_CoreInputs(**_values(config, _CORE)),
            hashes=dict(result.opening.hashes),
            benchmark_keys=benchmark_inputs(
                **_values(config, _input_settings(kind, result.benchmark))
            ),
            models={
                role: ModelUse.of(model, result.tallies[role].completions)
                for role, model in result.models.items()
            },
            provider=provider_of(config.model),
            runner_version=VERSION,
            sdk_version=result.sdk_version,
        )


def _distinct(words: Iterable[str | None]) -> list[str] | None:
    """Every different word, sorted; `None` if there is none."""
    return sorted({word for word in words if word is not None}) or None


class RunResult(EndedRun, frozen=True, kw_only=True):
    """The result of a run, with its documents as they are printed."""

    @property
    def document(self) -> dict[str, Json]:
        """The run's document as plain JSON values; see `socratic-runner schema run`."""
        return RunDocument.of(self).printed

    @property
    def brief(self) -> dict[str, Json]:
        """The short form of the document."""
        return RunDocument.of(self).brief


class Timestamps(Struct, frozen=True, kw_only=True):
    """When the run began and ended; null if it never started."""

    started_at: Annotated[Timestamp | None, doc("when the run began, UTC")] = None
    completed_at: Annotated[Timestamp | None, doc("when it ended, UTC")] = None
    duration_seconds: Annotated[
        Amount | None, doc("seconds, to the millisecond, of all processes of the run together")
    ] = None


class StoredGate(Struct, frozen=True, kw_only=True):
    """A bound that a figure of each model's runs has to keep."""

    metric: Annotated[str, doc("path of the metric, as --fail-under has it")]
    bound: Annotated[float, doc("the last value that passes")]
    side: Annotated[Literal["under", "over"], doc("under: it fails under the bound")]


class Thresholds(Struct, frozen=True, kw_only=True):
    """The thresholds of the run."""

    benchmark_keys: Annotated[Part, part("thresholds")] = field(
        name="*benchmark_keys", default_factory=Part
    )
    min_judge_coverage: Annotated[Share, doc("share of turns that must be judged")]
    fail_under: Annotated[
        dict[str, Annotated[float, doc("the lowest value that passes")]],
        doc("by metric, the lowest value that passes; the highest of several"),
    ]
    fail_over: Annotated[
        dict[str, Annotated[float, doc("the highest value that passes")]],
        doc("by metric, the highest value that passes; the lowest of several"),
    ] = {}


class ItemsEntry(Struct, frozen=True, kw_only=True):
    """The outcomes of a run of many items; metrics leave out the missing ones."""

    total: Annotated[Count, doc("number of items")]
    answered: Annotated[Count, doc("with a whole, readable reply")]
    refused: Annotated[Count, doc("by the model, by a filter, or because the request was too long")]
    truncated: Annotated[Count, doc("cut off by a limit of tokens")]
    unparsed: Annotated[Count, doc("answered in a form that cannot be read")]
    missing: Annotated[
        list[Count], doc("indices of items without an outcome; resuming the run asks for them")
    ]

    @classmethod
    def of(cls, result: EndedRun) -> ItemsEntry | None:
        total = result.opening.n_items
        if total is None:
            return None
        outcomes = Counter(turn.answered for turn in result.turns)
        done = {turn.index for turn in result.turns}
        return cls(
            total=total,
            answered=outcomes["answered"],
            refused=outcomes["refused"],
            truncated=outcomes["truncated"],
            unparsed=outcomes["unparsed"],
            missing=[index for index in range(total) if index not in done],
        )


class Brief(Struct, frozen=True, kw_only=True):
    """The short form of a run's document (--brief)."""

    run_id: RunIdEntry
    model: ModelEntry
    sample: SampleEntry = field(name="*sample", default_factory=Part)
    n_turns: TurnsEntry
    headline: Annotated[Part, part("headline")] = field(name="*headline", default_factory=Part)
    s3_artifacts: Bucket


class RunDocument(Document, frozen=True, kw_only=True):
    """The document of a run."""

    kind: Literal["run"] = "run"
    run_id: RunIdEntry = None
    status: Annotated[RunStatus, doc("whether the run was completed")]
    benchmark: BenchmarkName
    model: ModelEntry
    sample: SampleEntry = field(name="*sample", default_factory=Part)
    prompt: Annotated[str | None, doc("the first message to the model under test")] = None
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
    turns: Annotated[list[TurnEntry], doc("the turns in their order")] = []
    items: Annotated[
        ItemsEntry | None, doc("outcomes of a run of many items; null for a dialogue")
    ] = None
    s3_artifacts: Bucket = None
    output_artifacts: Annotated[
        Place | None, doc("where the output folder holds the files; null without one")
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
    benchmark_keys: Annotated[Part, part("run")] = field(
        name="*benchmark_keys", default_factory=Part
    )
    end_reason: Annotated[EndReason, doc("how the run ended")]
    seed: SeedEntry = None
    thresholds: Annotated[
        Thresholds | None, doc("the thresholds of the run; null if it never started")
    ] = None
    inputs: Annotated[
        Inputs | None, doc("settings, texts and versions that the outcome depends on")
    ] = None
    journal: Annotated[
        list[dict[str, Any]] | None,
        doc(
            "what --resume-from resumes the run from; only if no store has the run, and it was "
            "interrupted or lacks its closing verdict"
        ),
    ] = None
    notices: Annotated[list[str], doc("warnings, such as a field that the model refused")] = []
    error: Annotated[
        ErrorEntry | None, doc("what ended the run early, or which gate it failed")
    ] = None

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
            benchmark_keys=parts.run.of(result),
            end_reason=result.end_reason,
            seed=config.seed,
            thresholds=Thresholds(
                benchmark_keys=parts.thresholds.of(config),
                min_judge_coverage=config.min_judge_coverage,
                fail_under=_strictest(config.gates, max),
                fail_over=_strictest(config.gates_over, min),
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
        """The document of a run that could not start, with the settings that are known."""
        return cls(
            status="failed",
            benchmark=benchmark,
            model=(config and config.model) or None,
            sample=parts.sample.of_config(config) if config else parts.sample(),
            prompt=(config and config.prompt) or None,
            headline=parts.headline(),
            metrics=parts.metrics(),
            usage=ActorUsage.by_role({role: RoleUsage() for role in parts.roles}),
            benchmark_keys=parts.run(),
            end_reason=error.end_reason,
            error=ErrorEntry.of(error),
        )

    @property
    def brief(self) -> dict[str, Json]:
        """The short form as plain JSON values."""
        short = Brief(**{name: getattr(self, name) for name in Brief.__struct_fields__})
        return with_promised_keys(short, "brief")


class CuratedDocument(RunDocument, frozen=True, kw_only=True):
    """The curated document of a complete run (curated/runs/{run_id}.json)."""

    kind: Literal["curated"] = "curated"  # type: ignore[assignment]
    run_id: RunId
    status: Annotated[Literal["completed"], doc("the run was completed")]
    journal: Annotated[None, doc("a complete run needs none")] = None

    @classmethod
    def of(cls, result: EndedRun) -> CuratedDocument:
        run = RunDocument.of(result)
        values = {name: getattr(run, name) for name in run.__struct_fields__ if name != "kind"}
        return cls(**values)

    @property
    def printed(self) -> dict[str, Json]:
        """The document with the keys of the short form first."""
        document = with_promised_keys(self, "curated")
        first = [name for name in self.brief if name != "s3_artifacts"]
        return {**{name: document[name] for name in (*first, "timestamps")}, **document}


def _strictest(gates: Iterable[Gate], choose: Callable[[float, float], float]) -> dict[str, float]:
    """The bound of each metric: of several, the one that decides."""
    bounds: dict[str, float] = {}
    for gate in gates:
        bounds[gate.metric] = choose(gate.bound, bounds.get(gate.metric, gate.bound))
    return bounds


def _error_entry(result: EndedRun) -> ErrorEntry | None:
    """What ended the run early, or which gates a completed run failed."""
    if result.error is not None:
        return ErrorEntry.of(result.error)
    hint = "The run itself is complete; its scores fall short of what was asked for."
    return ErrorEntry.of_gates(result.shortfalls if result.status == "completed" else (), hint)
