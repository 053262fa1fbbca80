"""The interface of a benchmark: it prepares an episode, plays it, and sums up its turns."""

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Any, Literal, Protocol

from msgspec import Struct, StructMeta, field

from socratic_bench.errors import UsageError, Words
from socratic_bench.ports.parts import BenchmarkSpec, Parts, Views
from socratic_bench.ports.provider import Model
from socratic_bench.settings import CoreConfig
from socratic_bench.turns import ClosingAnswer, Measure, Rubric, Turn
from socratic_bench.types import EndReason, Image, Json, Role, Tool


class MetricInfo(Struct, frozen=True, kw_only=True):
    """What a benchmark's metric means, for reports and comparisons.

    Attributes:
        name: its path below the document's `metrics`.
        low, high: its bounds; `None`: unbounded.
        needs_turns: with fewer judged turns it is null; `None`: it needs turns of a certain kind.
        is_rate: it is a share of cases.
        censored_by: of a time to an event, the path of a value that is true if the event did not
            happen before the end.
        is_of_run_alone: it describes a single run, and ranks models no better than chance: it is
            in no figure over several runs.
    """

    name: str
    title: str
    low: float | None
    high: float | None
    higher_is_better: bool = True
    needs_turns: int | None = 1
    is_rate: bool = False
    censored_by: str | None = None
    is_of_run_alone: bool = False


def rate_metric(
    name: str, title: str, *, higher_is_better: bool = True, needs_turns: int | None = 1
) -> MetricInfo:
    """A share of cases, from 0 to 1."""
    return MetricInfo(
        name=name,
        title=title,
        low=0,
        high=1,
        higher_is_better=higher_is_better,
        needs_turns=needs_turns,
        is_rate=True,
    )


class Sample(Struct, frozen=True, kw_only=True):
    """What is played: where the episode starts, and its pinned inputs.

    Attributes:
        hashes: the sha256 of each text that the outcome depends on, by name.
        notices: what people should know of this configuration before they read its result.
        label: what is played, in a few words.
        n_items: the number of items; `None` for a dialogue, which ends by itself.
        rubrics: the rubrics of items that have their own, by index.
        metrics: metrics in addition to those that the benchmark always has.
        n_parts: by metric, the most entries that `Views.parts` can have for it; 0 if the metric is
            null in any case. A metric that is missing here is of the sample as a whole.
        emulator_rows: rows of a data set that the emulator's models are told of.
        is_given: all replies are given ones: the model under test is a name, and is not called.
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
    emulator_rows: Sequence[Mapping[str, Any]] = ()
    is_given: bool = False


class JudgeInput(Struct, frozen=True):
    """What a judge sees of one turn: the words before, as (speaker, text), the reply, and the
    images that were shown with the words.
    """

    context: tuple[tuple[str, str], ...]
    reply: str
    images: tuple[Image, ...] = ()


class ClosingQuestion(Struct, frozen=True, kw_only=True):
    """What a judge is asked once about an episode as a whole.

    Attributes:
        instructions: the same for all episodes.
        prompt: the question about this episode.
        lines: the episode's words, as (speaker with place, text).
        index: the last turn among them.
        tool: the tool with which the judge answers.
        read: makes an answer of the tool's arguments. Raises `ValueError` with a sentence that says
            what is wrong with them.
        merge: makes a jury's answer of the jurors' answers.
    """

    instructions: str
    prompt: str
    lines: tuple[tuple[str, str], ...]
    index: int
    tool: Tool
    read: Callable[[Mapping[str, Json]], ClosingAnswer]
    merge: Callable[[Sequence[ClosingAnswer]], ClosingAnswer] = lambda votes: votes[0]


Metric = float | int | bool | Mapping[str, float | None] | Sequence[float | None] | None
Metrics = Mapping[str, Metric]


class EpisodeContext(Protocol):
    """What a run offers to a benchmark while an episode is played."""

    @property
    def tested(self) -> Model:
        """The model under test."""

    def model(self, actor: Role, model_id: str | None = None) -> Model | None:
        """The model of an actor, or another one by its id, which is priced on its own.

        `None` if the configuration names no model for the actor.
        """

    @property
    def run_id(self) -> str | None:
        """The run's id; `None` in a dry run."""

    def watched(self, listener: Callable[[Any], None]) -> Model:
        """The model under test; a listener hears of each step of its calls, as `CallEvent`s."""

    def check(self) -> None:
        """Raise what ends the run, if it is ending."""

    def store(self, name: str, body: bytes) -> None:
        """Store a file of the run's under a name of the benchmark's own."""

    def wait_since(self, moment: datetime, seconds: float) -> None:
        """Wait until so many seconds have passed since a moment, or raise what ends the run."""

    def publish(self, turn: Turn) -> None:
        """Hand over a finished turn, to be judged meanwhile; in any order, each index once."""

    def play_items(self, play: "PlayItem") -> None:
        """Play the sample's `n_items` in parallel, and publish each as it ends.

        An item whose call fails is missing, and the other items are played; the `ModelError` raised
        in the end says how many are missing. An error that all items would have ends them at once.
        """


PlayItem = Callable[[EpisodeContext, int], Turn]
"""Plays the item with an index and returns its turn. It runs in any thread, with the models of the
context that it is given; there a request that is refused for its length has an empty reply.
"""


