"""Extracts the writer's own prose from Markdown, without code, addresses and quotations.

Every step reads its text once from left to right, and every pattern is bounded.
"""

import re
from collections.abc import Iterator

from . import words as w

_HOLE = f" {w.HOLE} "
_MARKS = str.maketrans({
    "\uff1f": "?", "\u061f": "?", "\u2047": "??", "\u203d": "?!", "\u2048": "?!", "\uff01": "!",
    "\u00bf": " ", "\u00a1": " ", "\u00a0": " ", "\u2026": "...", "\r": "\n",
})  # fmt: skip
_WIDE_END = re.compile(r"(?<=[\uff1f\uff01\u061f])(?=\w)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}\s")
_BULLET = re.compile(r"\s*(?:[-*+\u2022]|\(?(?:\d{1,3}|[A-Za-z])[.)])\s+")
_APART = re.compile(r" {0,3}>|[\s|:=*_-]*$")
_INDENTED_CODE = re.compile(r"(?: {4}|\t).*(?:[;{}=]|\):?$)")
_BOLD_QUESTION = re.compile(r"\s*(?:\*\*|__)[^*_\n]{1,200}\?(?:\*\*|__):?(?=\s|$)")
# A question to the listener is no title.
_ADDRESSED = re.compile(r"\b(?:you|your|yours|yourself|me|us|let's)\b", re.IGNORECASE)
_TICKS = re.compile(r"(?<!`)(`+)(?!`)[^\n]{1,1000}?(?<!`)\1(?!`)")
_URL = re.compile(r"(?:https?://|www\.)\S*[\w/=&#%]")
_LINK = re.compile(r"!?\[([^\[\]\n]*)\](?:\([^()\s]*\)|\[[^\[\]\n]*\])")
_TAG = re.compile(r"</?[a-zA-Z][^<>\n]{0,200}>")
_TERNARY = re.compile(r"[=<>&|][^?\n]{0,60} \? [^?:\n]{1,60} : ")
_DOUBT = re.compile(r"[(\[]\s?[?!]+\s?[)\]]")
_EMPHASIS = re.compile(r"\*+|(?<!\w)_+(?=\w)|(?<=[\w.?!])_+(?!\w)|~~")
# Between marks of one kind, straight or curly; an apostrophe in a word is no mark.
_QUOTED = re.compile(
    r"(?<!\w)(?:\"(?!\s)([^\"]{1,2000})(?<!\s)\"|\u201c([^\u201c\u201d]{1,2000})\u201d"
    r"|\u00ab([^\u00ab\u00bb]{1,2000})\u00bb|\u2018((?:[^\u2018\u2019]|(?<=\w)\u2019(?=\w)){1,2000})"
    r"\u2019|'(?!\s)((?:[^']|(?<=\w)'(?=\w)){1,2000})(?<!\s)')(?!\w)"
)
# Words before a quoted question by which the speaker makes it their own.
_POSES = re.compile(
    r"\b(?:question|consider|yourself|puzzle|ask you|i ask|i'd ask|i would ask|think about|ponder)"
    r"[^.?!]{0,40}$",
    re.IGNORECASE,
)


def blocks(text: str) -> Iterator[str]:
    """Paragraphs, list items and table cells; a heading only if no text follows to answer it."""
    heading = title = ""
    for kind, lines in _joined(_WIDE_END.sub(" ", text).translate(_MARKS)):
        prose = _own_words(lines)
        if title and not (kind == "text" and _answers(prose)):
            yield title
        heading, title = (prose if kind == name else "" for name in ("heading", "title"))
        if kind == "text":
            yield prose
    yield from filter(None, (title, heading))


def _answers(block: str) -> bool:
    """Whether the block answers the title: a statement that does not address the listener."""
    first, _, remainder = block.strip().partition(" ")
    hint = first.lower().strip(".,:;!") in w.VERB or "?" in block or _ADDRESSED.search(block)
    return remainder != "" and not hint


def _joined(text: str) -> Iterator[tuple[str, str]]:
    """Join the lines of a paragraph; headings, titles and list items stay separate."""
    paragraph: list[str] = []
    for kind, line in _lines(text):
        if kind != "more" and paragraph:
            yield "text", " ".join(paragraph)
            paragraph = []
        if kind in {"more", "item"}:
            paragraph.append(line)
        elif kind != "end":
            yield kind, line
    if paragraph:
        yield "text", " ".join(paragraph)


def _lines(text: str) -> Iterator[tuple[str, str]]:
    for line in _without_code(text.splitlines()):
        if _APART.match(line):
            yield "end", ""
        elif _HEADING.match(line):
            yield "heading", line.strip(" #\t")
        elif line.lstrip()[0] == "|":
            yield from (("text", cell.strip()) for cell in line.split("|") if cell.strip())
        elif bullet := _BULLET.match(line):
            yield from _titled("item", line[bullet.end() :])
        else:
            yield from _titled("more", line)


def _titled(kind: str, line: str) -> Iterator[tuple[str, str]]:
    """A bold question at the head of a line, which what follows may answer."""
    bold = _BOLD_QUESTION.match(line)
    if not bold or _ADDRESSED.search(bold[0]):
        yield kind, line
        return
    yield "title", bold[0].strip()
    if remainder := line[bold.end() :].strip():
        yield "item", remainder


def _without_code(lines: list[str]) -> Iterator[str]:
    """Fenced code, an unclosed fence to the end, and indented code become blank lines.

    Indented lines are code after a blank line, as in Markdown, but not in a list, where they
    continue an item, and not before any text, since a whole reply may be indented.
    """
    fence, blank, code_next = "", True, False
    for line in lines:
        mark, bullet = _FENCE.match(line), _BULLET.match(line)
        indented = line.startswith(("    ", "\t"))
        if fence:
            if mark and mark[1].startswith(fence) and not line[mark.end() :].strip():
                fence = ""
        elif mark and "`" not in line[mark.end() :]:
            fence = mark[1]
            yield ""
        elif blank and indented and ((code_next and not bullet) or _INDENTED_CODE.match(line)):
            yield ""
        else:
            yield line
            blank = not line.strip()
            code_next = not bullet and (code_next or not (blank or indented))


def _own_words(block: str) -> str:
    if "`" in block:
        block = _TICKS.sub(_HOLE, block)
    block = block.replace("\u2019", "'") if "\u2018" not in block else block
    if "://" in block or "www." in block:
        block = _URL.sub(_HOLE, block)
    if "[" in block:
        block = _LINK.sub(r"\1", block)
    if "<" in block:
        block = _TAG.sub(" ", block)
    if "?" in block:
        block = _DOUBT.sub(" ", _TERNARY.sub(_HOLE, block) if " ? " in block else block)
    return _QUOTED.sub(_posed, _EMPHASIS.sub("", block)).replace("\u2019", "'")


def _posed(quotation: re.Match[str]) -> str:
    """The quotation as it counts: removed, unless the speaker poses it as a question of their own
    or the whole block is quoted.
    """
    block, (start, end) = quotation.string, quotation.span()
    inner = quotation[quotation.lastindex or 0]
    whole = not (block[:start].strip() if start <= 1 else block) and not block[end:].strip(" .")
    if whole or _POSES.search(block, max(0, start - 80), start):
        return f" {inner} "
    after = block[end : end + 3].strip()
    ends = inner[-1] in ".?!" and (not after or (block[end].isspace() and not after[0].islower()))
    return _HOLE + (". " if ends else "")
