"""The metrics of a Socratic dialogue: their keys and meanings, and how reports show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Self

from msgspec import Meta, Struct, field

from socratic_bench.benchmarks.socratic.lapses import Lapses, find_lapses
from socratic_bench.benchmarks.socratic.student.pressure import KINDS
from socratic_bench.benchmarks.socratic.trend import Trend
from socratic_bench.documents.document import Amount, Count, Share, keys
from socratic_bench.ports.parts import (
    Caveat,
    Exposure,
    MetricGroup,
    OutcomeList,
    Part,
    TurnKind,
    Views,
)
from socratic_bench.types import doc

DIMENSIONS = ("form", "substance", "purity")
# Events in which the tutor tells instead of asking, and in which its asking does not help.
TELLING = ("answer_disclosed", "step_done_for_student", "misconception_confirmed")
UNHELPFUL = ("help_withheld", "off_topic")
EVENTS = (*TELLING, *UNHELPFUL)
UNPRESSED = "none"
# Metrics that are told also with all unjudged turns as the worst and as the best ones.
BOUNDED = ("overall_score", "lapse_rate", "turns_held")
# The name of the last quarter of the turns, beside those of the heuristics.
LATE = "late"
PRESSURES = (UNPRESSED, *KINDS)

UpToThree = Annotated[float, Meta(ge=0, le=3)]
UpToFour = Annotated[float, Meta(ge=0, le=4)]
UpToTen = Annotated[float, Meta(ge=0, le=10)]

Overall = Annotated[Amount | None, doc("mean score of the judged turns, 0 to 10")]
Compliance = Annotated[
    Share | None, doc("share of judged turns at or over the compliance threshold")
]
HalfLife = Annotated[
    Count | None,
    doc("turns before the first judged one under the threshold; n_turns if there is none"),
]
Discipline = Annotated[
    Share | None,
    doc(
        "asking instead of telling: mean over judged turns of (form + purity) / 7, with 0 for a "
        "turn that tells (answer_disclosed, step_done_for_student, misconception_confirmed); null "
        "if the rubric has no events"
    ),
]
Usefulness = Annotated[
    Share | None,
    doc(
        "usefulness of its questions: mean over judged turns of substance / 3, with 0 for a turn "
        "with help_withheld or off_topic; null if the rubric has no events"
    ),
]
TurnsHeld = Annotated[
    Count | None,
    doc(
        "turns before the first lasting lapse: lapse_turns or more judged turns that fall short "
        "of a mark by as many points together, where a turn over it counts against them; the mark "
        "is half a point under the threshold of half_life. Without one, the turns before low turns "
        "at the end that may be its beginning, or n_turns"
    ),
]
Censored = Annotated[bool | None, doc("true if no lasting lapse happened in the run")]
Bounds = Annotated[
    dict[str, Annotated[Amount | None, doc("null if no turn was judged")]], keys(BOUNDED)
]
LapseRate = Annotated[Share | None, doc("share of judged turns under the threshold of half_life")]


class Headline(Part, frozen=True, kw_only=True):
    """The metrics at the top level of the document and in its short form."""

    overall_score: Overall = None
    compliance_rate: Compliance = None
    half_life: HalfLife = None

    @classmethod
    def of(cls, metrics: Mapping[str, Any]) -> Self:
        return cls(**{name: metrics.get(name) for name in cls.__struct_fields__})


class BeforeFiller(Part, frozen=True, kw_only=True):
    """The metrics over the turns before the scripted student's first filler."""

    n_turns: Annotated[Count, doc("number of these turns; all if there is no filler")] = 0
    discipline: Discipline = None
    usefulness: Usefulness = None
    overall_score: Overall = None
    turns_held: TurnsHeld = None
    turns_held_censored: Censored = None
    lapse_rate: LapseRate = None


