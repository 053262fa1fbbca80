"""Labels that people gave to replies: read from JSON Lines or CSV, and grouped by reply."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import fsum
from pathlib import Path
from typing import Any

import msgspec
import orjson
from msgspec import Struct

from socratic_bench.concurrency import convert
from socratic_bench.documents.calibration import Label
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
    """A reply with its labels, at most one per labeller. `probability` is the sampling probability,
    if all labels state the same.
    """

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
    """Read the labels of all files in order; with a rubric, its scores are the only ones.

    Raises `UsageError` with every mistake, by file and line.
    """
    problems: list[Words] = []
    labels: list[Label] = []
    for path in paths:
        try:
            labels += _of_file(path, rubric, problems)
        except OSError as error:
            problems.append(f"The labels {path} cannot be read: {error.strerror}.")
        except UnicodeDecodeError:
            problems.append(f"{path}: it is no UTF-8 text.")
        except csv.Error as error:
            problems.append(f"{path}: it is no CSV ({error}).")
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
            yield f"{name!r} is no dimension of the rubric {rubric.id}, which has {names}."
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
        number = _number(name, cell)
        return int(number) if kind == "turn" and number.is_integer() else number
    if kind == "events":
        word = cell.strip().casefold()
        if word not in (*YES, *NO):
            raise ValueError(f"{name} is {cell!r}: write yes or no.")
        return word in YES
    try:
        return orjson.loads(cell) if kind in JSON_COLUMNS else cell
    except orjson.JSONDecodeError as error:
        raise ValueError(f"{name} is no JSON ({error}).") from error


def _number(name: str, cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        raise ValueError(f"{name} is {cell!r}: write a number, such as 2.5.") from None


def _json_rows(text: str) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                yield number, orjson.loads(line)
            except orjson.JSONDecodeError as error:
                yield number, ValueError(f"it is no JSON ({error}).")


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
