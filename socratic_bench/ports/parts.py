"""What a benchmark declares of itself: its actors, its keys of documents, its views in reports."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Self

from msgspec import Meta, Struct

from socratic_bench.catalogue.prices import PricingTier
from socratic_bench.settings import MAX_TURNS, MOST_TURNS, CoreConfig
from socratic_bench.statistics.survival import Time
from socratic_bench.types import JUDGE, Role, doc

# Keys of documents beside those of the roles, so no role can have such a name.
_RESERVED_ROLES = (
    *("total", "currency", "by_model", "without_caching_usd", "cache_hit_share", "maybe_billed"),
    *("stand_in", "prices"),
)


class Actor(Struct, frozen=True):
    """A role of a benchmark; `setting` names the setting that gives its model."""

    name: Role
    setting: str


class Part(Struct, frozen=True, kw_only=True):
    """Keys that a benchmark adds to a document, each with a default.

    They cannot replace a key that every document has.
    """

    @classmethod
    def of(cls, source: Any) -> Self:  # noqa: ANN401 -- `Parts` says of each part what it is made of
        """The keys filled from their source."""
        return cls()

    @classmethod
    def of_config(cls, config: CoreConfig) -> Self:
        """The keys of a run that never started, as far as its configuration gives them."""
        return cls()


class SampleKeys(Part, frozen=True, kw_only=True):
    """The sample that was played."""

    sample: Annotated[str | None, doc("id of what was played")] = None

    @classmethod
    def of(cls, source: Any) -> Self:  # noqa: ANN401 -- a `Sample`
        return cls(sample=source.id)


class PromptKeys(Part, frozen=True, kw_only=True):
    """The prompt of a turn."""

    prompt: Annotated[str, doc("what was said to the model under test")] = ""

    @classmethod
    def of(cls, source: Any) -> Self:  # noqa: ANN401 -- a `Turn`
        return cls(prompt=source.prompt)


class BenchmarkSpec(Struct, frozen=True, kw_only=True):
    """The actors and limits of a benchmark.

    Attributes:
        actors: who takes part, the model under test first; the judge is not among them.
        has_item_metrics: whether its samples add metrics, known once their items are read.
        max_turns: the most turns, or items, of a run.
        sample: keys made of the `Sample`, in the documents of a run, a dry run and a turn, and in
            the run's identity.
    """

    actors: tuple[Actor, ...] = (Actor("model", "model"),)
    has_item_metrics: bool = False
    max_turns: Annotated[int, Meta(ge=1, le=MOST_TURNS)] = MAX_TURNS
    sample: type[Part] = SampleKeys

    def __post_init__(self) -> None:
        names = Counter((*self.roles, *_RESERVED_ROLES))
        if reserved := [name for name, count in names.items() if count > 1]:
            mistake = f"Actors need names of their own, and not these: {', '.join(reserved)}."
            raise ValueError(mistake)

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
        """The names of the actors and the judge."""
        return tuple(actor.name for actor in self.everyone)

    def models(self, config: CoreConfig, *, is_judged: bool) -> dict[Role, str | None]:
        """The requested model by role, `None` where there is none; a jury's are joined by "+"."""
        requested = self.requested_models(config, is_judged=is_judged)
        return {role: "+".join(models) or None for role, models in requested.items()}

    def requested_models(
        self, config: CoreConfig, *, is_judged: bool
    ) -> dict[Role, tuple[str, ...]]:
        """The requested model ids by role: none, one, or those of all jurors."""
        by_actor = {actor.name: getattr(config, actor.setting, None) for actor in self.actors}
        models = {role: (model,) if model else () for role, model in by_actor.items()}
        return {**models, JUDGE: config.jurors if is_judged else ()}

    def tier(self, role: Role, config: CoreConfig) -> PricingTier:
        """The tier requested for a role's calls; the settings' tier is for the model under test."""
        if role != self.tested:
            return PricingTier()
        return PricingTier(config.service_tier, config.latency_profile)


class Parts(BenchmarkSpec, frozen=True, kw_only=True):
    """The keys that a benchmark adds to documents: a type for each place.

    Attributes:
        metrics: `metrics` of a run, made of what `Benchmark.summarise` returns.
        headline: keys of a run and of its short form, made of the same.
        run: keys of a run, made of its `RunResult`.
        thresholds: keys of a run's thresholds, made of the configuration.
        scores: keys of a turn's `scores`, made of these, which are empty without a verdict.
        turn: keys of a turn in the run's document, made of the `Turn`.
        prompt_key: the key there of the prompt.
        times: a function of a run's document and its turns' scores that returns times to an event,
            by name.
        turn_prompt: the prompt's keys in a turn's file, made of the `Turn`.
        turn_calls: keys of other actors' calls in a turn's file, made of the `Turn`.
        turn_file: other keys of a turn's file, made of the `Turn`.
        dry_run: keys of a dry run, made of the `Sample`.
    """

    metrics: type[Part] = Part
    headline: type[Part] = Part
    run: type[Part] = Part
    thresholds: type[Part] = Part
    scores: type[Part] = Part
    turn: type[Part] = Part
    prompt_key: str = "prompt"
    times: Callable[[Mapping[str, Any], Sequence[float]], Mapping[str, Time]] | None = None
    turn_prompt: type[Part] = PromptKeys
    turn_calls: type[Part] = Part
    turn_file: type[Part] = Part
    dry_run: type[Part] = Part