class SocraticMetrics(Part, frozen=True, kw_only=True):
    """The metrics, over judged turns only; null if no turn was judged."""

    discipline: Discipline = None
    usefulness: Usefulness = None
    insights_reached: Annotated[
        Share | None,
        doc(
            "share of the scenario's insights that the student reached by itself; null "
            "without a closing verdict"
        ),
    ] = None
    insights_told: Annotated[
        Share | None,
        doc("share of insights that the tutor told first; null without a closing verdict"),
    ] = None
    turns_held: TurnsHeld = None
    turns_held_censored: Censored = None
    lapse_rate: LapseRate = None
    n_lapses: Annotated[Count | None, doc("number of lasting lapses")] = None
    recovery_rate: Annotated[
        Share | None,
        doc(
            "share of lasting lapses that end: lapse_turns or more judged turns exceed the mark by "
            "as many points as a lapse falls short of it; null without a lapse"
        ),
    ] = None
    mean_lapse_turns: Annotated[
        Amount | None, doc("mean length of lasting lapses in judged turns; null without one")
    ] = None
    trend: Annotated[
        Trend | None, doc("how the score changed; null with fewer than six judged turns")
    ] = None
    clean_rate: Annotated[
        Share | None,
        doc(
            "share of judged turns without a score of 0 and without an event; null if the rubric "
            "has no events"
        ),
    ] = None
    event_rates: Annotated[
        dict[str, Annotated[Share | None, doc("share; null if the rubric lacks it")]],
        keys(EVENTS),
        doc("share of judged turns in which the judge saw the event"),
    ] = field(default_factory=lambda: dict.fromkeys(EVENTS))
    first_event_turn: Annotated[
        dict[str, Annotated[Count | None, doc("index of the turn; null: never")]],
        keys(EVENTS),
        doc("the first judged turn in which the judge saw the event"),
    ] = field(default_factory=lambda: dict.fromkeys(EVENTS))
    before_filler: Annotated[
        BeforeFiller | None,
        doc("metrics over the turns before the scripted student's first filler"),
    ] = None
    overall_score: Overall = None
    compliance_rate: Compliance = None
    half_life: HalfLife = None
    half_life_censored: Annotated[
        bool | None, doc("true if no judged turn is under the threshold")
    ] = None
    mean_form: Annotated[UpToThree | None, doc("mean score, 0 to 3")] = None
    mean_substance: Annotated[UpToThree | None, doc("mean score, 0 to 3")] = None
    mean_purity: Annotated[UpToFour | None, doc("mean score, 0 to 4")] = None
    violation_rates: Annotated[
        dict[str, Annotated[Share | None, doc("share; null if no turn was judged")]],
        keys(DIMENSIONS),
        doc("share of judged turns that score 0, by dimension"),
    ] = field(default_factory=lambda: dict.fromkeys(DIMENSIONS))
    slope: Annotated[
        Annotated[float, Meta(ge=-10, le=10)] | None,
        doc("points per turn, by least squares; null with fewer than two judged turns"),
    ] = None
    unjudged_worst: Annotated[Bounds, doc("these metrics if each unjudged turn scored 0")] = field(
        default_factory=lambda: dict.fromkeys(BOUNDED)
    )
    unjudged_best: Annotated[Bounds, doc("these metrics if each unjudged turn scored 10")] = field(
        default_factory=lambda: dict.fromkeys(BOUNDED)
    )
    unjudged_differ_by: Annotated[
        list[str],
        doc(
            "heuristics by which unjudged turns are unlike the judged ones (Fisher's test, p at "
            "most .01), and late if they lie in the last quarter: then the metrics may be biased"
        ),
    ] = field(default_factory=list)
    score_by_turn: Annotated[
        list[UpToTen | None] | None, doc("score of each turn; null if unjudged or replayed")
    ] = None
    score_by_pressure: Annotated[
        Annotated[
            dict[
                str, Annotated[UpToTen | None, doc("mean score; null without such a judged turn")]
            ],
            keys(PRESSURES),
        ]
        | None,
        doc("mean score of the judged turns with each kind of pressure; null if there are none"),
    ] = None
    judged_by_pressure: Annotated[
        Annotated[dict[str, Annotated[Count, doc("number of judged turns")]], keys(PRESSURES)]
        | None,
        doc("judged turns with each kind of pressure"),
    ] = None

    @classmethod
    def of(cls, metrics: Mapping[str, Any]) -> Self:
        return cls(**metrics)


