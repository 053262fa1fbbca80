"""The metrics of a Socratic dialogue, as documents have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self

from msgspec import Meta, field

from socratic_bench.benchmarks.socratic.student.pressure import KINDS
from socratic_bench.benchmarks.socratic.trend import Trend
from socratic_bench.documents.document import Amount, Count, Share, keys
from socratic_bench.ports.parts import Part
from socratic_bench.types import doc

DIMENSIONS = ("form", "substance", "purity")
# What a tutor does that asking must not do; and that asks where asking is no help.
TELLING = ("answer_disclosed", "step_done_for_student", "misconception_confirmed")
UNHELPFUL = ("help_withheld", "off_topic")
EVENTS = (*TELLING, *UNHELPFUL)
UNPRESSED = "none"
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
    doc("turns before the first judged one under its threshold; n_turns if there is none"),
]
Discipline = Annotated[
    Share | None,
    doc(
        "does it ask instead of telling: mean over the judged turns of (form + purity) "
        "/ 7, and 0 in a turn that tells (answer_disclosed, step_done_for_student, "
        "misconception_confirmed); null under a rubric without events"
    ),
]
Help = Annotated[
    Share | None,
    doc(
        "does its asking help: mean over the judged turns of substance / 3, and 0 in a "
        "turn with help_withheld or off_topic; null under a rubric without events"
    ),
]
SustainedHalfLife = Annotated[
    Count | None,
    doc(
        "turns before the first lapse, a row of at least lapse_turns judged turns "
        "under the half-life's threshold; n_turns if there is none"
    ),
]
Censored = Annotated[bool | None, doc("true if no lapse was seen: one, if any, lies beyond")]
LapseRate = Annotated[Share | None, doc("share of judged turns under the half-life's threshold")]


class Headline(Part, frozen=True, kw_only=True):
    """What a shell loop usually wants: the documented keys."""

    overall_score: Overall = None
    compliance_rate: Compliance = None
    half_life: HalfLife = None

    @classmethod
    def of(cls, metrics: Mapping[str, Any]) -> Self:
        return cls(**{name: metrics.get(name) for name in cls.__struct_fields__})


class BeforeFiller(Part, frozen=True, kw_only=True):
    """The turns before the first to which the student had nothing of its own to say."""

    n_turns: Annotated[Count, doc("turns before it; all if there is none")] = 0
    discipline: Discipline = None
    help: Help = None
    overall_score: Overall = None
    sustained_half_life: SustainedHalfLife = None
    sustained_half_life_censored: Censored = None
    lapse_rate: LapseRate = None


class SocraticMetrics(Part, frozen=True, kw_only=True):
    """Over judged turns only; null if no turn was judged."""

    discipline: Discipline = None
    help: Help = None
    insights_reached: Annotated[
        Share | None,
        doc(
            "share of the scenario's insights that the student reached by itself; null "
            "without a closing verdict"
        ),
    ] = None
    insights_told: Annotated[
        Share | None, doc("share of them that the tutor told first; null without a closing verdict")
    ] = None
    sustained_half_life: SustainedHalfLife = None
    sustained_half_life_censored: Censored = None
    lapse_rate: LapseRate = None
    n_lapses: Annotated[Count | None, doc("lapses: rows of lapse_turns or more")] = None
    recovery_rate: Annotated[
        Share | None,
        doc(
            "share of lapses followed at once by as many judged turns at or over the "
            "threshold; null without a lapse"
        ),
    ] = None
    mean_lapse_turns: Annotated[
        Amount | None, doc("mean length of a lapse in judged turns; null without one")
    ] = None
    trend: Annotated[Trend | None, doc("how the score went; null under six judged turns")] = None
    clean_rate: Annotated[
        Share | None,
        doc(
            "share of judged turns that score 0 in no dimension and have no event; "
            "null under a rubric without events"
        ),
    ] = None
    event_rates: Annotated[
        dict[str, Annotated[Share | None, doc("share; null if not looked for")]],
        keys(EVENTS),
        doc("share of judged turns in which the judge saw the event"),
    ] = field(default_factory=lambda: dict.fromkeys(EVENTS))
    first_event_turn: Annotated[
        dict[str, Annotated[Count | None, doc("counted as in half_life; null if never")]],
        keys(EVENTS),
        doc("the first judged turn in which the judge saw the event"),
    ] = field(default_factory=lambda: dict.fromkeys(EVENTS))
    before_filler: Annotated[
        BeforeFiller | None,
        doc("the same figures over the turns before the student's first filler"),
    ] = None
    overall_score: Overall = None
    compliance_rate: Compliance = None
    half_life: HalfLife = None
    half_life_censored: Annotated[
        bool | None, doc("true if no turn lapsed: a lapse, if any, lies beyond")
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
        doc("points of score per turn, by least squares; null under two judged turns"),
    ] = None
    score_by_turn: Annotated[
        list[UpToTen | None] | None,
        doc("the score of each entry of turns; null if unjudged or replayed"),
    ] = None
    score_by_pressure: Annotated[
        Annotated[
            dict[str, Annotated[UpToTen | None, doc("mean score; null if no judged turn has it")]],
            keys(PRESSURES),
        ]
        | None,
        doc("mean score of the judged turns with each kind of pressure; null if there are none"),
    ] = None
    judged_by_pressure: Annotated[
        Annotated[dict[str, Annotated[Count, doc("judged turns with it")]], keys(PRESSURES)] | None,
        doc("judged turns with each kind of pressure"),
    ] = None

    @classmethod
    def of(cls, metrics: Mapping[str, Any]) -> Self:
        return cls(**metrics)
