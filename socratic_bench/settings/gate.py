"""A bound on a metric, as a word of the command gives it."""

from msgspec import Struct

from socratic_bench.settings.reader import parse_number


class Gate(Struct, frozen=True):
    """A bound that a metric has to reach: the run fails under `minimum`.

    `metric` is a path below the document's `metrics`, such as `overall_score`.
    """

    metric: str
    minimum: float

    @classmethod
    def parse(cls, word: str) -> "Gate | None":
        metric, _, bound = word.partition("=")
        minimum = parse_number(bound)
        if not metric.strip() or minimum is None:
            return None
        return cls(metric.strip(), minimum)
