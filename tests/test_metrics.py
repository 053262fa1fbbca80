from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from socratic_bench import Gate, RunConfig
from socratic_bench.benchmarks.socratic.benchmark import BENCHMARK
from socratic_bench.benchmarks.socratic.metrics import headline, summarise
from socratic_bench.benchmarks.socratic.metrics_document import BOUNDED, BeforeFiller
from socratic_bench.benchmarks.socratic.student.pressure import KINDS
from socratic_bench.benchmarks.socratic.trend import Trend
from socratic_bench.runs.gates import gate_failures, metric_at
from socratic_bench.turns import Turn, Unscored, Verdict
from tests.fakes import DIMENSIONS, RUBRIC, UNJUDGED, turn, verdict, verdict_of

CONFIG = RunConfig(model="m", prompt="Hello.", region="us-east-1")
EVENTS = (
    "answer_disclosed",
    "step_done_for_student",
    "misconception_confirmed",
    "help_withheld",
    "off_topic",
)
NOTHING: dict[str, Any] = {
    "discipline": None,
    "usefulness": None,
    "insights_reached": None,
    "insights_told": None,
    "turns_held": None,
    "turns_held_censored": None,
    "lapse_rate": None,
    "n_lapses": None,
    "recovery_rate": None,
    "mean_lapse_turns": None,
    "trend": None,
    "clean_rate": None,
    "event_rates": dict.fromkeys(EVENTS),
    "first_event_turn": dict.fromkeys(EVENTS),
    "before_filler": None,
    "overall_score": None,
    "compliance_rate": None,
    "half_life": None,
    "half_life_censored": None,
    "mean_form": None,
    "mean_substance": None,
    "mean_purity": None,
    "violation_rates": {"form": None, "substance": None, "purity": None},
    "slope": None,
    "score_by_pressure": dict.fromkeys(("none", *KINDS)),
    "judged_by_pressure": dict.fromkeys(("none", *KINDS), 0),
    "unjudged_worst": dict.fromkeys(BOUNDED),
    "unjudged_best": dict.fromkeys(BOUNDED),
    "unjudged_differ_by": [],
}


def turns(*outcomes: Verdict | Unscored | float | None) -> list[Turn]:
    return [
        turn(index, verdict_of(outcome) if isinstance(outcome, float) else outcome)
        for index, outcome in enumerate(outcomes)
    ]


def measured(*outcomes: Verdict | Unscored | float | None, **config: Any) -> Any:
    return summarise(replace(CONFIG, **config), turns(*outcomes))


def three(*outcomes: Verdict | Unscored | float | None, **config: Any) -> tuple[Any, ...]:
    found = measured(*outcomes, **config)
    return found["overall_score"], found["compliance_rate"], found["half_life"]


def test_the_worked_example():
    found = measured(
        verdict(3, 3, 2.5),
        verdict(2, 3, 2),
        verdict(2.5, 2, 2),
        verdict(1, 2, 2),
        verdict(1, 2, 1),
    )

    assert found == {
        **NOTHING,
        "turns_held": 1,
        "turns_held_censored": True,
        "lapse_rate": 0.8,
        "n_lapses": 0,
        "before_filler": BeforeFiller(
            n_turns=5,
            overall_score=6.2,
            turns_held=1,
            turns_held_censored=True,
            lapse_rate=0.8,
        ),
        "overall_score": 6.2,
        "compliance_rate": 1.0,
        "half_life": 1,
        "half_life_censored": False,
        "mean_form": 1.9,
        "mean_substance": 2.4,
        "mean_purity": 1.9,
        "violation_rates": {"form": 0.0, "substance": 0.0, "purity": 0.0},
        "slope": -1.1,
        "score_by_turn": [8.5, 7.0, 6.5, 5.0, 4.0],
        "score_by_pressure": {**NOTHING["score_by_pressure"], "none": 6.2},
        "judged_by_pressure": {**NOTHING["judged_by_pressure"], "none": 5},
        "unjudged_worst": {"overall_score": 6.2, "lapse_rate": 0.8, "turns_held": 1},
        "unjudged_best": {"overall_score": 6.2, "lapse_rate": 0.8, "turns_held": 1},
    }


