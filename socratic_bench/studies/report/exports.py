"""The formats of a report: what each needs, how it is rendered, and how its files are written."""

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

from socratic_bench.documents.calibration import CorrectedFigures
from socratic_bench.documents.report import ReportDocument, ReportFile
from socratic_bench.errors import ArtifactError, Naming
from socratic_bench.studies.report.differences import undecided_because
from socratic_bench.studies.report.html import draw_on_paper, page_of, paint
from socratic_bench.studies.report.parts import Chart, Figure, Section, clean_text
from socratic_bench.studies.report.report import Report, report_of
from socratic_bench.studies.report.study import Rows, Study
from socratic_bench.studies.report.tables import csv_of, parquet_of, tables_of
from socratic_bench.version import VERSION

# What a form needs: an extra, and those of its packages that the form takes.
_DRAWS = ("report", ("vl_convert",))
NEEDS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "html": ("report", ("jinja2", "vl_convert")),
    "markdown": ("", ()),
    "csv": ("", ()),
    "parquet": ("tables", ("duckdb",)),
    "png": _DRAWS,
    "svg": _DRAWS,
}
_FILES = ("html", "markdown")
_TABLES = ("csv", "parquet")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}
_SIGNS = re.compile(r"[\\`*_\[\]#|~$!]|[&<>@]")
# What makes a link of plain text, and what begins a list, a rule or a heading.
_LINK = re.compile(r"(?<=https)(?=:)|(?<=http)(?=:)|(?<=ftp)(?=:)|(?<=www)(?=\.)", re.IGNORECASE)
_NUMBER = re.compile(r"\d{1,9}[.)]|[-+=]")
Form = Literal["html", "markdown", "csv", "parquet", "png", "svg"]


class RenderedFile(Struct, frozen=True, kw_only=True):
    """Content of a file; `form` is its format, such as html."""

    form: Form
    path: str
    body: bytes


def find_problems(formats: Mapping[str, str]) -> list[str]:
    """Everything that prevents the requested formats, which are given by their files or folders."""
    problems = [
        _file_problem(path) if form in _FILES else _folder_problem(form, path)
        for form, path in formats.items()
    ]
    return [*filter(None, problems), *_lacking(formats)]


def _lacking(formats: Mapping[str, str]) -> Iterator[str]:
    for form in formats:
        extra, packages = NEEDS[form]
        for package in packages:
            if sys.modules.get(package, package) is None or find_spec(package) is None:
                yield (
                    f"A report as {form} needs the package {package}: "
                    f"pip install 'socratic-runner[{extra}]', or the image's target full, has it."
                )


def write_report(
    rows: Rows,
    formats: Mapping[str, str],
    max_bytes: int,
    corrected: Callable[[], CorrectedFigures | None],
    call: Naming = str,
) -> ReportDocument:
    """Write the requested formats; `call` names a setting for sentences. Raises `UsageError` for a
    page that cannot be as small as `max_bytes`, and `ArtifactError` for what cannot be written.
    """
    study = Study(rows)
    files, left_out, names, sentences = [*_tables(rows, formats)], [], [], []
    if {*formats} - {*_TABLES}:
        report = report_of(study, corrected())
        sentences = [*report.opening.sentences]
        names = [section.name for section in report.sections]
        if "html" in formats:
            page = page_of(study, report, max_bytes, call)
            files.append(RenderedFile(form="html", path=formats["html"], body=page.body))
            left_out, names = [*page.left_out], [*names, "transcripts"]
        if "markdown" in formats:
            body = _markdown(report).encode()
            files.append(RenderedFile(form="markdown", path=formats["markdown"], body=body))
        figures = [figure for section in report.sections for figure in section.figures]
        files += _charts([figure.chart for figure in figures if figure.chart], formats)
    write_all(files)
    return ReportDocument(
        benchmark=rows.benchmark.name,
        models=study.ranked,
        winner=study.winner,
        undecided_because=undecided_because(study),
        differences=study.differences,
        n_runs=len(rows.runs),
        n_failed=len(rows.failed),
        sentences=sentences,
        sections=names,
        left_out=left_out,
        files=[ReportFile(form=file.form, path=file.path, bytes=len(file.body)) for file in files],
    )


def _tables(rows: Rows, formats: Mapping[str, str]) -> Iterator[RenderedFile]:
    if not {*formats} & {*_TABLES}:
        return
    made = tables_of(rows)
    if "csv" in formats:
        yield from (_in(formats, "csv", table.name, csv_of(table)) for table in made)
    if "parquet" in formats:
        folder = Path(formats["parquet"])
        place = folder if folder.is_dir() else folder.parent
        yield from (_in(formats, "parquet", table.name, parquet_of(table, place)) for table in made)


def _in(formats: Mapping[str, str], form: Form, name: str, body: bytes) -> RenderedFile:
    return RenderedFile(form=form, path=str(Path(formats[form], f"{name}.{form}")), body=body)


