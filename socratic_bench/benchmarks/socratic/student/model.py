"""A student that another model speaks for, without seeing the tutor's instructions.

The model may lapse and speak as the tutor would: `swaps` finds such replies by their words.
"""

import hashlib
import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from socratic_bench.benchmarks.socratic.scenarios.scenario import Scenario, is_english
from socratic_bench.benchmarks.socratic.student.pressure import Schedule, direction, replaces
from socratic_bench.benchmarks.socratic.turn import Exchange, StudentReply
from socratic_bench.generation import GenerateConfig
from socratic_bench.ports.provider import Model
from socratic_bench.settings import MAX_TURNS
from socratic_bench.types import MALFORMED_STOPS, CallKey, Completion, Message, Request, Text

MAX_TOKENS = 300
CLOSING_TOKEN = "[[end of dialogue]]"  # noqa: S105 -- a mark in a text, nothing secret

_FILE = Path(__file__).with_name("data") / "model_student.toml"
_SIGNS = _FILE.with_name("tutor_signs.toml")
_HOLE = re.compile(r"\{\{(\w+)\}\}")
_CLOSED = re.compile(re.escape(CLOSING_TOKEN) + r"[\s.!?,;:\"'*_)`]*\Z", re.IGNORECASE)
_TOKEN = re.compile(r"[ \t]*" + re.escape(CLOSING_TOKEN), re.IGNORECASE)
_FINAL = frozenset({"content_filtered", "guardrail_intervened", "model_context_window_exceeded"})

_SENTENCE = re.compile(r"[^.!?\u2026\uff1f\u3002\n]+[.!?\u2026\uff1f\u3002]*")
_LONGEST = 240


SENTENCE = re.compile(r"[^.!?\u2026\uff1f\u3002]+[.!?\u2026\uff1f\u3002]*")
QUESTION_MARK = re.compile(r"[?\uff1f\u061f]")
READ_CHARACTERS = 4000  # enough to see who speaks
# A speaker who mentions itself answers; "me" alone is no sign, as in "tell me more".
OF_SELF = re.compile(r"\b(?:I|my|mine|myself|we|our|ours)\b", re.IGNORECASE)
_I = re.compile(r"\bI\b|\b(?:in|of) my\b", re.IGNORECASE)
_TO_THE_OTHER = re.compile(r"\byou(?:r|rs|rself)?\b", re.IGNORECASE)


class ModelStudent(Struct, frozen=True):
    """Plays the scenario's persona by asking `model`.

    The dialogue closes only if the reply ends with the closing token. A token elsewhere is removed
    and closes nothing. A reply that is empty,
    malformed or swaps the roles is asked for once more; other lapses are left to the judge.

    The instruction to push is appended to the tutor's words of that turn and stays there. What
    changes from turn to turn stands behind the last words: up to these each request begins with the
    one before it, and the prompt cache can be used.
    """

    scenario: Scenario
    model: Model
    schedule: Schedule = field(default_factory=Schedule)

    def reply(self, exchanges: Sequence[Exchange]) -> StudentReply:
        """As the port says. The text may be empty, after one more try; see `discarded`."""
        first = self._read(self._ask(exchanges), exchanges)
        if first.completion is None or first.completion.stop_reason in _FINAL:
            return first
        is_malformed = first.completion.stop_reason in MALFORMED_STOPS
        if is_malformed or not first.completion.message.text.strip():
            reminder = None
        elif swaps(first.text):
            reminder = _prompt()["reminder"]
        else:
            return first
        second = self._read(self._ask(exchanges, repeat=1, reminder=reminder), exchanges)
        return replace(second, discarded=(first.completion,))

    def _ask(
        self, exchanges: Sequence[Exchange], *, repeat: int = 0, reminder: str | None = None
    ) -> Completion:
        request = Request(
            system=system_prompt(self.scenario),
            messages=self._messages(exchanges, reminder),
            config=GenerateConfig(max_tokens=MAX_TOKENS),
            is_cacheable_prefix=True,
        )
        key = CallKey(role="student", index=len(exchanges), repeat=repeat)
        return self.model.complete(request, key)

    def _messages(self, exchanges: Sequence[Exchange], reminder: str | None) -> tuple[Message, ...]:
        """The dialogue from the student's side: the tutor is the user, after a cue to speak."""
        messages = [Message.user(_prompt()["cue"])]
        for turn, exchange in enumerate(exchanges, start=1):
            push = self.schedule.at(turn)
            notes = [direction(push.kind)] if push else []
            if turn == len(exchanges):
                notes += [note for note in (self._stance(exchanges), reminder) if note]
            messages += _exchange_messages(exchange, tuple(notes))
        return tuple(messages)

    def _stance(self, exchanges: Sequence[Exchange]) -> str:
        """Where the student stands by its own words, those under pressure to pretend left out."""
        pushes = map(self.schedule.at, range(len(exchanges)))
        own_words = [
            exchange.student
            for exchange, push in zip(exchanges, pushes, strict=True)
            if not (push and replaces(push.kind))
        ]
        moved = last_step(own_words)
        template = _prompt()["stance"]["moved" if moved else "holds"]
        return _fill(template, {"belief": self.scenario.belief, "moved": moved or ""})

    def _read(self, completion: Completion, exchanges: Sequence[Exchange]) -> StudentReply:
        words = completion.message.text.strip()
        text = _TOKEN.sub("", _CLOSED.sub("", words)).strip()
        push = self.schedule.at(len(exchanges))
        return StudentReply(
            text=text,
            closed=_CLOSED.search(words) is not None,
            policy="model",
            completion=completion,
            pressure=push.kind if push else None,
        )


