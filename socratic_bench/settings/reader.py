"""Reads settings from flags, then variables, then defaults, and collects what cannot be read."""

import codecs
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from socratic_bench.errors import Problem
from socratic_bench.generation import MIN_THINKING_TOKENS
from socratic_bench.settings.files import MAX_TEXT_BYTES
from socratic_bench.settings.table import (
    BEDROCK_PREFIX,
    PATHS,
    Kind,
    SettingField,
    settings_of_other_benchmarks,
    table,
)
from socratic_bench.types import is_text

OFFLINE_REGION = "us-east-1"
MODEL_IDS_FORM = (
    """model ids, separated by commas or as a JSON array such as """
    """'["anthropic.claude-3-5-sonnet-20241022-v1:0"]'"""
)
_LISTED_IDS = r"[\w-]+[.:/][\w.:/-]+(\s*,\s*[\w-]+[.:/][\w.:/-]+)*"
# Variables that are read here or by the SDK, and those whose path may be no UTF-8 text.
VARIABLES = ("AWS_", "BEDROCK_", "RUNNER_")
_PATH_VARIABLE = r"AWS_\w+_(BUNDLE|DIRECTORY|FILE|PATH)"
_PLAIN_INTEGER = r"\s*[+-]?[0-9]+\s*"

Flags = Mapping[str, str | Sequence[str] | bool]
Config = TypeVar("Config", bound=Struct)


class Sources(Struct, frozen=True, kw_only=True):
    """Where a configuration is read from.

    `flags` maps long flag names without dashes ("max-tokens") to their word, to the words of a
    repeatable flag, or to True; flags that were not given are missing. `read_stdin` returns at most
    so many bytes, or raises `OSError`.
    """

    flags: Flags
    environ: Mapping[str, str]
    read_stdin: Callable[[int], bytes]
    profile_region: Callable[[], str | None]
    profile_problem: Callable[[], str | None] = lambda: None
    offline_models: Callable[[], tuple[str, ...]]


def read_config(kind: type[Config], sources: Sources) -> tuple[Config, tuple[Problem, ...]]:
    """The configuration that the sources describe, and the mistakes in them.

    A setting that cannot be read has its default, so that all others can be checked in the same go.
    Nothing may be run while there are mistakes.
    """
    reader = Reader(kind, sources)
    reader.problems += [
        Problem.of("{variable} is not UTF-8 text.", variable=name)
        for name, value in sources.environ.items()
        if name.startswith(VARIABLES) and not (is_text(value) or re.fullmatch(_PATH_VARIABLE, name))
    ]
    benchmark = reader.read("benchmark")
    foreign = settings_of_other_benchmarks(kind, benchmark)
    readers: Mapping[str, Callable[[Reader], Any]] = getattr(kind, "READERS", {})
    values = {
        name: readers[name](reader) if name in readers else reader.read(name)
        for name in table(kind)
        if name not in foreign
    }
    foreign_flags = (  # variables of other benchmarks are ignored
        foreign_problem(flag, owners, benchmark)
        for name, owners in foreign.items()
        for flag in reader.given_flags(name)
    )
    return kind(**values), (*reader.problems, *foreign_flags)


def foreign_problem(name: str, owners: Sequence[str], benchmark: str) -> Problem:
    """The mistake of giving a setting that the chosen benchmark does not have."""
    return Problem.of(
        f"{{{name}}} is a setting of {{owners}}, not of {{benchmark}}.",
        owners=" and ".join(owners),
        benchmark=benchmark,
    )


