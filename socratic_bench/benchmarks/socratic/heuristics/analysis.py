"""From a text to its heuristics."""

import re

from .types import Heuristics

_OPEN = re.compile(r"\b(?:what|why|how|tell me)\b", re.IGNORECASE)
_ADVICE = re.compile(r"\b(?:you should|let's|try to|you could|we should)\b", re.IGNORECASE)
_LEADING = re.compile(r"n't you think|, (?:right|isn't it|don't you)\?", re.IGNORECASE)


def analyse(text: str) -> Heuristics:
    count = len(re.findall(r"[?\uff1f]+", text))
    return Heuristics(
        has_question=count > 0,
        question_count=count,
        open_ended=count > 0 and _OPEN.search(text) is not None,
        has_advice=_ADVICE.search(text) is not None,
        is_leading=_LEADING.search(text) is not None,
    )
