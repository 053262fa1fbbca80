"""Markdown into the writer's own prose: no code, no addresses, nobody else's words.

Every step reads its text once from left to right, and every pattern is bounded.
"""

import re
from collections.abc import Iterator, Sequence

from . import words as w

_HOLE = f" {w.HOLE} "
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}\s")
_BULLET = re.compile(r"\s*(?:[-*+\u2022]|\(?(?:\d{1,3}|[A-Za-z])[.)])\s+")
_QUOTED_LINE = re.compile(r" {0,3}>\s?")
_RULE_LINE = re.compile(r"[\s|:=*_-]+$")
_INDENTED_CODE = re.compile(r"(?: {4}|\t).*(?:[;{}=]|\):?$)")
_INDENTS = ("    ", "\t")
_TICKS = re.compile(r"`+")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-{2,})\s*$")
_BOLD_QUESTION = re.compile(r"\s*(?:\*\*|__)[^*_\n]{1,200}\?(?:\*\*|__):?(?=\s|$)")
# A question to the listener is no title.
_ADDRESSED = re.compile(r"\b(?:you|your|yours|yourself|me|us|let's)\b", re.IGNORECASE)
_TEXT = frozenset({"text", "cell"})
_SHORT_ANSWER = 2
_URL = re.compile(r"(?:https?://|www\.)\S*[\w/=&#%]")
_LINK = re.compile(r"!?\[([^\[\]\n]*)\](?:\([^()\s]*\)|\[[^\[\]\n]*\])")
_TAG = re.compile(r"</?[a-zA-Z][^<>\n]{0,200}>")
_TERNARY = re.compile(r"[=<>&|][^?\n]{0,60} \? [^?:\n]{1,60} : ")
_EMPHASIS = re.compile(r"\*+|(?<!\w)_+(?=\w)|(?<=[\w.?!])_+(?!\w)|~~")
_DOUBT = re.compile(r"[(\[]\s?[?!]+\s?[)\]]")
_QUOTES = re.compile(r"[\"'\u201c\u201d\u2018\u2019\u00ab\u00bb]")
_CLOSES = {'"': '"', "'": "'", "\u201c": "\u201d", "\u2018": "\u2019", "\u00ab": "\u00bb"}
# Words before a quoted question by which the speaker makes it their own.
_POSES = re.compile(
    r"\b(?:question|consider|yourself|puzzle|ask you|i ask|i'd ask|i would ask|think about|ponder)"
    r"[^.?!]{0,40}$",
    re.IGNORECASE,
)
_MARKS = str.maketrans({
    "\uff1f": "?", "\u061f": "?", "\u2047": "??", "\u203d": "?!", "\u2048": "?!", "\uff01": "!",
    "\u00bf": " ", "\u00a1": " ", "\u00a0": " ", "\u2026": "...",
})  # fmt: skip
_WIDE_END = re.compile(r"(?<=[\uff1f\uff01\u061f])(?=\w)")


def blocks(text: str) -> Iterator[str]:
    """Paragraphs, list items, table cells; a heading only where nothing follows to answer it."""
    heading = title = ""
    for kind, lines in _joined(_WIDE_END.sub(" ", text).translate(_MARKS)):
        own = _own_words(lines)
        if title and not (kind in _TEXT and _answers(own)):
            yield title
        heading, title = (own if kind == name else "" for name in ("heading", "title"))
        if kind in _TEXT:
            yield own
    yield from filter(None, (title, heading))


def _answers(block: str) -> bool:
    """Whether a statement to nobody follows a title: a hint or an order would leave it open."""
    words = block.split(maxsplit=_SHORT_ANSWER)
    first = words[0].lower().strip(".,:;!") if words else ""
    return not (
        len(words) < _SHORT_ANSWER or "?" in block or first in w.VERB or _ADDRESSED.search(block)
    )


def _joined(text: str) -> Iterator[tuple[str, str]]:
    """Lines of one paragraph come together; what begins with a mark of its own stands alone."""
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
    lines = list(_without_fences(text.splitlines()))
    for at, line in enumerate(lines):
        if not line.strip() or _RULE_LINE.match(line):
            yield "end", ""
        elif _underlined(lines, at):
            yield "title", line.strip()
        elif _HEADING.match(line):
            yield "heading", line.strip(" #\t")
        elif line.lstrip()[0] == "|":
            yield from (("cell", cell.strip()) for cell in line.split("|") if cell.strip())
        elif bullet := _BULLET.match(line):
            yield from _titled("item", line[bullet.end() :])
        else:
            yield from _titled("more", line)


def _underlined(lines: Sequence[str], at: int) -> bool:
    """A question of one line with a rule right below it."""
    below = "".join(lines[at + 1 : at + 2])
    above = "".join(lines[max(0, at - 1) : at])
    if not _UNDERLINE.match(below) or above.strip():
        return False
    return lines[at].rstrip().endswith("?") and not _ADDRESSED.search(lines[at])


