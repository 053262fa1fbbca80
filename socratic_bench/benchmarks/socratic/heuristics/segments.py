"""Plain prose cut into sentences, and each sentence at its commas into clauses of words."""

import re
from collections.abc import Iterable, Iterator, Sequence

from . import words as w

_END = re.compile(r"[.?!\u2026]+(?=[\s\"')\]\u201d\u2019]|[^\x00-\x7f]|$)")
_TOKEN = re.compile(r"[^\W_]+(?:'[^\W_]+)*(?:-(?=\s|$))?|[,;:()\u2013\u2014]|--|(?<=\s)-(?=\s)")
_BREAKS = frozenset({",", ";", ":", "(", ")", "\u2013", "\u2014", "--", "-"})
_SUFFIXES = frozenset({"s", "re", "ve", "d", "ll", "m"})
_ABBREVIATIONS = w.listed(
    "e.g i.e eg ie etc dr mr mrs ms prof st vs cf fig no approx p pp ch sec al jr sr"
)
_PAIR = 2


Part = tuple[str, tuple[str, ...]]


def segments(block: str) -> Iterator[tuple[tuple[Part, ...], str]]:
    """Each sentence as its clauses, each with the sign before it, and the sentence's mark."""
    for text, mark in _split(block):
        yield tuple(_rejoined(tuple(_clauses(_tokens(text))))), mark


def _split(block: str) -> Iterator[tuple[str, str]]:
    start = 0
    for end in _END.finditer(block):
        marks = end.group()
        if "?" not in marks and "!" not in marks and not _full_stop(block, start, end):
            continue
        yield block[start : end.start()], "?" if "?" in marks else marks[0]
        start = end.end()
    if start < len(block):
        yield block[start:], ""


def _full_stop(block: str, start: int, end: re.Match[str]) -> bool:
    """Whether dots end a sentence: not after "e.g" or an initial, nor before "... and"."""
    before = block[max(start, end.start() - 8) : end.start()].rpartition(" ")[2].strip("(")
    if len(end.group()) == 1:
        initial = len(before) == 1 and before.isupper() and before != "I"
        return before.lower() not in _ABBREVIATIONS and not initial
    return not block[end.end() : end.end() + 2].strip().islower()


def _tokens(text: str) -> Iterator[str]:
    """Lower-case words, contractions in two; no fillers, cut-off words or stammered repeats."""
    last = ""
    for token in _TOKEN.findall(text.lower()):
        cut_off = token.endswith("-") and token not in _BREAKS
        if token in w.FILLER or cut_off or token == last:
            continue
        last = token
        if "'" not in token or token in w.NEGATED:
            yield token
            continue
        stem, _, suffix = token.rpartition("'")
        if suffix in _SUFFIXES:
            yield stem
            yield "'" + suffix
        else:
            yield token


def _clauses(tokens: Iterable[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each clause with the sign that stands before it."""
    clause: list[str] = []
    sign = ""
    for token in tokens:
        if token not in _BREAKS:
            clause.append(token)
            continue
        if clause:
            yield sign, tuple(clause)
            clause = []
        sign = token
    if clause:
        yield sign, tuple(clause)


def _rejoined(parts: Sequence[Part]) -> Sequence[Part]:
    """Puts an inserted phrase first: "what, then, is it", "you could, for example, go"."""
    kept: list[Part] = []
    at = 0
    while at < len(parts):
        if at + _PAIR < len(parts) and _cut_off(parts[at][1], parts[at + _PAIR][1]):
            (sign, opening), (_, inserted), (closing, rest) = parts[at : at + _PAIR + 1]
            kept += [(sign, inserted), (closing, opening + rest)]
            at += _PAIR
        else:
            kept.append(parts[at])
        at += 1
    return kept


def _cut_off(opening: tuple[str, ...], rest: tuple[str, ...]) -> bool:
    """A bare wh-word waits for its auxiliary or verb, a subject's modal for its verb."""
    start = lead(opening)
    if opening[-1] in w.WH and start == len(opening) - 1 and len(rest) > 1:
        verbal = rest[0] in w.AUXILIARY or rest[0].endswith("s")
        tag = len(rest) == _PAIR and rest[1] in w.PRONOUN
        return verbal and not tag and rest[0] not in w.SUBJECT_START
    modal = opening[-1] in w.MODAL and opening[-2:-1] != () and opening[-2] in w.PRONOUN
    return modal and rest[0] in w.VERB


def lead(words: Sequence[str]) -> int:
    """How many discourse markers stand first; "like" or "right" alone leave nothing."""
    at = 0
    while at < len(words):
        if words[at] in w.LEAD:
            at += 1
        elif tuple(words[at : at + 2]) in w.LEAD_PAIRS:
            at += 2
        else:
            break
    return at