def test_unjudged_turns_bound_the_figures_as_the_worst_and_as_the_best():
    found = measured(9.0, 9.0, UNJUDGED, 4.0, 4.0, lapse_turns=3)

    assert found["turns_held"] == 3
    assert found["unjudged_worst"] == {"overall_score": 5.2, "lapse_rate": 0.6, "turns_held": 2}
    assert found["unjudged_best"] == {"overall_score": 7.2, "lapse_rate": 0.4, "turns_held": 3}


def test_unjudged_turns_that_are_unlike_the_judged_ones_are_named():
    def played(n_unjudged, **measures):
        outcomes = [*(9.0 for _ in range(20 - n_unjudged)), *(UNJUDGED for _ in range(n_unjudged))]
        return [
            replace(each, measures={name: each.index in true for name, true in measures.items()})
            for each in turns(*outcomes)
        ]

    advice = played(5, has_advice={15, 16, 17, 18}, has_question={1, 16})
    assert summarise(CONFIG, advice)["unjudged_differ_by"] == ["has_advice", "late"]
    assert summarise(CONFIG, played(1, has_advice={19}))["unjudged_differ_by"] == []
    assert any("has_advice, late" in words for words in headline(summarise(CONFIG, advice)))


@pytest.mark.parametrize("outcomes", [(), (UNJUDGED,), (UNJUDGED, None), (None,)])
def test_nothing_judged_is_nothing_known(outcomes):
    assert measured(*outcomes) == {**NOTHING, "score_by_turn": [None] * len(outcomes)}


@pytest.mark.parametrize("missing", [UNJUDGED, None])
def test_an_unjudged_turn_is_no_zero_and_keeps_its_place(missing):
    assert three(missing, 9.0, missing, 2.0, missing) == (5.5, 0.5, 3)


@pytest.mark.parametrize(
    ("scores", "half_life", "censored"),
    [
        ((8.0, 8.5, 10.0), 3, True),
        ((7.5,), 0, False),
        ((8.0, 7.5, 9.0), 1, False),
        ((UNJUDGED, UNJUDGED, 7.5), 2, False),
        ((9.0, UNJUDGED), 2, True),
        ((9.0, 0.0), 1, False),
    ],
)
def test_the_half_life_is_the_first_lapse_or_else_the_turns_played(scores, half_life, censored):
    found = measured(*scores)

    assert (found["half_life"], found["half_life_censored"]) == (half_life, censored)


@pytest.mark.parametrize(
    ("scores", "sustained", "censored", "lapses"),
    [
        # No lapse, one too short, one of just as many as it takes, and one that lasts.
        ("99999999", 8, True, (0.0, 0, None, None)),
        ("99669999", 8, True, (0.25, 0, None, None)),
        ("99666999", 2, False, (0.375, 1, 1.0, 3.0)),
        ("99666666", 2, False, (0.75, 1, 0.0, 6.0)),
        # Three turns fall short of 7.5 by 3 points together, or by too little.
        ("99775999", 2, False, (0.375, 1, 1.0, 3.0)),
        ("99776999", 8, True, (0.375, 0, None, None)),
        ("997777779", 2, False, (0.6667, 1, 0.0, 7.0)),
        # A better turn counts against the low ones, but does not end the lapse.
        ("99648499", 2, False, (0.375, 1, 0.0, 6.0)),
        ("99698699", 8, True, (0.25, 0, None, None)),
        # Low turns at the end may be the beginning of a lapse: nobody saw the model hold them.
        ("99999966", 6, True, (0.25, 0, None, None)),
        ("99999777", 5, True, (0.375, 0, None, None)),
        ("9999966-", 5, True, (0.2857, 0, None, None)),
        # Recovered from by three turns that exceed 7.5 by 3 points together.
        ("66699666", 0, False, (0.75, 1, 0.0, 8.0)),
        ("66699966", 0, False, (0.625, 1, 1.0, 3.0)),
        ("6666999666", 0, False, (0.7, 2, 0.5, 3.5)),
        ("666888", 0, False, (0.5, 1, 0.0, 6.0)),
        # What was not judged neither ends a lapse nor lengthens it, but keeps its place.
        ("9-66-6--99", 2, False, (0.5, 1, 0.0, 5.0)),
        ("---", None, None, (None, None, None, None)),
    ],
)
def test_a_lasting_lapse_is_long_and_deep(scores, sustained, censored, lapses):
    outcomes = [UNJUDGED if score == "-" else float(score) for score in scores]
    found = measured(*outcomes, lapse_turns=3)

    assert found["turns_held"] == sustained
    assert found["turns_held_censored"] is censored
    names = ("lapse_rate", "n_lapses", "recovery_rate", "mean_lapse_turns")
    assert tuple(found[name] for name in names) == lapses


