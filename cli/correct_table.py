"""What people see of a correction on stderr."""

from socratic_bench.documents.calibration import Corrected, CorrectionDocument, Estimated
from socratic_bench.statistics.intervals import is_available
from socratic_bench.types import plural

from .output import plain, say

NAME_COLUMNS, COLUMNS = 24, 22
NO_LIMITS = (
    "Times to an event have no limits without scipy: install the extra stats "
    '(pip install ".[stats]").'
)
FLAGS = {
    "labels_of_others": "corrected by labels of all models, as too few are of this one",
    "outside_labelled_range": "its mean verdict lies beyond all that were labelled",
}


def say_correction(document: CorrectionDocument) -> None:
    """A table for each model, then why figures are missing, and what to make of others."""
    for one in document.models:
        say(
            f"{plain(one.model)}: {plural(one.n_runs, 'run')}, {one.n_labelled} labels of "
            f"{plural(one.n_labelled_dialogues, 'dialogue')}"
        )
        head = ("as judged", "corrected", "of labels")
        say(f"{'':{NAME_COLUMNS}s}" + "".join(f"{text:>{COLUMNS}s}" for text in head))
        for name, ways in one.figures.items():
            cells = [_shown(cell) for cell in (ways.as_judged, ways.corrected, ways.of_labels)]
            say(f"{plain(name)[:NAME_COLUMNS]:{NAME_COLUMNS}s}" + "".join(cells))
    for one in document.models:
        for name, ways in one.figures.items():
            found = ways.corrected
            flags = [FLAGS[flag] for flag in found.flags]
            for what in [found.reason] if found.reason else flags:
                say(f"note: {plain(one.model)}, {plain(name)}: {plain(what)}")
    if any(one.times for one in document.models) and not is_available():
        say(f"note: {NO_LIMITS}")


def _shown(figure: Estimated | Corrected) -> str:
    if figure.value is None:
        return f"{'-':>{COLUMNS}s}"
    if figure.low is None or figure.high is None:
        return f"{figure.value:{COLUMNS}.2f}"
    return f"{f'{figure.value:.2f} ({figure.low:.2f} to {figure.high:.2f})':>{COLUMNS}s}"
