"""What the commands doctor, validate, emulator and models print."""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Struct
from msgspec.structs import asdict

from socratic_bench.catalogue.models import Capabilities
from socratic_bench.catalogue.prices import PriceSource, Rates
from socratic_bench.documents.document import Amount, Count, Document, ErrorEntry, Model
from socratic_bench.errors import CheckName, CheckResult, CheckStatus
from socratic_bench.types import Milliseconds, Tokens, doc

StatusEntry = Annotated[
    CheckStatus,
    doc(
        "warning: a run works, but not quite as expected; unknown: it could not be checked, or "
        "what is missing is optional; failed: a run would fail"
    ),
]


class CheckEntry(Struct, frozen=True, kw_only=True):
    """One check."""

    check: Annotated[CheckName, doc("name of the check")]
    status: StatusEntry
    subject: Annotated[str, doc("what was checked: an identity, a bucket, a model")]
    message: Annotated[str, doc("result in a sentence")]
    code: Annotated[str | None, doc("error code; null without an error")]
    hint: Annotated[str | None, doc("what to do; null: nothing")]

    @classmethod
    def of(cls, result: CheckResult, hint: str | None) -> "CheckEntry":
        return cls(**{**asdict(result), "hint": hint})


class QuotaEntry(Struct, frozen=True, kw_only=True):
    """The account's quota of a model per minute, and the targets of the run."""

    requests_per_minute: Annotated[Amount | None, doc("quota; null: unknown")]
    tokens_per_minute: Annotated[Amount | None, doc("quota; null: unknown")]
    target_rpm: Annotated[Amount | None, doc("target of requests; null: none")]
    target_tpm: Annotated[Amount | None, doc("target of tokens; null: none")]


class Capability(Struct, frozen=True, kw_only=True):
    """A capability of a model."""

    table: Annotated[bool, doc("whether the model table lists it")]
    found: Annotated[bool | None, doc("whether the test call showed it; null: not tested")]


class TargetEntry(Struct, frozen=True, kw_only=True):
    """A model in its roles, checked by one short call."""

    model_id: Model
    roles: Annotated[list[str], doc("its roles")]
    region: Annotated[str | None, doc("region of the call")]
    service_tier: Annotated[str | None, doc("requested tier; null: none")]
    served_tier: Annotated[str | None, doc("tier that served; null: unknown")]
    status: StatusEntry
    latency_ms: Annotated[
        Milliseconds | None, doc("milliseconds to the last byte; null: no answer")
    ]
    n_requests: Annotated[Count, doc("requests sent, retries included")]
    n_throttled: Annotated[Count, doc("requests that were throttled")]
    input_tokens: Annotated[Tokens | None, doc("tokens of the answer; null: unknown")]
    output_tokens: Annotated[Tokens | None, doc("tokens of the answer; null: unknown")]
    cost_usd: Annotated[Amount | None, doc("upper bound of the requests' USD; null: unknown")]
    capabilities: Annotated[
        dict[str, Capability], doc("by name; empty if the provider has no model table")
    ]
    quota: Annotated[QuotaEntry | None, doc("quota and targets; null if no quota could be read")]
    checks: Annotated[list[CheckEntry], doc("checks by the call")]


class DoctorDocument(Document, frozen=True, kw_only=True):
    """Result of the preflight check."""

    kind: Literal["doctor"] = "doctor"
    status: Annotated[
        Literal["ok", "failed", "incomplete"],
        doc("incomplete: it ended before all checks were done"),
    ]
    n_ok: Annotated[Count, doc("checks that passed")]
    n_warnings: Annotated[Count, doc("checks with a warning")]
    n_unknown: Annotated[Count, doc("checks without a result")]
    n_failed: Annotated[Count, doc("checks that failed")]
    checks: Annotated[list[CheckEntry], doc("checks of the account and the stores")]
    models: Annotated[list[TargetEntry], doc("each model")]
    cost_usd: Annotated[Amount | None, doc("upper bound of its USD; null if a price is unknown")]
    max_cost_usd: Annotated[Amount | None, doc("limit of its USD; null: none")]
    billed: Annotated[bool, doc("false with the built-in mock")]
    duration_seconds: Annotated[Amount, doc("duration in seconds")]
    error: Annotated[ErrorEntry | None, doc("what ended it early; null: nothing did")]

    @property
    def all_checks(self) -> Sequence[CheckEntry]:
        """All checks, those of models included."""
        return [*self.checks, *(check for model in self.models for check in model.checks)]


class FileEntry(Struct, frozen=True, kw_only=True):
    """The problems of one file."""

    file: Annotated[str, doc("path of the file, as given")]
    file_kind: Annotated[
        str, doc("what it was read as: plan, prompts, prices, run, or a kind of the benchmark's")
    ]
    ok: Annotated[bool, doc("whether it has no problem")]
    problems: Annotated[list[str], doc("each with its place in the file")]


class ValidationDocument(Document, frozen=True, kw_only=True):
    """The problems of files that a user wrote."""

    kind: Literal["validation"] = "validation"
    ok: Annotated[bool, doc("whether there is no problem")]
    n_problems: Annotated[Count, doc("number of problems")]
    files: Annotated[list[FileEntry], doc("each file")]
    problems: Annotated[list[str], doc("problems of several files together")]


class EmulatorDocument(Document, frozen=True, kw_only=True):
    """The address of the built-in mock, and its models."""

    kind: Literal["emulator"] = "emulator"
    endpoint_url: Annotated[str, doc("base URL")]
    model_ids: Annotated[list[str], doc("the models that it simulates")]


class DashboardDocument(Document, frozen=True, kw_only=True):
    """The address of the dashboard."""

    kind: Literal["dashboard"] = "dashboard"
    url: Annotated[str, doc("what to open first: it has the token")]
    store: Annotated[str, doc("the folder or s3:// prefix that it shows")]


class ModelEntry(Struct, frozen=True, kw_only=True):
    """A model, without calling it."""

    model_id: Annotated[str, doc("Bedrock model id, profile id or ARN")]
    allowed: Annotated[bool, doc("whether the settings allow to test it")]
    embedded: Annotated[bool, doc("whether --offline has it, without an account")]
    family: Annotated[str | None, doc("model family; null: unknown, and treated as a modern one")]
    capabilities: Annotated[Capabilities, doc("what its requests may contain")]
    prices: Annotated[
        dict[str, Rates] | None, doc("USD per million tokens, by service tier; null: unknown")
    ]


class ModelList(Document, frozen=True, kw_only=True):
    """The models that may be tested."""

    kind: Literal["models"] = "models"
    region: Annotated[str | None, doc("region of the prices")]
    price_source: Annotated[PriceSource, doc("source of the prices")]
    models: Annotated[list[ModelEntry], doc("each model")]
