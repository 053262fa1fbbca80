"""The forms in which a report is written: what each needs, and what stands in its files."""

import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct

from socratic_bench.documents.calibration import CorrectionDocument
from socratic_bench.studies.report.files import Form, RenderedFile, file_problem, folder_problem
from socratic_bench.studies.report.parts import Chart
from socratic_bench.studies.report.rows import Rows

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
        from socratic_bench.studies.report.markdown import markdown_of

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
    from socratic_bench.studies.report.table_files import csv_of, parquet_of
    from socratic_bench.studies.report.tables import tables_of

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
