"""The forms in which a report is written: what each needs, and what stands in its files."""

import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from errno import EISDIR
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from msgspec import Struct

from socratic_bench.documents.calibration import CorrectionDocument
from socratic_bench.errors import ArtifactError
from socratic_bench.studies.report.parts import Chart, Figure, Section, shown_text
from socratic_bench.studies.report.report import Report
from socratic_bench.studies.report.rows import Rows
from socratic_bench.version import VERSION

# What a form needs: an extra, and those of its packages that the form takes.
_DRAWS = ("report", ("scipy", "vl_convert"))
NEEDS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "html": ("report", ("jinja2", "scipy", "vl_convert")),
    "markdown": ("report", ("scipy",)),
    "csv": ("", ()),
    "parquet": ("tables", ("duckdb",)),
    "png": _DRAWS,
    "svg": _DRAWS,
}
_FILES = ("html", "markdown")
_TABLES = ("csv", "parquet")
# A report as Markdown: what its page says above the transcripts, charts apart.

_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}
_SIGNS = re.compile(r"[\\`*_\[\]#|~$!]|[&<>@]")
# What makes a link of plain text, and what begins a list, a rule or a heading.
_LINK = re.compile(r"(?<=https)(?=:)|(?<=http)(?=:)|(?<=ftp)(?=:)|(?<=www)(?=\.)", re.IGNORECASE)
_NUMBER = re.compile(r"\d{1,9}[.)]|[-+=]")
# Files of reports on the disk.

Form = Literal["html", "markdown", "csv", "parquet", "png", "svg"]


class RenderedFile(Struct, frozen=True, kw_only=True):
    """What is to stand in a file; `form` is what it is, such as html."""

    form: Form
    path: str
    body: bytes


class Export(Struct, frozen=True, kw_only=True):
    """`files` are to be written; `left_out` the runs whose transcripts had no room. Where only
    rows are asked for, nothing is told in `sentences` and `sections`.
    """

    models: list[str]
    sentences: list[str]
    sections: list[str]
    left_out: list[str]
    files: list[RenderedFile]


def problems_of(asked: Mapping[str, str]) -> list[str]:
    """All that stands in the way of the forms that are asked for, by their files or folders."""
    found = [
        file_problem(path) if form in _FILES else _folder_problem(form, path)
        for form, path in asked.items()
    ]
    return [*filter(None, found), *_lacking(asked)]


def _folder_problem(form: str, path: str) -> str | None:
    """Why there can be no such folder; a name such as rows.csv is that of a file."""
    if path.lower().endswith(f".{form}") and not Path(path).exists():
        return (
            f"A report as {form} is several files in a folder: {path} names a file. Name a folder, "
            f"such as {Path(path).stem}."
        )
    return folder_problem(path)


def _lacking(asked: Mapping[str, str]) -> Iterator[str]:
    for form in asked:
        extra, packages = NEEDS[form]
        for package in packages:
            if not _is_there(package):
                yield (
                    f"A report as {form} needs the package {package}: "
                    f"pip install 'socratic-runner[{extra}]', or the image's target full, has it."
                )


def _is_there(package: str) -> bool:
    return sys.modules.get(package, package) is not None and find_spec(package) is not None


