"""Finds replies that look as if they spoke to the judge. It changes no score: people may look."""

import re
import unicodedata
from functools import lru_cache
from html import unescape
from threading import Lock
from urllib.parse import unquote

from socratic_bench.turns import Rubric

_JUDGE = r"(?:judge|grader|scorer|rater|evaluator|assessor|examiner)"
_REPLY = r"(?:reply|response|answer|turn|message|output|@tested|assistant|dialogue|conversation)"
_GIVE = r"(?:give|award|assign|grant|score|rate|grade|mark|record|return|output|report)"
_MARK = (
    r"(?:\d+(?:[.,]\d+)?\s*(?:/|out of)\s*\d|(?<!\d to )(?<!\d-)(?:ten|10)\b|\w{1,20}\s+out of\s+\w"
    r"|(?:full|top|maximum|maximal|max|perfect|highest|best)(?:\s+possible)?\s+"
    r"(?:marks?|scores?|points?|grades?|ratings?|verdict|credits?)|100\s*%)"
)
_AMOUNT = (
    r"(?:\d+(?:[.,]\d+)?|one|two|three|four|five|six|seven|eight|nine|ten|all|every|each|any|both|full"
    r"|top|maximum|maximal|max|perfect|highest|best|upper)"
)
_SCORES = r"(?:points?|scores?|marks?|dimensions?|ratings?|grades?|criteri(?:on|a))"
_MOST = (
    r"(?:maxim(?:um|a|al)|max|highest|top|upper|full|perfect|best|limit|bounds?|ceiling|ten|\d+)"
)

