"""A report as one self-contained HTML file with its transcripts; and charts as SVG and PNG.

In vl-convert's output each mark has its words as a label and its colour as a value. Here labels
become tooltips, coordinates are rounded, and colours become classes, to which a page's style gives
values for light and dark.
"""

import base64
import re
import zlib
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import orjson
from msgspec import Struct

from socratic_bench.errors import Naming, Problem, UsageError
from socratic_bench.studies.report.charts import LIGHT, NAMED, PAPER
from socratic_bench.studies.report.leaderboard import kinds_of
from socratic_bench.studies.report.parts import Chart, clean_text, count_text, spans_of
from socratic_bench.studies.report.report import Report
from socratic_bench.studies.report.study import Study
from socratic_bench.studies.rows import RunRow, TurnRow, VerdictRow
from socratic_bench.version import VERSION

SVG = "http://www.w3.org/2000/svg"
PLACES = 1
OWN_FONT = "Liberation Sans"
FONTS = "Arial, Helvetica, Liberation Sans, sans-serif"
# As journals ask for.
PAPER_PPI = 300
_NUMBER = re.compile(r"-?\d+\.\d{2,}")
FONT_SIZE = 12
# What a mark without the attribute has anyway.
_MEANINGLESS = {
    **dict.fromkeys(("opacity", "fill-opacity", "stroke-opacity", "stroke-width"), "1"),
    **dict.fromkeys(("x2", "y2"), "0"),
    "font-size": f"{FONT_SIZE}px",
    "font-weight": "normal",
    "text-anchor": "start",
    "transform": "translate(0,0)",
}
_DROPPED = ("class", "role", "aria-label", "aria-hidden", "aria-roledescription", "pointer-events")
_NAMES = {code: name for name, code in NAMED.items()}


def draw_charts(charts: Iterable[Chart], most_bytes: int) -> dict[str, str]:
    """SVGs of each chart by name, with title and description: one for a page and one for a phone;
    the page's style shows the one that fits. If all would exceed `most_bytes`, the largest charts
    are drawn for a phone only, which fits any page. Raises `ImportError` without vl-convert.
    """
    drawings = {
        chart.name: (
            _whole(chart, _draw(chart.specs.wide), chart.name, ' class="broad"'),
            _whole(chart, _draw(chart.specs.narrow), f"{chart.name}-narrow", ' class="narrow"'),
        )
        for chart in charts
    }
    made = {name: "".join(pair) for name, pair in drawings.items()}
    for name in sorted(drawings, key=lambda chart: -len(made[chart])):
        if sum(map(len, made.values())) <= most_bytes:
            break
        made[name] = drawings[name][1].replace(' class="narrow"', "", 1)
    return made


def _whole(chart: Chart, root: ET.Element, name: str, more: str, ground: str = "") -> str:
    width, height = root.get("width", "0"), root.get("height", "0")
    ET.register_namespace("", SVG)
    body = "".join(ET.tostring(child, encoding="unicode") for child in root)
    body = body.replace(f' xmlns="{SVG}"', "").replace(" />", "/>")
    name = escape(name)
    return (
        f'<svg xmlns="{SVG}" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" font-size="{FONT_SIZE}" aria-labelledby="{name}-title {name}-desc"{more}>'
        f'<title id="{name}-title">{escape(chart.title)}</title>'
        f'<desc id="{name}-desc">{escape(chart.description)}</desc>{ground}{body}</svg>'
    )


def _draw(spec: Mapping[str, Any]) -> ET.Element:
    import vl_convert

    text = vl_convert.vegalite_to_svg(_map_texts(spec, clean_text), allowed_base_urls=[])
    root = ET.fromstring(text)  # noqa: S314 -- vl-convert's own
    _clean(root)
    # Each sign of a legend has the words beside it as a tooltip.
    for parent in root.iter():
        for sign, words in pairwise(parent):
            is_key = sign.tag == f"{{{SVG}}}path" and words.tag == f"{{{SVG}}}text"
            if is_key and not len(sign):
                ET.SubElement(sign, f"{{{SVG}}}title").text = words.text
    return root


