"""Tables of figures that are corrected by labels (`compare --labels`)."""

from collections.abc import Iterator, Mapping

from socratic_bench.documents.calibration import CorrectedFigures, Estimated, ThreeWays
from socratic_bench.types import plural

from .output import plain, say, say_table
from .terminal import UNKNOWN, interval, number

WAYS = ("corrected", "labels only", "judge only")


def say_corrected(corrected: CorrectedFigures) -> None:
    """Print the main difference of each pair, then a table of each pair and of each model."""
    turns = plural(corrected.n_labels, "turn")
    for pair in corrected.pairs:
        main = pair.differences[corrected.main_figure]
        say("")
        say(
            f"{plain(pair.first)} minus {plain(pair.second)}, corrected by labels of {turns}: "
            f"{plain(corrected.main_figure)} {_format(main.corrected)}"
        )
        _say_figures("difference", pair.differences)
    for model in corrected.models:
        labels = model.figures[corrected.main_figure].of_labels
        say("")
        say(
            f"{plain(model.name)}: {plural(labels.n, 'label')}, "
            f"{plural(labels.n_dialogues, 'dialogue')}, {plural(labels.n_scenarios, 'scenario')}"
        )
        _say_figures("figure", model.figures)
    for reason in dict.fromkeys(_reasons(corrected)):
        say(f"note: {plain(reason)}")
    if corrected.n_without_probability:
        n = plural(corrected.n_without_probability, "label")
        say(f"note: {n} without a sampling probability: not used.")


def _say_figures(head: str, figures: Mapping[str, ThreeWays]) -> None:
    rows = [
        (plain(name), *map(_format, (ways.corrected, ways.of_labels, ways.as_judged)))
        for name, ways in figures.items()
    ]
    say_table((head, *WAYS), rows, WAYS[1:])


def _reasons(corrected: CorrectedFigures) -> Iterator[str]:
    for figures in (
        *(pair.differences for pair in corrected.pairs),
        *(model.figures for model in corrected.models),
    ):
        for ways in figures.values():
            if ways.corrected.reason:
                yield ways.corrected.reason


def _format(estimated: Estimated) -> str:
    value, limits = number(estimated.value), interval(estimated.low, estimated.high)
    return value if limits == UNKNOWN else f"{value} ({limits})"
