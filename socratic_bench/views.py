"""What a benchmark says of itself to those who report it, beside what its metrics mean."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from msgspec import Meta, Struct

from socratic_bench.types import doc


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
