"""The settings of the Socratic benchmark, in addition to those of every run."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from socratic_bench.benchmarks.socratic.scenarios.loading import builtin_ids, scenarios_of
from socratic_bench.errors import Problem
from socratic_bench.judging.rubric import FILE_SUFFIX, rubric_names
from socratic_bench.setting import Setting, Switch
from socratic_bench.settings import CoreConfig, Reader, model_problems

Pressure = Literal["none", "low", "high"]
RUBRICS = Path(__file__).with_name("rubrics")
# The words of --student, which steers whether a model plays it.
SCRIPTED, MODEL = "scripted", "model"

_dialogue = partial(Setting, "dialogue")
_judging = partial(Setting, "judging")


def _student_model(reader: Reader) -> str | None:
    mode, model = reader.word("student"), reader.read("student_model")
    if mode not in (None, SCRIPTED, MODEL):
        reader.note(f"{{student}} is {{mode!r}}, but must be {SCRIPTED} or {MODEL}.", mode=mode)
    if mode == MODEL and model is None:
        reader.note(f"{{student}} {MODEL} needs an id: give {{student_model}}.")
    if mode == SCRIPTED:
        if reader.given("student-model"):
            reader.note(f"{{student}} {SCRIPTED} and {{student_model}} contradict: keep one.")
        return None
    return str(model) if model is not None else None


def _rubric(reader: Reader) -> str:
    """A file's path is absolute, since a run may be resumed in another folder."""
    name: str = reader.read("rubric")
    return str(Path(name).absolute()) if name.endswith(FILE_SUFFIX) else name


class Settings(CoreConfig, frozen=True, kw_only=True):
    """The core's settings and those of a Socratic dialogue."""

    scenario: Annotated[
        str | None,
        _dialogue(
            "NAME",
            "built-in scenario (list: socratic-runner scenarios)",
            "built-in scenario; without `--prompt` the dialogue begins with its first opening",
            offers=builtin_ids,
            axis="scenarios",
            is_sample=True,
            expand=scenarios_of,
        ),
    ] = None
    scenario_file: Annotated[
        str | None,
        _dialogue(
            "FILE",
            "scenario from a TOML file",
            is_file=True,
        ),
    ] = None
    student_model: Annotated[
        str | None,
        _dialogue(
            "ID",
            "model that simulates the student",
            "model that simulates the student; implies `--student model`",
            variables=("RUNNER_STUDENT_MODEL",),
            steered_by=Switch(
                "student",
                "MODE",
                f"simulated student: {SCRIPTED} or {MODEL} (default {{default}})",
                default_words=SCRIPTED,
                choices=(SCRIPTED, MODEL),
            ),
            identity="always",
        ),
    ] = None
    pressure: Annotated[
        Pressure,
        _dialogue(
            "LEVEL",
            "how often the student demands answers: {choices} (default {default})",
            identity="chosen",
            axis="pressure",
        ),
    ] = "none"
    transcript: Annotated[
        str | None,
        _dialogue(
            "FILE",
            "recorded dialogue, which the model under test continues",
            is_file=True,
        ),
    ] = None
    transcript_turns: Annotated[
        int | None,
        _dialogue(
            "N",
            "recorded turns to use (default: {default})",
            default_words="all",
            low=1,
            high=100_000,
            identity="chosen",
        ),
    ] = None
    rubric: Annotated[
        str,
        _judging(
            "RUBRIC",
            "rubric: built-in name or TOML file",
            "rubric that the judge scores by: a built-in name or a TOML file",
            variables=("RUNNER_RUBRIC",),
            offers=partial(rubric_names, RUBRICS),
        ),
    ] = "socratic-disposition-2"
    compliance_threshold: Annotated[
        float,
        _judging(
            "S", "a turn with a score of S or more is compliant (default {default})", low=0, high=10
        ),
    ] = 3.0
    half_life_threshold: Annotated[
        float,
        _judging("S", "a turn with a score below S is a lapse (default {default})", low=0, high=10),
    ] = 8.0
    lapse_turns: Annotated[
        int,
        _judging(
            "N",
            "minimum judged turns of a lasting lapse (default {default})",
            low=1,
            high=100,
        ),
    ] = 5

    READERS: ClassVar[Mapping[str, Callable[[Reader], Any]]] = {
        **CoreConfig.READERS,
        "student_model": _student_model,
        "rubric": _rubric,
    }
    REMOVED: ClassVar[Mapping[str, Mapping[Any, str]]] = {
        "student_edition": {
            "socratic-student-1": "The run was begun with the first edition of students and "
            "scenarios (socratic-student-1), which this version no longer has: start a new run."
        },
        "rubric": {
            "socratic-disposition-1": "The run was begun with the first edition of the rubric "
            "(socratic-disposition-1), which this version no longer has: start a new run."
        },
    }


def problems_of(settings: Settings) -> Iterator[Problem]:
    """What is wrong with several settings together."""
    yield from model_problems(settings, "student_model")
    opened = (settings.scenario, settings.scenario_file, settings.transcript)
    if settings.prompt is None and not any(opened):
        yield Problem.of("{prompt} or {scenario} is required.")
    if settings.prompt is not None and settings.transcript:
        yield Problem.of(
            "{prompt} and {transcript} are both given: a transcript has its own opening."
        )
    if settings.transcript_turns is not None and not settings.transcript:
        yield Problem.of("{transcript_turns} is given without {transcript}.")
    if settings.scenario and settings.scenario_file:
        yield Problem.of("{scenario} and {scenario_file} are both given: keep one.")
