"""What people see of a calibration on stderr."""

from collections.abc import Iterator

from socratic_bench.documents.calibration import CalibrationDocument, Figure
from socratic_bench.types import plural

from .output import plain, say

SCORES = ("weighted_kappa", "alpha", "mean_absolute_error", "bias", "deviation", "spearman")
ANSWERS = ("precision", "recall", "kappa", "auc", "auc_within_authors")
NAME_COLUMNS, COLUMNS = 22, 11


def say_calibration(document: CalibrationDocument) -> None:
    """A line for each dimension and each label of yes or no, with half of each interval."""
    judge, labels = document.judge, document.labels
    say(
        f"{plain(judge.model)} by {plain(judge.rubric)}: {document.n_judged} of "
        f"{plural(labels.n_turns, 'reply', 'replies')} judged, "
        f"{plural(labels.n_dialogues, 'dialogue')}, "
        f"{plural(len(labels.labellers), 'labeller')}"
    )
    for found, names in ((document.dimensions, SCORES), (document.events, ANSWERS)):
        if found:
            say("".join(_head(names)))
        for name, one in found.items():
            told = "".join(_shown(getattr(one, key)) for key in names)
            say(f"{plain(name)[:NAME_COLUMNS]:{NAME_COLUMNS}s}{told}")
    more = {name: one.more_labels for name, one in document.dimensions.items()}
    more |= {name: one.more_labels for name, one in document.events.items()}
    for name, counts in more.items():
        if counts:
            told = ", ".join(f"{n} for {key}" for key, n in counts.items())
            say(f"more labels of {plain(name)}: {told}")
    for notice in document.notices:
        say(f"note: {plain(notice)}")


def _head(names: tuple[str, ...]) -> Iterator[str]:
    short = {
        "weighted_kappa": "kappa",
        "mean_absolute_error": "error",
        "deviation": "deviat.",
        "auc_within_authors": "within",
    }
    yield f"{'':{NAME_COLUMNS}s}"
    for name in names:
        yield f"{short.get(name, name):>{COLUMNS}s}"


def _shown(figure: Figure) -> str:
    if figure.value is None:
        return f"{'-':>{COLUMNS}s}"
    if figure.low is None or figure.high is None:
        return f"{figure.value:{COLUMNS}.2f}"
    return f"{f'{figure.value:.2f}±{(figure.high - figure.low) / 2:.2f}':>{COLUMNS}s}"