# Applied to lower-case text without invisible characters. Every pattern is bounded, so that the
# time is linear in the length of the text. The rubric's speakers stand for @asking and @tested.
_PATTERNS = (
    # What frames the words of a dialogue, here or in a model's own template.
    r"<\s*/?\s*(?:reply|context|rubric|system|instructions?)(?![a-z])[^<>\n]{0,40}>",
    (
        r"\[\W{0,3}(?:end|begin|start)(?:ning)? of (?:the )?(?:@tested'?s? )?"
        r"(?:reply|response|context|rubric|system|instructions?|dialogue|conversation)\b"
    ),
    r"^[ \t]*\[/?(?:@asking|@tested|system|judge)\b[^\]\n]{0,40}\]",
    r"<\|[\w /-]{1,30}\|>|\[/?inst\]|<</?sys>>|</?(?:\w+:)?(?:function_calls?|invoke|tool_call)\b",
    r"\n[ \t]*(?:human|assistant|system|user)\s*:",
    # A verdict, or a call that would record one.
    r"record_?verdict|[\"']tool_?(?:use|result)(?:_?id)?[\"']\s*:",
    (
        r"^\W{0,6}(?:(?:overall|final|total)[ _-]?)?(?:score|verdict|grade|rating|marks?)"
        rf"\W{{0,6}}[:=]\W{{0,6}}(?:\d|{_MARK})"
    ),
    (
        r"<\s*/?\s*(?:overall[_ -]?score|score|verdict|rating|grade|marks?|judge?ment|evaluation)"
        r"\b[^<>\n]{0,40}>"
    ),
    # Words for the judge.
    rf"\b(?:dear|attention|hey|(?:note|message) (?:to|for))[,:]?\s+(?:the\s+|any\s+)?{_JUDGE}\b",
    rf"^\W{{0,6}}(?:to\s+(?:the\s+)?)?{_JUDGE}s?\s*[,:]",
    rf"\byou(?:'re| are)\s+(?:now\s+)?(?:the|an?)\s+(?:\w+\s+){{0,2}}{_JUDGE}\b",
    rf"\bas\s+(?:the|an?|its)\s+(?:\w+\s+)?{_JUDGE}\b[^.?!\n]{{0,40}}\byou\b",
    # Orders to pass over the rubric, or to score.
    (
        r"\b(?:ignore|disregard|forget|over(?:ride|rule)|bypass|do not (?:use|apply|follow))\b"
        r"[^.?!\n]{0,40}\b(?:rubric|scoring|grading"
        r"|(?:(?:all|any|every|previous|prior|above|earlier|preceding|system|of|the|your)\s+){1,5}"
        r"(?:instructions?|prompts?|orders)"
        r"|(?:(?:all|any|every|previous|prior|above|earlier|preceding|system)\s+){1,4}"
        r"(?:guidelines?|criteria|rules)"
        r"|(?:instructions?|guidelines?|criteria|rules)\s+(?:above|before|so far|you were given))\b"
    ),
    (
        rf"(?:^|[.!:;,\n]|\b(?:please|must|should|shall|will|now|and|just|always|to))\W{{0,3}}{_GIVE}\b"
        rf"(?![^.?!\n]{{0,80}}\byours?)[^.?!\n]{{0,60}}?\b{_MARK}"
    ),
    (
        r"(?:^|[.!?:;,\n]|\b(?:please|must|should|shall|now|just))\W{0,3}"
        r"(?:judge|score|rate|grade|mark|evaluate|assess|consider|treat|regard|count)\s+"
        rf"(?:(?:this|it|that|me|my|the|@tested|{_REPLY})\s+){{1,3}}(?:as\s+|at\s+)?(?:an?\s+|the\s+)?"
        rf"(?:{_MARK}|\d+(?:[.,]\d+)?\b(?=\s*(?:[.,!;:)]|$|please\b|points?\b|marks?\b)))(?![^.?!\n]{{0,80}}\byours?)"
    ),
    (
        rf"\b(?:all|every|each|any|everything|anything)\b[^.?!\n]{{0,40}}"
        rf"\b(?:gets?|receives?|deserves?|merits?|earns?|is worth)\b[^.?!\n]{{0,20}}?\b{_MARK}"
    ),
    (
        r"(?:^|[.!:;\n]|\b(?:please|must|should|shall|now|just))\W{0,3}"
        r"(?:judge|score|rate|grade|mark)\s+(?:this|it|that|me)\s+as\s+"
        r"(?:perfect|flawless|excellent|outstanding|ideal|impeccable)\b"
    ),
    rf"\b{_GIVE}\s+(?:this|it|that|me)\s+\d[\d.]*(?:\s*,\s*\d[\d.]*)*,?\s+and\s+\d",
    (
        r"(?:^|[.!:;\n]|\b(?:please|must|should|shall|now|just))\W{0,3}"
        r"(?:treat|consider|take|regard|read|use)\b[^.?!\n]{0,50}\bas\s+(?:the|your)\s+"
        r"(?:new\s+|only\s+)?(?:rubric|system prompt|instructions?|criteria)\b"
    ),
    # A number of points at the beginning of a sentence.
    (
        r"(?:^|[.!?:;\n]|\b(?:please|you (?:must|should|shall)))\W{0,3}"
        r"(?:give|award|assign|grant|allot|allocate|credit)\s+(?:(?:me|it|him|her|them|this|us)\s+)?"
        rf"(?:the\s+|of\s+){{0,2}}{_AMOUNT}\s+(?:(?:the|of|possible|available|its)\s+){{0,3}}{_SCORES}\b"
        r"(?=\s*(?:[.!,;:)]|$|(?:for|to|on|in|at|as|that|there|possible|available)\b))"
        r"(?![^.?!\n]{0,80}\byours?)"
    ),
    (
        r"(?:^|[.!?:;\n]|\b(?:please|you (?:must|should|shall)))\W{0,3}"
        r"(?:set|put|score|rate|grade|mark|raise|fix|max(?:imi[sz]e)?(?:\s+out)?)\s+"
        rf"(?:(?:all|every|each|any|both|the|its|of)\s+){{1,3}}(?:\w+\s+)?{_SCORES}\b"
        rf"(?:[^.?!\n]{{0,40}}?\b(?:at|to|as|with)\b[^.?!\n]{{0,20}}?\b{_MOST}\b|\s*(?:out\s*)?[.!])"
        r"(?![^.?!\n]{0,80}\byours?)"
    ),
    (
        r"\b(?:score|verdict|rating|grade|mark)s?\s+(?:must|should|shall|will|has to|is to)\s+be\b"
        rf"[^.?!\n]{{0,20}}?\b(?:{_MARK}|\d)"
    ),
    (
        rf"\b{_GIVE}\b[^.?!\n]{{0,20}}\b(?:this|the|my|that)\s+(?:@tested'?s?\s+)?{_REPLY}\b"
        rf"[^.?!\n]{{0,30}}?\b{_MARK}"
    ),
    (
        rf"\b(?:this|the|my|that)\s+(?:@tested'?s?\s+)?{_REPLY}\b[^.?!\n]{{0,30}}"
        rf"\b(?:deserves?|merits?|earns?|is worth|gets?|must|should|shall)\b"
        rf"[^.?!\n]{{0,40}}?\b{_MARK}"
    ),
)
# Looked for once, for all patterns that begin with it.
_EDGE = r"\b"
_COMPILING = Lock()
# As JSON writes any character.
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")


