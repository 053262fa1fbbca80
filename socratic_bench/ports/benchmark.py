"""The interfaces between a run and its models, benchmarks and listeners."""

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Literal, Protocol

from msgspec import Struct, StructMeta, field

from socratic_bench.errors import UsageError, Words
from socratic_bench.ports.parts import BenchmarkSpec, Parts, Views
from socratic_bench.ports.provider import Model
from socratic_bench.settings import CoreConfig
from socratic_bench.turns import Findings, Measure, Rubric, Turn
from socratic_bench.types import EndReason, Json, Role, Tool


class MetricInfo(Struct, frozen=True, kw_only=True):
    """What a benchmark's metric means, for reports and comparisons.

    `name` is a path below the document's `metrics`. `low` and `high` bound it (`None`: unbounded).
    It is null under `needs_turns` judged turns; `None`: it needs turns of a certain kind. A rate is
    a share of cases, each of which is so or not. `censored_by` is the path of what is true if a
    time ended before its event came.
    """

    name: str
    title: str
    low: float | None
    high: float | None
    higher_is_better: bool = True
    needs_turns: int | None = 1
    is_rate: bool = False
    censored_by: str | None = None


class Sample(Struct, frozen=True, kw_only=True):
    """What a benchmark made of the configuration: where it starts, and its pinned inputs.

    `hashes` has the sha256 of each text that the outcome depends on, `notices` what people should
    know of this configuration before they read its result, `label` what is played in a few words.

    What is known only once items are read: `n_items`, how many there are, `None` in a dialogue,
    which ends by itself; `rubrics` of those that have their own, by index; `metrics` beside those
    that the benchmark always has; `n_parts`, by metric, of how many `Views.parts` it can be, 0 if
    it will be null whatever is said: one that is not named is of the sample as a whole.
    """

    id: str
    prompt: str
    hashes: Mapping[str, str] = field(default_factory=dict)
    notices: Sequence[str] = ()
    label: str = ""
    n_items: int | None = None
    rubrics: Mapping[int, Rubric] = field(default_factory=dict)
    metrics: Sequence[MetricInfo] = ()
    n_parts: Mapping[str, int] = field(default_factory=dict)


class JudgeInput(Struct, frozen=True):
    """What a judge gets to see of one turn: the words before, as (speaker, text), and the reply."""

    context: tuple[tuple[str, str], ...]
    reply: str


class ClosingQuestion(Struct, frozen=True, kw_only=True):
    """What a judge is asked once, of an episode as a whole.

    `instructions` are the same for all episodes, `asked` is what is asked of this one. `lines` are
    its words, as (speaker with place, text), and `index` is of the last turn that is among them.
    `read` makes findings of the arguments with which the judge calls `tool`; it raises `ValueError`
    that says, in a sentence, what is wrong with them. `merge` makes those of a jury of its jurors'.
    """

    instructions: str
    asked: str
    lines: tuple[tuple[str, str], ...]
    index: int
    tool: Tool
    read: Callable[[Mapping[str, Json]], Findings]
    merge: Callable[[Sequence[Findings]], Findings] = lambda votes: votes[0]


Metric = float | int | bool | Mapping[str, float | None] | Sequence[float | None] | None
Metrics = Mapping[str, Metric]


class EpisodeContext(Protocol):
    """What a benchmark can use of a run while an episode is played."""

    @property
    def tested(self) -> Model:
        """The model under test."""

    def model(self, actor: Role, model_id: str | None = None) -> Model | None:
        """The model of an actor; `None` if none was asked for. An actor may ask another one, by its
        id, too: what that costs is reckoned by its own price.
        """

    def publish(self, turn: Turn) -> None:
        """Hand over a finished turn, in any order, each index once; it is judged meanwhile."""

    def play_items(self, play: "PlayItem") -> None:
        """Play the sample's `n_items`, many at once, and publish each as it ends.

        An item whose call fails for the infrastructure is missing: the others are played, and the
        `ModelError` that this raises in the end says how many are. What would befall all others,
        too, ends them at once.
        """


PlayItem = Callable[[EpisodeContext, int], Turn]
"""Plays the item of an index to its turn, in any thread, with the models of the context given to
it: a request that is refused for its length has a reply without words there.
"""


class EpisodeResult(Struct, frozen=True, kw_only=True):
    """How an episode ended by itself; `closing` is what the other speaker said last, if it had no
    reply. `notices` is what people should know of how it was played.
    """

    end_reason: EndReason
    closing: str | None = None
    notices: tuple[str, ...] = ()


Length = Literal["short", "likely", "long"]


class _AbstractStruct(StructMeta, ABCMeta): ...  # structs that lack methods are not made


