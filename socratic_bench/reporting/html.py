"""A report as one HTML file that asks nothing of any network."""

import base64
import re
from collections.abc import Callable, Collection, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from socratic_bench.errors import UsageError
from socratic_bench.reporting.drawing import drawn
from socratic_bench.reporting.evidence import shown_text
from socratic_bench.reporting.parts import counted
from socratic_bench.reporting.report import Report
from socratic_bench.reporting.rows import RunRow
from socratic_bench.reporting.study import Study
from socratic_bench.reporting.transcripts import Transcripts, transcripts
from socratic_bench.version import VERSION

if TYPE_CHECKING:
    from markupsafe import Markup

# So that reports of few runs of many models stay under 600 KB.
MOST_DRAWN_BYTES = 380_000
PAGE = Path(__file__).with_name("page")


class Page(Struct, frozen=True, kw_only=True):
    """The file, and the ids of runs whose transcripts had no room in it."""

    body: bytes
    left_out: Sequence[str]


def page_of(study: Study, report: Report, max_bytes: int) -> Page:
    """Transcripts are left out, those of the last repeats first, until the file is small enough.

    Raises `UsageError` if it is not even without any.
    """
    around = _Around(report)
    order = [run.run_id for run in sorted(study.rows.runs, key=_repeat)]
    whole = around.page(study, ())
    if len(whole) <= max_bytes:
        return Page(body=whole, left_out=())
    empty = around.page(study, order)
    if len(empty) > max_bytes:
        raise UsageError(
            [f"Even without transcripts the report takes {len(empty):,} bytes."],
            hint="Give it more with {max_size}, or report fewer runs.",
        )
    body, left_out = _fitting(order, empty, max_bytes, lambda some: around.page(study, some))
    return Page(body=body, left_out=left_out)


def _repeat(run: RunRow) -> tuple[int, str]:
    return run.stored.repeat or 0, run.run_id


def _fitting(
    order: Sequence[str],
    empty: bytes,
    max_bytes: int,
    made: Callable[[Collection[str]], bytes],
) -> tuple[bytes, Sequence[str]]:
    """The most transcripts that fit, by halving how many are tried."""
    body, kept, low, high = empty, 0, 0, len(order)
    while low < high:
        n = (low + high + 1) // 2
        found = made({*order[n:]})
        if len(found) <= max_bytes:
            body, kept, low = found, n, n
        else:
            high = n - 1
    return body, order[kept:]


class _Around:
    """What a page has around its transcripts, drawn once."""

    def __init__(self, report: Report) -> None:
        import jinja2

        self._report = report
        self._style = (PAGE / "report.css").read_text(encoding="utf-8")
        self._script = (PAGE / "browser.js").read_text(encoding="utf-8")
        import markupsafe

        environment = jinja2.Environment(
            autoescape=True,
            finalize=lambda value: shown_text(value) if type(value) is str else value,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        text = (PAGE / "report.html").read_text(encoding="utf-8")
        environment.filters["unbroken"] = _unbroken
        environment.filters["named"] = _Names(report.models, markupsafe.Markup)
        self._template = environment.from_string(text)
        figures = (figure for section in report.sections for figure in section.figures)
        self._drawings = drawn((one.chart for one in figures if one.chart), MOST_DRAWN_BYTES)

    def page(self, study: Study, left_out: Collection[str]) -> bytes:
        found = transcripts(study, left_out)
        runs = study.rows.runs
        models = counted(len(study.ranked), "model")
        text = self._template.render(
            policy=self._policy(),
            style=self._style,
            script=self._script,
            kicker=f"{study.rows.benchmark.name} benchmark, {counted(len(runs), 'run')} of "
            f"{models}",
            opening=self._report.opening,
            sections=self._report.sections,
            drawings=self._drawings,
            transcripts=_Shown(
                index=found.index,
                blocks=found.blocks,
                sample=study.views.sample,
                paragraphs=_paragraphs(len(left_out), len(runs)),
            ),
            footer=f"Made by socratic-runner {VERSION} from stored runs. Intervals hold at 95 %"
            f"{_clustered(study)}.",
        )
        return text.lstrip().encode()

    def _policy(self) -> str:
        return (
            f"default-src 'none'; style-src {_hashed(self._style)}; "
            f"script-src {_hashed(self._script)}; base-uri 'none'; form-action 'none'"
        )


def _unbroken(text: str) -> str:
    """No line ends between a figure and its sign."""
    return re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", text)


class _Names:
    """Makes the names of models stand out in a sentence."""

    def __init__(self, models: Sequence[str], markup: "Callable[[str], Markup]") -> None:
        longest = sorted(models, key=len, reverse=True)
        self._models = re.compile("|".join(map(re.escape, longest)) or "(?!)")
        self._markup = markup

    def __call__(self, text: str) -> "Markup":
        shown, at, found = _unbroken(shown_text(text)), 0, self._markup("")
        for one in self._models.finditer(shown):
            found += shown[at : one.start()]
            found += self._markup("<strong>{}</strong>").format(one[0])
            at = one.end()
        return found + shown[at:]


class _Shown(Transcripts, frozen=True, kw_only=True):
    """Transcripts, and what is said above them."""

    sample: str
    paragraphs: Sequence[str]


def _clustered(study: Study) -> str:
    """By what, where it is neither items nor, with a single sample, openings."""
    is_of_parts = any(run.stored.parts for run in study.rows.runs)
    if is_of_parts or len(study.rows.samples) == 1:
        return ""
    return f", clustered by {study.views.sample}"


def _paragraphs(n_left_out: int, n_runs: int) -> list[str]:
    told = ["Choose a run. What a judge rests a score or an event on is marked in the reply."]
    if n_left_out:
        told.append(
            f"The transcripts of {n_left_out:,} of {counted(n_runs, 'run')} are left out to keep "
            "the file small (--max-size)."
        )
    return told


def _hashed(text: str) -> str:
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"
