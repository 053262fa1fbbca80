"""A turn of a Socratic dialogue: made of a tutor's reply, or read from a stored document."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Protocol, Self

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.benchmarks.socratic.scenarios.loading import builtin_ids
from socratic_bench.benchmarks.socratic.scenarios.scenario import CUSTOM
from socratic_bench.benchmarks.socratic.settings import Settings
from socratic_bench.benchmarks.socratic.transcript import RecordedTurn
from socratic_bench.errors import UsageError
from socratic_bench.ports.benchmark import EpisodeResult, Recorded, Sample
from socratic_bench.ports.parts import Actor, BenchmarkSpec, Part
from socratic_bench.settings import CoreConfig, part_of
from socratic_bench.turns import Turn, Unscored, recorded_reply
from socratic_bench.types import MALFORMED_STOPS, Completion, EndReason, Reasoning, doc

TUTOR = "tutor"
STUDENT = "student"

# Runs are only compared if their students are of one edition. It changes with what students say.
EDITION = "socratic-student-3"

Policy = Literal[
    "opening",
    "replayed",
    "imported",
    "scripted",
    "answered_open",
    "answered_closed",
    "took_advice",
    "heard_lecture",
    "prompted",
    "pushed",
    "model",
]


class Exchange(Struct, frozen=True, kw_only=True):
    """A message of the student and the tutor's reply to it."""

    student: str
    tutor: str


class StudentReply(Struct, frozen=True, kw_only=True):
    """The student's next message. `closed`: the message ends the dialogue.

    `policy` names what it reacted to, or where the words are from. `completion` is the call that
    made the text, `None` if no model was asked; `discarded` are calls before it whose words were
    not used. `pressure` names how the student pushes. `is_filler`: the words add nothing, since
    the scripted student had no sentence left or the tutor asked for none.
    """

    text: str
    closed: bool = False
    policy: Policy
    completion: Completion | None = None
    discarded: tuple[Completion, ...] = ()
    pressure: str | None = None
    is_filler: bool = False


class Student(Protocol):
    """Answers a tutor, without a memory of its own: a run can resume from the exchanges alone."""

    def reply(self, exchanges: Sequence[Exchange]) -> StudentReply:
        """Answer the last of the exchanges, which are all so far; there is at least one."""


class SocraticTurn(Turn, frozen=True, kw_only=True):
    """A student's message, how it pushed and lapsed (`None`: unchecked), and the tutor's reply."""

    pressure: str | None = None
    student_flags: tuple[str, ...] | None = None

    @property
    def student(self) -> Completion | None:
        """The call that produced `prompt`; `None` for an opening or a scripted student."""
        return self.others.get(STUDENT)

    @classmethod
    def of(cls, turn: Turn) -> "SocraticTurn":
        """The turn as an episode of this benchmark has published it."""
        assert isinstance(turn, cls)  # noqa: S101 -- there are no other episodes
        return turn


class SamplePart(Part, frozen=True, kw_only=True):
    """The scenario that is played."""

    scenario: Annotated[str | None, doc("id of the scenario")] = None

    @classmethod
    def of(cls, sample: Sample) -> Self:
        return cls(scenario=sample.id)

    @classmethod
    def of_config(cls, config: CoreConfig) -> Self:
        return cls(scenario=part_of(config, Settings).scenario or None)


CAST = BenchmarkSpec(
    actors=(Actor(TUTOR, "model"), Actor(STUDENT, "student_model")), sample=SamplePart
)


# Stop reasons that end the dialogue after the turn.
ENDINGS: dict[str, EndReason] = {
    "content_filtered": "content_filtered",
    "guardrail_intervened": "guardrail",
    "model_context_window_exceeded": "context_window",
}
# With these, the text is not the tutor's, so it is not scored.
NOT_THE_TUTORS_WORDS = ("content_filtered", "guardrail")
MALFORMED = "malformed_output"


def is_empty(reply: Completion) -> bool:
    return reply.stop_reason not in ENDINGS and not reply.message.text.strip()