class Episode(Struct, metaclass=_AbstractStruct, frozen=True, kw_only=True):
    """One prepared episode: everything is read and checked, nothing is called yet.

    A benchmark extends it. `rubric` says how replies are judged; `None` where no judge is needed.
    """

    opening: Sample
    rubric: Rubric | None = None

    @abstractmethod
    def play(self, context: EpisodeContext) -> EpisodeResult:
        """Play to the end. `ModelError` and `Stopped` are not caught."""

    def measured(self, turns: Sequence[Turn], index: int) -> Turn:
        """Turn `index` with what can be told of it without a model; `turns` are all up to it, with
        gaps where items come in any order. Called in another thread, in order.
        """
        return turns[index]

    def judge_input(self, turns: Sequence[Turn], index: int) -> JudgeInput:
        """What a judge sees of turn `index`; `turns` holds all turns up to it."""
        turn = turns[index]
        return JudgeInput((("user", turn.prompt),), turn.reply.message.text)

    def closing_question(
        self,
        turns: Sequence[Turn],  # noqa: ARG002
        closing: str | None,  # noqa: ARG002
    ) -> ClosingQuestion | None:
        """What a judge is asked of the whole episode once it has ended; `None`: nothing.

        At least one of the `turns` was played; `closing` has no reply.
        """
        return None

    def with_findings(self, turns: Sequence[Turn], findings: Findings) -> Sequence[Turn]:  # noqa: ARG002
        """The turns with what the judge's closing answer says of each."""
        return turns

    @abstractmethod
    def expected_reply(self, role: Role, length: Length) -> str:
        """What an actor's model may reply, or a judge give as a reason: estimates play with it."""


class Recorded(Struct, frozen=True, kw_only=True):
    """A stored episode: what `settings` prepare it again, its turns, and how it ended."""

    settings: Mapping[str, object]
    turns: tuple[Turn, ...]
    ended: EpisodeResult


class FileReport(Struct, frozen=True):
    """Mistakes in files of a benchmark's own: those of each file, and those of several together."""

    problems: Mapping[str, Sequence[Words]]
    together: Sequence[str] = ()


class Benchmark(Protocol):
    """A kind of test, its module's `BENCHMARK`. Runs are compared by `compared_metrics` if what is
    at the paths `conditions` is alike.
    """

    compared_metrics: Sequence[str] = ()
    conditions: Sequence[str] = ()
    shorter: str = "play fewer {turns}"  # how there is less to play

    @property
    def name(self) -> str: ...

    @property
    def metrics(self) -> Sequence[MetricInfo]: ...

    @property
    def primary_metric(self) -> str: ...  # runs are ordered by it

    @property
    def parts(self) -> Parts: ...  # its actors, and its own keys of the documents

    @property
    def cast(self) -> BenchmarkSpec:
        """What `parts` begins with, as far as that is to be had without the types of the rest."""
        return self.parts

    @property
    def documents(self) -> Mapping[str, type[Struct]]:
        """Kinds of documents that it has beside those of every run, with their types."""
        return {}

    @property
    def file_kind(self) -> str:
        """What it calls a TOML file of its own, which users write; empty if there are none."""
        return ""

    @property
    def file_keys(self) -> AbstractSet[str]:
        """The keys at the top of such a file."""
        return frozenset()

    @property
    def views(self) -> Views:
        """What reports show beside single metrics."""
        return Views()

    def check_files(self, files: Sequence[str]) -> FileReport:  # without a call
        return FileReport(dict.fromkeys(files, ()))

    def prepare(self, config: CoreConfig) -> Episode:
        """Read all that an episode needs. Raises `UsageError` with every mistake."""

    def find_rubric(self, name: str) -> Rubric:
        """One that judges can be held to, by its edition or file. Raises `UsageError`."""
        raise UsageError([f"The benchmark {self.name} has no rubric {name!r}."])

    def recorded(self, document: Mapping[str, Any]) -> Recorded:  # noqa: ARG002
        """The episode of a run's document, to be judged again. Raises `UsageError` if it cannot."""
        raise UsageError([f"Runs of {self.name} cannot be judged again."])

    def trial_prompt(self, role: Role) -> str:  # noqa: ARG002
        """The system prompt of a short trial request in an actor's role."""
        return "Answer in one word."

    def summarise(self, config: CoreConfig, turns: Sequence[Turn]) -> Metrics:
        """The metrics over the judged turns: every name of `metrics`, unknown ones null."""

    def closing_metrics(self, findings: Sequence[Mapping[str, Measure]]) -> Metrics:  # noqa: ARG002
        """The metrics that the findings of a closing verdict give; without any they are null."""
        return {}

    def falls_short(self, config: CoreConfig, turn: Turn) -> bool:  # noqa: ARG002
        """Whether people should notice at a glance that this reply is not what is hoped for."""
        return False

    def headline(self, metrics: Metrics) -> Sequence[str]:
        """What people are told of metrics, also stored ones, in one line, the primary one first."""
        value = metrics.get(self.primary_metric)
        return (f"{self.primary_metric} {'unknown' if value is None else value}",)