def _titled(kind: str, line: str) -> Iterator[tuple[str, str]]:
    """A bold question at the head of a line, which what follows may answer."""
    bold = _BOLD_QUESTION.match(line)
    if not bold or _ADDRESSED.search(bold[0]):
        yield kind, line
        return
    yield "title", bold[0].strip()
    if rest := line[bold.end() :].strip():
        yield "item", rest


def _without_fences(lines: list[str]) -> Iterator[str]:
    """Fenced code, an unclosed fence to the end, indented code and quoted lines become holes.

    Indented lines are code after a blank line, as in Markdown: but not in a list, whose items go
    on so, and not before any text, where the whole reply may be indented.
    """
    fence, blank, code_next = "", True, False
    for line in lines:
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not line[mark.end() :].strip():
                fence = ""
        elif mark and "`" not in line[mark.end() :]:
            fence = mark[1]
            yield ""
        elif _QUOTED_LINE.match(line) or (blank and _is_code(line, plain=code_next)):
            yield ""
            blank = True
        else:
            yield line
            blank = not line.strip()
            code_next = _ends_list(line, code_next=code_next)


def _is_code(line: str, *, plain: bool) -> bool:
    indented = plain and line.startswith(_INDENTS) and line.strip() and not _BULLET.match(line)
    return bool(indented or _INDENTED_CODE.match(line))


def _ends_list(line: str, *, code_next: bool) -> bool:
    """Whether indented lines from here on would be code: not in a list, which prose ends."""
    if _BULLET.match(line):
        return False
    return code_next or (bool(line.strip()) and not line[0].isspace())


def _own_words(block: str) -> str:
    block = block.replace("\u2019", "'") if "\u2018" not in block else block
    if "`" in block:
        block = _without_ticks(block)
    if "://" in block or "www." in block:
        block = _URL.sub(_HOLE, block)
    if "[" in block:
        block = _LINK.sub(r"\1", block)
    if "<" in block:
        block = _TAG.sub(" ", block)
    if "?" in block:
        block = _DOUBT.sub(" ", _TERNARY.sub(_HOLE, block) if " ? " in block else block)
    block = _EMPHASIS.sub("", block)
    block = _without_quotations(block) if _QUOTES.search(block) else block
    return block.replace("\u2019", "'")


def _without_ticks(block: str) -> str:
    """Inline code ends at the next run of as many backticks; without one, the ticks are plain."""
    runs = list(_TICKS.finditer(block))
    closing: dict[int, int] = {}
    ends: list[int] = [0] * len(runs)
    for at in range(len(runs) - 1, -1, -1):
        length = len(runs[at].group())
        ends[at] = closing.get(length, 0)
        closing[length] = at
    kept, start, at = [], 0, 0
    while at < len(runs):
        if ends[at]:
            kept += [block[start : runs[at].start()], _HOLE]
            at = ends[at]
            start = runs[at].end()
        at += 1
    return "".join([*kept, block[start:]])


def _without_quotations(block: str) -> str:
    """Quoted words are somebody's, unless the whole block is in quotes or a frame poses them."""
    kept, start = [], 0
    for opening, closing in _quotations(block):
        inner = block[opening + 1 : closing]
        whole = start == 0 and not (block[:opening] + block[closing + 1 :]).strip(" .")
        if whole or _POSES.search(block, max(start, opening - 80), opening):
            kept += [block[start:opening], " ", inner, " "]
        else:
            ends = inner[-1:] in {".", "?", "!"} and _sentence_follows(block, closing + 1)
            kept += [block[start:opening], _HOLE, ". " if ends else ""]
        start = closing + 1
    return "".join([*kept, block[start:]])


def _sentence_follows(block: str, at: int) -> bool:
    after = block[at : at + 3].strip()
    return not after or (block[at].isspace() and not after[0].islower())


def _quotations(block: str) -> Iterator[tuple[int, int]]:
    """Pairs of places; an apostrophe is no quotation mark, and nothing is looked at twice."""
    marks = [m.start() for m in _QUOTES.finditer(block)]
    nearest: dict[str, int] = {}
    ends = dict.fromkeys(marks, -1)
    for at in reversed(marks):
        if block[at] in _CLOSES and _may_open(block, at):
            ends[at] = nearest.get(_CLOSES[block[at]], -1)
        if _may_close(block, at):
            nearest[block[at]] = at
    free = 0
    for at in marks:
        if at >= free and ends[at] > at:
            yield at, ends[at]
            free = ends[at] + 1


def _may_open(block: str, at: int) -> bool:
    before, after = block[at - 1 : at], block[at + 1 : at + 2]
    spaced = after.isspace() and block[at] != "\u00ab"
    return not (before.isalnum() or spaced or not after)


def _may_close(block: str, at: int) -> bool:
    before, after = block[at - 1 : at], block[at + 1 : at + 2]
    spaced = before.isspace() and block[at] != "\u00bb"
    return not (after.isalnum() or spaced or not before)
