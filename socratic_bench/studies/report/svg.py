"""Charts as SVG: drawn by vl-convert, then made fit for a page.

vl-convert gives each mark its words as a label, and colours as they stand in the specification.
Here labels become tooltips, coordinates are rounded, and colours become classes, which a page's
style gives their values in light and dark.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from html import escape
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree as ET

from socratic_bench.studies.report.charts import LIGHT, NAMED, PAPER
from socratic_bench.studies.report.parts import Chart, shown_text

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


def drawn(charts: Iterable[Chart], most_bytes: int) -> dict[str, str]:
    """The SVGs of each chart for a page, by its name, with title and description: one for a page
    and one for a phone, of which the page's style shows the one that fits. Where all would take
    more than `most_bytes`, the largest charts are drawn for a phone alone, which any page can show.

    Raises `ImportError` without vl-convert.
    """
    found = {
        one.name: (
            _whole(one, _drawn(one.specs.wide), one.name, ' class="broad"'),
            _whole(one, _drawn(one.specs.narrow), f"{one.name}-narrow", ' class="narrow"'),
        )
        for one in charts
    }
    made = {name: "".join(both) for name, both in found.items()}
    for name in sorted(found, key=lambda one: -len(made[one])):
        if sum(map(len, made.values())) <= most_bytes:
            break
        made[name] = found[name][1].replace(' class="narrow"', "", 1)
    return made


def drawn_on_paper(chart: Chart) -> bytes:
    """The same as a file of its own, in the colours of paper. Raises `ImportError`, too."""
    ground = f'<rect width="100%" height="100%" fill="{LIGHT[PAPER]}"/>'
    more = f' font-family="{FONTS}"'
    return _whole(chart, _drawn(_on_paper(chart.specs.wide)), chart.name, more, ground).encode()


def painted(chart: Chart) -> bytes:
    """The same as PNG. Raises `ImportError`, too."""
    import vl_convert

    body: bytes = vl_convert.vegalite_to_png(
        _on_paper(chart.specs.wide), ppi=PAPER_PPI, allowed_base_urls=[]
    )
    return body


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


def _on_paper(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The same specification with the colours of paper, on white, in the font that vl-convert has
    with it: of others it draws no text where they are not installed.
    """
    found: dict[str, Any] = _mapped(
        spec, lambda text: LIGHT[_NAMES[text]] if text in _NAMES else shown_text(text)
    )
    return {**found, "config": {**found["config"], "background": LIGHT[PAPER], "font": OWN_FONT}}


def _mapped(spec: Any, words: Callable[[str], str]) -> Any:  # noqa: ANN401 -- the same
    """The same specification with its texts changed."""
    if isinstance(spec, Mapping):
        return {key: _mapped(value, words) for key, value in spec.items()}
    if isinstance(spec, list | tuple):
        return [_mapped(value, words) for value in spec]
    return words(spec) if isinstance(spec, str) else spec


def _drawn(spec: Mapping[str, Any]) -> ET.Element:
    import vl_convert

    text = vl_convert.vegalite_to_svg(_mapped(spec, shown_text), allowed_base_urls=[])
    root = ET.fromstring(text)  # noqa: S314 -- vl-convert's own
    _clean(root)
    _name_keys(root)
    return root


def _name_keys(root: ET.Element) -> None:
    """A sign in a key has the words beside it for a tooltip."""
    for parent in root.iter():
        for sign, words in pairwise(parent):
            is_key = sign.tag == f"{{{SVG}}}path" and words.tag == f"{{{SVG}}}text"
            if is_key and not len(sign):
                ET.SubElement(sign, f"{{{SVG}}}title").text = words.text


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


def _is_empty(one: ET.Element) -> bool:
    """A frame that shows nothing."""
    kind = one.get("class", "")
    return kind in ("background", "foreground") or (not kind and one.get("display") == "none")


def _set_classes(one: ET.Element) -> None:
    classes = []
    for key, prefix in (("fill", "f"), ("stroke", "s")):
        name = _NAMES.get(one.get(key, ""))
        if name:
            classes.append(f"{prefix}-{name}")
            del one.attrib[key]
    if "stroke" not in one.attrib and "s-" not in " ".join(classes):
        one.attrib.pop("stroke-width", None)
    for key in (*_DROPPED, "font-family"):
        one.attrib.pop(key, None)
    for key, value in [*one.attrib.items()]:
        if _MEANINGLESS.get(key) == value:
            del one.attrib[key]
        else:
            one.attrib[key] = _NUMBER.sub(_rounded, value)
    if classes:
        one.set("class", " ".join(classes))


def _rounded(found: re.Match[str]) -> str:
    return f"{round(float(found[0]), PLACES):g}"


def _texts(root: ET.Element) -> list[str]:
    ET.register_namespace("", SVG)
    texts = [ET.tostring(child, encoding="unicode") for child in root]
    return [text.replace(f' xmlns="{SVG}"', "").replace(" />", "/>") for text in texts]
