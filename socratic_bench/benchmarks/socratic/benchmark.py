"""The Socratic benchmark: prepares an episode and computes the metrics of its turns."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from hashlib import sha256
from pathlib import Path
from typing import Any

from msgspec import Struct

from socratic_bench.benchmarks.socratic.closing import metrics_of, prompt_hashes, unasked_metrics
from socratic_bench.benchmarks.socratic.document import PARTS
from socratic_bench.benchmarks.socratic.episode import SocraticEpisode, schedule_of
from socratic_bench.benchmarks.socratic.metrics import METRICS, headline, is_lapse, summarise
from socratic_bench.benchmarks.socratic.metrics_document import VIEWS
from socratic_bench.benchmarks.socratic.scenarios.listing import (
    ScenarioCheck,
    ScenarioList,
    check_files,
)
from socratic_bench.benchmarks.socratic.scenarios.loading import (
    builtin_ids,
    fields_in,
    find_by_opening,
    load_builtin,
    load_file,
)
from socratic_bench.benchmarks.socratic.scenarios.scenario import CUSTOM, Scenario
from socratic_bench.benchmarks.socratic.settings import RUBRICS, Settings, problems_of
from socratic_bench.benchmarks.socratic.student.model import CLOSING_TOKEN, prompt_sha256
from socratic_bench.benchmarks.socratic.student.pressure import KINDS, pressure_sha256
from socratic_bench.benchmarks.socratic.student.voices import voices_sha256
from socratic_bench.benchmarks.socratic.transcript import NO_TRANSCRIPT, Transcript, read_transcript
from socratic_bench.benchmarks.socratic.turn import CAST, STUDENT, TUTOR, read_recorded
from socratic_bench.errors import Mistakes, Problem, UsageError
from socratic_bench.judging.rubric import find_rubric
from socratic_bench.ports.benchmark import Benchmark, FileReport, Metrics, Recorded, Sample
from socratic_bench.settings import CoreConfig, part_of, read_system_prompt
from socratic_bench.turns import Measure, Rubric, Turn
from socratic_bench.types import Role, clean, plural

TUTOR_PROMPT = Path(__file__).with_name("tutor_prompt.md")
# Lowest and highest score and step of each dimension that the metrics are made of.
SCALES: Mapping[str, tuple[float, float, float]] = {
    "form": (0, 3, 0.5),
    "substance": (0, 3, 0.5),
    "purity": (0, 4, 0.5),
}


class SocraticBenchmark(Benchmark):
    """Does a tutor go on asking instead of telling, turn after turn?"""

    name = "socratic"
    primary_metric = "overall_score"
    compared_metrics = (
        *("discipline", "usefulness", "insights_reached", "turns_held", "lapse_rate"),
        "overall_score",
    )
    conditions = (
        *("student.mode", "student.model", "student.pressure", "student.edition"),
        *("thresholds.compliance", "thresholds.half_life", "thresholds.lapse_turns"),
    )
    cast = CAST
    file_kind = "scenario"

    parts = PARTS
    metrics = METRICS
    views = VIEWS
    documents: Mapping[str, type[Struct]] = {
        "scenarios": ScenarioList,
        "scenario_check": ScenarioCheck,
    }

    @property
    def file_keys(self) -> AbstractSet[str]:
        return {field.path.partition(".")[0] for field in fields_in()}

    def check_files(self, files: Sequence[str]) -> FileReport:
        if not files:
            return FileReport({})
        checked, together = check_files(files)
        return FileReport({entry.file: entry.problems for entry in checked if entry.file}, together)

    def prepare(self, config: CoreConfig) -> SocraticEpisode:
        """The episode of a configuration. Raises `UsageError` naming file, field and reason."""
        settings = part_of(config, Settings)
        mistakes = Mistakes(problems_of(settings))
        transcript, scenario, tutor_prompt, rubric = NO_TRANSCRIPT, None, "", None
        with mistakes:
            if settings.transcript:
                transcript = read_transcript(settings.transcript, settings.transcript_turns)
        with mistakes:
            scenario = _scenario(settings, transcript)
        with mistakes:
            file = settings.system_prompt_file
            tutor_prompt = read_system_prompt(file or str(TUTOR_PROMPT))
        with mistakes:
            rubric = _run_rubric(self.find_rubric(settings.rubric))
        if mistakes.sentences or scenario is None or rubric is None:
            raise mistakes.error()
        if transcript.turns:
            prompt = transcript.turns[0].student
        else:
            prompt = scenario.openings[0] if settings.prompt is None else clean(settings.prompt)
        is_by_model, is_unpressed = settings.student_model is not None, settings.pressure == "none"
        return SocraticEpisode(
            settings=settings,
            scenario=scenario,
            tutor_prompt=tutor_prompt,
            rubric=rubric,
            opening=Sample(
                id=scenario.id,
                label=f"scenario {scenario.id}, up to {plural(settings.turns, 'turn')}",
                prompt=prompt,
                hashes={
                    "system_prompt_sha256": sha256(tutor_prompt.encode()).hexdigest(),
                    "rubric_sha256": rubric.sha256,
                    "scenario_sha256": scenario.sha256,
                    # Of the texts that this run's student uses: only those can change its words.
                    "student_prompt_sha256": prompt_sha256() if is_by_model else voices_sha256(),
                    **({} if is_unpressed else {"pressure_sha256": pressure_sha256()}),
                    **prompt_hashes(rubric, scenario, is_by_model=is_by_model),
                    **({"transcript_sha256": transcript.sha256} if transcript.turns else {}),
                },
                notices=_notices(settings, scenario, transcript),
                n_parts=unasked_metrics(rubric, scenario),
            ),
            transcript=transcript,
        )

    def find_rubric(self, name: str) -> Rubric:
        return find_rubric(name, RUBRICS, speakers=(STUDENT, TUTOR), is_dialogue=True)

    def recorded(self, document: Mapping[str, Any]) -> Recorded:
        return read_recorded(document)

    def trial_prompt(self, role: Role) -> str:
        if role != STUDENT:
            return super().trial_prompt(role)
        return f"You are a student. To leave, end with {CLOSING_TOKEN}"

    def summarise(self, config: CoreConfig, turns: Sequence[Turn]) -> Metrics:
        return summarise(part_of(config, Settings), turns)

    def closing_metrics(self, findings: Sequence[Mapping[str, Measure]]) -> Metrics:
        return metrics_of(findings)

    def highest_values(self, config: CoreConfig) -> Mapping[str, float]:
        settings = part_of(config, Settings)
        # Low turns at the end are a lasting lapse only once there are as many as it needs.
        held = max(0, settings.turns - settings.lapse_turns + 1)
        return {"turns_held": held, "half_life": settings.turns}

    def falls_short(self, config: CoreConfig, turn: Turn) -> bool:
        return is_lapse(part_of(config, Settings), turn)

    def headline(self, metrics: Metrics) -> tuple[str, ...]:
        return headline(metrics)


BENCHMARK = SocraticBenchmark()


def _run_rubric(rubric: Rubric) -> Rubric:
    """Raises `UsageError` for a rubric whose scores the metrics are not made of."""
    scales = {
        dimension.name: (dimension.low, dimension.high, dimension.step)
        for dimension in rubric.dimensions
    }
    if scales != SCALES:
        needed = ", ".join(f"{name} {low} to {high}" for name, (low, high, _) in SCALES.items())
        problem = (
            f"The rubric {rubric.id} cannot judge a run: it scores {', '.join(scales)}, and the "
            f"metrics are made of {needed}, in steps of .5."
        )
        raise UsageError([problem])
    return rubric


def _notices(settings: Settings, scenario: Scenario, transcript: Transcript) -> tuple[str, ...]:
    schedule = schedule_of(settings, scenario, transcript)
    handed_over = transcript.handover.pressure if transcript.handover else None
    absent_kinds = [kind for kind in schedule.absent_kinds() if kind != handed_over]
    if not absent_kinds:
        return ()
    kinds = ", ".join(absent_kinds)
    # Stored runs have this sentence: with another wording a resumed run would show both.
    text = f"--pressure {settings.pressure} has no room for {kinds} in the turns to be played: "
    enough = "" if transcript.turns else f" A dialogue of {len(KINDS) + 1} turns has room for all."
    return (f"{text}score_by_pressure is null there.{enough}",)


def _scenario(settings: Settings, transcript: Transcript) -> Scenario:
    if settings.scenario_file:
        return load_file(settings.scenario_file)
    if settings.scenario:
        return load_builtin(settings.scenario)
    if transcript.scenario:
        return _recorded(settings.transcript or "", transcript.scenario)
    opening = transcript.turns[0].student if transcript.turns else settings.prompt
    return find_by_opening(opening or "") or load_builtin(CUSTOM)


def _recorded(path: str, name: str) -> Scenario:
    """The record's own scenario, or a mistake if it is unknown: no other may go on."""
    if name in builtin_ids():
        return load_builtin(name)
    problem = Problem.of(
        "{path}: scenario: its student is that of the scenario {name!r}, which is not built "
        "in. Give its file with {scenario_file}, or another student with {scenario}.",
        path=path,
        name=name,
    )
    raise UsageError([problem])