class Reader:
    """Reads the settings of a class from `Sources`; `problems` collects the mistakes."""

    def __init__(self, kind: Kind, sources: Sources) -> None:
        self.sources = sources
        self.problems: list[Problem] = []
        self._table = table(kind)

    def given(self, flag: str) -> bool:
        return flag in self.sources.flags

    def word(self, flag: str) -> str | None:
        """The word of a flag that has no field of its own."""
        value = self.sources.flags.get(flag)
        if isinstance(value, str) and not value.strip():
            self.note(f"{{{flag.replace('-', '_')}}} is empty.")
            return None
        return value if isinstance(value, str) else None

    def given_flags(self, name: str) -> Iterator[str]:
        """The given flags that concern a field: its own, and the one that steers it."""
        field = self._table[name]
        if self.given(field.flag or ""):
            yield name
        if (switch := field.setting.steered_by) and self.given(switch.name):
            yield switch.name.replace("-", "_")

    def note(self, text: str, **values: object) -> None:
        """Report a mistake; see `Problem`."""
        self.problems.append(Problem.of(text, **values))

    def read(self, name: str) -> Any:  # noqa: ANN401 -- any field's
        """The field's value; its default if it is not given or cannot be read."""
        field = self._table[name]
        if field.is_switch:
            return self.given(field.flag or "") is not field.default
        if field.is_repeatable:
            values = [self._parse(field, word, f"{{{name}}}") for word in self._words(field)]
            return tuple(value for value in values if value is not None)
        source, word = self._find(field)
        value = None if word is None else self._parse(field, word, source)
        return field.default if value is None else value

    def default(self, name: str) -> Any:  # noqa: ANN401 -- any field's
        return self._table[name].default

    def _words(self, field: SettingField) -> Sequence[str]:
        value = self.sources.flags.get(field.flag or "", ())
        if isinstance(value, bool):
            return ()
        return (value,) if isinstance(value, str) else value

    def _find(self, field: SettingField) -> tuple[str, str | None]:
        """The flag or variable that gives the field, and its word."""
        value = self.sources.flags.get(field.flag or "")
        if isinstance(value, str):
            return f"{{{field.name}}}", value
        for variable in field.setting.variables:
            if self.sources.environ.get(variable):
                return variable, self.sources.environ[variable]
        return "", None

    def _parse(self, field: SettingField, word: str, source: str) -> Any:  # noqa: ANN401
        """The value of a word from a flag or variable; `None`, and a mistake, if it has none."""
        (kind, *_), parse = field.kinds, field.setting.parse
        is_blank = not (word if field.is_repeatable else word.strip())
        if is_blank and source.startswith("{"):
            self.note(f"{source} is empty.")
        elif field.choices:
            if word in field.choices:
                return word
            self.problems.append(field.choice_problem(word))
        elif kind in _NUMBERS:
            number = _NUMBERS[kind](word)
            if number is None:
                self.note(f"{source} is {{word!r}}, which is not {_NUMBER_NAMES[kind]}.", word=word)
            return number
        elif parse is None:
            return self._check_path(word, source) if field.setting.metavar in PATHS else word
        else:
            value = parse(word)
            if value is None:
                self.note(f"{source} takes {field.setting.form}, not {{word!r}}.", word=word)
            return value
        return None

    def _check_path(self, word: str, source: str) -> str:
        with suppress(OSError):  # the working folder is gone
            # As documents and journals have it.
            if is_text(word) and not is_text(str(Path(word).absolute())):
                self.note(f"{source} lies in a folder whose name is not UTF-8 text.")
        return word


def parse_integer(word: str) -> int | None:
    """The whole number that `word` spells in plain digits, with or without a sign, else `None`."""
    # Python itself also reads the digits of other scripts, and underscores between them.
    try:
        return int(word) if re.fullmatch(_PLAIN_INTEGER, word) else None
    except ValueError:  # more digits than Python reads
        return None


def parse_number(word: str) -> float | None:
    """The finite number that `word` spells in plain digits, else `None`."""
    if not word.isascii() or "_" in word:
        return None
    try:
        number = float(word)
    except ValueError:
        return None
    return number if isfinite(number) else None


_NUMBERS: Mapping[Any, Callable[[str], float | None]] = {int: parse_integer, float: parse_number}
_NUMBER_NAMES = {int: "a whole number", float: "a number"}


def _read_prompt(reader: Reader) -> str | None:
    """The flag's word, or standard input without its final line break."""
    prompt = reader.sources.flags.get("prompt")
    if prompt != "-":
        return prompt if isinstance(prompt, str) else None
    try:
        # One byte more than a prompt may have shows that it is too long; then the end, which may be
        # half a character, is left out.
        content = reader.sources.read_stdin(MAX_TEXT_BYTES + 1)
        decoder = codecs.getincrementaldecoder("utf-8-sig")()
        text = decoder.decode(content, final=len(content) <= MAX_TEXT_BYTES)
    except OSError as error:
        reader.note("The prompt on standard input cannot be read: {why}.", why=error.strerror)
        return "-"
    except UnicodeDecodeError as error:
        reader.note(f"The prompt on standard input is not UTF-8 text (byte {error.start + 1}).")
        return "-"
    if len(content) > MAX_TEXT_BYTES:
        reader.note(f"The prompt has more than {MAX_TEXT_BYTES} bytes.")
    return text[:-1].removesuffix("\r") if text.endswith("\n") else text