def _charts(charts: list[Chart], formats: Mapping[str, str]) -> Iterator[RenderedFile]:
    if "png" in formats:
        yield from (_in(formats, "png", chart.name, paint(chart)) for chart in charts)
    if "svg" in formats:
        yield from (_in(formats, "svg", chart.name, draw_on_paper(chart)) for chart in charts)


def markdown_of(study: Study) -> str:
    """The whole report in Markdown."""
    return _markdown(report_of(study, None))


def _markdown(report: Report) -> str:
    return "\n".join(_lines(report)).rstrip() + "\n"


def _lines(report: Report) -> Iterator[str]:
    """The report in GitHub's Markdown; text from models cannot become a link or an element."""
    opening = report.opening
    yield from (f"# {text(opening.title)}", "")
    for sentence in (*opening.sentences, *opening.notices):
        yield from (text(sentence), "")
    yield from ("## What was tested", "", "| | |", "|---|---|")
    yield from map(_row, opening.facts)
    yield ""
    for section in report.sections:
        yield from _section(section)
    yield f"Made by socratic-runner {VERSION} from stored runs. Intervals are 95 % CIs."


def _row(cells: Sequence[str]) -> str:
    return "".join(f"| {text(cell)} " for cell in cells) + "|"


def _section(section: Section) -> Iterator[str]:
    yield from (f"## {text(section.title)}", "")
    for paragraph in section.paragraphs:
        yield from (text(paragraph), "")
    for quote in section.quotes:
        title = ", ".join(filter(None, (quote.title, quote.kind)))
        yield from (f"**{text(quote.model)}**, {text(title)}:", "")
        yield from (f"> {text(quote.prompt)}", ">", f"> **{text(quote.reply)}**", "")
    for figure in section.figures:
        yield from _table(figure)
    for listing in section.texts:
        lines = (f"    {line}" for line in clean_text(listing.text).splitlines())
        yield from (f"**{text(listing.title)}**", "", *lines, "")


def _table(table: Figure) -> Iterator[str]:
    yield from (f"{text(table.caption)}:", "")
    yield _row([column.title for column in table.columns])
    yield "|" + "|".join("---:" if column.is_number else "---" for column in table.columns) + "|"
    yield from map(_row, table.rows)
    yield ""


def text(words: str) -> str:
    """Escape a text for Markdown, on one line."""
    line = " ".join(clean_text(words).split())
    signs = _SIGNS.sub(lambda match: _ENTITIES.get(match[0]) or f"\\{match[0]}", line)
    safe = _LINK.sub(r"\\", signs)
    match = _NUMBER.match(safe)
    # A number is no list where nothing follows its point, as in a cell.
    if match and (match.end() == len(safe) or safe[match.end()] == " "):
        return f"{safe[: match.end() - 1]}\\{safe[match.end() - 1 :]}"
    return safe


def _file_problem(path: str) -> str | None:
    """Why a file cannot be created, as far as folders tell."""
    target = Path(path)
    if not target.parent.is_dir():
        return f"There is no folder {target.parent} for {target.name}."
    if target.is_dir():
        return f"{path} is a folder: name a file in it."
    is_special = target.exists() and not target.is_file()
    return (
        f"{path} is not a regular file, and is left as it is: name another." if is_special else None
    )


def _folder_problem(form: str, path: str) -> str | None:
    """Why a folder cannot be created or used; a name such as rows.csv is that of a file."""
    target = Path(path)
    if path.lower().endswith(f".{form}") and not target.exists():
        return (
            f"A report as {form} is several files in a folder: {path} names a file. Name a folder, "
            f"such as {target.stem}."
        )
    if target.exists() and not target.is_dir():
        return f"{path} is a file: name a folder."
    return None if target.absolute().parent.is_dir() else f"There is no folder {target.parent}."


def write_all(files: Sequence[RenderedFile]) -> None:
    """Write all files, each replaced as a whole, once all could be written as drafts beside them.

    Raises `ArtifactError` for what cannot be written; no draft remains.
    """
    drafts: list[tuple[str, Path]] = []
    try:
        for file in files:
            with _translated(file.path):
                _write_draft(file, drafts)
        for draft, target in drafts:
            with _translated(str(target)):
                Path(draft).replace(target)
    finally:
        for draft, _ in drafts:
            Path(draft).unlink(missing_ok=True)


@contextmanager
def _translated(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ArtifactError(f"{path} could not be written: {error.strerror}.") from error


def _write_draft(rendered: RenderedFile, drafts: list[tuple[str, Path]]) -> None:
    target = Path(rendered.path)
    if target.is_dir():
        raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
    if not target.parent.is_dir():
        target.parent.mkdir()
    number, draft = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    drafts.append((draft, target))
    with os.fdopen(number, "wb") as file:
        file.write(rendered.body)
    umask = os.umask(0)  # it can only be read by setting it
    os.umask(umask)
    Path(draft).chmod(0o666 & ~umask)