class TurnKind(Struct, frozen=True, kw_only=True):
    """A turn's key that names its kind; `none` is the title of turns without a kind."""

    key: str
    title: str
    none: str


class MetricGroup(Struct, frozen=True, kw_only=True):
    """Metrics, by their paths, that reports show in one table."""

    title: str
    metrics: Sequence[str]


class OutcomeList(Struct, frozen=True, kw_only=True):
    """A list in a run's document whose entries have an outcome.

    `key` names the list, `text` the entries' key of what they are about, `outcome` that of their
    outcome; `outcomes` are all possible ones.
    """

    key: str
    title: str
    text: str
    outcome: str
    outcomes: Sequence[str]


class Caveat(Struct, frozen=True, kw_only=True):
    """Something that readers should know of how runs were played, by its path in a document.

    `is_share`: it counts turns, and is shown as a share of them. `unit` follows its value.
    """

    title: str
    path: str
    is_share: bool = False
    unit: str = ""

    def with_unit(self, value: str) -> str:
        return f"{value} {self.unit}".rstrip()


class TaskView(Struct, frozen=True, kw_only=True):
    """Items by task: keys of a turn, and of the document's list of costs by task.

    `results` are the values of `result` that count in a rate of passing, `others` those that are
    counted apart; `faults` is the key of what an item failed by, `variant` that of how it was
    asked, where a run asks in several ways: its first one is what metrics are of.
    """

    task: str
    variant: str
    item: str
    result: str
    passed: str
    results: Sequence[str]
    others: Sequence[str]
    faults: str
    costs: str


class Exposure(Struct, frozen=True, kw_only=True):
    """The turns of a run at risk of an event, up to the turn in which it happened."""

    turns: Annotated[
        list[Annotated[int, Meta(ge=0)]], doc("their numbers, from 0 for the first that was played")
    ]
    kinds: Annotated[list[str], doc("of which kind each of them was")]
    is_event: Annotated[bool, doc("whether the event came in the last of them")]


class Views(Struct, frozen=True, kw_only=True):
    """What reports show of a benchmark's runs in addition to single metrics.

    Attributes:
        endurance: path of a metric that is a time, in turns, until the event `breaks`; `endures`
            says what a model does until then.
        event_turns: path of how many turns that event takes at least.
        axes: two metrics that are drawn against each other.
        said: a turn's key of what the reply answers; `None`: it is in the turn's file alone.
        sample, prompt: what a sample, and its first prompt, is called.
        events: the events that its rubrics look for.
        threshold: path of the score under which a turn falls short.
        unlike: path of the list that says in what unjudged turns are unlike the judged ones.
        fails_at: the score at which a dimension counts as failed.
        result: without a judge, the turn's measure that names the result; `right` is its value for
            a turn that does not fall short. `expected`: a turn's key of the right answer.
        tasks: how items are grouped by task; `None`: there are no tasks.
        has_patches: turns are patches whose speed was measured, with the keys of the benchmark
            optimisation.
        exposures: from a run's document, the turns at risk by event; empty if it has none.
        parts: from the document of a complete run of many items, the parts of each metric that is a
            mean over them, such as problems: runs are compared part by part.
        part: what such a part is called.
    """

    endurance: str | None = None
    event_turns: str | None = None
    endures: str = ""
    breaks: str = ""
    axes: tuple[str, str] | None = None
    said: str | None = None
    sample: str = "sample"
    prompt: str = "prompt"
    kinds: Sequence[TurnKind] = ()
    groups: Sequence[MetricGroup] = ()
    events: Sequence[str] = ()
    findings: Sequence[OutcomeList] = ()
    facts: Sequence[Caveat] = ()
    mean_scores: Mapping[str, str] = {}
    threshold: str | None = None
    unlike: str | None = None
    fails_at: float | None = None
    result: str | None = None
    right: str = ""
    expected: str | None = None
    tasks: TaskView | None = None
    has_patches: bool = False
    exposures: Callable[[Mapping[str, Any]], Mapping[str, Exposure]] = lambda _: {}
    parts: Callable[[Mapping[str, Any]], Mapping[str, Mapping[str, float]]] = lambda _: {}
    part: str = "problem"
