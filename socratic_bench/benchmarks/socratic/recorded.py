"""A stored dialogue, read from its document to be judged again."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from socratic_bench.benchmarks.socratic.reply import replayed_turn, turn_of
from socratic_bench.benchmarks.socratic.scenarios.scenario import CUSTOM
from socratic_bench.benchmarks.socratic.student.student import StudentReply
from socratic_bench.benchmarks.socratic.transcript import RecordedTurn
from socratic_bench.benchmarks.socratic.turn import SocraticTurn
from socratic_bench.errors import UsageError
from socratic_bench.ports.benchmark import EpisodeResult, Recorded
from socratic_bench.turns import recorded_reply


def recorded(document: Mapping[str, Any]) -> Recorded:
    """Raises `UsageError` if it is not a whole document of this benchmark."""
    try:
        scenario, student = document["scenario"], document["student"]
        return Recorded(
            settings={
                "scenario": None if scenario == CUSTOM else scenario,
                "prompt": document["prompt"],
                # What was said is known: nobody has to be told how to.
                "transcript": None,
                "transcript_turns": None,
                "system_prompt_file": None,
            },
            turns=tuple(_turn(entry) for entry in document["turns"]),
            ended=EpisodeResult(end_reason=document["end_reason"], closing=student.get("closing")),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError([f"The document lacks what was said: {error}."]) from error


def _turn(entry: Mapping[str, Any]) -> SocraticTurn:
    index, pressure = entry["turn"], entry.get("pressure")
    student, tutor = entry["student"], entry["question"]
    if entry.get("replayed"):
        return replayed_turn(index, RecordedTurn(student=student, tutor=tutor, pressure=pressure))
    reply = recorded_reply(tutor, entry["stop_reason"], entry.get("provider_stop_reason"))
    said = StudentReply(
        text=student,
        policy=entry.get("student_policy", "scripted"),
        pressure=pressure,
        is_filler=bool(entry.get("student_filler")),
    )
    turn = turn_of(index, said, reply)
    kept = ("student_asked_again", "cut", "flaw")
    return replace(
        turn,
        notes={**turn.notes, **{name: entry[name] for name in kept if name in entry}},
        measures=entry.get("heuristics") or {},
    )
