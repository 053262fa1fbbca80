"""The simulated tutors: puts the planned move into words about the subject of the dialogue."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain, zip_longest
from pathlib import Path
from random import Random
from typing import Any

from socratic_bench.emulator.dialogue import Dialogue
from socratic_bench.emulator.models.grammar import book, expand, quoted_once
from socratic_bench.emulator.models.moves import Move, plan
from socratic_bench.emulator.models.student import help_for
from socratic_bench.emulator.models.subjects import Statements, statements, subject_of

_PROBES = ("definition", "assumption", "evidence", "implication", "alternative")
_STRIDE = 101  # step through the usable patterns: a prime larger than most of their numbers
_SLOT = re.compile(r"{(\w+)}")
_TRIES = 40
STEADY_ID = "emulator.socratic-v1:0"
_SCENARIOS = Path(__file__).parents[2] / "benchmarks" / "socratic" / "scenarios" / "data"
_OPEN_QUESTION = re.compile(
    r"(?:What|How|Why|In what|From what)\b(?! many| far| long)(?![^?]*thought)[^?]{30,}\?"
)

# Shares of the shapes that a reply can take.
_LEADS_ON = 0.5  # of the steady tutor's questions: such that lead to an insight of the scenario
_FOLLOWS_UP = 0.8  # of the replies to a student that stated something
_BACK_TO_OPENING = 0.3  # of the questions about an earlier statement
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
    earlier_replies = set(dialogue.own_texts)
    reply = ""
    for attempt in range(_TRIES):
        reply = _Speaker(dialogue, turn + attempt * 7, random).say(move)
        if reply not in earlier_replies:
            break
    return reply


class _Speaker:
    """Writes one reply. The slots are drawn once, so that all its sentences have one subject.

    It asks about the student's last statement. Without one, it asks about an earlier statement that
    it has not asked about, or about the opening.
    """

    def __init__(self, dialogue: Dialogue, turn: int, random: Random) -> None:
        users = dialogue.user_texts
        opening, latest = (users[0], users[-1]) if users else ("", "")
        about = subject_of(_last_paragraph(opening))
        self._random = random
        self._help = help_for(latest)
        self._place = sum(map(ord, opening[:200])) + turn * _STRIDE
        statement = self._statement(users, " ".join(dialogue.own_texts))
        self._is_back = opening != latest and statement is None
        quotes = about.statements.claims or about.statements.quotes
        quote = statement or (random.choice(quotes) if quotes else None)
        # The first phrase is the likeliest subject.
        phrase = about.phrases[int(random.random() ** 2 * len(about.phrases))]
        self._slots = _filled(np=about.topic or phrase, claim=quote or "that", quote=quote)
        self._insights = _insights(_last_paragraph(opening))
        self._turn = dialogue.turn
        self._is_steady = dialogue.base_id == STEADY_ID
        self._own_text = " ".join(dialogue.own_texts)
        if statement is None:
            # Of the opening, only a claim gives a view to question.
            is_claim = bool(about.statements.claims)
            np = about.topic or (None if is_claim else "this")
            self._probed = _filled(
                np=np,
                view=np if is_claim else None if quote else about.topic,
                term=about.term,
                quote=quote,
                claim=quote if is_claim else None,
            )
        else:
            claims = (claim for text in users for claim in _statements(text).claims)
            self._probed = _filled(
                quote=statement,
                claim=statement if statement in claims else None,
                now=statement if about.statements.claims else None,
            )

    def _statement(self, users: Sequence[str], asked_about: str) -> str | None:
        """What the student stated after its opening, to ask about next; `None` for nothing."""
        latest = _statements(users[-1]).quotes if len(users) > 1 else ()
        if latest and self._random.random() < _FOLLOWS_UP:
            return self._random.choice(latest)
        earlier = (quote for text in users[1:-1] for quote in _statements(text).quotes)
        open_statements = [quote for quote in earlier if quote not in asked_about]
        return self._random.choice(open_statements) if open_statements else None

    def say(self, move: Move) -> str:
        text = quoted_once(self._words_of(move), self._slots["np"])
        return quoted_once(text, self._slots.get("quote", ""))

    def _words_of(self, move: Move) -> str:
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
        patterns = _speakable((kind,), frozenset(slots))
        return self._expand(self._random.choice(patterns), slots) if patterns else "How so?"

    def _expand(self, pattern: str, slots: Mapping[str, str]) -> str:
        text = expand(pattern, self._random, slots)
        return text[0].upper() + text[1:]

    def _socratic(self) -> str:
        """One probing question; now and then a short reflection before it or a second one after."""
        leads_on = self._is_steady and self._turn and self._random.random() < _LEADS_ON
        if leads_on and (question := self._leading_on()):
            return question
        draw = self._random.random()
        patterns = _speakable(_PROBES, frozenset(self._probed))
        if "now" in self._probed and self._random.random() < _BACK_TO_OPENING:
            patterns = tuple(pattern for pattern in patterns if "{now}" in pattern)
        parts = [self._expand(patterns[self._place % len(patterns)], self._probed)]
        if draw < _WITH_OPENER:
            parts.insert(0, self._line("openers_back" if self._is_back else "openers"))
        elif draw > 1 - _WITH_FOLLOWUP and "view" in self._probed and ", and " not in parts[0]:
            parts.append(self._line("followups"))
        return " ".join(parts)

    def _leading_on(self) -> str | None:
        """A question for the next step to an insight, step by step and insight by insight, after
        the student's words.
        """
        quote = self._probed.get("quote")
        before = f"You {'said' if self._is_back else 'say'} {quote}. " if quote else ""
        for insight in self._insights:
            for step in insight.get("asked", ()):
                questions = _OPEN_QUESTION.findall(step)
                if questions and not any(question in self._own_text for question in questions):
                    return f"{before}{self._random.choice(questions)}"
        return None

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
        patterns = self._random.sample(book("tutor")["lecture"], count)
        parts = [self._expand(pattern, self._slots) for pattern in patterns]
        if self._turn < len(self._insights):
            lesson = self._insights[self._turn]["insight"]
            parts.insert(1, f"{lesson[0].upper()}{lesson[1:]}.")
        if self._random.random() < _ASKING_LECTURE:
            parts.append(self._line("lecture_closings"))
        return " ".join(parts)


def _statements(text: str) -> Statements:
    return statements(_last_paragraph(text))


@lru_cache(maxsize=256)
def _insights(opening: str) -> Sequence[Mapping[str, Any]]:
    """What there is to see in the built-in scenario of this opening, each with the questions that
    lead to it step by step; empty for any other opening.
    """
    quoted = opening.replace('"', '\\"')
    for path in sorted(_SCENARIOS.glob("*.toml")):
        text = path.read_text("utf-8")
        if quoted and quoted in text:
            scenario = tomllib.loads(text)
            if opening in scenario["openings"]:
                return tuple(
                    {"insight": entry} if isinstance(entry, str) else entry
                    for entry in scenario.get("draws_out", ())
                )
    return ()


def _filled(**slots: str | None) -> Mapping[str, str]:
    return {name: words for name, words in slots.items() if words}


@lru_cache
def _speakable(kinds: tuple[str, ...], slots: frozenset[str]) -> tuple[str, ...]:
    """The patterns whose slots are all filled, the kinds taking turns."""
    rows = zip_longest(*(book("tutor")[kind] for kind in kinds))
    patterns = filter(None, chain.from_iterable(rows))
    return tuple(pattern for pattern in patterns if slots.issuperset(_SLOT.findall(pattern)))


def _last_paragraph(text: str) -> str:
    """A system prompt may have been folded into the first message, before what the student says."""
    return text.rstrip().rpartition("\n\n")[2] or text
