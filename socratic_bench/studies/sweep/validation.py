"""Checks files that users write, alone: no call, no credentials, and all mistakes at once."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from socratic_bench.benchmarks import RunConfig
from socratic_bench.catalogue.price_file import load_prices
from socratic_bench.documents.doctor import FileEntry, ValidationDocument
from socratic_bench.documents.sweep_plan import MODELS, plan_keys
from socratic_bench.errors import Problem, UsageError, Words, shorten, to_text
from socratic_bench.ports.benchmark import Benchmark
from socratic_bench.settings import MAX_STORED_BYTES, OFFLINE_REGION, Sources, read_bounded, table
from socratic_bench.settings.files import UnreadableTomlError, parse_toml
from socratic_bench.studies.places import find_runs
from socratic_bench.studies.reading import read_run
from socratic_bench.studies.sweep.plan_file import ABOUT, KINDS, PlanFile, read_plan_file
from socratic_bench.studies.sweep.preflight import check
from socratic_bench.studies.sweep.request import read_prompts, read_sweep

OWN = "own"  # a file of the benchmark's, which has its own word for it
UNKNOWN = "unknown"  # what it is cannot be told, since it cannot be read


def validate(files: Sequence[str], benchmark: Benchmark) -> ValidationDocument:
    """Check each file as what its name and content show it to be."""
    kinds = {file: _kind(file, benchmark) for file in files}
    own_report = benchmark.check_files([file for file, kind in kinds.items() if kind == OWN])
    problems_by_file = {
        file: [
            *_lines(file, kind, own_report.problems[file] if kind == OWN else _mistakes(file, kind))
        ]
        for file, kind in kinds.items()
    }
    n_problems = len(own_report.together) + sum(map(len, problems_by_file.values()))
    return ValidationDocument(
        ok=not n_problems,
        n_problems=n_problems,
        files=[
            FileEntry(
                file=file,
                file_kind=benchmark.file_kind if kind == OWN else kind,
                ok=not problems_by_file[file],
                problems=[*shorten(problems_by_file[file])],
            )
            for file, kind in kinds.items()
        ],
        problems=[*shorten(own_report.together)],
    )


def _kind(file: str, benchmark: Benchmark) -> str:
    """JSON is a run's document or prices, TOML a plan or the benchmark's own, and text prompts."""
    match Path(file).suffix.lower():
        case ".json":
            return "run" if _is_run(file) else "prices"
        case ".toml":
            return _kind_of_toml(file, benchmark)
        case _:
            return "prompts"


def _is_run(file: str) -> bool:
    with suppress(OSError, ValueError):
        document = json.loads(read_bounded(file, bound=MAX_STORED_BYTES))
        return isinstance(document, dict) and document.get("kind") in ("run", "curated")
    return False


def _kind_of_toml(file: str, benchmark: Benchmark) -> str:
    """What it has more keys of."""
    try:
        keys = {key.replace("-", "_") for key in parse_toml(read_bounded(file))}
    except (OSError, UnreadableTomlError):
        return UNKNOWN
    plan_words = {*plan_keys(KINDS, benchmark.name), *ABOUT, MODELS}
    is_plan = not benchmark.file_kind or len(keys & plan_words) > len(keys & benchmark.file_keys)
    return "plan" if is_plan else OWN


def _mistakes(file: str, kind: str) -> Sequence[Words]:
    try:
        _READERS[kind](file)
    except UsageError as error:
        return tuple(dict.fromkeys(error.sentences))
    return ()


def _lines(file: str, kind: str, problems: Sequence[Words]) -> Iterator[str]:
    """Without the name of the file, which is told beside them."""
    names = (file, f"prices_file {file}", Path(file).name)
    call = _by_key if kind in ("plan", "prompts") else str
    for problem in problems:
        if (
            isinstance(problem, Problem)
            and Problem(problem.place, problem.values).render() in names
        ):
            yield replace(problem, place="").render(call)
        else:
            yield to_text(problem, call)


def _read_prices(file: str) -> None:
    try:
        content = read_bounded(file)
    except OSError as error:
        raise UsageError([f"it cannot be read: {error.strerror}."]) from error
    load_prices(content, file)


def _read_run(file: str) -> None:
    """A complete run, and the verdicts that are stored beside it."""
    for run in find_runs(file, lambda: OFFLINE_REGION).runs:
        read_run(run, lambda: OFFLINE_REGION)


def _read_plan(file: str) -> None:
    """The plan, and the runs that it asks for."""
    plan = read_plan_file(file)
    request, problems = read_sweep({}, _sources(plan), plan, keeps=False)
    is_judge_known = not {"judge-model", "no-judge"}.isdisjoint(plan.flags)
    check(request, problems, is_judge_known=is_judge_known)


def _sources(plan: PlanFile) -> Sources:
    """The plan alone: what an environment says besides is taken to be as it should."""
    models = plan.flags.get(MODELS) or ["any"]
    allowed = json.dumps(models if isinstance(models, list) else [models])
    return Sources(
        flags=plan.flags,
        environ={"BEDROCK_MODEL_IDS": allowed},
        read_stdin=lambda _: b"-",
        profile_region=lambda: OFFLINE_REGION,
        offline_models=tuple,
    )


def _by_key(name: str) -> str:
    """How a plan calls a setting: what is an axis alone by the axis, such as an opening."""
    called = next((key.name for key in plan_keys(KINDS).values() if key.setting.name == name), None)
    declared = table(RunConfig).get(name)
    return called or (declared and declared.setting.axis) or name


_READERS: dict[str, Callable[[str], object]] = {
    "plan": _read_plan,
    "prompts": read_prompts,
    "prices": _read_prices,
    "run": _read_run,
    UNKNOWN: read_plan_file,  # which says why it cannot be read
}