def ending_of(reply: Completion) -> EndReason | None:
    if reply.stop_reason in ENDINGS:
        return ENDINGS[reply.stop_reason]
    return "empty_reply" if is_empty(reply) else None


def turn_of(index: int, spoken: StudentReply, reply: Completion) -> SocraticTurn:
    """The tutor's reply to what the student said."""
    ended = ending_of(reply)
    reason: str | None = None
    if ended in NOT_THE_TUTORS_WORDS or (ended and not reply.message.text.strip()):
        reason = ended
    elif reply.stop_reason in MALFORMED_STOPS:
        reason = MALFORMED
    return SocraticTurn(
        index=index,
        prompt=spoken.text,
        reply=reply,
        others={STUDENT: spoken.completion} if spoken.completion else {},
        notes={
            "student_policy": spoken.policy,
            "student_filler": spoken.is_filler,
            "student_asked_again": bool(spoken.discarded),
            "cut": reply.stop_reason == "max_tokens",
            "flaw": _flaw(reply),
        },
        unscorable=Unscored(
            reason=reason, message=f"There is no reply of the tutor to judge ({reply.stop_reason})."
        )
        if reason
        else None,
        pressure=spoken.pressure,
    )


def _flaw(reply: Completion) -> str | None:
    """What is wrong with a reply as such, whatever it says."""
    if reply.stop_reason in ENDINGS:
        return ENDINGS[reply.stop_reason]
    if reply.message.text.strip():
        if reply.stop_reason in MALFORMED_STOPS:
            return MALFORMED
        return "cut" if reply.stop_reason == "max_tokens" else None
    thought = any(isinstance(block, Reasoning) for block in reply.message.content)
    return "reasoning_only" if thought else "empty"


def replayed_turn(index: int, turn: RecordedTurn) -> SocraticTurn:
    spoken = StudentReply(text=turn.student, policy="replayed", pressure=turn.pressure)
    return replace(turn_of(index, spoken, recorded_reply(turn.tutor, "replayed")), replayed=True)


def imported_turn(index: int, turn: RecordedTurn) -> SocraticTurn:
    """A turn of a dialogue from a file. What a tutor says before the student is not judged."""
    if not turn.student:
        return replayed_turn(index, turn)
    spoken = StudentReply(text=turn.student, policy="imported")
    return turn_of(index, spoken, recorded_reply(turn.tutor, "imported"))


def read_recorded(document: Mapping[str, Any]) -> Recorded:
    """The dialogue of a run's document. Raises `UsageError` if it is none of this benchmark."""
    try:
        scenario, student = document["scenario"], document["student"]
        return Recorded(
            settings={
                "scenario": scenario if scenario in builtin_ids() and scenario != CUSTOM else None,
                "prompt": document["prompt"],
                # The words are known: nobody is asked for them.
                "transcript": None,
                "transcript_turns": None,
                "system_prompt_file": None,
            },
            turns=tuple(_recorded_turn(entry) for entry in document["turns"]),
            ended=EpisodeResult(end_reason=document["end_reason"], closing=student.get("closing")),
            opening={"id": scenario},
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError([f"The document lacks what was said: {error}."]) from error


def _recorded_turn(entry: Mapping[str, Any]) -> SocraticTurn:
    index, pressure = entry["turn"], entry.get("pressure")
    student, tutor = entry["student"], entry["question"]
    if entry.get("replayed"):
        return replayed_turn(index, RecordedTurn(student=student, tutor=tutor, pressure=pressure))
    reply = recorded_reply(tutor, entry["stop_reason"], entry.get("provider_stop_reason"))
    spoken = StudentReply(
        text=student,
        policy=entry.get("student_policy", "scripted"),
        pressure=pressure,
        is_filler=bool(entry.get("student_filler")),
    )
    turn = turn_of(index, spoken, reply)
    stored = ("student_asked_again", "cut", "flaw")
    return replace(
        turn,
        notes={**turn.notes, **{name: entry[name] for name in stored if name in entry}},
        measures=entry.get("heuristics") or {},
    )
