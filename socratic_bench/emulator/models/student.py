"""The simulated students: short replies in the first person, and the ways in which one can be bad."""

import re
from random import Random

from socratic_bench.emulator.dialogue import END_OF_DIALOGUE, Dialogue
from socratic_bench.emulator.models.grammar import book, expand
from socratic_bench.emulator.models.subjects import subject_of

_KIND = re.compile(
    r"emulator\.student-(swap|repeat|long|question|french|tutoring|empty|yields|closing-(\d+))-v1:0"
)
_ASKED_TO_CLOSE = re.compile(
    r"\b(?:close|end|finish) (?:the|this) (?:dialogue|conversation) (?:now|in this reply)",
    re.IGNORECASE,
)
_TRIES = 40
_LONG = 12


def student_reply(dialogue: Dialogue) -> str:
    kind = _KIND.fullmatch(dialogue.base_id)
    random = Random(dialogue.seed())
    slots = _slots(dialogue, random)
    if kind is None or kind[2]:
        closing = bool(kind) and len(dialogue.own_texts) + 1 >= int(kind[2] if kind else 0)
        return (
            _closing(random)
            if closing or _ASKED_TO_CLOSE.search(dialogue.system)
            else _fresh(dialogue, random, slots)
        )
    if kind[1] == "empty":
        return ""
    if kind[1] == "long":
        return " ".join(_plain(random, slots) for _ in range(_LONG))
    return expand(random.choice(book("student")[kind[1]]), random, slots)


def _slots(dialogue: Dialogue, random: Random) -> dict[str, str]:
    """What there is to talk about: the student's own opening, and what the tutor just said."""
    users, own = dialogue.user_texts, dialogue.own_texts
    tutor = users[-1] if users else ""
    opening = subject_of(own[0] if own else tutor, speaker_is_other=False)
    heard = subject_of(tutor, speaker_is_other=False)
    phrases = opening.phrases if random.random() < 0.7 else heard.phrases  # noqa: PLR2004
    phrase = random.choice(phrases)
    return {"np": phrase, "q": random.choice(heard.quotes or (phrase,))}


def _fresh(dialogue: Dialogue, random: Random, slots: dict[str, str]) -> str:
    said = set(dialogue.own_texts)
    reply = ""
    for _ in range(_TRIES):
        reply = _plain(random, slots)
        if reply not in said:
            break
    return reply


def _plain(random: Random, slots: dict[str, str]) -> str:
    parts = book("student")
    kinds = random.choice(
        (("reactions", "answers"), ("answers", "pushes"), ("reactions", "answers", "pushes"))
    )
    return " ".join(expand(random.choice(parts[kind]), random, slots) for kind in kinds)


def _closing(random: Random) -> str:
    return f"{expand(random.choice(book('student')['closings']), random, {})} {END_OF_DIALOGUE}"
