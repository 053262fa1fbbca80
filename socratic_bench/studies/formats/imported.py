"""Recorded dialogues as runs: their turns are published as they are, and only a judge is called.
They are of stored runs, which are judged again, or of files, which are imported.
"""

import json
import re
from hashlib import sha256
from typing import Any, cast

from msgspec.structs import replace

from socratic_bench.benchmarks import RunConfig, load_benchmark
from socratic_bench.benchmarks.socratic.scenarios.loading import builtin_ids, find_by_opening
from socratic_bench.benchmarks.socratic.turn import imported_turn
from socratic_bench.documents import encode
from socratic_bench.documents.run import CuratedDocument
from socratic_bench.ports.benchmark import (
    Benchmark,
    Episode,
    EpisodeContext,
    EpisodeResult,
    Recorded,
)
from socratic_bench.runs import Plan, perform, prepare
from socratic_bench.settings import IMPORTED, CoreConfig
from socratic_bench.studies.formats.dialogues import Dialogue

SOCRATIC = "socratic"
_LONGEST_WORDS, _DIGITS = 40, 8
# Letters of every script stay, so that two tutors do not become one; signs and blanks do not.
_NOT_IN_IDS = re.compile(r"[^\w.+:@\xa1-\u1fff\u2070-\ud7ff\ue000-\U0010ffff-]+", re.ASCII)


class RecordedEpisode:
    """The episode `inner` that publishes the `recorded` turns. All else is the inner one's."""

    def __init__(self, inner: Episode, recorded: Recorded) -> None:
        self._inner = inner
        self._recorded = recorded
        self.opening = replace(inner.opening, notices=(), **recorded.opening)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 -- as the inner one has it
        return getattr(self._inner, name)

    def play(self, context: EpisodeContext) -> EpisodeResult:
        for turn in self._recorded.turns:
            context.publish(turn)
        return self._recorded.ended


class RecordedBenchmark:
    """The benchmark `inner` for one recorded episode."""

    def __init__(self, inner: Benchmark, recorded: Recorded) -> None:
        self._inner = inner
        self._recorded = recorded

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 -- as the inner one has it
        return getattr(self._inner, name)

    def prepare(self, config: CoreConfig) -> RecordedEpisode:
        inner = self._inner.prepare(replace(config, **self._recorded.settings))
        return RecordedEpisode(inner, self._recorded)


def import_plan(dialogue: Dialogue, judged_by: RunConfig) -> Plan:
    """The run of a dialogue, judged as a configuration says. Raises `UsageError`."""
    recorded = _recorded(dialogue)
    config = replace(
        judged_by,
        benchmark=SOCRATIC,
        model=f"{IMPORTED}/{_NOT_IN_IDS.sub('-', dialogue.tutor).strip('-.') or 'tutor'}",
        prompt=dialogue.opening,
        turns=len(dialogue.exchanges),
        seed=0,  # nothing is drawn, and runs of one seed are paired
        model_ids=None,
        gates=(),
        gates_over=(),
        resume=False,
        resume_run_id=None,
    )
    config = replace(config, **recorded.settings)
    benchmark = cast("Benchmark", RecordedBenchmark(load_benchmark(SOCRATIC), recorded))
    return replace(prepare(config, benchmark=benchmark), run_id=dialogue.run_id)


def unjudged_document(dialogue: Dialogue) -> bytes:
    """The document of a dialogue that nobody has judged, as a store would have it."""
    plan = import_plan(dialogue, RunConfig(model="", judge_model=None))
    return encode(CuratedDocument.of(perform(plan)).printed)


def _recorded(dialogue: Dialogue) -> Recorded:
    is_builtin = dialogue.scenario in builtin_ids()
    scenario = None if is_builtin or dialogue.scenario else find_by_opening(dialogue.opening)
    name = dialogue.scenario or (scenario and scenario.id) or _name_of(dialogue.opening)
    words = [(turn.student, turn.tutor) for turn in dialogue.exchanges]
    return Recorded(
        settings={
            "scenario": name if name in builtin_ids() else None,
            "scenario_file": None,
            "student_model": None,
            "pressure": "none",
            "transcript": None,
            "transcript_turns": None,
            "system_prompt_file": None,
        },
        turns=tuple(imported_turn(*turn) for turn in enumerate(dialogue.exchanges)),
        ended=EpisodeResult(end_reason="recorded", closing=dialogue.last_words),
        opening={
            "id": name,
            "hashes": {"transcript_sha256": sha256(json.dumps(words).encode()).hexdigest()},
        },
    )


def _name_of(opening: str) -> str:
    """A name for what a dialogue without a scenario is about: its first words and a digest."""
    words = re.sub(r"[^a-z0-9]+", "-", opening.casefold()).strip("-")[:_LONGEST_WORDS].strip("-")
    digest = sha256(opening.strip().encode()).hexdigest()[:_DIGITS]
    return f"{words}-{digest}" if words else digest
