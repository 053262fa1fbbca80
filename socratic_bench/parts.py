"""What a benchmark adds to documents: types whose keys stand beside those of the core."""

from collections.abc import Sequence
from typing import Any, Self

from msgspec import Struct

from socratic_bench.types import Role


class Actor(Struct, frozen=True):
    """One whose calls are counted under a name; `setting` is the one that names its model."""

    name: Role
    setting: str


ACTORS = (
    Actor("tutor", "model"),
    Actor("student", "student_model"),
    Actor("judge", "judge_model"),
)


class Part(Struct, frozen=True, kw_only=True):
    """Keys of a benchmark's own. Each has a default, which stands where there is nothing to say."""

    @classmethod
    def of(cls, source: Any) -> Self:  # noqa: ANN401 -- `Parts` says of each part what it is made of
        """The part filled from its source."""
        del source
        return cls()


class Parts(Struct, frozen=True, kw_only=True):
    """A benchmark's part of the documents: a type for each place where it adds keys.

    Attributes:
        actors: who takes part, the model under test first.
        metrics: `metrics` of a run, from what the benchmark has summed up.
        headline: beside the core's keys of a run and in its short form, from the same.
        run: beside the core's keys of a run, from its `RunResult`.
        thresholds: beside the core's thresholds, from the configuration.
        scores: beside a turn's `scores`, from the same mapping, empty without a verdict.
        turn: beside the core's keys of a turn in the run's document, from the `Turn`.
        turn_file: beside the core's keys of a turn's file, from the `Turn`.
    """

    actors: tuple[Actor, ...] = ACTORS
    metrics: type[Part] = Part
    headline: type[Part] = Part
    run: type[Part] = Part
    thresholds: type[Part] = Part
    scores: type[Part] = Part
    turn: type[Part] = Part
    turn_file: type[Part] = Part


def models_of(
    config: object, actors: Sequence[Actor], *, is_judged: bool
) -> dict[Role, str | None]:
    """The model that is asked for, by role; `None` where none takes part."""
    models = {actor.name: getattr(config, actor.setting, None) for actor in actors}
    return models if is_judged else {**models, "judge": None}
