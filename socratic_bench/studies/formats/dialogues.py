"""Reads dialogues that other tools or people have written down: chat lines, plain text, and logs
of inspect_ai.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NoReturn

from msgspec import Struct
from msgspec.structs import replace
from ulid import ULID

from socratic_bench.benchmarks.socratic.transcript import MAX_BYTES, RecordedTurn
from socratic_bench.errors import UsageError
from socratic_bench.settings import MAX_TURNS, read_bounded
from socratic_bench.types import is_text

STUDENT, TUTOR = "student", "tutor"
# Who speaks, by the roles of chat messages. Instructions are no part of the dialogue.
SPEAKERS = {"user": STUDENT, "assistant": TUTOR}
INSTRUCTIONS = ("system", "developer")
HEADERS = ("scenario", "model")
BETWEEN = "---"  # a line between two dialogues of a text file
CHAT, PLAIN, INSPECT = ".jsonl", ".txt", ".eval"
NO_INSPECT = (
    "needs the package inspect_ai, in an environment of its own beside this program: "
    'pip install "socratic-runner[inspect]"'
)


class Dialogue(Struct, frozen=True, kw_only=True):
    """A dialogue from a file: exchanges in order, and what the student said last, if unanswered.

    `student` is empty in the first exchange where the tutor spoke first. `place` is for messages,
    `number` counts dialogues of the same words, which are repeats.
    """

    place: str
    tutor: str
    exchanges: tuple[RecordedTurn, ...]
    last_words: str | None = None
    scenario: str | None = None
    number: int = 0

    @property
    def opening(self) -> str:
        """The first message of the student."""
        messages = (*(turn.student for turn in self.exchanges), self.last_words or "")
        return next(message for message in messages if message)

    @property
    def digest(self) -> bytes:
        """The same for the same words by the same tutor, whatever file they are in."""
        words = [(turn.student, turn.tutor) for turn in self.exchanges]
        parts = (self.tutor, self.scenario, words, self.last_words)
        return sha256(json.dumps(parts).encode()).digest()

    @property
    def run_id(self) -> str:
        """It follows from the dialogue, so that no dialogue is imported twice into one store."""
        digest = sha256(self.digest + self.number.to_bytes(4)).digest()
        return f"run-{ULID.from_bytes(bytes(6) + digest[:10])}"


class _MistakeError(Exception):
    """What is wrong with one dialogue."""


def is_dialogues(path: Path) -> bool:
    """Whether a file has dialogues of other tools, by its ending or, of JSON, by its keys."""
    if path.suffix != ".json":
        return path.suffix in _READERS
    try:
        document = json.loads(read_bounded(str(path), bound=MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(document, dict) and {"version", "eval", "plan"} <= document.keys()


def read_dialogues(path: str) -> list[Dialogue]:
    """The dialogues of a file. Raises `UsageError` with every mistake and its line."""
    file, problems = Path(path), []
    dialogues: list[Dialogue] = []
    counts: dict[bytes, int] = {}
    try:
        for place, read in _READERS.get(file.suffix, _read_inspect)(file):
            try:
                dialogue = read()
            except _MistakeError as error:
                problems.append(f"{place}: {error}.")
                continue
            number = counts.get(dialogue.digest, 0)
            counts[dialogue.digest] = number + 1
            dialogues.append(replace(dialogue, number=number))
    except OSError as error:
        raise UsageError([f"{path} cannot be read: {error.strerror or error}."]) from error
    except UnicodeDecodeError as error:
        raise UsageError([f"{path} is no UTF-8 text (byte {error.start + 1})."]) from error
    if not dialogues and not problems:
        problems.append(f"{path} has no dialogue.")
    if problems:
        raise UsageError(problems, hint="docs/integrations.md shows the formats.")
    return dialogues


# A dialogue's place, and the function that reads it or raises `_MistakeError`.
_Entries = Iterator[tuple[str, Callable[[], Dialogue]]]


def _read_chat(file: Path) -> _Entries:
    """One JSON object a line: `messages` and, if known, `model` and `scenario`."""
    text = read_bounded(str(file), bound=MAX_BYTES).decode("utf-8-sig")
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            place = f"{file}: line {number}"
            yield place, lambda line=line, place=place: _chat_dialogue(line, place, file)  # type: ignore[misc]


def _chat_dialogue(line: str, place: str, file: Path) -> Dialogue:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        _refuse(f"it is not valid JSON ({error})")
    messages = entry.get("messages") if isinstance(entry, dict) else None
    if not isinstance(messages, list) or not messages:
        _refuse('it needs "messages", a list of {"role": ..., "content": ...}')
    names = {key: entry.get(key) for key in HEADERS}
    for key, name in names.items():
        if name is not None and not (isinstance(name, str) and name.strip()):
            _refuse(f"{key}: must be a name")
    words = [_chat_words(message, f"messages[{n}]") for n, message in enumerate(messages)]
    return _dialogue(
        [pair for pair in words if pair], place, names["model"] or file.stem, names["scenario"]
    )


def _chat_words(message: object, place: str) -> tuple[str, str] | None:
    """Who speaks and what; `None` for instructions."""
    if not isinstance(message, dict):
        _refuse(f"{place}: must be an object")
    role, content = message.get("role"), message.get("content")
    if role in INSTRUCTIONS:
        return None
    if role not in SPEAKERS:
        _refuse(f"{place}: role: must be user, assistant or system, not {role!r}")
    if isinstance(content, list):
        content = "".join(_part_text(part, place) for part in content)
    if not isinstance(content, str) or not content.strip():
        _refuse(f"{place}: content: missing or empty")
    return SPEAKERS[role], content


def _part_text(part: object, place: str) -> str:
    kind = part.get("type") if isinstance(part, dict) else None
    text = part.get("text") if isinstance(part, dict) else None
    if kind == "reasoning":  # inspect_ai keeps what nobody was shown
        return ""
    if kind != "text" or not isinstance(text, str):
        _refuse(f"{place}: content: only text can be judged, and this part is of type {kind!r}")
    return text


def _read_plain(file: Path) -> _Entries:
    """`Student:` and `Tutor:` begin messages, a line of `---` a new dialogue."""
    text = read_bounded(str(file), bound=MAX_BYTES).decode("utf-8-sig")
    begin, lines = 1, []
    for number, line in enumerate([*text.splitlines(), BETWEEN], start=1):
        if line.strip() != BETWEEN:
            lines.append(line)
            continue
        if any(map(str.strip, lines)):
            yield (
                str(file),
                lambda begin=begin, lines=lines: _plain_dialogue(lines, begin, file),  # type: ignore[misc]
            )
        begin, lines = number + 1, []


def _plain_dialogue(lines: Sequence[str], begin: int, file: Path) -> Dialogue:
    names: dict[str, str] = {}
    words: list[tuple[str, str]] = []
    first = next(n for n, line in enumerate(lines, start=begin) if line.strip())
    for number, line in enumerate(lines, start=begin):
        head, colon, rest = line.partition(":")
        name = head.strip().casefold() if colon else ""
        if name in (STUDENT, TUTOR):
            words.append((name, rest.strip()))
        elif words:
            words[-1] = (words[-1][0], f"{words[-1][1]}\n{line.rstrip()}")
        elif name in HEADERS and rest.strip():
            names[name] = rest.strip()
        elif line.strip():
            _refuse(f"line {number}: a dialogue begins with Student: or Tutor:")
    for number, (name, text) in enumerate(words, start=1):
        if not text.strip():
            _refuse(f"line {first}: message {number}, of the {name}, is empty")
    stripped = [(name, text.strip()) for name, text in words]
    place = f"{file}: line {first}"
    return _dialogue(stripped, place, names.get("model") or file.stem, names.get("scenario"))


def _read_inspect(file: Path) -> _Entries:
    """The samples of a log of inspect_ai, read by its own reader."""
    try:
        from inspect_ai.log import read_eval_log
    except ImportError as error:
        raise UsageError([f"{file} {NO_INSPECT}."]) from error
    try:
        log = read_eval_log(str(file))
    except ValueError as error:
        raise UsageError([f"{file} is no log of inspect_ai: {error}."]) from error
    for sample in log.samples or ():
        place = f"{file}: sample {sample.id}, epoch {sample.epoch}"
        messages = [message.model_dump() for message in sample.messages]
        yield (
            place,
            lambda messages=messages, sample=sample, place=place: _dialogue(  # type: ignore[misc]
                [
                    pair
                    for n, message in enumerate(messages)
                    if (pair := _chat_words(message, f"messages[{n}]"))
                ],
                place,
                str(log.eval.model).removeprefix("imported/"),
                _inspect_scenario(sample.id, sample.metadata),
            ),
        )


def _inspect_scenario(sample_id: object, metadata: Mapping[str, Any] | None) -> str:
    """The scenario that our own logs name, or else the sample's id."""
    scenario = (metadata or {}).get("scenario")
    return scenario if isinstance(scenario, str) and scenario else str(sample_id)


