"""The kinds of documents and stored files by name, and the schemas of a benchmark's."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from msgspec import Struct

from socratic_bench.catalogue.price_file import PriceFile
from socratic_bench.documents.calibration import CalibrationDocument
from socratic_bench.documents.closing_file import ClosingFile
from socratic_bench.documents.command import EmulatorDocument, ModelList
from socratic_bench.documents.comparison import ComparisonDocument
from socratic_bench.documents.correction import CorrectionDocument
from socratic_bench.documents.doctor import DoctorDocument
from socratic_bench.documents.dry_run import DryRunDocument
from socratic_bench.documents.error import ErrorDocument
from socratic_bench.documents.files import JudgeFile, TurnFile
from socratic_bench.documents.generation import Node, schema_of
from socratic_bench.documents.inputs import own_inputs
from socratic_bench.documents.journal import LINE_SUM, JournalEntry, LeaseFile, Link
from socratic_bench.documents.judgings import JudgingsDocument, JudgingsDryRun
from socratic_bench.documents.label import Label, LabellingDocument
from socratic_bench.documents.prompts import PromptLine
from socratic_bench.documents.report import ReportDocument
from socratic_bench.documents.run import Brief, CuratedDocument, RunDocument
from socratic_bench.documents.scalars import optional_keys
from socratic_bench.documents.schemas import contract_keys
from socratic_bench.documents.shown import ShownDocument
from socratic_bench.documents.sweep import CellRow, SweepDocument, SweepFile
from socratic_bench.documents.sweep_dry_run import SweepDryRun
from socratic_bench.documents.sweep_plan import plan_type
from socratic_bench.documents.validation import ValidationDocument
from socratic_bench.ports.benchmark import Benchmark
from socratic_bench.settings import CoreConfig, Kind
from socratic_bench.types import doc

# Those of any benchmark.
COMMON: Mapping[str, object] = {
    "run": RunDocument,
    "brief": Brief,
    "curated": CuratedDocument,
    "turn": TurnFile,
    "judge": JudgeFile,
    "closing_verdict": ClosingFile,
    "dry_run": DryRunDocument,
    "sweep": SweepDocument,
    "sweep_begun": SweepFile,
    "sweep_row": CellRow,
    "sweep_dry_run": SweepDryRun,
    "comparison": ComparisonDocument,
    "judgings": JudgingsDocument,
    "judgings_dry_run": JudgingsDryRun,
    "calibration": CalibrationDocument,
    "correction": CorrectionDocument,
    "label": Label,
    "labelling": LabellingDocument,
    "report": ReportDocument,
    "shown": ShownDocument,
    "doctor": DoctorDocument,
    "validation": ValidationDocument,
    "emulator": EmulatorDocument,
    "models": ModelList,
    "error": ErrorDocument,
    "journal": Annotated[
        JournalEntry, doc("An entry of a journal"), optional_keys(sha256=LINE_SUM)
    ],
    "journal_entry": Link,
    "lease": LeaseFile,
    "prices": PriceFile,
    "prompts_line": PromptLine,
}


class Documents(Struct, frozen=True):
    """The documents of runs of a benchmark, whose settings the configuration `config` has, and of
    sweeps, whose own are `sweep`.
    """

    benchmark: Benchmark
    config: type[CoreConfig]
    sweep: Kind

    @property
    def kinds(self) -> Mapping[str, object]:
        """Kind -> its type, or union of types."""
        plan = plan_type((self.config, self.sweep), self.benchmark.name)
        return {**COMMON, "sweep_plan": plan, **self.benchmark.documents}

    def schema(self, kind: str, promised: Sequence[str] | None = None) -> Node:
        """The schema of a kind. Of keys that are promised whatever the benchmark, those that it has
        not are null: the ones of the contract, unless others are named.
        """
        inputs = own_inputs(self.config, self.benchmark.name)
        known = contract_keys(kind) if promised is None else promised
        return schema_of(kind, self.kinds[kind], self.benchmark.parts, inputs, promised=known)
