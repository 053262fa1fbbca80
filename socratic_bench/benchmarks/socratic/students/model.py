"""A student played by another model, which never sees the tutor's instructions."""

import hashlib
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from socratic_bench.benchmarks.socratic.scenarios import Scenario
from socratic_bench.benchmarks.socratic.students.student import Exchange, StudentReply
from socratic_bench.ports import Model
from socratic_bench.types import CallKey, Completion, GenerateConfig, Message, Request

CLOSING_TOKEN = "[[end of dialogue]]"  # noqa: S105 -- a mark in a text, nothing secret

_PROMPT = Path(__file__).with_name("data") / "model_student.toml"
_HOLE = re.compile(r"\{\{(\w+)\}\}")
_CLOSED = re.compile(re.escape(CLOSING_TOKEN) + r"[\s.!?,;:\"'*_)`]*\Z", re.IGNORECASE)
_TOKEN = re.compile(r"[ \t]*" + re.escape(CLOSING_TOKEN), re.IGNORECASE)
_FINAL = frozenset({"content_filtered", "guardrail_intervened", "model_context_window_exceeded"})


@dataclass(frozen=True, slots=True)
class ModelStudent:
    """Plays the scenario's persona by asking `model`.

    The dialogue closes only if the reply ends with the closing token. A token elsewhere is taken
    out and closes nothing: a model that goes on talking has not left.
    """

    scenario: Scenario
    model: Model
    max_tokens: int = 300
    temperature: float | None = None

    def reply(self, exchanges: Sequence[Exchange]) -> StudentReply:
        """As the port says. The text may be empty, after one more try; see `discarded`."""
        first = self._ask(exchanges, repeat=0)
        if first.message.text.strip() or first.stop_reason in _FINAL:
            return _read(first)
        return _read(self._ask(exchanges, repeat=1), discarded=(first,))

    def _ask(self, exchanges: Sequence[Exchange], *, repeat: int) -> Completion:
        request = Request(
            system=system_prompt(self.scenario),
            messages=_messages(exchanges),
            config=GenerateConfig(max_tokens=self.max_tokens, temperature=self.temperature),
        )
        key = CallKey(role="student", index=len(exchanges), repeat=repeat)
        return self.model.complete(request, key)


def system_prompt(scenario: Scenario) -> str:
    """The instructions for the model that plays this scenario's student."""
    prompt = _prompt()
    terms = {
        "persona": scenario.persona,
        "belief": scenario.belief,
        "because": scenario.because,
        "resistance": prompt["resistance"][scenario.resistance],
        "token": CLOSING_TOKEN,
    }
    return _fill(prompt["system"].strip(), terms)


def prompt_sha256() -> str:
    """The fingerprint of the instructions' file, to tell apart runs with other instructions."""
    return hashlib.sha256(_PROMPT.read_bytes()).hexdigest()


def _messages(exchanges: Sequence[Exchange]) -> tuple[Message, ...]:
    """The dialogue from the student's side: after a cue to speak first, the tutor is the user."""
    messages = [Message.user(_prompt()["cue"])]
    for exchange in exchanges:
        messages += [Message.assistant(exchange.student), Message.user(exchange.tutor)]
    return tuple(messages)


def _read(completion: Completion, discarded: tuple[Completion, ...] = ()) -> StudentReply:
    text = completion.message.text.strip()
    return StudentReply(
        text=_TOKEN.sub("", _CLOSED.sub("", text)).strip(),
        closed=_CLOSED.search(text) is not None,
        policy="model",
        completion=completion,
        discarded=discarded,
    )


def _fill(template: str, terms: Mapping[str, str]) -> str:
    """Fill the holes in one pass: what a scenario says is data, whatever signs it holds."""
    return _HOLE.sub(lambda hole: terms[hole[1]], template)


@cache
def _prompt() -> dict[str, Any]:
    return tomllib.loads(_PROMPT.read_text(encoding="utf-8"))
