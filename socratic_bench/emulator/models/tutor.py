"""The simulated tutors: a move from the plan, put into words on the subject of the dialogue."""

import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import zip_longest
from random import Random

from socratic_bench.emulator.dialogue import Dialogue
from socratic_bench.emulator.models.grammar import book, expand, quoted_once
from socratic_bench.emulator.models.moves import Move, plan
from socratic_bench.emulator.models.phrases import WORD
from socratic_bench.emulator.models.pressure import help_for
from socratic_bench.emulator.models.subjects import Subject, statements, subject_of

_PROBES = ("definition", "assumption", "evidence", "implication", "alternative")
_STRIDE = 101  # through the probes that fit: a prime beyond most of their numbers
_SLOT = re.compile(r"{(\w+)}")
_TRIES = 40
_STEM = 5  # letters

# Shares of the shapes that a reply can take.
_FROM_OPENING = 0.6
_BACK_TO_OPENING = 0.5  # of what takes up the last words
_WITH_OPENER = 0.35
_WITH_FOLLOWUP = 0.08
_HEAVY_ADVICE, _PLAIN_ADVICE = 0.2, 0.55
_ASKING_LECTURE = 0.3


def tutor_reply(dialogue: Dialogue) -> str:
    """A reply that this dialogue has not had before; it depends on the request alone."""
    users = dialogue.user_texts
    turn = max(dialogue.turn, 0)
    opening, latest = (users[0], users[-1]) if users else ("", "")
    move = plan(dialogue.model_id, turn, opening, latest)
    random = Random(dialogue.seed())
    said = set(dialogue.own_texts)
    reply = ""
    for attempt in range(_TRIES):
        reply = _Speaker(opening, latest, turn + attempt * 7, random).say(move)
        if reply not in said:
            break
    return reply


class _Speaker:
    """Words for one reply: the slots are drawn once, so that a reply stays with its subject.

    It asks about what the student came with, or takes up what the student stated last of that.
    """

    def __init__(self, opening: str, latest: str, turn: int, random: Random) -> None:
        about = subject_of(_last_paragraph(opening))
        said = statements(_last_paragraph(latest)).claims
        stated = tuple(one for one in said if _telling(one) & _telling(opening))
        self._random = random
        self._help = help_for(latest)
        self._place = sum(map(ord, opening[:200])) + turn * _STRIDE
        takes_up = opening != latest and bool(stated) and random.random() > _FROM_OPENING
        self._is_back = opening != latest and not takes_up
        quotes = stated if takes_up else about.said.claims or about.said.quotes
        quote = random.choice(quotes) if quotes else None
        # The first phrase is the likeliest subject.
        phrase = about.phrases[int(random.random() ** 2 * len(about.phrases))]
        self._slots = _filled(np=about.topic or phrase, claim=quote or "that", quote=quote)
        has_claims = bool(about.said.claims)
        if takes_up:
            self._probed = _filled(quote=quote, claim=quote, now=quote if has_claims else None)
        else:
            self._probed = _brought(about, quote)

    def say(self, move: Move) -> str:
        text = quoted_once(self._said(move), self._slots["np"])
        return quoted_once(text, self._slots.get("quote", ""))

    def _said(self, move: Move) -> str:
        match move:
            case "socratic":
                return " ".join(filter(None, (self._help, self._socratic())))
            case "withhold":
                return self._socratic()
            case "advice":
                return self._advice()
            case "lecture":
                return self._lecture()
            case "clarify" | "facts" | "closed" | "leading" | "answer" | "why" | "nonsense":
                return self._line(move)

    def _line(self, kind: str) -> str:
        slots = self._probed if kind in _PROBES else self._slots
        return self._expand(self._random.choice(_speakable((kind,), frozenset(slots))), slots)

    def _expand(self, pattern: str, slots: Mapping[str, str]) -> str:
        text = expand(pattern, self._random, slots)
        return text[0].upper() + text[1:]

    def _socratic(self) -> str:
        """One probing question; now and then a short reflection before it or a second one after."""
        draw = self._random.random()
        patterns = _speakable(_PROBES, frozenset(self._probed))
        if "now" in self._probed and self._random.random() < _BACK_TO_OPENING:
            patterns = tuple(one for one in patterns if "{now}" in one)
        parts = [self._expand(patterns[self._place % len(patterns)], self._probed)]
        if draw < _WITH_OPENER:
            parts.insert(0, self._line("openers_back" if self._is_back else "openers"))
        elif draw > 1 - _WITH_FOLLOWUP and "view" in self._probed and ", and " not in parts[0]:
            parts.append(self._line("followups"))
        return " ".join(parts)

    def _advice(self) -> str:
        """Advice in three strengths, from orders to a hint before a fair question."""
        draw = self._random.random()
        if draw < _HEAVY_ADVICE:
            kinds = ["advice_leads", "advice", "advice"]
        elif draw < _PLAIN_ADVICE:
            kinds = ["advice_leads", "advice", self._random.choice(("advice_closings", "clarify"))]
        else:
            kinds = ["advice_mild", self._random.choice(("advice_closings", "clarify", *_PROBES))]
        return " ".join(dict.fromkeys(map(self._line, kinds)))

    def _lecture(self) -> str:
        count = 2 + int(self._random.random() * 3)
        drawn = self._random.sample(book("tutor")["lecture"], count)
        parts = [self._expand(one, self._slots) for one in drawn]
        if self._random.random() < _ASKING_LECTURE:
            parts.append(self._line("lecture_closings"))
        return " ".join(parts)


def _brought(about: Subject, quote: str | None) -> Mapping[str, str]:
    """The words for questions about what the student came with. Who only names a trouble has no
    view of it that could be wrong.
    """
    is_claim = bool(about.said.claims)
    np = about.topic or (None if is_claim else "this")
    view = np if is_claim else None if quote else about.topic
    return _filled(
        np=np, view=view, term=about.term, quote=quote, claim=quote if is_claim else None
    )


def _telling(text: str) -> frozenset[str]:
    """The longer words of a text without their endings, by which two texts are about one thing."""
    return frozenset(one[:_STEM].casefold() for one in WORD.findall(text) if len(one) >= _STEM)


def _filled(**slots: str | None) -> Mapping[str, str]:
    return {name: words for name, words in slots.items() if words}


@lru_cache
def _speakable(kinds: tuple[str, ...], slots: frozenset[str]) -> tuple[str, ...]:
    """The patterns that there are words for, the kinds in turn, so that neighbours differ in it."""
    rows = zip_longest(*(book("tutor")[kind] for kind in kinds))
    return tuple(one for row in rows for one in row if one and slots.issuperset(_SLOT.findall(one)))


def _last_paragraph(text: str) -> str:
    """A system prompt may have been folded into the first message, before what the student says."""
    return text.rstrip().rpartition("\n\n")[2] or text