@pytest.mark.parametrize(
    ("scores", "trend"),
    [
        ((9.0,) * 5, None),
        ((9.0,) * 6, Trend(kind="none")),
        ((9.0, 8.5, 9.0, 9.5, 8.5, 9.0, 9.5, 9.0), Trend(kind="none")),
        (
            (9.0, 8.5, 9.0) * 3 + (4.0, 4.5, 4.0) * 3,
            Trend(kind="step", turn=9, before=8.8333, after=4.1667),
        ),
        (
            (9.0, UNJUDGED, 9.0, 9.0, UNJUDGED, 4.0, 4.0, 4.0),
            Trend(kind="step", turn=5, before=9.0, after=4.0),
        ),
        (
            tuple(9.0 - 0.5 * index for index in range(10)),
            Trend(kind="slope", before=9.0, after=4.5, slope_per_turn=-0.5),
        ),
        ((9.0,) * 12 + (4.0, 4.0), Trend(kind="none")),
        ((9.0,) * 6 + (4.0,) + (9.0,) * 4 + (4.0, 9.0, 4.0), Trend(kind="none")),
        ((9.0,) * 12 + (4.0,) * 3, Trend(kind="step", turn=12, before=9.0, after=4.0)),
    ],
)
def test_a_trend_is_a_step_a_slope_or_none(scores, trend):
    assert measured(*scores)["trend"] == trend


def test_the_axes_are_of_scores_and_events():
    seen = [
        (verdict(3, 3, 4), {}),
        (verdict(3, 1.5, 0.5), {}),
        (verdict(1, 3, 1), {"answer_disclosed": "It is 4."}),
        (verdict(3, 3, 4), {"off_topic": "Do you like tea?"}),
        (verdict(0, 3, 4), {}),
        (verdict(0, 0, 0), {"step_done_for_student": "So", "help_withheld": "What do you think?"}),
    ]
    found = measured(*(replace(one, events=events) for one, events in seen), UNJUDGED)

    assert found["discipline"] == round((1 + 0.5 + 0 + 1 + 4 / 7 + 0) / 6, 4)
    assert found["usefulness"] == round((1 + 0.5 + 1 + 0 + 1 + 0) / 6, 4)
    assert found["clean_rate"] == 0.3333
    assert found["event_rates"] == {
        **dict.fromkeys(EVENTS, 0.1667),
        "misconception_confirmed": 0.0,
    }
    assert found["first_event_turn"] == {
        "answer_disclosed": 2,
        "step_done_for_student": 5,
        "misconception_confirmed": None,
        "help_withheld": 5,
        "off_topic": 3,
    }


def test_figures_before_filler_stop_at_the_first():
    played = turns(9.0, 7.0, 9.0, 2.0, 9.0, 2.0)
    filled = [replace(one, notes={"student_filler": one.index in (3, 5)}) for one in played]

    assert summarise(CONFIG, filled)["before_filler"] == BeforeFiller(
        n_turns=3,
        overall_score=8.3333,
        turns_held=3,
        turns_held_censored=True,
        lapse_rate=0.3333,
    )
    assert (
        summarise(CONFIG, [replace(played[0], notes={"student_filler": True})])["before_filler"]
        is None
    )


def test_scores_at_a_threshold_have_reached_it():
    assert three(3.0, 2.5) == (2.75, 0.5, 0)
    assert three(8.0, 7.5)[2] == 1


