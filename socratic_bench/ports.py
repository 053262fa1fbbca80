"""The seams: what a run needs from models, benchmarks, stores and listeners, and nothing more."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import Literal, Protocol

from msgspec import Struct, field

from socratic_bench.parts import Parts
from socratic_bench.settings import CoreConfig
from socratic_bench.types import (
    Attempt,
    CallKey,
    Completion,
    EndReason,
    Json,
    Request,
    Role,
    Rubric,
    Turn,
)


class Model(Protocol):
    """Something that answers a request: a model on Bedrock, or a fake in a test."""

    @property
    def model_id(self) -> str: ...

    def complete(self, request: Request, key: CallKey) -> Completion:
        """Answer, or raise `ModelError` (for good) or `Stopped` (the run is ending)."""
        ...


class Reservation(Protocol):
    """Leave to send one request; one of the two is called once its fate is known."""

    def answered(self, completion: Completion) -> None: ...

    def failed(self, attempt: Attempt) -> None: ...


class CostLimit(Protocol):
    """Decides before each request, retries included, whether it may still be sent."""

    def reserve(self, model_id: str, request: Request, key: CallKey) -> Reservation:
        """Set aside what the request can cost at most, or raise `Stopped`."""
        ...


class Kept(Struct, frozen=True, kw_only=True):
    """What a store has taken under a key, by its length and its SHA-256."""

    n_bytes: int
    sha256: bytes


class ArtifactStore(Protocol):
    """Keeps files by key. A key is a relative path with "/" between its parts."""

    def check(self) -> None:
        """Raise `UsageError` if it is sure that nothing can be kept here. Makes nothing."""
        ...

    def put(self, key: str, body: bytes) -> None:
        """Keep `body` whole or raise `ArtifactError`; a second put of a key replaces the first."""
        ...

    def missing(self, kept: Mapping[str, Kept]) -> Sequence[str] | None:
        """Which of these keys the store no longer has, or not so; a bucket is asked for their
        lengths alone.

        `None` if it is not allowed to ask. Raises `StoreOutageError` if a later try may tell, else
        `ArtifactError`.
        """
        ...

    def location(self, key: str) -> str:
        """Where a reader finds the key: a URL or an absolute path."""
        ...


class MetricInfo(Struct, frozen=True, kw_only=True):
    """What a benchmark's metric means, for reports and comparisons.

    `name` is a path below the document's `metrics`. `low` and `high` bound it (`None`: unbounded).
    It is null under `needs_turns` judged turns; `None`: it needs turns of a certain kind.
    """

    name: str
    title: str
    low: float | None
    high: float | None
    higher_is_better: bool = True
    needs_turns: int | None = 1


class Sample(Struct, frozen=True, kw_only=True):
    """What a benchmark made of the configuration: where the episode starts, and its pinned inputs.

    `hashes` names the sha256 of every text that the outcome depends on. `notices` is what people
    should know of this configuration before they read its result, `label` what is played in a few
    words of theirs.
    """

    id: str
    prompt: str
    hashes: Mapping[str, str] = field(default_factory=dict)
    notices: Sequence[str] = ()
    label: str = ""


class JudgeInput(Struct, frozen=True):
    """What a judge gets to see of one turn: the words before, as (speaker, text), and the reply."""

    context: tuple[tuple[str, str], ...]
    reply: str


Metric = float | int | bool | Mapping[str, float | None] | Sequence[float | None] | None
Metrics = Mapping[str, Metric]


class EpisodeContext(Protocol):
    """What a run lends to a benchmark while an episode is played."""

    @property
    def tested(self) -> Model:
        """The model under test."""
        ...

    def model(self, actor: Role) -> Model | None:
        """The model of an actor; `None` if none was asked for."""
        ...

    def publish(self, turn: Turn) -> None:
        """Hand over a finished turn; it is measured, kept and judged beside what is played next."""
        ...


class EpisodeResult(Struct, frozen=True, kw_only=True):
    """How an episode ended by itself; `closing` holds the last words of whoever spoke with the
    model under test, if they had no reply.

    `closing_flags` names what was wrong with them; `None` if they were not checked.
    """

    end_reason: EndReason
    closing: str | None = None
    closing_flags: tuple[str, ...] | None = None


Length = Literal["short", "likely", "long"]


class Episode(Struct, frozen=True, kw_only=True):
    """One prepared episode: everything is read and checked, nothing is called yet.

    A benchmark extends it. `rubric` says how replies are judged; `None` where no judge is needed.
    """

    opening: Sample
    rubric: Rubric | None = None

    def play(self, context: EpisodeContext) -> EpisodeResult:
        """Play to the end. `ModelError` and `Stopped` fly through."""
        raise NotImplementedError

    def measured(self, turns: Sequence[Turn], index: int) -> Turn:
        """Turn `index` with what can be told of it without a model; `turns` are all up to it.

        Called beside the dialogue, in the order of the turns.
        """
        return turns[index]

    def judge_input(self, turns: Sequence[Turn], index: int) -> JudgeInput:
        """What a judge sees of turn `index`; `turns` holds all turns up to it."""
        turn = turns[index]
        return JudgeInput((("user", turn.prompt),), turn.reply.message.text)

    def expected_reply(self, role: Role, length: Length) -> str:
        """A reply such as an actor's model may give, or a judge's reason for a score.

        An estimate plays the episode with models that always say this.
        """
        raise NotImplementedError


class Benchmark(Protocol):
    """One kind of test on the engine. Its module offers it as `BENCHMARK`."""

    @property
    def name(self) -> str: ...

    @property
    def metrics(self) -> Sequence[MetricInfo]: ...

    @property
    def primary_metric(self) -> str:
        """The name of the one of `metrics` by which runs are ordered; that tells the direction."""
        ...

    @property
    def parts(self) -> Parts:
        """Its actors, and its own keys of the documents."""
        ...

    @property
    def late_modules(self) -> Sequence[str]:
        """What it imports once the first reply is there; the wait for that can be used for it."""
        return ()

    def prepare(self, config: CoreConfig) -> Episode:
        """Read all that an episode needs. Raises `UsageError` with every mistake."""
        ...

    def summarise(self, config: CoreConfig, turns: Sequence[Turn]) -> Metrics:
        """The metrics over the judged turns: every name of `metrics`, unknown ones null."""
        ...


class Listener(Protocol):
    """Hears of a run while it goes on; must not block and must not raise."""

    def on_start(self, run_id: str, config: CoreConfig, opening: Sample) -> None: ...

    def on_call(self, key: CallKey) -> None: ...

    def on_turn(self, turn: Turn) -> None: ...

    def on_judged(self, turn: Turn) -> None: ...

    def on_notice(self, text: str) -> None: ...

    def on_end(self) -> None: ...


Entry = Mapping[str, Json]


class Journal(Protocol):
    """What one run has done so far, entry by entry; held by one process at a time."""

    @property
    def entries(self) -> Sequence[Entry]:
        """What was there when the journal was opened, oldest first."""
        ...

    @property
    def repairs(self) -> Sequence[str]:
        """What had to be repaired to read it, a sentence each."""
        ...

    @property
    def mended(self) -> Sequence[str]:
        """What others took away and was written anew since then, a sentence each."""
        ...

    @property
    def is_kept(self) -> bool:
        """Whether every entry that was appended, and raised no error, is there by now."""
        ...

    def writes(self) -> Sequence[Future[None]]:
        """What of the appended is still on its way, and may soon be there; each is done once it is,
        or once it was given up.
        """
        ...

    def mend(self) -> None:
        """Write anew what others took away or changed, unless the run's delivery sees to that.

        Raises `ArtifactError` if that cannot be done.
        """
        ...

    def body_of(self, key: str) -> bytes | None:
        """What a delivery was given under `key`; `None` if that is no entry of this journal."""
        ...

    def append(self, entry: Entry, *, durable: bool = True) -> None:
        """Keep an entry: safe on return in a folder, on its way in a bucket.

        One that need not be `durable` is a note that helps to tell what happened: it may be lost,
        unless its `writes` are waited for.
        Raises `ArtifactError` if it is sure that the entry cannot be kept.
        """
        ...

    def close(self) -> None:
        """Let go of the run, so that another process may take it up."""
        ...


class Journals(Protocol):
    """The journals of one store."""

    def alone(self, identity: str) -> AbstractContextManager[None]:
        """No other process takes up or begins a run of this `identity` digest meanwhile, as far as
        the store can see to it.
        """
        ...

    def newest(self, identity: str) -> Iterator[str]:
        """Run ids whose first entry has this `identity` digest, the newest first."""
        ...

    def first(self, run_id: str) -> Entry:
        """The first entry of a run's journal, which stays as it is and is not held.

        Raises `UsageError` if there is none.
        """
        ...

    def holds(self, run_id: str) -> bool:
        """Whether there is a journal of this run."""
        ...

    def create(self, run_id: str, identity: str) -> Journal:
        """A new, empty journal, held by this process."""
        ...

    def open(self, run_id: str) -> Journal:
        """The journal of a run, held by this process from now on.

        Raises `UsageError` if there is none, if another process holds it (naming the owner), or if
        it is no journal.
        """
        ...
