"""MRBench's published annotations as labels by the rubric mrbench-8.

A file is a list of conversations, each with `conversation_history` and the replies of several
tutors under `anno_llm_responses` (MRBench V1 and V2) or `tutor_responses` (BEA 2025), each of them
with `response` and `annotation`. Names and labels are read whatever their case, and whatever joins
their words.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from socratic_bench.documents.calibration import Label, PrecedingMessage
from socratic_bench.errors import UsageError, Words
from socratic_bench.settings import read_bounded
from socratic_bench.studies.calibrate.labels import key_of

MAX_BYTES = 200_000_000
REPLIES = ("anno_llm_responses", "tutor_responses")
HISTORY, ID = "conversation_history", "conversation_id"
SPEAKER = re.compile(r"(?:^|\s)(tutor|teacher|student)\s*:\s*", re.IGNORECASE)
_GRADES = {"yes": 2, "tosomeextent": 1, "no": 0}
_TONES = {"encouraging": 2, "neutral": 1, "offensive": 0}
# By the name of the annotation, its words run together: the dimension, and what its labels score.
DIMENSIONS: Mapping[str, tuple[str, Mapping[str, int]]] = {
    "mistakeidentification": ("mistake_identification", _GRADES),
    "mistakelocation": ("mistake_location", _GRADES),
    "revealingoftheanswer": ("revealing_of_the_answer", {}),
    "providingguidance": ("providing_guidance", _GRADES),
    "actionability": ("actionability", _GRADES),
    "coherence": ("coherence", _GRADES),
    "tutortone": ("tutor_tone", _TONES),
    "humanlikeness": ("human_likeness", _GRADES),
    "humanness": ("human_likeness", _GRADES),
}
REVEALING = "revealing_of_the_answer"
REVEALS = "reveals_answer"
RUBRIC = "mrbench-8"
LABELLER = "mrbench"


def read_annotations(paths: Sequence[str]) -> tuple[list[Label], int]:
    """The annotations of some files as labels, and how many replies were labelled twice: of these
    the first label counts.

    Raises `UsageError` with every mistake, by file and reply.
    """
    problems: list[Words] = []
    labels: dict[tuple[object, ...], Label] = {}
    n_labels = 0
    for path in paths:
        try:
            document = orjson.loads(read_bounded(Path(path), bound=MAX_BYTES).decode("utf-8-sig"))
        except OSError as error:
            problems.append(f"{path} cannot be read: {error.strerror}.")
            continue
        except ValueError as error:  # NaN and half of a character, too
            problems.append(f"{path} is no JSON ({error}).")
            continue
        for label_or_problem in _labels(document, path):
            if isinstance(label_or_problem, Label):
                n_labels += 1
                labels.setdefault(key_of(label_or_problem), label_or_problem)
            else:
                problems.append(label_or_problem)
    if problems:
        raise UsageError(problems)
    return [*labels.values()], n_labels - len(labels)


def _labels(document: object, path: str) -> Iterator[Label | str]:
    if not isinstance(document, list):
        yield f"{path} is no list of conversations."
        return
    for number, conversation in enumerate(document):
        place = f"{path}: conversation {number}"
        replies = _replies(conversation)
        history = conversation.get(HISTORY) if isinstance(conversation, dict) else None
        if not isinstance(history, str) or replies is None:
            yield f"{place}: it needs {HISTORY} and {' or '.join(REPLIES)}."
            continue
        messages, prompt = _messages(history)
        conversation_id = conversation.get(ID)
        dialogue = str(number if conversation_id in (None, "") else conversation_id)
        for author, entry in replies.items():
            scores = _scores(entry)
            if isinstance(scores, str):
                yield f"{place}, {author}: {scores}"
                continue
            yield Label(
                labeller=LABELLER,
                dialogue=dialogue,
                author=author,
                history=messages,
                prompt=prompt,
                reply=str(entry["response"]),
                scores=scores,
                events={REVEALS: scores[REVEALING] < _GRADES["yes"]} if REVEALING in scores else {},
            )


def _replies(conversation: object) -> Mapping[str, Any] | None:
    if not isinstance(conversation, dict):
        return None
    replies = next((conversation[name] for name in REPLIES if name in conversation), None)
    return replies if isinstance(replies, dict) else None


def _messages(history: str) -> tuple[tuple[PrecedingMessage, ...], str]:
    """The messages before the student's last one, and that one, which is answered; empty where the
    tutor spoke last.
    """
    parts = SPEAKER.split(history.replace("\xa0", " "))
    lines = [
        PrecedingMessage(
            role="user" if who.casefold() == "student" else "assistant", text=text.strip()
        )
        for who, text in zip(parts[1::2], parts[2::2], strict=True)
        if text.strip()
    ]
    if not lines:
        return (), history.strip()
    if lines[-1].role == "user":
        return tuple(lines[:-1]), lines[-1].text
    return tuple(lines), ""


def _scores(entry: object) -> dict[str, float] | str:
    """By dimension, or what is wrong."""
    fields = entry if isinstance(entry, dict) else {}
    annotation = fields.get("annotation")
    if not isinstance(annotation, dict) or not isinstance(fields.get("response"), str):
        return "it needs response and annotation."
    scores: dict[str, float] = {}
    for name, label in annotation.items():
        dimension, grades = DIMENSIONS.get(_joined(str(name)), ("", {}))
        if not dimension:
            continue
        grade = _joined(str(label))
        score = _revealing(grade) if dimension == REVEALING else grades.get(grade)
        if score is None:
            return f"{name} is {label!r}, which is none of its labels."
        scores[dimension] = float(score)
    return scores or "its annotation has none of the eight dimensions."


def _revealing(grade: str) -> int | None:
    """`Yes (and the revealed answer is correct)`, `Yes (but ... incorrect)`, or `No`."""
    if grade == "no":
        return 2
    if not grade.startswith("yes"):
        return None
    return 1 if "incorrect" in grade or "wrong" in grade else 0


def _joined(text: str) -> str:
    return re.sub(r"[^a-z]", "", text.casefold())
