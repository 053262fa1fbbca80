"""The interfaces between a run and its models, benchmarks and listeners."""

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Literal, Protocol

from msgspec import Struct, StructMeta, field

from socratic_bench.parts import Parts
from socratic_bench.settings import CoreConfig
from socratic_bench.turns import Measure, Rubric, Turn
from socratic_bench.types import (
    Attempt,
    CallKey,
    Completion,
    EndReason,
    Json,
    Request,
    Role,
    Tool,
)


class Model(Protocol):
    """Something that answers a request: a model on Bedrock, or a fake in a test."""

    @property
    def model_id(self) -> str: ...

    def complete(self, request: Request, key: CallKey) -> Completion:
        """Answer, or raise `ModelError` (for good) or `Stopped` (the run is ending)."""
        ...


class Reservation(Protocol):
    """Permission to send one request; one of its methods is called once the outcome is known."""

    def answered(self, completion: Completion) -> None: ...

    def failed(self, attempt: Attempt) -> None: ...


class CostLimit(Protocol):
    """Decides before each request, retries included, whether it may still be sent. It listens to
    the calls of its run.
    """

    def reserve(self, model_id: str, request: Request, key: CallKey) -> Reservation:
        """Reserve what the request can cost at most, or raise `Stopped`."""
        ...


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
    """What a benchmark made of the configuration: where the episode starts, and its pinned inputs.

    `hashes` names the sha256 of every text that the outcome depends on. `notices` is what people
    should know of this configuration before they read its result, `label` what is played in a few
    words of theirs.

    What is known only once items are read: `n_items`, how many there are, `None` in a dialogue,
    which ends by itself; `rubrics` of those that have their own, by index; and `metrics` beside
    those that the benchmark always has.
    """

    id: str
    prompt: str
    hashes: Mapping[str, str] = field(default_factory=dict)
    notices: Sequence[str] = ()
    label: str = ""
    n_items: int | None = None
    rubrics: Mapping[int, Rubric] = field(default_factory=dict)
    metrics: Sequence[MetricInfo] = ()


class JudgeInput(Struct, frozen=True):
    """What a judge gets to see of one turn: the words before, as (speaker, text), and the reply."""

    context: tuple[tuple[str, str], ...]
    reply: str


class ClosingQuestion(Struct, frozen=True, kw_only=True):
    """What a judge is asked once, of an episode as a whole.

    `instructions` are the same for all episodes, `asked` is what is asked of this one. `lines` are
    its words, as (speaker with place, text), and `index` is of the last turn that is among them.
    `read` makes findings of the arguments with which the judge calls `tool`; it raises `ValueError`
    that says, in a sentence, what is wrong with them.
    """

    instructions: str
    asked: str
    lines: tuple[tuple[str, str], ...]
    index: int
    tool: Tool
    read: Callable[[Mapping[str, Json]], tuple[Mapping[str, Measure], ...]]


Metric = float | int | bool | Mapping[str, float | None] | Sequence[float | None] | None
Metrics = Mapping[str, Metric]


class EpisodeContext(Protocol):
    """What a benchmark can use of a run while an episode is played."""

    @property
    def tested(self) -> Model:
        """The model under test."""
        ...

    def model(self, actor: Role, model_id: str | None = None) -> Model | None:
        """The model of an actor; `None` if none was asked for. An actor may ask another one, by its
        id, too: what that costs is reckoned by its own price.
        """
        ...

    def publish(self, turn: Turn) -> None:
        """Hand over a finished turn, in any order, each index once; it is judged meanwhile."""
        ...

    def play_items(self, play: "PlayItem") -> None:
        """Play the sample's `n_items`, many at once, and publish each as it ends.

        An item whose call fails for the infrastructure is missing: the others are played, and the
        `ModelError` that this raises in the end says how many are. What would befall all others,
        too, ends them at once.
        """
        ...


PlayItem = Callable[[EpisodeContext, int], Turn]
"""Plays the item of an index to its turn, in any thread, with the models of the context given to
it: a request that is refused for its length has a reply without words there.
"""


class EpisodeResult(Struct, frozen=True, kw_only=True):
    """How an episode ended by itself; `closing` is what the other speaker said last, if it had no
    reply.

    `closing_flags` names what was wrong with them; `None` if they were not checked. `notices` is
    what people should know of how it was played.
    """

    end_reason: EndReason
    closing: str | None = None
    closing_flags: tuple[str, ...] | None = None
    notices: tuple[str, ...] = ()


Length = Literal["short", "likely", "long"]


class _AbstractStruct(StructMeta, ABCMeta):
    """Of structs that lack methods: none of them is made."""


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
        """Turn `index` with what can be told of it without a model; `turns` are all up to it.

        Called in another thread, in the order of the turns.
        Where items come in any order, `turns` has gaps.
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

        `turns` are all of it, at least one of them played, and `closing` is what the other speaker
        said last, without a reply.
        """
        return None

    @abstractmethod
    def expected_reply(self, role: Role, length: Length) -> str:
        """A reply such as an actor's model may give, or a judge's reason for a score.

        An estimate plays the episode with models that always say this.
        """


class FileReport(Struct, frozen=True):
    """What is wrong with files of a benchmark's own: by file, and with several of them together."""

    problems: Mapping[str, Sequence[str]]
    together: Sequence[str] = ()


class Benchmark(Protocol):
    """A kind of test, its module's `BENCHMARK`. Runs are compared by `compared_metrics` if what is
    at the paths `conditions` is alike; `late_modules` are imported beside the first reply.
    """

    compared_metrics: Sequence[str] = ()
    conditions: Sequence[str] = ()
    late_modules: Sequence[str] = ()

    @property
    def name(self) -> str: ...

    @property
    def metrics(self) -> Sequence[MetricInfo]: ...

    @property
    def primary_metric(self) -> str:
        """The name of the metric by which runs are ordered; its `higher_is_better` says how."""
        ...

    @property
    def parts(self) -> Parts:
        """Its actors, and its own keys of the documents."""
        ...

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

    def check_files(self, files: Sequence[str]) -> FileReport:
        """What is wrong with such files, found without a call."""
        return FileReport(dict.fromkeys(files, ()))

    def prepare(self, config: CoreConfig) -> Episode:
        """Read all that an episode needs. Raises `UsageError` with every mistake."""
        ...

    def trial_prompt(self, role: Role) -> str:  # noqa: ARG002
        """The system prompt of a short request in an actor's role, which shows that its model can
        be called.
        """
        return "Answer in one word."

    def summarise(self, config: CoreConfig, turns: Sequence[Turn]) -> Metrics:
        """The metrics over the judged turns: every name of `metrics`, unknown ones null."""
        ...

    def closing_metrics(self, findings: Sequence[Mapping[str, Measure]]) -> Metrics:  # noqa: ARG002
        """The metrics that the findings of a closing verdict give; without any they are null."""
        return {}

    def falls_short(self, config: CoreConfig, turn: Turn) -> bool:  # noqa: ARG002
        """Whether people should notice at a glance that this reply is not what is hoped for."""
        return False

    def headline(self, metrics: Metrics) -> Sequence[str]:
        """What people are told of the metrics in one line, the primary one first."""
        value = metrics.get(self.primary_metric)
        return (f"{self.primary_metric} {'unknown' if value is None else value}",)
