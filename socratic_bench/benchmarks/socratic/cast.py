"""Who takes part in a Socratic dialogue, and what they are given to talk about."""

from typing import Annotated, Self

from socratic_bench.benchmarks.socratic.settings import Settings
from socratic_bench.benchmarks.socratic.turn import STUDENT, TUTOR
from socratic_bench.ports.benchmark import Sample
from socratic_bench.ports.parts import Actor, BenchmarkSpec, Part
from socratic_bench.settings import CoreConfig, part_of
from socratic_bench.types import doc


class SamplePart(Part, frozen=True, kw_only=True):
    """The scenario that is played."""

    scenario: Annotated[str | None, doc("id of the scenario")] = None

    @classmethod
    def of(cls, sample: Sample) -> Self:
        return cls(scenario=sample.id)

    @classmethod
    def of_config(cls, config: CoreConfig) -> Self:
        return cls(scenario=part_of(config, Settings).scenario or None)


CAST = BenchmarkSpec(
    actors=(Actor(TUTOR, "model"), Actor(STUDENT, "student_model")), sample=SamplePart
)