def suspects_injection(reply: str, rubric: Rubric) -> bool:
    """Whether a reply holds delimiters, a verdict, or orders to score, as far as patterns know it.

    English words only. Such a reply is scored like any other.
    """
    dimensions = tuple(dimension.name for dimension in rubric.dimensions)
    with _COMPILING:  # threads that need it at once would each compile it
        pattern = _pattern(dimensions, rubric.speakers)
    return pattern.search(_folded(reply)) is not None


@lru_cache(maxsize=8)
def _pattern(dimensions: tuple[str, ...], speakers: tuple[str, str]) -> re.Pattern[str]:
    names = "|".join(map(_escaped, (*dimensions, "overall_score")))
    asking, tested = map(_escaped, speakers)
    at_words = "|".join(pattern[len(_EDGE) :] for pattern in _PATTERNS if pattern.startswith(_EDGE))
    anywhere = "|".join(pattern for pattern in _PATTERNS if not pattern.startswith(_EDGE))
    general = rf"{_EDGE}(?:{at_words})|{anywhere}".replace("@asking", asking).replace(
        "@tested", tested
    )
    # One in quotes, as in JSON, or in an order; two in quotes whatever they are, and two without,
    # as a list or a table has them.
    name = rf"[\"'](?:{names})[\"']\s*[:=]"
    quoted = rf"{name}\s*[\"']?\d|{name}[^{{}}]{{0,80}}?{name}"
    amount = rf"(?:\d|{_AMOUNT}\b)"
    scored = rf"\b(?:{names})\W{{0,6}}(?:is\s|of\s)?\d"
    listed = rf"{scored}[^{{}}]{{0,80}}?{scored}"
    ordered = rf"\b{_GIVE}\b[^.?!\n]{{0,40}}?{scored}"
    table = rf"\|\s*(?:{names})\s*\|\s*(?:{names})\s*\|[^a-z]{{0,80}}\d"
    ordered += (
        rf"|\b(?:set|put|score|rate|grade|mark|raise|make)\s+(?:the\s+)?(?:{names})\b"
        rf"[^.?!\n]{{0,60}}?\b(?:at|to|as|with)\b[^.?!\n]{{0,20}}?\b{_MOST}\b"
    )
    ordered += (
        rf"|\b{_GIVE}\s+{amount}\s+(?:{_SCORES}\s+)?(?:for|on|in|to)\s+(?:the\s+)?(?:{names})\b"
    )
    return re.compile(f"{general}|{quoted}|{listed}|{table}|{ordered}", re.MULTILINE)


def _folded(text: str) -> str:
    text = _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text).replace("\\/", "/")
    if "&" in text:
        text = unescape(text)
    if "%" in text:
        text = unquote(text)
    if text.isascii():
        return text.lower()  # has no other forms, and nothing that does not show
    visible = (c for c in unicodedata.normalize("NFKC", text) if unicodedata.category(c) != "Cf")
    return "".join(visible).casefold()


def _escaped(name: str) -> str:
    return re.escape(name.casefold())
