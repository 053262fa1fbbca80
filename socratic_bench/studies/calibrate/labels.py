"""Labels that people gave to replies: read from JSON Lines, CSV or MRBench, grouped by reply."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import fsum
from pathlib import Path
from typing import Any

import msgspec
import orjson
from msgspec import Struct

from socratic_bench.concurrency import convert
from socratic_bench.documents.calibration import Label, PrecedingMessage
from socratic_bench.documents.encoding import reason
from socratic_bench.errors import UsageError, Words
from socratic_bench.settings import read_bounded
from socratic_bench.turns import Rubric

MAX_BYTES = 200_000_000
# A column of a mapping is its name, a point, and the key: scores.form.
MAPPINGS = ("scores", "events", "reasons")
YES, NO = ("yes", "true", "1"), ("no", "false", "0")
JSON_COLUMNS, NUMBERS = ("history",), ("turn", "probability")


class LabelledTurn(Struct, frozen=True, kw_only=True):
    """A reply with its labels, at most one a labeller; `probability` is what all of them state."""

    labels: tuple[Label, ...]

    @property
    def first(self) -> Label:
        return self.labels[0]

    @property
    def place(self) -> tuple[str | None, int | None]:
        """The run and the turn of it."""
        return self.first.run_id, self.first.turn

    @property
    def cluster(self) -> str:
        return self.first.cluster

    @property
    def author(self) -> str | None:
        return self.first.author

    @property
    def probability(self) -> float | None:
        probabilities = {label.probability for label in self.labels}
        return probabilities.pop() if len(probabilities) == 1 else None

    def score(self, name: str) -> float | None:
        """Mean score over the labellers."""
        given = [label.scores[name] for label in self.labels if name in label.scores]
        return fsum(given) / len(given) if given else None

    def total(self, names: Sequence[str]) -> float | None:
        """Sum of these dimensions, averaged over the labellers who scored each of them."""
        whole = [label for label in self.labels if all(name in label.scores for name in names)]
        given = [fsum(label.scores[name] for name in names) for label in whole]
        return fsum(given) / len(given) if given else None

    def answer(self, name: str) -> bool | None:
        """The majority's answer; `None` for a tie."""
        given = [label.events[name] for label in self.labels if name in label.events]
        n_yes = sum(given)
        return None if 2 * n_yes == len(given) else 2 * n_yes > len(given)


def labelled_turns(labels: Iterable[Label]) -> list[LabelledTurn]:
    """Group labels by reply, in the order in which replies were first labelled."""
    by_reply: dict[tuple[object, ...], list[Label]] = {}
    for label in labels:
        by_reply.setdefault(key_of(label), []).append(label)
    return [LabelledTurn(labels=tuple(labels)) for labels in by_reply.values()]


def read_labels(paths: Sequence[str], rubric: Rubric | None = None) -> list[Label]:
    """Read the labels of all files in order; with a rubric, its scores are the only ones. Raises
    `UsageError` with every mistake, by file and line.
    """
    problems: list[Words] = []
    labels: list[Label] = []
    for path in paths:
        try:
            labels += _of_file(path, rubric, problems)
        except OSError as error:
            problems.append(f"The labels {path} cannot be read: {error.strerror}.")
        except UnicodeDecodeError:
            problems.append(f"{path}: it is not UTF-8 text.")
        except csv.Error as error:
            problems.append(f"{path}: it is not valid CSV ({error}).")
    problems += _twice(labels)
    if not problems and not labels:
        problems.append(f"There is no label in {', '.join(paths)}.")
    if problems:
        raise UsageError(problems, hint="socratic-runner schema label says what a label has.")
    return labels


def _of_file(path: str, rubric: Rubric | None, problems: list[Words]) -> list[Label]:
    text = read_bounded(Path(path), bound=MAX_BYTES).decode("utf-8-sig")
    rows = _csv_rows(text) if path.lower().endswith(".csv") else _json_rows(text)
    labels = []
    for number, row in rows:
        label = _label(row)
        if isinstance(label, Label):
            mistakes = [*_mistaken_scores(label, rubric)] if rubric else []
            labels.append(label)
        else:
            mistakes = [label]
        problems += [f"{path}, line {number}: {mistake}" for mistake in mistakes]
    return labels


def _mistaken_scores(label: Label, rubric: Rubric) -> Iterator[str]:
    """Sentences about scores that the rubric does not allow."""
    dimensions = {dimension.name: dimension for dimension in rubric.dimensions}
    for name, score in label.scores.items():
        dimension = dimensions.get(name)
        if dimension is None:
            names = ", ".join(dimensions)
            yield f"{name!r} is not a dimension of the rubric {rubric.id}, which has {names}."
        elif not dimension.allows(score):
            yield (
                f"{name} is {score:g}: a score is {dimension.low:g} to {dimension.high:g} in steps "
                f"of {dimension.step:g}."
            )


