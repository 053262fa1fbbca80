"""Checks for GitHub Actions: the summary of a step, and annotations of failed checks."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from socratic_bench.errors import ArtifactError
from socratic_bench.redaction import redact
from socratic_bench.studies.formats.checks import Check, Checks
from socratic_bench.studies.report.parts import clean_text

MAX_BYTES = 1_000_000  # of 1,024 kB a step, over which GitHub refuses the summary
MOST_ANNOTATIONS = 10  # of each kind and step that GitHub shows
MARKS = {"passed": "passed", "failed": "**failed**", "error": "**error**", "skipped": "skipped"}


def append_summary(checks: Checks, path: str) -> None:
    """Add to the step's summary, whose bound covers what is there. Raises `ArtifactError`."""
    file = Path(path)
    try:
        room = MAX_BYTES - (file.stat().st_size if file.exists() else 0)
        with file.open("ab") as summary:
            summary.write(summary_of(checks, room).encode())
    except OSError as error:
        raise ArtifactError(f"{path} cannot be written: {error.strerror}.") from error


def summary_of(checks: Checks, max_bytes: int = MAX_BYTES) -> str:
    """Markdown: the models, the failed checks with their turns, then all checks; what does not fit
    is left out and counted.
    """
    n_failures = len(checks.failures)
    verdict = f"{n_failures} of {len(checks.checks)} checks failed" if n_failures else "all passed"
    head = f"## socratic-runner: {verdict}\n\n{_plain(checks.title)}\n\n"
    head += "".join(f"{_plain(sentence)}\n\n" for sentence in checks.sentences)
    parts = [head, _table(checks.heads, checks.rows) if checks.rows else ""]
    parts += [_details(check) for check in checks.failures]
    parts.append("\n| check | of | result |\n|---|---|---|\n")
    parts += [_row([check.name, check.group, MARKS[check.outcome]]) for check in checks.checks]
    text, n_bytes = "", 0
    for number, part in enumerate(parts):
        n_bytes += len(part.encode())
        note = f"\n\n{len(parts) - number} more parts are left out (GitHub's limit).\n"
        if n_bytes > max_bytes - len(note):
            return text + note if len(text.encode()) + len(note) <= max_bytes else ""
        text += part
    return text


def annotations_of(checks: Checks) -> Iterator[str]:
    """Workflow commands that mark the run with the first failed checks."""
    for check in checks.failures[:MOST_ANNOTATIONS]:
        title = _escaped(f"{check.name} of {check.group}").replace(":", "%3A").replace(",", "%2C")
        yield f"::error title={title}::{_escaped(check.reason)}"


def _details(check: Check) -> str:
    text = f"\n**{_plain(check.name)}** of {_plain(check.group)}: {_plain(check.reason)}\n"
    if not check.quote:
        return text
    quote = clean_text(redact(check.quote)).replace("```", "'''")
    return f"{text}\n<details><summary>The turn</summary>\n\n```text\n{quote}\n```\n\n</details>\n"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return _row(heads) + _row(["---"] * len(heads)) + "".join(map(_row, rows))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_plain, cells))} |\n"


def _plain(text: str) -> str:
    """One line that cannot end a cell, begin a tag or link, or mention anybody."""
    line = " ".join(clean_text(redact(text)).split())
    for sign, entity in (("&", "&amp;"), ("<", "&lt;"), ("|", "&#124;"), ("@", "&#64;")):
        line = line.replace(sign, entity)
    return line.replace("[", "&#91;")


def _escaped(text: str) -> str:
    line = clean_text(redact(text))
    return line.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
