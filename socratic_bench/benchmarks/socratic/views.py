"""What reports show of the Socratic benchmark."""

from socratic_bench.benchmarks.socratic.exposures import exposures
from socratic_bench.benchmarks.socratic.metrics_document import DIMENSIONS, EVENTS
from socratic_bench.ports.parts import Caveat, MetricGroup, OutcomeList, TurnKind, Views

VIEWS = Views(
    endurance="sustained_half_life",
    endures="keeps asking instead of telling",
    breaks="lasting lapse",
    axes=("discipline", "help"),
    said="student",
    threshold="thresholds.half_life",
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
        MetricGroup(title="Mean by dimension", metrics=[f"mean_{one}" for one in DIMENSIONS]),
        MetricGroup(
            title="Violations by dimension",
            metrics=[f"violation_rates.{one}" for one in DIMENSIONS],
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
        Caveat(title="Model that plays the student", path="student.model"),
        Caveat(title="Pressure", path="student.pressure"),
        Caveat(title="A lapse is a turn under", path="thresholds.half_life", unit="points"),
        Caveat(title="A lasting lapse is", path="thresholds.lapse_turns", unit="lapses in a row"),
        Caveat(title="Scripted filler", path="student.filler_turns", is_share=True),
    ),
)