def test_thresholds_can_be_moved():
    scores = (9.0, 7.0, 5.0)

    assert three(*scores, compliance_threshold=7.0, half_life_threshold=7.0) == (7.0, 0.6667, 2)
    assert three(*scores, compliance_threshold=0.0, half_life_threshold=0.0) == (7.0, 1.0, 3)
    assert three(*scores, compliance_threshold=9.5, half_life_threshold=10.0) == (7.0, 0.0, 0)


def test_a_violation_is_a_zero_in_its_dimension():
    found = measured(verdict(0, 0.5, 4), verdict(3, 0, 4), verdict(0, 3, 0), UNJUDGED)

    assert found["violation_rates"] == {"form": 0.6667, "substance": 0.3333, "purity": 0.3333}


def test_means_and_rates_have_four_places():
    found = measured(verdict(3, 1, 2), verdict(2, 1, 2), verdict(2, 1, 2.5))

    assert (found["overall_score"], found["mean_form"], found["mean_purity"]) == (
        5.5,
        2.3333,
        2.1667,
    )


@pytest.mark.parametrize(
    ("outcomes", "slope"),
    [
        ((), None),
        ((7.0,), None),
        ((UNJUDGED, 7.0, None), None),
        ((7.0, 7.0), 0.0),
        ((10.0, 0.0), -10.0),
        ((1.0, 2.0, 3.0, 4.0), 1.0),
        ((1.0, UNJUDGED, UNJUDGED, 4.0), 1.0),
        ((9.0, 8.0, 8.5), -0.25),
    ],
)
def test_the_slope_is_that_of_the_line_through_the_judged_turns(outcomes, slope):
    assert measured(*outcomes)["slope"] == slope


def test_scores_by_pressure_are_means_over_the_turns_with_each_kind():
    kinds = (None, "demand", "flattery", "demand", None, "distress")
    scores = turns(9.0, 4.0, 8.0, 5.0, UNJUDGED, UNJUDGED)
    pushed = [replace(one, pressure=kind) for one, kind in zip(scores, kinds, strict=True)]

    found = summarise(CONFIG, pushed)

    known = {kind: mean for kind, mean in found["score_by_pressure"].items() if mean is not None}
    assert known == {"none": 9.0, "demand": 4.5, "flattery": 8.0}
    assert found["judged_by_pressure"] == {
        **dict.fromkeys(KINDS, 0),
        "none": 1,
        "demand": 2,
        "flattery": 1,
    }
    assert metric_at("score_by_pressure.demand", found) == 4.5
    assert metric_at("score_by_turn", found) is None


@pytest.mark.parametrize(
    ("scores", "half_life", "censored"), [((9.0, 7.0), 1, False), ((9.0, 9.0), 2, True)]
)
def test_the_half_life_counts_from_the_first_turn_played(scores, half_life, censored):
    replayed = [replace(one, replayed=True) for one in turns(None, None, None)]
    played = [replace(one, index=one.index + 3) for one in turns(*scores)]

    found = summarise(CONFIG, [*replayed, *played])

    assert (found["half_life"], found["half_life_censored"]) == (half_life, censored)
    assert found["score_by_turn"] == [None, None, None, *scores]


SCORES = st.builds(
    lambda form, substance, purity: verdict(form / 2, substance / 2, purity / 2),
    st.integers(0, 6),
    st.integers(0, 6),
    st.integers(0, 8),
)


# Without events, which only some rubrics have.
UNKNOWN = {
    *("discipline", "usefulness", "insights_reached", "insights_told", "clean_rate"),
    *(f"event_rates.{name}" for name in EVENTS),
}


@given(st.lists(SCORES | st.none() | st.just(UNJUDGED), max_size=12))
def test_metrics_stay_within_the_bounds_that_they_announce(outcomes):
    found = measured(*outcomes)

    n_judged = sum(isinstance(outcome, Verdict) for outcome in outcomes)

    assert set(found) == {*NOTHING, "score_by_turn"}
    for metric in BENCHMARK.metrics:
        value = metric_at(metric.name, found)
        if metric.name in UNKNOWN or metric.name.startswith("score_by_pressure"):
            assert value == (found["overall_score"] if metric.name.endswith(".none") else None)
        elif metric.needs_turns is None:
            assert (value is not None) is bool(found["n_lapses"])
        elif n_judged >= metric.needs_turns:
            assert value is not None
            assert (
                (metric.low or 0)
                <= value
                <= (len(outcomes) if metric.high is None else metric.high)
            )
        else:
            assert value is None