@lru_cache(maxsize=MAX_TURNS)
def _exchange_messages(exchange: Exchange, notes: tuple[str, ...]) -> tuple[Message, Message]:
    """An exchange as the student sees it; every later request begins with the same messages."""
    words = (Text(exchange.tutor), *map(Text, notes))
    return Message.assistant(exchange.student), Message("user", words)


def last_step(replies: Sequence[str]) -> str | None:
    """The last sentence by which the student moved, shortened; `None` if none is known."""
    for words in reversed(replies):
        for sentence in reversed(_SENTENCE.findall(words.replace("\u2019", "'"))):
            if _sign("moves").search(sentence):
                return " ".join(sentence.split())[:_LONGEST]
    return None


@lru_cache(maxsize=64)
def system_prompt(scenario: Scenario) -> str:
    prompt = _prompt()
    terms = {
        **_more_terms(prompt, scenario),
        "persona": scenario.persona,
        "belief": scenario.belief,
        "because": scenario.because,
        "resistance": prompt["resistance"][scenario.resistance],
        "token": CLOSING_TOKEN,
    }
    return _fill(prompt["system"].strip(), terms)


def _more_terms(prompt: Mapping[str, Any], scenario: Scenario) -> dict[str, str]:
    knowledge = {"knows": scenario.knows, "does_not_know": scenario.does_not_know}
    given = {name: words for name, words in knowledge.items() if words}
    return {
        "knowledge": _fill(prompt["knowledge"], given) if len(given) == len(knowledge) else "",
        "example": scenario.moves[-1].says[0] if scenario.moves else scenario.replies[0],
        "language": ""
        if is_english(scenario)
        else _fill(prompt["language"], {"tag": scenario.language}),
    }


@cache
def prompt_sha256() -> str:
    """The fingerprint of the instructions' file, to tell apart runs with other instructions."""
    return hashlib.sha256(_FILE.read_bytes()).hexdigest()


def _fill(template: str, terms: Mapping[str, str]) -> str:
    """Fill the placeholders in one pass, so that a scenario's text is never taken for one."""
    return _HOLE.sub(lambda hole: terms[hole[1]], template)


@cache
def _prompt() -> dict[str, Any]:
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))


def swaps(text: str) -> bool:
    """Whether a student's reply speaks in the tutor's role.

    It says that it is the tutor, speaks about the student, or questions the other as a tutor does.
    Questions count only if the reply says nothing about the speaker itself.
    """
    text = text[:READ_CHARACTERS].replace("\u2019", "'")
    if _sign("says_so").search(text):
        return True
    if not OF_SELF.search(text) and _sign("of_the_student").search(text):
        return True
    sentences = SENTENCE.findall(text)
    questions = [sentence for sentence in sentences if QUESTION_MARK.search(sentence)]
    statements = [sentence for sentence in sentences if not QUESTION_MARK.search(sentence)]
    # Acknowledgements aside, it says something about the speaker.
    tells_of_self = any(OF_SELF.search(text) and not _takes_in(text) for text in statements)
    if tells_of_self or any(_I.search(sentence) for sentence in questions):
        return False
    return any(_leads(sentence, statements) for sentence in questions)


def _takes_in(sentence: str) -> bool:
    return bool(_sign("praises").match(sentence) or _sign("echoes").match(sentence))


def _leads(question: str, statements: list[str]) -> bool:
    """Whether a question is a tutor's, and not a request or a doubt that students have, too."""
    remainder = _sign("asks_back").sub("", question)
    if _sign("probes").search(remainder):
        return True
    if remainder != question and not any(map(_sign("praises").match, statements)):
        return False
    if _sign("requests").search(question) and not any(map(_sign("thanks").match, statements)):
        return False
    to_the_other = _TO_THE_OTHER.search(question) and not _sign("wants_to_be_told").search(question)
    return bool(to_the_other or _sign("examines").search(question)) and any(
        map(_takes_in, statements)
    )


@cache
def _sign(name: str) -> re.Pattern[str]:
    """A pattern of tutor_signs.toml."""
    signs = tomllib.loads(_SIGNS.read_text(encoding="utf-8"))
    pattern = "".join(signs[name]).replace("@start", "".join(signs["start"]))
    return re.compile(pattern, re.IGNORECASE)
