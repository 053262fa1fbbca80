"""The simulated tutors: a move from the plan, put into words on the subject of the dialogue."""

from random import Random

from socratic_bench.emulator.dialogue import Dialogue
from socratic_bench.emulator.models.grammar import book, expand
from socratic_bench.emulator.models.moves import Move, plan
from socratic_bench.emulator.models.subjects import subject_of

_PROBES = ("definition", "assumption", "evidence", "implication", "alternative")
_TRIES = 40


def tutor_reply(dialogue: Dialogue) -> str:
    """A reply that this dialogue has not had before; it depends on the request alone."""
    users = dialogue.user_texts
    turn = max(dialogue.turn, 0)
    opening, latest = (users[0], users[-1]) if users else ("", "")
    move = plan(dialogue.model_id, turn, opening)
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
        self._turn = turn
        self._start = sum(map(ord, opening[:200]))
        phrase = random.choice(about.phrases if random.random() < 0.6 else now.phrases)  # noqa: PLR2004
        quotes = (
            now.quotes or about.quotes or (f"the words {phrase}" if phrase[0] == '"' else phrase,)
        )
        self._slots = {"np": phrase, "q": random.choice(quotes)}

    def say(self, move: Move) -> str:
        match move:
            case "socratic":
                return self._socratic()
            case "advice":
                return self._advice()
            case "lecture":
                return self._lecture()
            case "clarify" | "facts" | "closed" | "leading":
                return self._line(move)

    def _line(self, kind: str) -> str:
        text = expand(self._random.choice(book("tutor")[kind]), self._random, self._slots)
        return text[0].upper() + text[1:]

    def _socratic(self) -> str:
        """One probing question; now and then a short reflection before it or a second one after."""
        draw = self._random.random()
        parts = [self._probe()]
        if draw < 0.4:  # noqa: PLR2004
            parts.insert(0, self._line("openers"))
        elif draw > 0.92:  # noqa: PLR2004
            parts.append(self._line("followups"))
        return " ".join(parts)

    def _probe(self) -> str:
        """Walk through all patterns before one comes back, in an order that the opening decides."""
        patterns = _probes()
        place = (self._start + self._turn * 17) % len(patterns)
        text = expand(patterns[place], self._random, self._slots)
        return text[0].upper() + text[1:]

    def _advice(self) -> str:
        """Advice in three strengths, from orders to a hint before a fair question."""
        draw = self._random.random()
        if draw < 0.35:  # noqa: PLR2004
            return f"{self._line('advice_leads')} {self._line('advice')} {self._line('advice')}"
        if draw < 0.7:  # noqa: PLR2004
            return f"{self._line('advice_leads')} {self._line('advice')} {self._line('advice_closings')}"
        return f"{self._line('advice_mild')} {self._line('clarify')}"

    def _lecture(self) -> str:
        patterns = self._random.sample(book("tutor")["lecture"], 2 + int(self._random.random() * 3))
        return " ".join(expand(pattern, self._random, self._slots) for pattern in patterns)


def _probes() -> tuple[str, ...]:
    """All probing patterns, the kinds in turn, so that neighbours differ in kind."""
    columns = [book("tutor")[kind] for kind in _PROBES]
    return tuple(pattern for row in zip(*columns, strict=True) for pattern in row)


def _last_paragraph(text: str) -> str:
    """A system prompt may have been folded into the first message, before what the student says."""
    return text.rstrip().rpartition("\n\n")[2] or text
