"""What `socratic-runner doctor` prints: what was looked at, what came of it, and what to do."""

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
        "warning: a run works, and not quite as expected; unknown: it could not be "
        "told, or what is lacking is not needed; failed: a run would fail by it"
    ),
]


class CheckEntry(Struct, frozen=True, kw_only=True):
    """One thing that was looked at."""

    check: Annotated[CheckName, doc("what was looked at")]
    status: StatusEntry
    subject: Annotated[str, doc("whose, or where: an identity, a bucket, a model")]
    message: Annotated[str, doc("what was found")]
    code: Annotated[str | None, doc("word for the failure; null if there is none")]
    hint: Annotated[str | None, doc("what to do; null if there is nothing to do")]

    @classmethod
    def of(cls, finding: CheckResult, hint: str | None) -> "CheckEntry":
        return cls(**{**asdict(finding), "hint": hint})


class QuotaEntry(Struct, frozen=True, kw_only=True):
    """What the account may have of a model in a minute, and what is to be sent."""

    requests_per_minute: Annotated[Amount | None, doc("quota; null: not known")]
    tokens_per_minute: Annotated[Amount | None, doc("quota; null: not known")]
    target_rpm: Annotated[Amount | None, doc("requests to be sent; null: no target")]
    target_tpm: Annotated[Amount | None, doc("tokens to be sent; null: no target")]


class Capability(Struct, frozen=True, kw_only=True):
    """Something that a model may take."""

    table: Annotated[bool, doc("whether the table of models has it")]
    found: Annotated[bool | None, doc("whether the call showed it; null if it did not ask for it")]


class TargetEntry(Struct, frozen=True, kw_only=True):
    """A model in its role, by one call of a few tokens."""

    model_id: Model
    roles: Annotated[list[str], doc("the parts that it plays")]
    region: Annotated[str | None, doc("where it was called")]
    service_tier: Annotated[str | None, doc("tier asked for; null: none")]
    served_tier: Annotated[str | None, doc("tier that served; null: not said")]
    status: StatusEntry
    latency_ms: Annotated[Milliseconds | None, doc("to the last byte; null: none")]
    n_requests: Annotated[Count, doc("requests that were sent, retries included")]
    n_throttled: Annotated[Count, doc("of these, refused by throttling")]
    input_tokens: Annotated[Tokens | None, doc("of the answer; null: not known")]
    output_tokens: Annotated[Tokens | None, doc("of the answer; null: not known")]
    cost_usd: Annotated[Amount | None, doc("what the requests cost at most; null: not known")]
    capabilities: Annotated[
        dict[str, Capability], doc("by name; empty where no table knows models")
    ]
    quota: Annotated[QuotaEntry | None, doc("null if none could be read")]
    checks: Annotated[list[CheckEntry], doc("what the call showed")]


class DoctorDocument(Document, frozen=True, kw_only=True):
    """Whether a run can be played as it is asked for."""

    kind: Literal["doctor"] = "doctor"
    status: Annotated[
        Literal["ok", "failed", "incomplete"],
        doc("incomplete: it was ended before everything was looked at"),
    ]
    n_ok: Annotated[Count, doc("checks that found all as it should be")]
    n_warnings: Annotated[Count, doc("checks with a warning")]
    n_unknown: Annotated[Count, doc("checks that could not tell")]
    n_failed: Annotated[Count, doc("checks by which a run would fail")]
    checks: Annotated[list[CheckEntry], doc("of the account and the stores")]
    models: Annotated[list[TargetEntry], doc("each in its own role")]
    cost_usd: Annotated[Amount | None, doc("what it cost at most; null if a price is not known")]
    max_cost_usd: Annotated[Amount | None, doc("what it might cost; null: no bound")]
    billed: Annotated[bool, doc("false on the embedded endpoint")]
    duration_seconds: Annotated[Amount, doc("how long it took")]
    error: Annotated[ErrorEntry | None, doc("what ended it early, if something did")]

    @property
    def all_checks(self) -> Sequence[CheckEntry]:
        """Those of the account and stores, and those of the models."""
        return [*self.checks, *(check for model in self.models for check in model.checks)]


# What `socratic-runner validate` prints: what is wrong with files, each by itself and together.


class FileEntry(Struct, frozen=True, kw_only=True):
    """What was found in one file."""

    file: Annotated[str, doc("path of the file, as it was given")]
    file_kind: Annotated[
        str,
        doc(
            "what it was read as: plan, prompts, prices, or what the benchmark calls "
            "a file of its own"
        ),
    ]
    ok: Annotated[bool, doc("whether there is nothing to mend in it")]
    problems: Annotated[list[str], doc("each with its place in the file and reason")]


class ValidationDocument(Document, frozen=True, kw_only=True):
    """What is wrong with files, found without a call."""

    kind: Literal["validation"] = "validation"
    ok: Annotated[bool, doc("whether there is nothing to mend")]
    n_problems: Annotated[Count, doc("problems in all")]
    files: Annotated[list[FileEntry], doc("what was found in each")]
    problems: Annotated[list[str], doc("what no single file is to blame for")]


# What commands other than `run` print of themselves.


class EmulatorDocument(Document, frozen=True, kw_only=True):
    """Where the embedded endpoint listens."""

    kind: Literal["emulator"] = "emulator"
    endpoint_url: Annotated[str, doc("base URL")]
    model_ids: Annotated[list[str], doc("the models that it simulates")]


class ModelEntry(Struct, frozen=True, kw_only=True):
    """What is known of a model without a call."""

    model_id: Annotated[str, doc("Bedrock model id, profile id or ARN")]
    allowed: Annotated[bool, doc("whether it may be tested as things are set")]
    embedded: Annotated[bool, doc("whether --offline plays it, with no account")]
    family: Annotated[str | None, doc("null if it is not known, and taken for a modern one")]
    capabilities: Annotated[Capabilities, doc("what it takes")]
    prices: Annotated[
        dict[str, Rates] | None,
        doc("USD per million tokens, by service tier; null if they are not known"),
    ]


class ModelList(Document, frozen=True, kw_only=True):
    """The models that may be tested."""

    kind: Literal["models"] = "models"
    region: Annotated[str | None, doc("the region that prices are for")]
    price_source: Annotated[PriceSource, doc("where the prices come from")]
    models: Annotated[list[ModelEntry], doc("each with what is known of it")]
