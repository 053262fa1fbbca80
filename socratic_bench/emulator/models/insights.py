"""The simulated judge's closing verdict: who was the first to say what each insight says.

It is told nothing but the text. What is most like an insight says it, if enough of the insight's
words stand in it; the rarer a word is in the dialogue, the more it counts.
"""

import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from math import log

from msgspec import Struct

from socratic_bench.emulator.dialogue import JsonObject
from socratic_bench.emulator.models.judge import is_open_question

_ASKED = re.compile(r"^(insight_\d+): (.+)$", re.MULTILINE)
_MARK = r"^\[turn (\d+), (\w+)-{code}\]\n"
_SENTENCE = re.compile(r"[^.!?\u3002\uff01\uff1f\n]+(?:[.!?\u3002\uff01\uff1f]+[\"')\]]*|$)")
_QUOTED = re.compile('"[^"\\n]+"|\u201c[^\u201d\\n]+\u201d')
_WORD = re.compile(r"[^\W_]+")
# Leaves nothing but to agree.
_TAG = re.compile(
    r",\s*(?:\w+n't|right|is|does|did|was|are|do) ?(?:it|he|she|they|you|we|that)?\?$",
    re.IGNORECASE,
)
# Scripts that are written without spaces; of them two signs in a row are a word.
_UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]+")
_SHORTEST, _STEM = 2, 5
_ENOUGH = 0.4
# Who says nearly as much as the one who comes nearest has said it, too.
_NEARLY = 0.9


class Part(Struct, frozen=True):
    """What one of the two said at a turn."""

    turn: int
    speaker: str
    text: str


def closing_verdict(asked: str, record: str, code: str) -> JsonObject:
    """What became of each insight that is asked for, in a record whose marks have the code."""
    parts = tuple(_parts(record, code))
    stems = [frozenset[str]().union(*map(_stems, _sentences(part))) for part in parts]
    counts = Counter(stem for said in stems for stem in said)

    def weight(shared: frozenset[str]) -> float:
        return sum(log((len(parts) + 1) / max(1, counts[stem])) for stem in shared)

    found = {}
    for name, insight in _ASKED.findall(asked):
        sought = _stems(insight)
        shares = [weight(sought & said) / (weight(sought) or 1) for said in stems]
        least = max(_ENOUGH, _NEARLY * max(shares, default=0))
        at = next((at for at, share in enumerate(shares) if share >= least), None)
        found[name] = {"outcome": "missed"} if at is None else _shown(parts[at], sought)
    return found


def _shown(part: Part, sought: frozenset[str]) -> JsonObject:
    quote = max(_sentences(part), key=lambda sentence: len(sought & _stems(sentence)))
    outcome = "reached" if part.speaker == "student" else "told"
    return {"quote": quote, "turn": part.turn, "outcome": outcome}


def _parts(record: str, code: str) -> Iterator[Part]:
    """What was said, without what it repeats in quotation marks: that was said by another."""
    pieces = re.split(_MARK.format(code=code), record, flags=re.MULTILINE)[1:]
    before = ""
    for turn, speaker, text in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
        own = text
        for quoted in _QUOTED.findall(text):
            if quoted[1:-1] in before:
                own = own.replace(quoted, "\n")  # what is left and right of it stays as it was
        yield Part(int(turn), speaker, own.strip())
        before += f"\n{text}"


def _sentences(part: Part) -> list[str]:
    """What is said: a question that leaves its answer open says nothing."""
    sentences = [one.strip() for one in _SENTENCE.findall(part.text)]
    return [one for one in sentences if one and (_TAG.search(one) or not is_open_question(one))]


@lru_cache(maxsize=4096)
def _stems(text: str) -> frozenset[str]:
    """The words of a text, without their endings."""
    folded = text.replace("\u2019", "'").casefold()
    pairs = {run[at : at + 2] for run in _UNSPACED.findall(folded) for at in range(len(run) - 1)}
    spoken = _WORD.findall(_UNSPACED.sub(" ", folded))
    return frozenset(pairs | {word[:_STEM] for word in spoken if len(word) >= _SHORTEST})
