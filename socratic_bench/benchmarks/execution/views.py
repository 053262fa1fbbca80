"""What reports show of this benchmark, and by what its runs are compared."""

from socratic_bench.benchmarks.execution.metrics import by_problem_of
from socratic_bench.ports.parts import Caveat, MetricGroup, Views

VIEWS = Views(
    axes=("mc", "mr"),
    sample="data set",
    result="outcome",
    right="correct",
    expected="expected_output",
    groups=(
        MetricGroup(title="Prediction", metrics=("oc", "mc", "or", "mr", "oc_less_mc")),
        MetricGroup(title="Replies", metrics=("answered", "truncated")),
        MetricGroup(
            title="Choice", metrics=("preference", "choice_correct", "choice_oc", "choice_mc")
        ),
        MetricGroup(
            title="Order", metrics=("position_bias", "order_consistency", "control_position_bias")
        ),
    ),
    facts=(
        Caveat(title="Data set", path="dataset.place"),
        Caveat(title="Task", path="inputs.task"),
        Caveat(title="Reasoning", path="inputs.pred_reasoning"),
    ),
    parts=by_problem_of,
)