def export(
    rows: Rows,
    asked: Mapping[str, str],
    max_bytes: int,
    corrected: Callable[[], CorrectionDocument | None],
    call: Callable[[str], str] = str,
) -> Export:
    """What is told of settings calls them as `call` does. Raises `UsageError` for a page that
    cannot be as small as `max_bytes`, and `ArtifactError` for a place in which nothing can be made.
    """
    from socratic_bench.studies.report.study import Study

    study = Study(rows)
    tables = [*_tables(rows, asked)]
    if not {*asked} - {*_TABLES}:
        return Export(models=study.ranked, sentences=[], sections=[], left_out=[], files=tables)
    from socratic_bench.studies.report.report import report_of

    report = report_of(study, corrected())
    files, left_out, names = [], [], [one.name for one in report.sections]
    if "html" in asked:
        from socratic_bench.studies.report.html import page_of

        page = page_of(study, report, max_bytes, call)
        files.append(RenderedFile(form="html", path=asked["html"], body=page.body))
        left_out, names = [*page.left_out], [*names, "transcripts"]
    if "markdown" in asked:
        body = markdown_of(report).encode()
        files.append(RenderedFile(form="markdown", path=asked["markdown"], body=body))
    charts = [one.chart for section in report.sections for one in section.figures if one.chart]
    return Export(
        models=[*report.models],
        sentences=[*report.opening.sentences],
        sections=names,
        left_out=left_out,
        files=[*files, *tables, *_charts(charts, asked)],
    )


def _tables(rows: Rows, asked: Mapping[str, str]) -> Iterator[RenderedFile]:
    if not {*asked} & {*_TABLES}:
        return
    from socratic_bench.studies.report.tables import csv_of, parquet_of, tables_of

    made = tables_of(rows)
    if "csv" in asked:
        yield from (_in(asked, "csv", one.name, csv_of(one)) for one in made)
    if "parquet" in asked:
        folder = Path(asked["parquet"])
        place = folder if folder.is_dir() else folder.parent
        yield from (_in(asked, "parquet", one.name, parquet_of(one, place)) for one in made)


def _charts(charts: list[Chart], asked: Mapping[str, str]) -> Iterator[RenderedFile]:
    from socratic_bench.studies.report.svg import drawn_on_paper, painted

    if "png" in asked:
        yield from (_in(asked, "png", one.name, painted(one)) for one in charts)
    if "svg" in asked:
        yield from (_in(asked, "svg", one.name, drawn_on_paper(one)) for one in charts)


def _in(asked: Mapping[str, str], form: Form, name: str, body: bytes) -> RenderedFile:
    return RenderedFile(form=form, path=str(Path(asked[form], f"{name}.{form}")), body=body)


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


def file_problem(path: str) -> str | None:
    """Why there can be no such file, as far as folders tell."""
    target = Path(path)
    if not target.parent.is_dir():
        return f"There is no folder {target.parent} for {target.name}."
    if target.is_dir():
        return f"{path} is a folder: name a file in it."
    is_special = target.exists() and not target.is_file()
    return f"{path} is no regular file, and is left as it is: name another." if is_special else None


def folder_problem(path: str) -> str | None:
    """The same for a folder, which may have to be made."""
    target = Path(path)
    if target.exists() and not target.is_dir():
        return f"{path} is a file: name a folder."
    return None if target.absolute().parent.is_dir() else f"There is no folder {target.parent}."


def write_all(files: Sequence[RenderedFile]) -> None:
    """All of them in place of what is there, each whole, once all could be written beside it.

    Raises `ArtifactError` for what cannot be written; no draft stays.
    """
    drafts: list[tuple[str, Path]] = []
    try:
        for one in files:
            with _translated(one.path):
                _write_draft(one, drafts)
        for draft, target in drafts:
            with _translated(str(target)):
                Path(draft).replace(target)
    finally:
        for draft, _ in drafts:
            Path(draft).unlink(missing_ok=True)


def _write_draft(one: RenderedFile, drafts: list[tuple[str, Path]]) -> None:
    target = Path(one.path)
    if target.is_dir():
        raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
    if not target.parent.is_dir():
        target.parent.mkdir()
    number, draft = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    drafts.append((draft, target))
    with os.fdopen(number, "wb") as file:
        file.write(one.body)
    Path(draft).chmod(0o666 & ~_umask())


@contextmanager
def _translated(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ArtifactError(f"{path} could not be written: {error.strerror}.") from error


def _umask() -> int:
    """That of the process, which can only be read by setting it."""
    found = os.umask(0)
    os.umask(found)
    return found
