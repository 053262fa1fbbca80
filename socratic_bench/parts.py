"""What a benchmark adds to documents: types whose keys are added to those of the core."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Self

from msgspec import Meta, Struct

from socratic_bench.settings import MAX_TURNS, MOST_TURNS, CoreConfig
from socratic_bench.types import JUDGE, Role, doc

if TYPE_CHECKING:
    from socratic_bench.catalogue.rates import PricingTier
    from socratic_bench.statistics.survival import Time


# What documents tell beside each role, in tokens and in money, so that no role is called so.
BESIDE_ROLES = (
    *("total", "currency", "by_model", "without_caching_usd", "cache_hit_share", "maybe_billed"),
    *("stand_in", "prices"),
)


class Actor(Struct, frozen=True):
    """One whose calls are counted under a name; `setting` is the one that names its model."""

    name: Role
    setting: str


class Part(Struct, frozen=True, kw_only=True):
    """Keys of a benchmark's own, each with a default for where there is nothing to say. They cannot
    replace a key of the core.
    """

    @classmethod
    def of(cls, source: Any) -> Self:  # noqa: ANN401 -- `Parts` says of each part what it is made of
        """The part filled from its source."""
        del source
        return cls()

    @classmethod
    def asked(cls, config: CoreConfig) -> Self:
        """The part of a run that never came to be, as far as its configuration tells it."""
        del config
        return cls()


class SampleKeys(Part, frozen=True, kw_only=True):
    """What was played."""

    sample: Annotated[str | None, doc("id of what was played")] = None

    @classmethod
    def of(cls, source: Any) -> Self:  # noqa: ANN401 -- a `Sample`
        return cls(sample=source.id)


class PromptKeys(Part, frozen=True, kw_only=True):
    """What was said to the model under test."""

    prompt: Annotated[str, doc("what was said to the model under test")] = ""

    @classmethod
    def of(cls, source: Any) -> Self:  # noqa: ANN401 -- a `Turn`
        return cls(prompt=source.prompt)


class BenchmarkSpec(Struct, frozen=True, kw_only=True):
    """What an engine knows of a benchmark before anything is said.

    Attributes:
        actors: who takes part, the model under test first; a judge is not among them.
        has_item_metrics: whether its samples have metrics of their own, known once items are read.
        max_turns: how many turns, or items, a run of it may have at most.
        sample: beside the model in the documents of a run, of a dry run and of a turn, and in what
            makes a run the same run, from its `Sample`.
    """

    actors: tuple[Actor, ...] = (Actor("model", "model"),)
    has_item_metrics: bool = False
    max_turns: Annotated[int, Meta(ge=1, le=MOST_TURNS)] = MAX_TURNS
    sample: type[Part] = SampleKeys

    def __post_init__(self) -> None:
        names = Counter((*self.roles, *BESIDE_ROLES))
        if taken := [name for name, n in names.items() if n > 1]:
            raise ValueError(f"Actors need names of their own, and not these: {', '.join(taken)}.")

    @property
    def tested(self) -> Role:
        """The role of the model under test."""
        return self.actors[0].name

    @property
    def everyone(self) -> tuple[Actor, ...]:
        """The actors and the judge."""
        return (*self.actors, Actor(JUDGE, "judge_model"))

    @property
    def roles(self) -> tuple[Role, ...]:
        """The names of all whose calls are counted."""
        return tuple(actor.name for actor in self.everyone)

    def models(self, config: CoreConfig, *, is_judged: bool) -> dict[Role, str | None]:
        """The model that is asked for, by role; `None` where none takes part. A jury's ids are
        joined by "+".
        """
        asked = self.asked_models(config, is_judged=is_judged)
        return {role: "+".join(models) or None for role, models in asked.items()}

    def asked_models(self, config: CoreConfig, *, is_judged: bool) -> dict[Role, tuple[str, ...]]:
        """The ids that are asked for, by role: none, one, or those of all jurors."""
        named = {actor.name: getattr(config, actor.setting, None) for actor in self.actors}
        models = {role: (model,) if model else () for role, model in named.items()}
        return {**models, JUDGE: config.jurors if is_judged else ()}

    def tier(self, role: Role, config: CoreConfig) -> "PricingTier":
        """The tier in which a role's calls are asked for: that of the settings is for the model
        under test.
        """
        from socratic_bench.catalogue.rates import PricingTier

        if role != self.tested:
            return PricingTier()
        return PricingTier(config.service_tier, config.latency_profile)


class Parts(BenchmarkSpec, frozen=True, kw_only=True):
    """A benchmark's part of the documents: a type for each place where it adds keys.

    Attributes:
        metrics: `metrics` of a run, from what the benchmark has summed up.
        headline: beside the core's keys of a run and in its short form, from the same.
        run: beside the core's keys of a run, from its `RunResult`.
        thresholds: beside the core's thresholds, from the configuration.
        scores: beside a turn's `scores`, from the same mapping, empty without a verdict.
        turn: beside the core's keys of a turn in the run's document, from the `Turn`.
        prompt_key: the key there of what was said to the model under test.
        times: times to an event, by name, of a run's document and scores of all of its turns.
        turn_prompt: what was said to the model under test, in a turn's file, from the `Turn`.
        turn_calls: calls of others in a turn's file, from the `Turn`.
        turn_file: beside the core's keys of a turn's file, from the `Turn`.
    """

    metrics: type[Part] = Part
    headline: type[Part] = Part
    run: type[Part] = Part
    thresholds: type[Part] = Part
    scores: type[Part] = Part
    turn: type[Part] = Part
    prompt_key: str = "prompt"
    times: "Callable[[Mapping[str, Any], Sequence[float]], Mapping[str, Time]] | None" = None
    turn_prompt: type[Part] = PromptKeys
    turn_calls: type[Part] = Part
    turn_file: type[Part] = Part
