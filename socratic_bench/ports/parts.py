"""What a benchmark adds to documents: types whose keys are added to those of the core."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Self

from msgspec import Meta, Struct

from socratic_bench.settings import MAX_TURNS, MOST_TURNS, CoreConfig
from socratic_bench.types import JUDGE, Role, doc

if TYPE_CHECKING:
    from socratic_bench.catalogue.prices import PricingTier
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
    def of_config(cls, config: CoreConfig) -> Self:
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
        asked = self.requested_models(config, is_judged=is_judged)
        return {role: "+".join(models) or None for role, models in asked.items()}

    def requested_models(
        self, config: CoreConfig, *, is_judged: bool
    ) -> dict[Role, tuple[str, ...]]:
        """The ids that are asked for, by role: none, one, or those of all jurors."""
        named = {actor.name: getattr(config, actor.setting, None) for actor in self.actors}
        models = {role: (model,) if model else () for role, model in named.items()}
        return {**models, JUDGE: config.jurors if is_judged else ()}

    def tier(self, role: Role, config: CoreConfig) -> "PricingTier":
        """The tier in which a role's calls are asked for: that of the settings is for the model
        under test.
        """
        from socratic_bench.catalogue.prices import PricingTier

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


# What a benchmark says of itself to those who report it, beside what its metrics mean.


class TurnKind(Struct, frozen=True, kw_only=True):
    """A key of a turn that says of which kind it was; `none` stands for turns of no kind."""

    key: str
    title: str
    none: str


class MetricGroup(Struct, frozen=True, kw_only=True):
    """Metrics that belong together, by their paths, as one table."""

    title: str
    metrics: Sequence[str]


class Findings(Struct, frozen=True, kw_only=True):
    """A list in a run's document that tells what became of something: `key` names it, `text` the
    key of what it is about, `outcome` that of what became of it, and `outcomes` all that can.
    """

    key: str
    title: str
    text: str
    outcome: str
    outcomes: Sequence[str]


class Caveat(Struct, frozen=True, kw_only=True):
    """Something that readers should know of how runs were played, by its path in a document.
    `is_share`: it counts turns, and is told as a share of them. `unit` follows its value.
    """

    title: str
    path: str
    is_share: bool = False
    unit: str = ""

    def with_unit(self, told: str) -> str:
        return f"{told} {self.unit}".rstrip()


class Exposure(Struct, frozen=True, kw_only=True):
    """The turns of a run in which an event could come, up to the one in which it came."""

    turns: Annotated[
        list[Annotated[int, Meta(ge=0)]], doc("their numbers, from 0 for the first that was played")
    ]
    kinds: Annotated[list[str], doc("of which kind each of them was")]
    is_event: Annotated[bool, doc("whether the event came in the last of them")]


class Views(Struct, frozen=True, kw_only=True):
    """What reports show beside single metrics.

    `endurance` is the path of a metric that is a time until the event `breaks`, counted in turns;
    `endures` says what a model does until then. `axes` are two metrics that are drawn against each
    other. `said` is the key of a turn under which what it answers stands; `None`: in its file
    alone. `events` are those that its rubrics look for. `sample` is what one sample is called, and
    `prompt` what its first words are. `exposures` makes of a run's document, by name of an event,
    the turns in which it could come; none of a document that does not tell of any. `parts` makes of
    the document of a complete run of many items each metric that is a mean over them, by what they
    are of, such as a problem: runs are compared part by part. `threshold` is the path of the points
    under which a turn falls short, `fails_at` the score at which a dimension counts as failed.
    Where no judge is asked, the reading `result` of a turn, among its heuristics, says what became
    of it, and `right` is what it is of a turn that does not fall short; `expected` is the key of a
    turn that says what would have been.
    """

    endurance: str | None = None
    endures: str = ""
    breaks: str = ""
    axes: tuple[str, str] | None = None
    said: str | None = None
    sample: str = "sample"
    prompt: str = "prompt"
    kinds: Sequence[TurnKind] = ()
    groups: Sequence[MetricGroup] = ()
    events: Sequence[str] = ()
    findings: Sequence[Findings] = ()
    facts: Sequence[Caveat] = ()
    mean_scores: Mapping[str, str] = {}
    threshold: str | None = None
    fails_at: float | None = None
    result: str | None = None
    right: str = ""
    expected: str | None = None
    exposures: Callable[[Mapping[str, Any]], Mapping[str, Exposure]] = lambda _: {}
    parts: Callable[[Mapping[str, Any]], Mapping[str, Mapping[str, float]]] = lambda _: {}
