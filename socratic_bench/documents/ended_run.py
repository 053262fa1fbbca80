"""A run that has ended: everything that its documents are made of."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from socratic_bench.catalogue.prices import PriceTable
from socratic_bench.documents.cost import Billing, CostEntry
from socratic_bench.documents.document import Place
from socratic_bench.documents.judge_status import StoredCalibration
from socratic_bench.documents.usage import RoleUsage
from socratic_bench.errors import ENDINGS, EXIT_GATE, BenchError, RunStatus
from socratic_bench.ports.benchmark import Metrics, Sample
from socratic_bench.ports.parts import Parts
from socratic_bench.ports.store import StoredObject
from socratic_bench.settings import CoreConfig
from socratic_bench.turns import ClosingResult, Rubric, Turn
from socratic_bench.types import EndReason, Json, Role


class EndedRun(Struct, frozen=True, kw_only=True):
    """What happened in a run.

    Attributes:
        closing: the other speaker's last message, which got no reply.
        error: what ended the run early; `None` if nothing did.
        shortfalls: sentences on the gates and the judge coverage that a completed run missed.
        tallies: the calls of each role.
        journal: entries from which a run that no store keeps can be resumed.
        prices: the user's own; `None` means the built-in ones.
        held_judges: the calibrations that were given for the judge (--calibration).
        parts: the benchmark's keys of the document.
        concluded: the judge's answer on the episode as a whole; `None` if it was not asked, or if
            the run had ended before.
        sdk_version: version of the client that sent the requests.
        stored: what the stores have of a complete run, by key.
    """

    run_id: str
    benchmark: str
    config: CoreConfig
    opening: Sample
    rubric: Rubric | None
    turns: tuple[Turn, ...]
    end_reason: EndReason
    closing: str | None
    error: BenchError | None
    metrics: Metrics
    shortfalls: tuple[str, ...]
    tallies: Mapping[Role, RoleUsage]
    s3: Place | None
    folder: Place | None
    notices: tuple[str, ...]
    journal: tuple[Mapping[str, Json], ...] | None = None
    started_at: datetime
    completed_at: datetime
    duration_s: float
    prices: PriceTable | None = None
    held_judges: Sequence[StoredCalibration] = ()
    parts: Parts = Parts()
    concluded: ClosingResult | None = None
    sdk_version: str
    stored: Mapping[str, StoredObject] = {}

    @property
    def status(self) -> RunStatus:
        status = ENDINGS[self.end_reason].status
        return "partial" if status == "failed" and self.n_turns else status

    @property
    def exit_code(self) -> int:
        """The exit code of the command: docs/output.md lists them."""
        if self.error and self.error.signal_number:
            return self.error.exit_code
        if self.status == "completed" and self.shortfalls:
            return EXIT_GATE
        return ENDINGS[self.end_reason].exit_code

    @property
    def is_judged(self) -> bool:
        """Whether the run has a judge."""
        has_rubric = self.rubric is not None or bool(self.opening.rubrics)
        return has_rubric and bool(self.config.jurors)

    def rubric_of(self, turn: Turn) -> Rubric | None:
        """The rubric of a turn: its own, or that of the run."""
        return self.opening.rubrics.get(turn.index, self.rubric)

    @property
    def models(self) -> dict[Role, str | None]:
        """The model id of each role; `None` for a role that no model plays."""
        return self.parts.models(self.config, is_judged=self.is_judged)

    @property
    def n_turns(self) -> int:
        """Turns of the model under test, without replayed ones."""
        return sum(not turn.replayed for turn in self.turns)

    @property
    def n_judged(self) -> int:
        return sum(turn.verdict is not None for turn in self.turns)

    @property
    def cost(self) -> CostEntry | None:
        """The cost by role and in total; `None` if no price is known."""
        billing = Billing.of(self.config, self.parts, self.models, self.prices)
        return CostEntry.of(billing, self.tallies)
