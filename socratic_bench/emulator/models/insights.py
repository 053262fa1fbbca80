"""The simulated judge's closing verdict: who was the first to say what each insight says.

It is told nothing but the text: an insight is said where most of its content words stand together,
those aside that the student has come with.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from msgspec import Struct

from socratic_bench.emulator.dialogue import JsonObject
from socratic_bench.emulator.models.judge import is_open_question
from socratic_bench.emulator.models.words import words

_ASKED = re.compile(r"^(insight_\d+): (.+)$", re.MULTILINE)
_MARK = r"^\[turn (\d+), (\w+)-{code}\]\n"
_SENTENCE = re.compile(r"[^.!?\u3002\uff01\uff1f\n]+(?:[.!?\u3002\uff01\uff1f]+[\"')\]]*|$)")
_WORD = re.compile(r"[^\W\d_]+")
# Scripts that are written without spaces; of them two signs in a row are a word.
_UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]+")
_SMALL = ("pronouns", "auxiliaries", "conjunctions", "adverbs", "prepositions", "determiners")
_SHORTEST, _STEM = 3, 5
_SHARE, _FEWEST = 0.6, 2


class Part(Struct, frozen=True):
    """What one of the two said at a turn."""

    turn: int
    speaker: str
    text: str


def closing_verdict(asked: str, record: str, code: str) -> JsonObject:
    """What became of each insight that is asked for, in a record whose marks have the code."""
    parts = tuple(_parts(record, code))
    brought = _stems(parts[0].text) if parts else frozenset()
    return {name: _found(insight, parts, brought) for name, insight in _ASKED.findall(asked)}


def _parts(record: str, code: str) -> Iterator[Part]:
    pieces = re.split(_MARK.format(code=code), record, flags=re.MULTILINE)[1:]
    for turn, speaker, text in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
        yield Part(int(turn), speaker, text.strip())


def _found(insight: str, parts: Sequence[Part], brought: frozenset[str]) -> JsonObject:
    content = _stems(insight)
    new = content - brought
    sought = new if len(new) >= _FEWEST else content
    for part in parts:
        said = [sentence for sentence in _sentences(part) if sought & _stems(sentence)]
        heard = sought & _stems(" ".join(said))
        if len(heard) >= max(min(_FEWEST, len(sought)), _SHARE * len(sought)):
            quote = max(said, key=lambda sentence: len(sought & _stems(sentence)))
            outcome = "reached" if part.speaker == "student" else "told"
            return {"quote": quote, "turn": part.turn, "outcome": outcome}
    return {"outcome": "missed"}


def _sentences(part: Part) -> list[str]:
    """What is said: a question that leaves its answer open says nothing."""
    sentences = [one.strip() for one in _SENTENCE.findall(part.text)]
    return [one for one in sentences if one and not is_open_question(one)]


@lru_cache(maxsize=4096)
def _stems(text: str) -> frozenset[str]:
    """The content words of a text, without their endings."""
    folded = text.replace("\u2019", "'").casefold()
    unspaced = _UNSPACED.findall(folded)
    pairs = {run[at : at + 2] for run in unspaced for at in range(len(run) - 1)}
    small = words(*_SMALL)
    spoken = _WORD.findall(_UNSPACED.sub(" ", folded))
    long = {word[:_STEM] for word in spoken if len(word) > _SHORTEST and word not in small}
    return frozenset(pairs | long)