def _map_texts(spec: Any, words: Naming) -> Any:  # noqa: ANN401 -- the same
    """The same specification with changed texts."""
    if isinstance(spec, Mapping):
        return {key: _map_texts(value, words) for key, value in spec.items()}
    if isinstance(spec, list | tuple):
        return [_map_texts(value, words) for value in spec]
    return words(spec) if isinstance(spec, str) else spec


def _clean(parent: ET.Element) -> None:
    for child in [*parent]:
        kind = child.get("class", "")  # of a frame that shows nothing
        if kind in ("background", "foreground") or (not kind and child.get("display") == "none"):
            parent.remove(child)
            continue
        label = child.get("aria-label")
        is_mark = child.get("role") == "graphics-symbol" and len(child) == 0
        _clean(child)
        if is_mark and label:
            title = ET.Element(f"{{{SVG}}}title")
            title.text = label
            child.insert(0, title)
        _set_classes(child)
        if child.tag == f"{{{SVG}}}g" and (len(child) == 0 or not child.attrib):
            at = [*parent].index(child)
            parent[at : at + 1] = [*child]


def _set_classes(element: ET.Element) -> None:
    classes = []
    for key, prefix in (("fill", "f"), ("stroke", "s")):
        name = _NAMES.get(element.get(key, ""))
        if name:
            classes.append(f"{prefix}-{name}")
            del element.attrib[key]
    if "stroke" not in element.attrib and "s-" not in " ".join(classes):
        element.attrib.pop("stroke-width", None)
    for key in (*_DROPPED, "font-family"):
        element.attrib.pop(key, None)
    for key, value in [*element.attrib.items()]:
        if _MEANINGLESS.get(key) == value:
            del element.attrib[key]
        else:
            element.attrib[key] = _NUMBER.sub(lambda n: f"{round(float(n[0]), PLACES):g}", value)
    if classes:
        element.set("class", " ".join(classes))


def draw_on_paper(chart: Chart) -> bytes:
    """A chart as a self-contained SVG file in fixed colours. Raises `ImportError` without
    vl-convert.
    """
    ground = f'<rect width="100%" height="100%" fill="{LIGHT[PAPER]}"/>'
    more = f' font-family="{FONTS}"'
    return _whole(chart, _draw(_on_paper(chart.specs.wide)), chart.name, more, ground).encode()


def _on_paper(spec: Mapping[str, Any]) -> dict[str, Any]:
    """In fixed colours on white, in vl-convert's own font: it draws no text in missing fonts."""
    drawing: dict[str, Any] = _map_texts(
        spec, lambda text: LIGHT[_NAMES[text]] if text in _NAMES else clean_text(text)
    )
    return {
        **drawing,
        "config": {**drawing["config"], "background": LIGHT[PAPER], "font": OWN_FONT},
    }


def paint(chart: Chart) -> bytes:
    """A chart as PNG. Raises `ImportError` without vl-convert."""
    import vl_convert

    body: bytes = vl_convert.vegalite_to_png(
        _on_paper(chart.specs.wide), ppi=PAPER_PPI, allowed_base_urls=[]
    )
    return body


# So that reports of few runs of many models stay under 600 KB.
MOST_DRAWN_BYTES = 380_000
PAGE = Path(__file__).with_name("page")
# Large enough to compress well, small enough to open one in no time.
BLOCK_BYTES = 1_000_000
LEVEL = 9
LONGEST_HEURISTICS = 2_000


class Page(Struct, frozen=True, kw_only=True):
    """The file, and the ids of runs whose transcripts had no room in it."""

    body: bytes
    left_out: Sequence[str]


