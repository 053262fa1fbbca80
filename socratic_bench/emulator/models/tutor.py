"""The simulated tutors: a move from the plan, put into words on the subject of the dialogue."""

from random import Random

from socratic_bench.emulator.dialogue import Dialogue
from socratic_bench.emulator.models.grammar import book, expand, sayable
from socratic_bench.emulator.models.moves import Move, plan
from socratic_bench.emulator.models.pressure import help_for
from socratic_bench.emulator.models.subjects import subject_of

_PROBES = ("definition", "assumption", "evidence", "implication", "alternative")
_STRIDE = 17  # through the 60 probes: coprime to their number, and never to the same kind twice
_TRIES = 40

# Shares of the shapes that a reply can take.
_FROM_OPENING = 0.7
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
    """Words for one reply: the slots are drawn once, so that a reply stays with its subject."""

    def __init__(self, opening: str, latest: str, turn: int, random: Random) -> None:
        about, now = subject_of(_last_paragraph(opening)), subject_of(_last_paragraph(latest))
        self._random = random
        self._help = help_for(latest)
        self._place = sum(map(ord, opening[:200])) + turn * _STRIDE
        phrases = about.phrases if random.random() < _FROM_OPENING else _sound(now.phrases)
        quotes, claims = now.quotes or about.quotes, now.claims or about.claims
        self._slots = {
            # The first phrase is the likeliest subject.
            "np": (phrases or about.phrases)[
                int(random.random() ** 2 * len(phrases or about.phrases))
            ],
            "claim": random.choice(claims) if claims else "that",
        }
        if quotes:
            self._slots["q"] = random.choice(quotes)

    def say(self, move: Move) -> str:
        return sayable(self._said(move), self._slots["np"])

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
        return self._expand(self._random.choice(self._speakable(book("tutor")[kind])))

    def _expand(self, pattern: str) -> str:
        text = expand(pattern, self._random, self._slots)
        return text[0].upper() + text[1:]

    def _speakable(self, patterns: tuple[str, ...]) -> tuple[str, ...]:
        """The patterns that there are words for: nothing may be worth quoting."""
        return (
            patterns if "q" in self._slots else tuple(one for one in patterns if "{q}" not in one)
        )

    def _socratic(self) -> str:
        """One probing question; now and then a short reflection before it or a second one after."""
        draw = self._random.random()
        patterns = self._speakable(_probes())
        pattern = patterns[self._place % len(patterns)]
        parts = [self._expand(pattern)]
        if draw < _WITH_OPENER:
            # The same words twice in one reply would not be said by anybody.
            if "{q}" in pattern or self._slots["claim"] != "that":
                self._slots.pop("q", None)
            parts.insert(0, self._line("openers"))
        elif draw > 1 - _WITH_FOLLOWUP:
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
        parts = [self._expand(one) for one in self._random.sample(book("tutor")["lecture"], count)]
        if self._random.random() < _ASKING_LECTURE:
            parts.append(self._line("lecture_closings"))
        return " ".join(parts)


def _sound(phrases: tuple[str, ...]) -> tuple[str, ...]:
    """Without those that are a mere quotation, for want of a better one."""
    return tuple(phrase for phrase in phrases if phrase[0] != '"')


def _probes() -> tuple[str, ...]:
    """All probing patterns, the kinds in turn, so that neighbours differ in kind."""
    columns = [book("tutor")[kind] for kind in _PROBES]
    return tuple(pattern for row in zip(*columns, strict=True) for pattern in row)


def _last_paragraph(text: str) -> str:
    """A system prompt may have been folded into the first message, before what the student says."""
    return text.rstrip().rpartition("\n\n")[2] or text
