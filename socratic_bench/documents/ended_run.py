"""A run that has ended, typed: all that its documents are made of."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import Struct

from socratic_bench.documents.place import Place
from socratic_bench.errors import ENDINGS, EXIT_GATE, BenchError, Status
from socratic_bench.ports.benchmark import Metrics, Sample
from socratic_bench.ports.parts import Parts
from socratic_bench.settings import CoreConfig
from socratic_bench.turns import ClosingResult, Rubric, Turn
from socratic_bench.types import EndReason, Json, Role

if TYPE_CHECKING:
    from socratic_bench.catalogue.prices import PriceTable
    from socratic_bench.documents.cost import CostEntry
    from socratic_bench.documents.judge_status import StoredCalibration
    from socratic_bench.documents.usage import RoleUsage


class EndedRun(Struct, frozen=True, kw_only=True):
    """How a run went. Its numbers are final; its calls are not repeated by reading it.

    `shortfalls` are sentences on gates and coverage that a completed run missed. `tallies` count
    what each role's calls took. `error` is what ended the run early, `None` if nothing did.
    `prices` are those of the user; `None` takes the built-in ones. `held_judges` are the
    calibrations that were given.
    `closing` is what the other speaker said last, without a reply. `journal` is what a run that no
    store keeps is resumed from. `parts` are the benchmark's own keys of the document. `concluded`
    is what a judge said of the episode as a whole, `None` if it was not asked, or the run had ended
    before. `sdk_version` names what sent the requests, with its version.
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
    tallies: "Mapping[Role, RoleUsage]"
    s3: Place | None
    folder: Place | None
    notices: tuple[str, ...]
    journal: tuple[Mapping[str, Json], ...] | None = None
    started_at: datetime
    completed_at: datetime
    duration_s: float
    sdk_version: str
    prices: "PriceTable | None" = None
    held_judges: "Sequence[StoredCalibration]" = ()
    parts: Parts = Parts()
    concluded: ClosingResult | None = None

    @property
    def status(self) -> Status:
        status = ENDINGS[self.end_reason].status
        return "partial" if status == "failed" and self.n_turns else status

    @property
    def exit_code(self) -> int:
        """The exit code of the command: docs/runner.md lists them."""
        if self.error and self.error.signal_number:
            return self.error.exit_code
        if self.status == "completed" and self.shortfalls:
            return EXIT_GATE
        return ENDINGS[self.end_reason].exit_code

    @property
    def is_judged(self) -> bool:
        """Whether a judge was asked at all."""
        has_rubric = self.rubric is not None or bool(self.opening.rubrics)
        return has_rubric and bool(self.config.jurors)

    def rubric_of(self, turn: Turn) -> Rubric | None:
        """How a turn is judged: by its own rubric, or by the usual one."""
        return self.opening.rubrics.get(turn.index, self.rubric)

    @property
    def models(self) -> "dict[Role, str | None]":
        """The model that was asked for, by role; `None` where no model took part."""
        return self.parts.models(self.config, is_judged=self.is_judged)

    @property
    def n_turns(self) -> int:
        """Turns that the model under test played; replayed ones are not among them."""
        return sum(not turn.replayed for turn in self.turns)

    @property
    def n_judged(self) -> int:
        return sum(turn.verdict is not None for turn in self.turns)

    @property
    def cost(self) -> "CostEntry | None":
        """What it cost, by role and in total; `None` if no price is known."""
        from socratic_bench.documents.cost import Billing, CostEntry

        billing = Billing.of(self.config, self.parts, self.models, self.prices)
        return CostEntry.of(billing, self.tallies)