LAPSE, RECOVERY = "lapse", "recovery"


class _Judged(Struct, frozen=True):
    """A judged turn: its place among those played, the kind of pressure, and how many points its
    score is under the threshold.
    """

    place: int
    kind: str
    points: float


def exposures(document: Mapping[str, Any]) -> dict[str, Exposure]:
    """The turns of a run in which a lasting lapse could begin, and those in which the tutor could
    recover from the first one, over the same turns as the time `turns_held`.

    Turns are at risk up to the one in which the event begins, and, if it is not seen, up to those
    last turns that may be its beginning. Empty if nothing was judged.
    """
    thresholds = document.get("thresholds")
    judged = _read_judged(document, thresholds["half_life"]) if thresholds else []
    if not thresholds or not judged:
        return {}
    changes = find_lapses([turn.points for turn in judged], thresholds["lapse_turns"])
    exposures_by_event = {LAPSE: _exposure(judged, changes, 0)}
    if changes.starts:
        exposures_by_event[RECOVERY] = _exposure(judged, changes, 1)
    return exposures_by_event


def _read_judged(document: Mapping[str, Any], threshold: float) -> list[_Judged]:
    played = [turn for turn in document["turns"] if not turn.get("replayed")]
    return [
        _Judged(place, turn.get("pressure") or UNPRESSED, threshold - turn["score"])
        for place, turn in enumerate(played)
        if turn["score"] is not None
    ]


def _exposure(judged: Sequence[_Judged], changes: Lapses, n: int) -> Exposure:
    """The turns at risk of the change number `n`, from the end of the one before it."""
    event = changes.time_until(n, [turn.place for turn in judged], judged[-1].place + 1)
    begin = changes.ends[n - 1] + 1 if n else 0
    at_risk = [turn for turn in judged[begin:] if turn.place < event.at + event.is_event]
    return Exposure(
        turns=[turn.place for turn in at_risk],
        kinds=[turn.kind for turn in at_risk],
        is_event=event.is_event,
    )


VIEWS = Views(
    endurance="turns_held",
    endures="keeps asking instead of telling",
    breaks="lasting lapse",
    event_turns="thresholds.lapse_turns",
    axes=("discipline", "usefulness"),
    said="student",
    threshold="thresholds.half_life",
    unlike="metrics.unjudged_differ_by",
    fails_at=0,
    sample="scenario",
    prompt="opening",
    exposures=exposures,
    mean_scores={
        "overall_score": "overall_score",
        **{f"mean_{dimension}": dimension for dimension in DIMENSIONS},
    },
    kinds=(TurnKind(key="pressure", title="Pressure by the student", none="no pressure"),),
    groups=(
        MetricGroup(
            title="Mean by dimension", metrics=[f"mean_{dimension}" for dimension in DIMENSIONS]
        ),
        MetricGroup(
            title="Violations by dimension",
            metrics=[f"violation_rates.{dimension}" for dimension in DIMENSIONS],
        ),
        MetricGroup(
            title="Lapses and recovery",
            metrics=("lapse_rate", "n_lapses", "mean_lapse_turns", "recovery_rate", "half_life"),
        ),
    ),
    events=EVENTS,
    findings=(
        OutcomeList(
            key="insights",
            title="Insights",
            text="insight",
            outcome="outcome",
            outcomes=("reached", "told", "missed"),
        ),
    ),
    facts=(
        Caveat(title="Student", path="student.mode"),
        Caveat(title="Student model", path="student.model"),
        Caveat(title="Pressure", path="student.pressure"),
        Caveat(title="Lapse threshold", path="thresholds.half_life", unit="points"),
        Caveat(title="Lasting lapse", path="thresholds.lapse_turns", unit="turns or more"),
        Caveat(
            title="Filler turns of the scripted student", path="student.filler_turns", is_share=True
        ),
    ),
)
