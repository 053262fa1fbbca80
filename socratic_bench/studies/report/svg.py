"""Charts as SVG and PNG, drawn by vl-convert and made fit for a page. In vl-convert's output each
mark has its words as a label and its colour as a value. Here labels become tooltips, coordinates
are rounded, and colours become classes, to which a page's style gives values for light and dark.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from html import escape
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree as ET

from socratic_bench.studies.report.charts import LIGHT, NAMED, PAPER
from socratic_bench.studies.report.parts import Chart, clean_text

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
    are drawn for a phone only, which fits any page.

    Raises `ImportError` without vl-convert.
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
    body = "".join(_texts(root))
    name = escape(name)
    return (
        f'<svg xmlns="{SVG}" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" font-size="{FONT_SIZE}" aria-labelledby="{name}-title {name}-desc"{more}>'
        f'<title id="{name}-title">{escape(chart.title)}</title>'
        f'<desc id="{name}-desc">{escape(chart.description)}</desc>{ground}{body}</svg>'
    )


def _texts(root: ET.Element) -> list[str]:
    ET.register_namespace("", SVG)
    texts = [ET.tostring(child, encoding="unicode") for child in root]
    return [text.replace(f' xmlns="{SVG}"', "").replace(" />", "/>") for text in texts]


def _draw(spec: Mapping[str, Any]) -> ET.Element:
    import vl_convert

    text = vl_convert.vegalite_to_svg(_map_texts(spec, clean_text), allowed_base_urls=[])
    root = ET.fromstring(text)  # noqa: S314 -- vl-convert's own
    _clean(root)
    _name_keys(root)
    return root


def _map_texts(spec: Any, words: Callable[[str], str]) -> Any:  # noqa: ANN401 -- the same
    """The same specification with changed texts."""
    if isinstance(spec, Mapping):
        return {key: _map_texts(value, words) for key, value in spec.items()}
    if isinstance(spec, list | tuple):
        return [_map_texts(value, words) for value in spec]
    return words(spec) if isinstance(spec, str) else spec


def _clean(parent: ET.Element) -> None:
    for child in [*parent]:
        if _is_empty(child):
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


def _is_empty(element: ET.Element) -> bool:
    """Whether an element is a frame that shows nothing."""
    kind = element.get("class", "")
    return kind in ("background", "foreground") or (not kind and element.get("display") == "none")


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
            element.attrib[key] = _NUMBER.sub(_round_number, value)
    if classes:
        element.set("class", " ".join(classes))


def _round_number(match: re.Match[str]) -> str:
    return f"{round(float(match[0]), PLACES):g}"


def _name_keys(root: ET.Element) -> None:
    """Give each sign of a legend the words beside it as a tooltip."""
    for parent in root.iter():
        for sign, words in pairwise(parent):
            is_key = sign.tag == f"{{{SVG}}}path" and words.tag == f"{{{SVG}}}text"
            if is_key and not len(sign):
                ET.SubElement(sign, f"{{{SVG}}}title").text = words.text


def draw_on_paper(chart: Chart) -> bytes:
    """A chart as a self-contained SVG file in fixed colours.

    Raises `ImportError` without vl-convert.
    """
    ground = f'<rect width="100%" height="100%" fill="{LIGHT[PAPER]}"/>'
    more = f' font-family="{FONTS}"'
    return _whole(chart, _draw(_on_paper(chart.specs.wide)), chart.name, more, ground).encode()


def _on_paper(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The specification in fixed colours on white, in the font that vl-convert includes: it draws
    no text in fonts that are not installed.
    """
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