def _read_judge_model(reader: Reader) -> str | tuple[str, ...] | None:
    if reader.given("no-judge"):
        if reader.given("judge-model"):
            reader.note("{no_judge} and {judge_model} are both given: keep one.")
        return None
    by_flag: tuple[str, ...] = reader.read("judge_model")
    ids = by_flag if reader.given("judge-model") else _judges_by_variable(reader)
    if ids:
        return ids[0] if len(ids) == 1 else ids
    if reader.given("offline"):
        return next((id_ for id_ in reader.sources.offline_models() if "judge" in id_), None)
    default: str = reader.default("judge_model")
    return default


def _judges_by_variable(reader: Reader) -> tuple[str, ...]:
    judge = reader.sources.environ.get("RUNNER_JUDGE_MODEL")
    jury = reader.sources.environ.get("RUNNER_JURY_MODELS", "")
    if not jury.strip():
        return (judge,) if judge else ()
    ids = _parse_model_ids(reader, jury, "RUNNER_JURY_MODELS") or ()
    jurors = tuple(dict.fromkeys(ids))
    for juror in jurors:
        if ids.count(juror) > 1:
            reader.note("RUNNER_JURY_MODELS names {id} twice: a juror has one vote.", id=juror)
    return jurors


def _read_model_ids(reader: Reader) -> tuple[str, ...] | None:
    text = reader.sources.environ.get("BEDROCK_MODEL_IDS", "").strip()
    if text:
        return _parse_model_ids(reader, text, "{model_ids}")
    if reader.given("offline"):
        return reader.sources.offline_models()
    reader.note(
        "{model_ids} is not set: it lists the models you allow, as {form}.", form=MODEL_IDS_FORM
    )
    return None


def _parse_model_ids(reader: Reader, text: str, source: str) -> tuple[str, ...] | None:
    """The ids in a JSON array or a list with commas; `None`, and a mistake, for anything else."""
    try:
        is_list = re.fullmatch(_LISTED_IDS, text)
        ids = [name.strip() for name in text.split(",")] if is_list else json.loads(text)
    except (ValueError, RecursionError) as error:
        reader.note(
            f"{source} is not valid JSON ({{error}}): it takes {{form}}.",
            error=str(error),
            form=MODEL_IDS_FORM,
        )
        return None
    if not isinstance(ids, list) or not ids or not all(isinstance(i, str) and i for i in ids):
        reader.note(f"{source} must be {{form}}.", form=MODEL_IDS_FORM)
        return None
    return tuple(id_.removeprefix(BEDROCK_PREFIX) for id_ in ids)


def _read_region(reader: Reader) -> str | None:
    region: str | None = reader.read("region")
    if region is not None:
        return region
    if reader.given("offline"):
        return OFFLINE_REGION
    region = reader.sources.profile_region()
    problem = None if region else reader.sources.profile_problem()
    if problem:
        reader.note("{problem}", problem=problem)
    return region


def _read_thinking_budget(reader: Reader) -> int | None:
    """The budget; `None` without the switch."""
    budget: int | None = reader.read("thinking_budget_tokens")
    if reader.given("enable-thinking"):
        return MIN_THINKING_TOKENS if budget is None else budget
    if reader.given("thinking-budget-tokens"):
        reader.note("{thinking_budget_tokens} needs {enable_thinking}.")
    return None


def _read_max_tokens(reader: Reader) -> int:
    """The bound; the thinking budget is added to the default, since thinking counts against it."""
    bound: int = reader.read("max_tokens")
    if reader.given("max-tokens"):
        return bound
    return bound + max(0, _read_thinking_budget(reader) or 0)


# The settings of every run whose value depends on more than their own flag and variables.
READERS: Mapping[str, Callable[[Reader], Any]] = {
    "prompt": _read_prompt,
    "judge_model": _read_judge_model,
    "model_ids": _read_model_ids,
    "region": _read_region,
    # A real role must never be assumed for the embedded endpoint.
    "assume_role_arn": lambda reader: (
        None if reader.given("offline") else reader.read("assume_role_arn")
    ),
    "s3_prefix": lambda reader: reader.read("s3_prefix").strip("/"),
    "thinking_budget_tokens": _read_thinking_budget,
    "max_tokens": _read_max_tokens,
}