def _csv_rows(text: str) -> Iterator[tuple[int, Any]]:
    reader = csv.DictReader(io.StringIO(text, newline=""))
    names = [name for name in reader.fieldnames or () if name]  # a sheet may end in bare commas
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        yield 1, ValueError(f"two columns have one name: {', '.join(twice)}.")
        return
    for row in reader:
        try:
            yield reader.line_num, _from_row(row)
        except ValueError as error:
            yield reader.line_num, error


def _from_row(row: Mapping[str | None, Any]) -> dict[str, Any]:
    """Convert a CSV row; an empty cell is a missing value."""
    values: dict[str, Any] = {}
    for name, cell in row.items():
        if name is None:
            raise ValueError("it has more cells than the first line has names.")
        if cell is None or not cell.strip():
            continue
        mapping, is_of_mapping, key = name.partition(".")
        if is_of_mapping and mapping in MAPPINGS:
            values.setdefault(mapping, {})[key] = _cell(mapping, name, cell)
        else:
            values[name] = _cell(name, name, cell)
    return values


def _cell(kind: str, name: str, cell: str) -> object:
    if kind == "scores" or kind in NUMBERS:
        try:
            number = float(cell)
        except ValueError:
            raise ValueError(f"{name} is {cell!r}: write a number, such as 2.5.") from None
        return int(number) if kind == "turn" and number.is_integer() else number
    if kind == "events":
        word = cell.strip().casefold()
        if word not in (*YES, *NO):
            raise ValueError(f"{name} is {cell!r}: write yes or no.")
        return word in YES
    try:
        return orjson.loads(cell) if kind in JSON_COLUMNS else cell
    except orjson.JSONDecodeError as error:
        raise ValueError(f"{name} is not valid JSON ({error}).") from error


def _json_rows(text: str) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                yield number, orjson.loads(line)
            except orjson.JSONDecodeError as error:
                yield number, ValueError(f"it is not valid JSON ({error}).")


def _label(row: object) -> Label | str:
    """Validate a label, or return a sentence that says what is wrong with it."""
    if isinstance(row, ValueError):
        return str(row)
    try:
        label = convert(row, Label)
    except msgspec.ValidationError as error:
        return reason(error)
    return _mistake(label) or label


def _mistake(label: Label) -> str:
    if (label.run_id is None) != (label.turn is None):
        return "run_id and turn belong together: give both, or neither."
    if label.reply is None and label.run_id is None:
        return "nothing says what is labelled: give run_id and turn, or prompt and reply."
    if (label.reply is None) != (label.prompt is None):
        return "prompt and reply belong together: give both, or neither."
    if not label.dialogue_id:
        return "dialogue is missing: labels of one dialogue are alike, and are counted so."
    if not (label.scores or label.events):
        return "it says nothing of the reply: give scores, events or both."
    return ""


def _twice(labels: Sequence[Label]) -> Iterator[str]:
    seen = set()
    for label in labels:
        key = (label.labeller, *key_of(label))
        if key in seen:
            where = f"turn {label.turn} of {label.run_id}" if label.run_id else label.dialogue_id
            yield f"{label.labeller} has labelled a reply twice ({where}): keep one label."
        seen.add(key)


def key_of(label: Label) -> tuple[object, ...]:
    """Identity of the labelled reply: labels of several people on one reply have the same key."""
    if label.run_id is not None:
        return label.run_id, label.turn
    history = tuple((message.role, message.text) for message in label.history)
    return label.dialogue_id, label.author, history, label.prompt, label.reply


# MRBench's published annotations as labels by the rubric mrbench-8. A file is a list of
# conversations, each with `conversation_history` and the replies of several tutors under
# `anno_llm_responses` (MRBench V1 and V2) or `tutor_responses` (BEA 2025), each of them with
# `response` and `annotation`. Names and labels are read whatever their case, and whatever joins
# their words.
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
    the first label counts. Raises `UsageError` with every mistake, by file and reply.
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
            problems.append(f"{path} is not valid JSON ({error}).")
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
        yield f"{path} is not a list of conversations."
        return
    for number, conversation in enumerate(document):
        place = f"{path}: conversation {number}"
        values = conversation if isinstance(conversation, dict) else {}
        replies = next((values[name] for name in REPLIES if name in values), None)
        history = values.get(HISTORY)
        if not isinstance(history, str) or not isinstance(replies, dict):
            yield f"{place}: it needs {HISTORY} and {' or '.join(REPLIES)}."
            continue
        messages, prompt = _messages(history)
        conversation_id = values.get(ID)
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


def _messages(history: str) -> tuple[tuple[PrecedingMessage, ...], str]:
    """Those before the student's last one, and that one, empty where the tutor spoke last."""
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
        score = grades.get(grade)
        if dimension == REVEALING:  # "Yes (and it is correct)", "Yes (but it is incorrect)", "No"
            is_wrong = "incorrect" in grade or "wrong" in grade
            score = 2 if grade == "no" else int(is_wrong) if grade.startswith("yes") else None
        if score is None:
            return f"{name} is {label!r}, which is none of its labels."
        scores[dimension] = float(score)
    return scores or "its annotation has none of the eight dimensions."


def _joined(text: str) -> str:
    return re.sub(r"[^a-z]", "", text.casefold())
