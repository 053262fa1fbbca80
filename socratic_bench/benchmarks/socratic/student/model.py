"""A student played by another model, which never sees the tutor's instructions."""

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
from socratic_bench.benchmarks.socratic.student.role import swaps
from socratic_bench.benchmarks.socratic.student.student import Exchange, StudentReply
from socratic_bench.generation import GenerateConfig
from socratic_bench.ports.provider import Model
from socratic_bench.settings import MAX_TURNS
from socratic_bench.types import MALFORMED_STOPS, CallKey, Completion, Message, Request, Text

MAX_TOKENS = 300
CLOSING_TOKEN = "[[end of dialogue]]"  # noqa: S105 -- a mark in a text, nothing secret

_FILE = Path(__file__).with_name("data") / "model_student.toml"
_HOLE = re.compile(r"\{\{(\w+)\}\}")
_CLOSED = re.compile(re.escape(CLOSING_TOKEN) + r"[\s.!?,;:\"'*_)`]*\Z", re.IGNORECASE)
_TOKEN = re.compile(r"[ \t]*" + re.escape(CLOSING_TOKEN), re.IGNORECASE)
_FINAL = frozenset({"content_filtered", "guardrail_intervened", "model_context_window_exceeded"})

_SENTENCE = re.compile(r"[^.!?\u2026\uff1f\u3002\n]+[.!?\u2026\uff1f\u3002]*")
# To doubt, to take back, to see something new: said of oneself, and not denied.
_MOVES = re.compile(
    r"\b(?:I was (?:\w+ )?(?:wrong|mistaken)|I (?:had|got) (?:it|that) wrong"
    r"|I(?:'m| am) (?:not (?:so|as|that) (?:sure|certain)|less (?:sure|certain)|no longer)"
    r"|I(?:'ve| have)? changed my mind|I (?:do not|don't) think (?:that|so|it) any ?more"
    r"|(?:now|so) I (?:think|see|notice|realise|realize|wonder)"
    r"|I (?:can )?(?:see|notice|realise|realize) (?:now )?that|that (?:does not|doesn't) fit"
    r"|maybe (?:it|that|I)(?:'s|'m| is| was| am)? (?:not|n't|only|wrong)"
    r"|I never (?:saw|looked at|thought of|put) (?:it|that|those)"
    r"|then (?:it|that) (?:can't|cannot|isn't|wasn't|must))\b",
    re.IGNORECASE,
)
_LONGEST = 240


class ModelStudent(Struct, frozen=True):
    """Plays the scenario's persona by asking `model`.

    The dialogue closes only if the reply ends with the closing token. A token elsewhere is taken
    out and closes nothing: a model that goes on talking has not left. A reply that is empty,
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
    """The last sentence by which the student moved, shortened; `None` if it has not, or if that
    cannot be told in its language.
    """
    for words in reversed(replies):
        for sentence in reversed(_SENTENCE.findall(words.replace("\u2019", "'"))):
            if _MOVES.search(sentence):
                return " ".join(sentence.split())[:_LONGEST]
    return None


@lru_cache(maxsize=64)
def system_prompt(scenario: Scenario) -> str:
    """The instructions for the model that plays this scenario's student."""
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
