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
_HOLE = re.compile(r"\{\{(\w+)\}\}")
_CLOSED = re.compile(re.escape(CLOSING_TOKEN) + r"[\s.!?,;:\"'*_)`]*\Z", re.IGNORECASE)
_TOKEN = re.compile(r"[ \t]*" + re.escape(CLOSING_TOKEN), re.IGNORECASE)
_FINAL = frozenset({"content_filtered", "guardrail_intervened", "model_context_window_exceeded"})

_SENTENCE = re.compile(r"[^.!?\u2026\uff1f\u3002\n]+[.!?\u2026\uff1f\u3002]*")
# The speaker doubts, takes something back or sees something new.
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


SENTENCE = re.compile(r"[^.!?\u2026\uff1f\u3002]+[.!?\u2026\uff1f\u3002]*")
QUESTION_MARK = re.compile(r"[?\uff1f\u061f]")
READ_CHARACTERS = 4000  # enough to see who speaks
# A speaker who mentions itself answers; "me" alone is no sign, as in "tell me more".
OF_SELF = re.compile(r"\b(?:I|my|mine|myself|we|our|ours)\b", re.IGNORECASE)
_I = re.compile(r"\bI\b|\b(?:in|of) my\b", re.IGNORECASE)
_TO_THE_OTHER = re.compile(r"\byou(?:r|rs|rself)?\b", re.IGNORECASE)

