"""A report as Markdown: what its page says above the transcripts, charts apart."""

import re
from collections.abc import Iterator, Sequence

from socratic_bench.studies.report.evidence import shown_text
from socratic_bench.studies.report.parts import Figure, Section
from socratic_bench.studies.report.report import Report
from socratic_bench.version import VERSION

_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}
_SIGNS = re.compile(r"[\\`*_\[\]#|~$!]|[&<>@]")
# What makes a link of plain text, and what begins a list, a rule or a heading.
_LINK = re.compile(r"(?<=https)(?=:)|(?<=http)(?=:)|(?<=ftp)(?=:)|(?<=www)(?=\.)", re.IGNORECASE)
_NUMBER = re.compile(r"\d{1,9}[.)]|[-+=]")


def markdown_of(report: Report) -> str:
    """In the dialect of GitHub, with nothing in it that a text could make a link or an element."""
    return "\n".join(_lines(report)).rstrip() + "\n"


def _lines(report: Report) -> Iterator[str]:
    opening = report.opening
    yield from (f"# {text(opening.title)}", "")
    for one in (*opening.sentences, *opening.notices):
        yield from (text(one), "")
    yield from ("## What was tested", "", "| | |", "|---|---|")
    yield from map(_row, opening.facts)
    yield ""
    for section in report.sections:
        yield from _section(section)
    yield f"Made by socratic-runner {VERSION} from stored runs. Intervals hold at 95 %."


def _section(section: Section) -> Iterator[str]:
    yield from (f"## {text(section.title)}", "")
    for one in section.paragraphs:
        yield from (text(one), "")
    for figure in section.figures:
        yield from _table(figure)


def _table(table: Figure) -> Iterator[str]:
    yield from (f"{text(table.caption)}:", "")
    yield _row([column.title for column in table.columns])
    yield "|" + "|".join("---:" if one.is_number else "---" for one in table.columns) + "|"
    yield from map(_row, table.rows)
    yield ""


def _row(cells: Sequence[str]) -> str:
    return "".join(f"| {text(cell)} " for cell in cells) + "|"


def text(words: str) -> str:
    """On one line, as it is: signs that would mean something are escaped."""
    line = " ".join(shown_text(words).split())
    safe = _LINK.sub(r"\\", _SIGNS.sub(_escaped, line))
    found = _NUMBER.match(safe)
    # A number is no list where nothing follows its point, as in a cell.
    if found and (found.end() == len(safe) or safe[found.end()] == " "):
        return f"{safe[: found.end() - 1]}\\{safe[found.end() - 1 :]}"
    return safe


def _escaped(found: re.Match[str]) -> str:
    return _ENTITIES.get(found[0]) or f"\\{found[0]}"