class _PageTemplate:
    """All of a page but its transcripts; charts are drawn once."""

    def __init__(self, report: Report, call: Naming) -> None:
        import jinja2

        self._report = report
        self._call = call
        self._style = (PAGE / "report.css").read_text(encoding="utf-8")
        self._script = (PAGE / "browser.js").read_text(encoding="utf-8")

        environment = jinja2.Environment(
            autoescape=True,
            finalize=lambda value: clean_text(value) if type(value) is str else value,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        text = (PAGE / "report.html").read_text(encoding="utf-8")
        environment.filters["unbroken"] = _unbroken
        environment.filters["named"] = _emphasis(report.models)
        self._template = environment.from_string(text)
        figures = (figure for section in report.sections for figure in section.figures)
        self._drawings = draw_charts(
            (figure.chart for figure in figures if figure.chart), MOST_DRAWN_BYTES
        )

    def page(self, study: Study, left_out: Collection[str]) -> bytes:
        blocks = transcripts(study, left_out)
        runs = study.rows.runs
        models = count_text(len(study.ranked), "model")
        # Nothing is told of clusters for items, and for prompts of a single sample.
        is_unclustered = any(run.parts for run in runs) or len(study.rows.samples) == 1
        text = self._template.render(
            policy=f"default-src 'none'; style-src {_hash(self._style)}; "
            f"script-src {_hash(self._script)}; base-uri 'none'; form-action 'none'",
            style=self._style,
            script=self._script,
            kicker=f"{study.rows.benchmark.name} benchmark, {count_text(len(runs), 'run')} of "
            f"{models}",
            opening=self._report.opening,
            sections=self._report.sections,
            drawings=self._drawings,
            transcripts=blocks,
            sample=study.views.sample,
            speakers=_speakers(study),
            instructions=_instructions(len(left_out), len(runs), self._call),
            footer=f"Made by socratic-runner {VERSION} from stored runs. Intervals are 95 %"
            f"{'' if is_unclustered else f', clustered by {study.views.sample}'}.",
        )
        return text.lstrip().encode()


class Transcripts(Struct, frozen=True, kw_only=True):
    """`index` is JSON that is safe in a page, `blocks` are raw deflate in base64."""

    index: str
    blocks: Sequence[str]


def page_of(study: Study, report: Report, max_bytes: int, call: Naming = str) -> Page:
    """The page; transcripts are left out, those of the last repeats first, until the file is small
    enough. `call` names a setting for sentences. Raises `UsageError` if it is too large even
    without transcripts.
    """
    template = _PageTemplate(report, call)
    order = [
        run.run_id for run in sorted(study.rows.runs, key=lambda run: (run.repeat or 0, run.run_id))
    ]
    whole = template.page(study, ())
    if len(whole) <= max_bytes:
        return Page(body=whole, left_out=())
    empty = template.page(study, order)
    if len(empty) > max_bytes:
        raise UsageError(
            [f"Even without transcripts the report takes {len(empty):,} bytes."],
            hint=Problem.of("Give it more with {max_size}, or report fewer runs."),
        )
    n_kept = bisect_right(
        range(1, len(order) + 1), max_bytes, key=lambda n: len(template.page(study, {*order[n:]}))
    )
    left_out = order[n_kept:]
    return Page(body=template.page(study, {*left_out}), left_out=left_out)


def transcripts(study: Study, left_out: Collection[str] = ()) -> Transcripts:
    """An index of all runs, the worst first, and compressed turns of those not in `left_out`."""
    by_run = {
        run.run_id: {name for turn in run.turns for name in turn.events or ()}
        for run in study.rows.runs
    }
    events = sorted({name for names in by_run.values() for name in names})
    samples, sign = study.rows.samples, 1 if study.ordering.higher_is_better else -1
    blocks: list[str] = []
    entries: list[tuple[Any, list[Any]]] = []
    pending: list[bytes] = []
    for run in study.rows.runs:
        is_kept = run.run_id not in left_out
        value = run.metrics[study.ordering.name]
        entry = [
            run.run_id,
            study.ranked.index(run.model),
            samples.index(run.sample_name),
            run.repeat,
            len(run.turns),
            value,
            [events.index(name) for name in sorted(by_run[run.run_id])],
            _first_short(run, study),
            *((len(blocks), len(pending)) if is_kept else (None, None)),
        ]
        entries.append(((value is None, sign * (value or 0.0), run.run_id), entry))
        if is_kept:
            pending.append(orjson.dumps([_turn(turn, study) for turn in run.turns]))
            if sum(map(len, pending)) >= BLOCK_BYTES:
                blocks.append(_packed(pending))
                pending = []
    if pending:
        blocks.append(_packed(pending))
    index = {
        "score": "Turns held" if study.survival else study.ordering.title,
        "speakers": _speakers(study),
        "models": study.ranked,
        "samples": [clean_text(sample) for sample in samples],
        "events": events,
        "runs": [entry for _, entry in sorted(entries, key=lambda pair: pair[0])],
    }
    text = orjson.dumps(index).decode()
    for letter, code in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")):
        text = text.replace(letter, code)  # so that it cannot end the element around it
    return Transcripts(index=text, blocks=blocks)


def _first_short(run: RunRow, study: Study) -> int | None:
    """The first turn under the threshold, or whose result is wrong."""
    views = study.views
    threshold = run.at(views.threshold) if views.threshold else None
    for turn in run.turns:
        is_low = threshold is not None and turn.score is not None and turn.score < threshold
        result = turn.heuristics.get(views.result) if views.result else None
        if not turn.is_replayed and (is_low or result not in (None, views.right)):
            return turn.turn
    return None


def _speakers(study: Study) -> tuple[str, str]:
    """What the two who speak are called: the one who prompts, and the model under test."""
    return study.views.said or study.views.prompt, study.rows.benchmark.parts.tested


def _turn(turn: TurnRow, study: Study) -> Mapping[str, Any]:
    reply = clean_text(turn.reply)
    return {
        "n": turn.turn,
        "s": None if turn.said is None else clean_text(turn.said),
        "r": reply,
        "p": turn.score,
        "u": None if turn.is_replayed else turn.unjudged_reason,
        "x": turn.is_replayed,
        "o": turn.outcome,
        "k": ", ".join(kinds_of(turn, study)),
        "h": clean_text("; ".join(_keys(turn)))[:LONGEST_HEURISTICS],
        "v": [_verdict(verdict, reply) for verdict in turn.verdicts],
    }


def _keys(turn: TurnRow) -> Iterator[str]:
    for name, value in {**turn.heuristics, **turn.own}.items():
        if value is not None:
            text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            yield f"{name.replace('_', ' ')}: {text.lower() if value in (True, False) else text}"


def _verdict(verdict: VerdictRow, reply: str) -> Mapping[str, Any]:
    seen = verdict.events or {}
    return {
        "j": verdict.juror,
        "p": verdict.score,
        "u": verdict.unjudged_reason,
        "d": verdict.scores,
        "w": {name: clean_text(why) for name, why in verdict.rationale.items() if why},
        "s": [[name, clean_text(quote or "")] for name, quote in seen.items()],
        "e": [*spans_of(reply, {**(verdict.quotes or {}), **seen})],
    }


def _packed(runs: Sequence[bytes]) -> str:
    squeezed = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    body = squeezed.compress(b"[" + b",".join(runs) + b"]") + squeezed.flush()
    return base64.b64encode(body).decode()


def _unbroken(text: str) -> str:
    """Keep a figure and its sign on one line."""
    return re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", text)


def _emphasis(models: Sequence[str]) -> Naming:
    """A function that emphasises names of models in a sentence."""
    from markupsafe import Markup

    longest = sorted(models, key=len, reverse=True)
    names = re.compile(f"({'|'.join(map(re.escape, longest))})")
    strong = Markup("<strong>{}</strong>")

    def emphasise(text: str) -> str:
        parts = names.split(_unbroken(clean_text(text)))  # every other one is a name
        words = (strong.format(part) if n % 2 else part for n, part in enumerate(parts))
        return Markup("").join(words)

    return emphasise


def _instructions(n_left_out: int, n_runs: int, call: Naming) -> list[str]:
    sentences = [
        (
            "The worst run first; a run opens where it first falls short. What the judge bases a "
            "score or an event on is marked in the reply."
        )
    ]
    if n_left_out:
        sentences.append(
            f"The transcripts of {n_left_out:,} of {count_text(n_runs, 'run')} are left out to "
            f"keep the file small ({call('max_size')})."
        )
    return sentences


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"