_SAYS_SO = re.compile(
    r"^\W*(?:tutor|teacher|assistant|student)(?:'s \w+)?\W*:"
    r"|^\W*[<\[(](?:tutor|teacher|assistant|student)[>\])]"
    r"|\bas (?:your (?:tutor|teacher|coach|instructor|assistant)|(?:a|the) (?:socratic )?tutor"
    r"|an? (?:ai|large language model|language model|ai [\w ]{0,20}(?:model|assistant|tutor)))\b,"
    r"|\bI(?:'m| am) (?:your (?:\w+ )?(?:tutor|teacher|coach|assistant)"
    r"|an? (?:socratic|ai) (?:tutor|assistant)|(?:only |just )?an? (?:ai|large)? ?language model"
    r"|(?:only |just )?an ai(?= language|\W|$)(?! \w+(?:er|or|ist)\b))"
    r"|\blet me ask you\b|\bmy (?:next )?question (?:for|to) you\b",
    re.IGNORECASE | re.MULTILINE,
)
_OF_THE_STUDENT = re.compile(
    r"(?:^|[.!?:,]\s+)(?:that )?the student (?:should|would(?: probably)?|will|seems|appears"
    r"|needs|might|could|must|assumes"
    r"|believes|thinks|is (?:stuck|assuming|right|wrong|mistaken|using|avoiding))\b",
    re.IGNORECASE,
)
# Acknowledges the other's words as a tutor does: by praise, thanks or an echo.
_START = r"\W*(?:(?:ah|oh|okay|ok|yes|well|h?m+|mhm|aw|so|and)\W+)*"
_PRAISES = re.compile(
    _START
    + r"(?:(?:that(?:'s| is)|what) (?:an? )?(?:\w+ ){0,2}(?:insight|insightful|point|question"
    r"|answer|observation|perspective|reflection|thought|idea|distinction|start|interesting|great"
    r"|thoughtful|wonderful|fascinating)\b|(?:(?:very|really|how) )?"
    r"(?:interesting|wonderful|great|excellent|fascinating|good|thoughtful"
    r"|lovely|brilliant)(?: (?:question|point|observation|answer|thought|insight|start))?\W*$"
    r"|(?:thank you|thanks) for (?:sharing|your|being|telling|explaining)\b"
    r"|I(?:'m| am) (?:really |so )?glad (?:that )?you\b"
    r"|I(?: really)? appreciate (?:your|that you)\b)",
    re.IGNORECASE,
)
_ECHOES = re.compile(
    _START + r"(?:I (?:can )?(?:hear|understand|sense|notice|imagine|tell)\b[^.?!]{0,60}\byou\b"
    r"|what I(?:'m| am) hearing\b|I (?:hear|understand|see|get) (?:you|your \w+|it|that"
    r"|what you|how you|why you)\b|I (?:see|understand)\W*$|I(?:'d like| would like| want) you to"
    r" (?:consider|think about|imagine|picture|reflect|look at|examine)\b"
    r"|(?:it )?(?:sounds|seems|looks) (?:like|as if|as though) (?:[^.?!]{1,40} )?you\b"
    r"|you(?: seem| mentioned|'re saying|'ve mentioned| value)\b"
    r"|let(?:'s| us) (?:explore|unpack|examine|look|dig|think|consider|stay)\b)",
    re.IGNORECASE,
)
_PROBES = re.compile(
    r"\bwhat (?:do you mean by|makes you (?:think|say|believe|feel)|are you assuming|led you to"
    r"|evidence do you have|would count as|would your (?:ideal|perfect))\b"
    r"|\bwhat (?:does|would) [^?]{1,40} (?:mean|look like) (?:to|for) you\b"
    r"|\b(?:how do you know|can you define|why do you (?:feel|believe|think)"
    r"|how did you (?:come to|arrive at|reach)|how (?:might|could|would) you (?:test|check|know))\b"
    r"|\b(?:can|could|would) you (?:tell me more|walk me through|say more|elaborate"
    r"|expand on|describe)\b[^?]*\byou(?:r|rs|rself)?\b",
    re.IGNORECASE,
)
# Examines the other's view without "you".
_EXAMINES = re.compile(
    r"\bwh(?:at|ich)(?: \w+){0,2} (?:assumptions?|evidence|premises?|reasons?)\b"
    r"|\bwhat (?:lies|is|stands) behind (?:it|that|this)\b",
    re.IGNORECASE,
)
# A student who has not understood a word, or doubts it, asks so as well.
_ASKS_BACK = re.compile(
    r"\bwhat do you mean(?: by [^?,;]{1,60})?|\b(?:can|could) you define (?:(?!\byou)[^?,;]){1,60}"
    r"|\b(?:how (?:do|would|could) you (?:know|check|test)|why do you (?:think|say|believe)"
    r"|what makes you (?:think|say|believe)|what evidence do you have)"
    r"(?: (?:so|that|this|it|for (?:that|this|it)))?"
    r"(?=(?:\W+(?:though|then|exactly|anyway|now))*\W*$)"
    r"|\bhow do you know [^?]{1,60}(?:n't|\bnot)\b[^?]*",
    re.IGNORECASE,
)
# Requests that a student makes, also after "I see" or "good point".
_REQUESTS = re.compile(
    r"\b(?:can|could|will|would) you (?:please |just |maybe |also )?(?:explain|help|show|give|tell"
    r"|say|repeat|rephrase|remind|elaborate)\b"
    r"|^\W*(?:(?:so|and|but|or)\W+)?(?:do|did) you (?:have|mean|know)\b"
    r"|\bare you (?:sure|saying|asking|serious)\b",
    re.IGNORECASE,
)
_THANKS = re.compile(
    _START + r"(?:(?:thank you|thanks) for (?:sharing|your|being)|I(?:'m| am) (?:really |so )?glad"
    r"|I(?: really)? appreciate)\b",
    re.IGNORECASE,
)
# Questions of a student who wants the answer.
_WANTS_TO_BE_TOLD = re.compile(
    r"\bwhat (?:would|should|do|can) you (?:do|say|think|recommend|advise|suggest|mean)\W*\?",
    re.IGNORECASE,
)


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


def swaps(text: str) -> bool:
    """Whether a student's reply speaks in the tutor's role.

    It says that it is the tutor, speaks about the student, or questions the other as a tutor does.
    Questions count only if the reply says nothing about the speaker itself.
    """
    text = text[:READ_CHARACTERS].replace("\u2019", "'")
    if _SAYS_SO.search(text):
        return True
    if not OF_SELF.search(text) and _OF_THE_STUDENT.search(text):
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
    return bool(_PRAISES.match(sentence) or _ECHOES.match(sentence))


def _leads(question: str, statements: list[str]) -> bool:
    """Whether a question is a tutor's, and not a request or a doubt that students have, too."""
    remainder = _ASKS_BACK.sub("", question)
    if _PROBES.search(remainder):
        return True
    if remainder != question and not any(map(_PRAISES.match, statements)):
        return False
    if _REQUESTS.search(question) and not any(map(_THANKS.match, statements)):
        return False
    to_the_other = _TO_THE_OTHER.search(question) and not _WANTS_TO_BE_TOLD.search(question)
    return bool(to_the_other or _EXAMINES.search(question)) and any(map(_takes_in, statements))
