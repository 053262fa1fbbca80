"""The form of a sweep: its fields are the keys of a plan file, and what it makes is such a file."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import orjson
from msgspec import Struct

from socratic_bench.benchmarks import RunConfig
from socratic_bench.documents.sweep_plan import MODELS, PlanKey, description, plan_keys
from socratic_bench.errors import Naming, Words, to_text
from socratic_bench.studies.sweep.settings import SweepSettings

BENCHMARK, NAME, SCENARIOS, DATASET = "benchmark", "name", "scenarios", "dataset"
COLUMN = "column-"  # before the name of an item's field, in a field of the form
# The store of the dashboard, and what its buttons say.
NOT_IN_FORM = {"output_dir", "s3_bucket", "s3_prefix", "s3_kms_key_id", "resume", "retry_failed"}
SECTIONS: Mapping[str, Sequence[str]] = {
    "What is played": (
        *("scenarios", "scenario_file", "prompts", "dataset", "split", "column", "num_items"),
        *("invocations", "task", "turns", "repeats", "seed", "offline"),
    ),
    "Judge": ("judge_model", "judge_samples", "jury_rule", "quorum", "rubric", "no_judge"),
    "Student": ("student_model", "student", "pressure"),
    "What varies": ("temperatures", "temperature_shifts", "regions", "service_tier"),
    "Limits and gates": (
        *("max_cost_usd", "target_rpm", "target_tpm", "max_connections", "deadline"),
        *("fail_under", "fail_over", "min_judge_coverage"),
    ),
}
OTHERS = "All other settings"
UPLOADS = {"prompts", "dataset", "scenario_file", "system_prompt_file", "prices", "transcript"}
# Values NAME=VALUE, in which VALUE may have commas.
NAMED = {"column", "endpoint", "request_metadata"}
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


class Field(Struct, frozen=True, kw_only=True):
    """A field of the form."""

    key: str
    text: str
    kind: str
    choices: Sequence[str] = ()
    takes_file: bool = False


def sections(benchmark: str) -> dict[str, list[Field]]:
    """The fields of a benchmark's plan, by section; models and scenarios are lists of their own."""
    fields = {key.name: _field(key) for key in keys_of(benchmark).values()}
    apart = {BENCHMARK, SCENARIOS, *NOT_IN_FORM}
    by_section = {
        title: [fields[name] for name in names if name in fields and name not in apart]
        for title, names in SECTIONS.items()
    }
    used = {field.key for group in by_section.values() for field in group}
    others = [field for name, field in fields.items() if name not in used | apart]
    return {title: group for title, group in {**by_section, OTHERS: others}.items() if group}


def keys_of(benchmark: str) -> Mapping[str, PlanKey]:
    """The keys of a benchmark's plan, by name."""
    return plan_keys((SweepSettings, RunConfig), benchmark)


def plan_of_form(form: Mapping[str, Any], earlier: Mapping[str, Any]) -> dict[str, Any]:
    """The plan that a form asks for. Tables of an earlier plan, such as a model's own settings,
    stay. A word that is not of its key's kind stays, too, and so does a key that no plan has: the
    plan's reader says what is wrong.
    """
    benchmark = str(form.get(BENCHMARK) or "socratic")
    plan: dict[str, Any] = {BENCHMARK: benchmark}
    for name, key in keys_of(benchmark).items():
        value = _value_of(form.get(name), key)
        if value is not None and name not in NOT_IN_FORM:
            plan[name] = value
    columns = [
        f"{name.removeprefix(COLUMN)}={column}"
        for name, column in form.items()
        if name.startswith(COLUMN) and column
    ]
    if columns:
        plan["column"] = columns
    tables = {m["id"]: m for m in earlier.get(MODELS, ()) if isinstance(m, dict) and "id" in m}
    models = [*form.get(MODELS, ()), *_words(str(form.get("more_models") or ""))]
    if any(model in tables for model in models):
        plan[MODELS] = [tables.get(model, {"id": model}) for model in dict.fromkeys(models)]
    elif models:
        plan[MODELS] = [*dict.fromkeys(models)]
    known = {BENCHMARK, MODELS, *NOT_IN_FORM, *keys_of(benchmark)}
    kept = {
        name: value
        for name, value in earlier.items()
        if isinstance(value, dict) or name.replace("-", "_") not in known
    }
    return {**plan, **kept}