def _dialogue(
    words: Sequence[tuple[str, str]], place: str, tutor: str, scenario: str | None
) -> Dialogue:
    """Messages of one speaker in a row are one message."""
    messages: list[tuple[str, str]] = []
    for speaker, text in words:
        if not is_text(text):
            _refuse(f"message {len(messages) + 1} has half of a character (a lone surrogate)")
        if messages and messages[-1][0] == speaker:
            messages[-1] = (speaker, f"{messages[-1][1]}\n\n{text}")
        else:
            messages.append((speaker, text))
    if messages and messages[0][0] == TUTOR:
        messages.insert(0, (STUDENT, ""))
    texts = [text for _, text in messages]
    exchanges = tuple(
        RecordedTurn(student=student, tutor=reply)
        for student, reply in zip(texts[::2], texts[1::2], strict=False)
    )
    judged = [turn for turn in exchanges if turn.student]
    if not judged:
        _refuse("the tutor answers nothing that the student says")
    if len(exchanges) > MAX_TURNS:
        _refuse(f"it has {len(exchanges)} turns; the limit is {MAX_TURNS}")
    return Dialogue(
        place=place,
        tutor=tutor,
        exchanges=exchanges,
        last_words=texts[-1] if len(texts) % 2 else None,
        scenario=scenario,
    )


def _refuse(why: str) -> NoReturn:
    raise _MistakeError(why)


_READERS: Mapping[str, Callable[[Path], _Entries]] = {
    CHAT: _read_chat,
    PLAIN: _read_plain,
    INSPECT: _read_inspect,
}