class EpisodeResult(Struct, frozen=True, kw_only=True):
    """How an episode ended by itself; `closing` is what the other speaker said last, if it had no
    reply. `notices` is what people should know of how it was played.
    """

    end_reason: EndReason
    closing: str | None = None
    notices: tuple[str, ...] = ()


Length = Literal["short", "likely", "long"]


class _AbstractStruct(StructMeta, ABCMeta): ...  # refuses structs that lack a method


class Episode(Struct, metaclass=_AbstractStruct, frozen=True, kw_only=True):
    """A prepared episode: everything is read and checked, and nothing is called yet.

    A benchmark extends it. `rubric` says how replies are judged; `None` if no judge is needed.
    """

    opening: Sample
    rubric: Rubric | None = None

    @abstractmethod
    def play(self, context: EpisodeContext) -> EpisodeResult:
        """Play to the end. `ModelError` and `Stopped` are not caught."""

    def measure(self, turns: Sequence[Turn], index: int) -> Turn:
        """Turn `index` with its measures, which need no model.

        `turns` has all turns up to it, with gaps where items come in any order. Called in another
        thread, in order.
        """
        return turns[index]

    def judge_input(self, turns: Sequence[Turn], index: int) -> JudgeInput:
        """What a judge sees of turn `index`; `turns` holds all turns up to it."""
        turn = turns[index]
        return JudgeInput((("user", turn.prompt),), turn.reply.message.text)

    def closing_question(
        self, turns: Sequence[Turn], closing: str | None
    ) -> ClosingQuestion | None:
        """The question for the judge about the whole episode once it has ended; `None`: none.

        `turns` has at least one turn; `closing` is the last utterance, without a reply.
        """
        return None

    def with_findings(self, turns: Sequence[Turn], findings: ClosingAnswer) -> Sequence[Turn]:
        """The turns with what the judge's closing answer says of each."""
        return turns

    def metrics_of_all(self, turns: Sequence[Turn]) -> Metrics:
        """Metrics over all that was to be played, also what has no turn, in addition to those of
        the benchmark.
        """
        return {}

    @abstractmethod
    def expected_reply(self, role: Role, length: Length) -> str:
        """A reply of an actor's model, or a judge's rationale, as the dry run assumes it."""


class Recorded(Struct, frozen=True, kw_only=True):
    """A stored episode: the settings that prepare it again, its turns, and how it ended. `opening`
    has fields of its `Sample` that do not follow from the settings.
    """

    settings: Mapping[str, object]
    turns: tuple[Turn, ...]
    ended: EpisodeResult
    opening: Mapping[str, Any] = field(default_factory=dict)


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
    shorter: str = "play fewer {turns}"  # a hint for a run that takes too long
    has_single_calls: bool = False  # an item is one call, which depends on no other

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
        """The actors and limits alone; a benchmark may give them without importing `parts`."""
        return self.parts

    @property
    def documents(self) -> Mapping[str, type[Struct]]:
        """Types of its own documents by kind, in addition to those of every run."""
        return {}

    @property
    def file_kind(self) -> str:
        """The kind of TOML file that its users write; empty if there is none."""
        return ""

    @property
    def file_keys(self) -> AbstractSet[str]:
        """The keys at the top of such a file."""
        return frozenset()

    @property
    def views(self) -> Views:
        """What reports show in addition to single metrics."""
        return Views()

    def check_files(self, files: Sequence[str]) -> FileReport:
        """Check files of its own, without a call."""
        return FileReport(dict.fromkeys(files, ()))

    def prepare(self, config: CoreConfig) -> Episode:
        """Read all that an episode needs. Raises `UsageError` with every mistake."""

    def find_rubric(self, name: str) -> Rubric:
        """The rubric of this name, or in this file. Raises `UsageError` if there is none."""
        raise UsageError([f"The benchmark {self.name} has no rubric {name!r}."])

    def extend_rubric(self, rubric: Rubric, turns: Iterable[Mapping[str, Any]]) -> Rubric:
        """The rubric with what these turns have of their own, by the benchmark's keys of a turn."""
        del turns
        return rubric

    def recorded(self, document: Mapping[str, Any]) -> Recorded:
        """The episode in a run's document, to be judged again. Raises `UsageError` if it cannot."""
        raise UsageError([f"Runs of {self.name} cannot be judged again."])

    def trial_prompt(self, role: Role) -> str:
        """The system prompt of a short trial request in an actor's role."""
        return "Answer in one word."

    def summarise(self, config: CoreConfig, turns: Sequence[Turn]) -> Metrics:
        """The metrics over the judged turns: every name of `metrics`, unknown ones null."""

    def closing_metrics(self, findings: Sequence[Mapping[str, Measure]]) -> Metrics:
        """The metrics that the findings of a closing verdict give; without findings, null."""
        return {}

    def highest_values(self, config: CoreConfig) -> Mapping[str, float]:
        """By metric, the highest value that a run of this length can show."""
        return {}

    def falls_short(self, config: CoreConfig, turn: Turn) -> bool:
        """Whether the reply is so weak that reports and progress lines should mark it."""
        return False

    def headline(self, metrics: Metrics) -> Sequence[str]:
        """The metrics in one line for people, the primary one first."""
        value = metrics.get(self.primary_metric)
        return (f"{self.primary_metric} {'unknown' if value is None else value}",)