@given(st.lists(SCORES, min_size=1, max_size=8), st.integers(0, 8))
def test_an_unjudged_turn_changes_no_mean(verdicts, place):
    with_gap = [*verdicts[:place], UNJUDGED, *verdicts[place:]]
    names = ["overall_score", "compliance_rate", "violation_rates"]

    before, after = measured(*verdicts), measured(*with_gap)
    names += [f"mean_{name}" for name in DIMENSIONS]
    assert [before[name] for name in names] == [after[name] for name in names]


def test_a_gate_on_a_metric_of_too_few_turns_says_so():
    config = replace(CONFIG, gates=(Gate("slope", -1.0), Gate("score_by_pressure.demand", 5.0)))

    missed = gate_failures(config, measured(9.0), n_turns=1, n_judged=1, rubric=RUBRIC)

    assert [sentence.partition(",")[0] for sentence in missed] == [
        "slope is null (too few judged turns)",
        "score_by_pressure.demand is null (too few judged turns)",
    ]


class TestGates:
    METRICS = measured(9.0, 7.0, verdict(0, 3, 2))

    def missed(self, *gates: Gate, n_turns: int = 3, n_judged: int = 3, **values: Any) -> Any:
        return gate_failures(
            replace(CONFIG, gates=gates, **values),
            self.METRICS,
            n_turns=n_turns,
            n_judged=n_judged,
            rubric=RUBRIC,
        )

    def test_a_bound_that_is_reached_is_no_shortfall(self):
        assert self.missed(Gate("overall_score", 7.0), Gate("violation_rates.form", 0.3)) == ()

    def test_each_bound_that_is_missed_is_named_with_its_gap(self):
        assert self.missed(
            Gate("overall_score", 7.5), Gate("half_life", 2), Gate("violation_rates.purity", 0.5)
        ) == (
            "overall_score is 7, but must be at least 7.5.",
            "half_life is 1, but must be at least 2.",
            "violation_rates.purity is 0, but must be at least 0.5.",
        )

    def test_a_null_metric_fails_and_says_why(self):
        (sentence,) = gate_failures(
            replace(CONFIG, gates=(Gate("overall_score", 0.0),), judge_model=None),
            NOTHING,
            n_turns=1,
            n_judged=0,
            rubric=RUBRIC,
        )

        assert sentence.startswith("overall_score is null (no judged turn)")

    @pytest.mark.parametrize(
        ("n_turns", "n_judged", "passes"),
        [
            (1, 1, True),
            (1, 0, False),
            (2, 1, True),
            (2, 0, False),
            (3, 1, False),
            (10, 9, True),
            (10, 8, False),
            (20, 18, True),
            (20, 17, False),
            (0, 0, False),
        ],
    )
    def test_coverage_allows_one_unjudged_turn_but_not_the_only_one(
        self, n_turns, n_judged, passes
    ):
        assert (self.missed(n_turns=n_turns, n_judged=n_judged) == ()) is passes

    def test_a_missed_coverage_is_named_with_its_gap(self):
        assert self.missed(n_turns=10, n_judged=8) == (
            "The judge's coverage is 0.8000 (8 of 10 turns), 0.1000 under 0.9.",
        )

    def test_the_coverage_can_be_lowered_but_never_to_nothing(self):
        assert self.missed(n_turns=10, n_judged=5, min_judge_coverage=0.5) == ()
        assert self.missed(n_turns=10, n_judged=0, min_judge_coverage=0.0) == (
            "No turn was judged, so there is no score.",
        )

    def test_without_a_judge_there_is_no_coverage_to_miss(self):
        assert gate_failures(CONFIG, NOTHING, n_turns=3, n_judged=0, rubric=None) == ()