def form_of_plan(plan: Mapping[str, Any]) -> dict[str, Any]:
    """The form's values for a plan."""
    form: dict[str, Any] = {}
    for name, value in plan.items():
        name = name.replace("-", "_")  # noqa: PLW2901 -- the same key
        if name == MODELS:
            ids = (model.get("id") if isinstance(model, dict) else model for model in value)
            form[name] = [str(model) for model in ids]
        elif name == SCENARIOS:
            form[name] = [*map(str, value if isinstance(value, list) else [value])]
        elif isinstance(value, bool):
            form[name] = value
        elif isinstance(value, list):
            form[name] = ", ".join(map(str, value))
        elif not isinstance(value, dict):
            form[name] = str(value)
    return form


def to_toml(plan: Mapping[str, Any]) -> str:
    """A plan as the text of its file."""
    return "\n".join(_toml_lines(plan, ())) + "\n"


def mistakes_by_key(
    sentences: Iterable[Words], call: Naming, path: str, keys: Iterable[str]
) -> dict[str, list[str]]:
    """Sentences by the field of the form that they are about; "" for all others."""
    names = {*keys, MODELS}
    flags = {
        key.setting.name: key.name for benchmark in ("",) for key in keys_of(benchmark).values()
    }
    by_key: dict[str, list[str]] = {}
    for sentence in sentences:
        text = to_text(sentence, call).removeprefix(f"{path}: ")
        settings = () if isinstance(sentence, str) else sentence.settings
        candidates = [flags.get(name, name) for name in settings]
        candidates += [re.split(r"[\s:,]", text.lstrip("-"), maxsplit=1)[0].replace("-", "_")]
        key = next((name for name in candidates if name in names), "")
        if "model" in settings and not key:
            key = MODELS
        by_key.setdefault(key, []).append(text)
    return by_key


def _field(key: PlanKey) -> Field:
    if key.kind is bool:
        kind = "checkbox"
    elif key.choices and not key.is_many:
        kind = "select"
    else:
        kind = "list" if key.is_many else "text"
    text = description(key)
    return Field(
        key=key.name,
        text=text,
        kind=kind,
        choices=key.choices,
        takes_file=key.name in UPLOADS or key.setting.setting.is_file,
    )


def _value_of(value: Any, key: PlanKey) -> Any:  # noqa: ANN401 -- a value of TOML
    if isinstance(value, bool):
        return value or None
    if isinstance(value, list):
        return value or None
    text = str(value or "")
    if key.name in NAMED:
        words = [word.strip() for word in re.split(r",(?=[^,=\n]*=)|\n", text)]
    else:
        words = _words(text) if key.is_many else [text.strip()]
    values = [_scalar_of(word, key) for word in words if word]
    if not values:
        return None
    return values if key.is_many and len(values) > 1 else values[0]


def _words(text: str) -> list[str]:
    return [word.strip() for word in re.split(r"[,\n]", text) if word.strip()]


def _scalar_of(word: str, key: PlanKey) -> str | int | float:
    is_whole = key.kind in (int, float) or key.takes_numbers
    with suppress(ValueError):
        if is_whole and word.lstrip("+-").isdecimal():
            return int(word)
        if key.kind is float:
            return float(word)
    return word


def _toml_lines(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    """Plain values first: in TOML all that follows a table's head is the table's."""
    tables: dict[str, Mapping[str, Any]] = {}
    lists: dict[str, Sequence[Mapping[str, Any]]] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            tables[key] = value
        elif isinstance(value, list) and value and all(isinstance(v, Mapping) for v in value):
            lists[key] = value
        elif value is not None:
            yield f"{_toml_key(key)} = {_toml_value(value)}"
    for key, rows in lists.items():
        for row in rows:
            yield f"\n[[{'.'.join(map(_toml_key, (*path, key)))}]]"
            yield from _toml_lines(row, (*path, key))
    for key, nested in tables.items():
        yield f"\n[{'.'.join(map(_toml_key, (*path, key)))}]"
        yield from _toml_lines(nested, (*path, key))


def _toml_key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _toml_value(key)


def _toml_value(value: object) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml_value, value))}]"
    # A JSON string is one of TOML, but for one control character.
    return orjson.dumps(value).decode().replace("\x7f", "\\u007f")
