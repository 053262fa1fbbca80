"""What people see of a diagnosis on stderr: a line for each thing, and what to do about it."""

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

from socratic_bench.types import in_digits, plural

from . import terminal
from .output import plain, say

if TYPE_CHECKING:
    from socratic_bench.documents.doctor import CheckEntry, DoctorDocument, TargetEntry
    from socratic_bench.errors import CheckName, CheckStatus

MARKS: "dict[CheckStatus, str]" = {"ok": " ", "warning": "~", "unknown": "?", "failed": "!"}
COLOURS = {"~": terminal.YELLOW, "?": terminal.YELLOW, "!": terminal.RED}
VERDICTS = {
    "ok": "nothing was found by which a run would fail",
    "failed": "a run would fail",
    "incomplete": "not everything was looked at",
}
LABEL_COLUMNS = 14
INDENT = "    "
# Findings that a model's own line tells in a word, and how they begin where there is something.
SHOWN: "tuple[tuple[CheckName, str, str], ...]" = (
    ("streaming", "streamed", "streaming"),
    ("tools", "called", "tools"),
    ("cache_points", "took", "cache points"),
)


def say_table(document: "DoctorDocument", *, quiet: bool) -> None:
    """Everything; what failed alone, if it is to be quiet."""
    for check in document.checks:
        if not quiet or check.status == "failed":
            _say_check(check)
    for model in document.models:
        if not quiet or model.status == "failed":
            _say_model(model)
    if not quiet:
        _say_row(" ", "", ", ".join(_summary(document)))
    if document.error:
        _say_row("!", document.error.code, document.error.message)
        _say_hint(document.error.hint)


def _say_check(check: "CheckEntry") -> None:
    said = f"{check.subject}: {check.message}"
    _say_row(MARKS[check.status], check.check.replace("_", " "), said)
    _say_hint(check.hint)


def _say_model(model: "TargetEntry") -> None:
    answer = model.checks[0]
    _say_row(MARKS[model.status], ", ".join(model.roles), ", ".join(_about(model, answer)))
    _say_hint(answer.hint)
    for check in model.checks[1:]:
        if check.status != "ok":
            name = check.check.replace("_", " ")
            _say_row(MARKS[check.status], name, check.message)
            _say_hint(check.hint)


def _about(model: "TargetEntry", answer: "CheckEntry") -> Iterator[str]:
    tier = f" ({model.service_tier})" if model.service_tier else ""
    where = f" in {model.region}" if model.region else ""
    yield f"{model.model_id}{where}{tier}: {answer.message}"
    if answer.status != "ok":
        return
    ok = {check.check: check.message for check in model.checks if check.status == "ok"}
    yield from (word for name, begin, word in SHOWN if ok.get(name, "").startswith(begin))
    if model.cost_usd is not None:
        yield f"{in_digits(model.cost_usd)} USD"
    yield from (check.message for check in model.checks if check.check == "quota")


def _summary(document: "DoctorDocument") -> Iterator[str]:
    yield VERDICTS[document.status]
    yield plural(len(document.models), "model")
    for n, word in (
        (document.n_failed, "failed"),
        (document.n_warnings, "with a warning"),
        (document.n_unknown, "unknown"),
    ):
        if n:
            yield f"{n} {word}"
    if document.cost_usd is not None:
        billed = "" if document.billed else " (not billed)"
        yield f"{in_digits(document.cost_usd)} USD{billed}"
    yield f"{document.duration_seconds:.1f} s"


def _say_hint(hint: str | None) -> None:
    if hint:
        _say_folded(INDENT, plain(hint))


def _say_row(mark: str, label: str, text: str) -> None:
    """The mark, what it is about, and the text behind it or, where that has no room, below it."""
    head = f"{mark} {label:{LABEL_COLUMNS}s} " if label else f"{mark} "
    colour = COLOURS.get(mark)
    room = terminal.columns() - len(head)
    text = plain(text)
    if terminal.is_terminal() and max(map(len, text.split()), default=0) > room:
        say(terminal.coloured(head.rstrip(), colour))
        _say_folded(INDENT, text)
        return
    lines = _lines(text, room)
    say(terminal.coloured(head, colour) + (lines[0] if lines else ""))
    for line in lines[1:]:
        say(" " * len(head) + line)


def _say_folded(indent: str, text: str) -> None:
    for line in _lines(text, terminal.columns() - len(indent)):
        say(indent + line)


def _lines(text: str, room: int) -> Sequence[str]:
    if not terminal.is_terminal():
        return [text]
    return wrap(text, max(1, room), break_long_words=False, break_on_hyphens=False)
